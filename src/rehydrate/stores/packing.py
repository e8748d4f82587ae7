"""Packing: bytes of a new record that stand already in records which the same commit removes, the rule for all stores.

Many small parts that become one would else be stored twice. It compares bytes and opens none of them; what the records
mean is not known here. Stored bytes are hostile: what unpacks is bounded.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeVar

import msgspec

from rehydrate.errors import CheckpointCorruptError
from rehydrate.model.checkpoint import Commit

from .rows import open_row, seal_row

#: A commit that removes fewer records is not looked at.
_MANY: Final = 16
#: Bytes of a record that others may lie in, and of those. So no record is both.
LARGE: Final = 16 * 1024
SMALL: Final = 8 * 1024
#: What differs at both ends of a record (envelope, lengths, count) is shorter than this.
_HEAD: Final = 40
_TAIL: Final = 8
#: After so many records in a row that lie in none, no further ones are looked for: each is a search through all of it.
_PATIENCE: Final = 16
#: Bytes of an unpacked list; more is damage.
_CEILING: Final = 4 * 1024 * 1024
#: Bytes of a record; no store takes a larger one.
_MOST: Final = 1 << 30
_Item = TypeVar("_Item")


class Shared(NamedTuple):
    """Bytes `start` to `end` of an old record, which are those of a new one from `offset` on."""

    which: int
    start: int
    end: int
    offset: int


class Source(NamedTuple):
    """A record that a later one may be made of: the number of its commit, its place in what that wrote, its bytes."""

    seq: int
    start: int
    data: bytes


class Span(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """Bytes of what commit `seq` wrote, behind bytes that stand here."""

    inline: bytes
    seq: int
    start: int
    size: int


class Recipe(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """A record that is made of bytes of earlier ones; `spans` is a packed list, `tail` what follows the last."""

    size: int
    spans: bytes
    tail: bytes


_decode_spans: Final = msgspec.msgpack.Decoder(list[Span])
_encode: Final = msgspec.msgpack.Encoder().encode


def replaced_keys(commit: Commit) -> list[str]:
    """Return the keys of what a commit replaces or removes, if records under them may lie in what it writes."""
    large = [put.key for put in commit.puts if len(put.data) >= LARGE]
    return [*large, *commit.removes] if large and len(commit.removes) >= _MANY else []


def shared_bytes(old: Sequence[bytes], data: bytes) -> list[Shared]:
    """Return what of old records stands in a new one, in the order of both; `old` is in the order of writing."""
    found: list[Shared] = []
    at = failed = 0
    for index, small in enumerate(old):
        core = small[_HEAD:-_TAIL]
        place = data.find(core, at) if len(core) >= _HEAD else -1
        if place < 0:
            failed += 1
            if failed > _PATIENCE:
                break
            continue
        failed = 0
        start, end = _HEAD, len(small) - _TAIL
        while start and place > at and small[start - 1] == data[place - 1]:
            start, place = start - 1, place - 1
        at = place + end - start
        found.append(Shared(index, start, end, place))
    return found


def recipe_of(old: Sequence[Source], data: bytes) -> bytes | None:
    """Return how a record is made of old ones, which are in the order of writing.

    `None` where they hold less than half of it.
    """
    shared = shared_bytes([small.data for small in old], data)
    if 2 * sum(piece.end - piece.start for piece in shared) < len(data):
        return None
    spans: list[Span] = []
    at = before = follows = 0
    for index, start, end, offset in shared:
        seq, place, _ = old[index]
        # Numbers count from those before: small ones, which compress well.
        spans.append(Span(data[at:offset], seq - before, place + start - follows, end - start))
        before, follows, at = seq, place + start, offset + end - start
    listed = _encode(spans)
    if len(listed) > _CEILING:
        return None
    return seal_row(Recipe(len(data), zlib.compress(listed), data[at:]))


def open_recipe(body: object, before: int, what: str) -> tuple[list[Span], bytes]:
    """Return the spans of a record that commit `before` wrote, with true numbers, and what follows them.

    Raises `CheckpointCorruptError` where they are none that were ever written. They ascend: bytes that came again and
    again would make much of a short list.
    """
    recipe = open_row(body, Recipe, what)
    spans: list[Span] = []
    seq = start = 0
    end = (0, 0)
    size = len(recipe.tail)
    for span in unpacked(recipe.spans, _decode_spans, what):
        seq, start = seq + span.seq, start + span.start
        size += len(span.inline) + span.size
        if not ((seq, start) >= end and seq < before and 0 <= start < _MOST and 0 < span.size < SMALL):
            raise CheckpointCorruptError(what, "it is made of what was not written before it")
        end = (seq, start + span.size)
        spans.append(Span(span.inline, seq, start, span.size))
    if size != recipe.size or size > _MOST:
        raise CheckpointCorruptError(what, "what it is made of has another size")
    return spans, recipe.tail


def made(spans: Sequence[Span], tail: bytes, shared: Sequence[bytes], what: str) -> bytes:
    """Return a record from the bytes of each of its spans. Raises `CheckpointCorruptError` where these are others."""
    if list(map(len, shared)) != [span.size for span in spans]:
        raise CheckpointCorruptError(what, "what it is made of is not there")
    pieces = [piece for span, part in zip(spans, shared, strict=True) for piece in (span.inline, part)]
    return b"".join((*pieces, tail))


def packed(items: Sequence[msgspec.Struct]) -> bytes:
    """Return a list as it is stored."""
    return zlib.compress(_encode(items))


def unpacked(data: bytes, decoder: msgspec.msgpack.Decoder[list[_Item]], what: str) -> list[_Item]:
    """Return a list that was stored. Raises `CheckpointCorruptError` for none, or one that is too long."""
    unpacking = zlib.decompressobj()
    try:
        return decoder.decode(unpacking.decompress(data, _CEILING))
    except (zlib.error, msgspec.MsgspecError) as error:
        raise CheckpointCorruptError(what, str(error)) from None
