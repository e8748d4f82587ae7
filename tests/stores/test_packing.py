"""Which bytes of a record stand in older ones, and that what is made of them is bounded, whatever is stored."""

from __future__ import annotations

import hashlib
import random
import zlib

import msgspec
import pytest

from rehydrate.errors import CheckpointCorruptError
from rehydrate.stores.packing import Source, Span, made, open_recipe, recipe_of, shared_bytes
from rehydrate.stores.rows import seal_row


def middle(number: int, size: int = 700) -> bytes:
    """Bytes that no other number has."""
    return hashlib.shake_256(b"%d" % number).digest(size)


def sources(count: int) -> list[Source]:
    """Small records with other bytes around what they share with the large one."""
    return [Source(number, 3 * number, b"head %04d" % number + middle(number) + b"t") for number in range(count)]


def test_a_record_is_made_of_what_it_was_made_of() -> None:
    """A recipe gives the very bytes again, and is far shorter than these."""
    old = sources(40)
    data = b"large" + b"".join(map(middle, range(40))) + b"end"
    recipe = recipe_of(old, data)
    assert recipe is not None
    assert len(recipe) < 1000
    spans, tail = open_recipe(recipe, 40, "it")
    assert [(span.seq, span.start, span.size) for span in spans] == [(n, 3 * n + 9, 693) for n in range(40)]
    shared = [old[s.seq].data[s.start - old[s.seq].start :][: s.size] for s in spans]
    assert made(spans, tail, shared, "it") == data


def test_a_record_that_shares_less_than_half_is_no_recipe() -> None:
    """Then it is stored whole."""
    assert recipe_of(sources(40), b"".join(map(middle, range(15))) + middle(99, 20_000)) is None


def test_what_is_shared_is_found_in_order_and_never_twice() -> None:
    """Of random records some of which lie in the large one, each stretch lies behind the one before."""
    chance = random.Random(3)
    for _ in range(50):
        old = [chance.randbytes(chance.choice((50, 90, 300, 900))) for _ in range(30)]
        kept = [small[chance.choice((0, 9, 20)) : len(small) - chance.choice((0, 1, 8))] for small in old]
        data = b"".join(part for part in kept if chance.random() < 0.7)
        end = 0
        for which, start, stop, offset in shared_bytes(old, data):
            assert offset >= end
            assert old[which][start:stop] == data[offset : offset + stop - start]
            end = offset + stop - start


def forged(spans: list[list[object]] | bytes, size: int, tail: bytes = b"") -> bytes:
    """Return a recipe with a right checksum that nothing here has written."""
    listed = spans if isinstance(spans, bytes) else msgspec.msgpack.encode(spans)
    body = msgspec.msgpack.encode([size, zlib.compress(listed), tail])
    return hashlib.sha256(body).digest()[:8] + body


@pytest.mark.parametrize(
    "recipe",
    [
        pytest.param(forged([[b"", 7, 0, 10]], 10), id="made of itself"),
        pytest.param(forged([[b"", 1, -1, 10]], 10), id="a place below 0"),
        pytest.param(forged([[b"", 1, 2**31, 10]], 10), id="a place beyond all"),
        pytest.param(forged([[b"", 1, 0, 8192]], 8192), id="a source that is too large"),
        pytest.param(forged([[b"", 1, 0, -5]], -5), id="less than nothing"),
        pytest.param(forged([[b"", 1, 0, 10]], 11), id="another size"),
        pytest.param(forged([[b"", -1, 0, 10]], 10), id="a commit below 0"),
        pytest.param(forged([[b"", -(2**63), 0, 10]], 10), id="a commit that no number names"),
        pytest.param(forged([[b"", 1, 0, 10], [b"", 0, 0, 10]], 20), id="the same bytes again"),
        pytest.param(forged([[b"", 1, 0, 10], [b"", 0, 9, 10]], 20), id="bytes that overlap"),
        pytest.param(forged([[b"", 2, 0, 10], [b"", -1, 10, 10]], 20), id="an earlier commit behind a later one"),
        pytest.param(forged([[b"", 1, 0, 10, 1]], 10), id="a field too many"),
        pytest.param(forged([[b"", 1, 0, 8000]] * 135_000, 8000 * 135_000), id="more than a record can be"),
        pytest.param(forged(bytes(5 * 1024 * 1024), 0), id="a list that is too long"),
        pytest.param(forged(b"\x91", 0), id="a list cut off"),
        pytest.param(seal_row(Span(b"", 1, 0, 10)), id="something else"),
        pytest.param(None, id="no bytes"),
    ],
)
def test_a_forged_recipe_is_refused(recipe: bytes | None) -> None:
    """It is damage, and nothing is read for it."""
    with pytest.raises(CheckpointCorruptError):
        open_recipe(recipe, 7, "it")


def test_a_source_of_another_size_is_damage() -> None:
    """What was read for a recipe must be as long as it says."""
    spans, tail = open_recipe(forged([[b"a", 1, 0, 10]], 12, b"z"), 7, "it")
    assert made(spans, tail, [b"0123456789"], "it") == b"a0123456789z"
    for shared in ([], [b""], [b"012345678"], [b"0123456789."], [b"0123456789", b""]):
        with pytest.raises(CheckpointCorruptError):
            made(spans, tail, shared, "it")
