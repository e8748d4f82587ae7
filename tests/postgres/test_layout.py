"""Lists of what commits did and rows of what is live: what nobody wrote is damage before anything is built upon it."""

import asyncio
import hashlib
import zlib
from collections.abc import Callable

import msgspec
import pytest

from rehydrate.errors import CheckpointCorruptError, StoreUnavailableError
from rehydrate.stores.postgres.layout import (
    INLINE,
    Entry,
    Place,
    laid_out,
    live_row,
    open_entries,
    open_live,
    seal_entries,
)
from rehydrate.testing.store_contract import CommitMaker
from tests.postgres import server

#: The largest number of an `integer`.
MOST = 2**31 - 1
#: One more than a commit can write or remove, and the bytes of more than its list can hold.
KEYS = 2**20 + 1
BYTES = 33 * 1024 * 1024


@pytest.mark.parametrize(
    ("start", "size"), [(MOST, 1), (MOST - 9, 9), (0, MOST), (0, -MOST - 1), (-1, 0), (-3, 10), (-MOST - 1, 1)]
)
def test_a_live_record_where_none_can_be_is_damage(start: int, size: int) -> None:
    """Although its checksum fits: the server could not count so far, and others would have that error, too."""
    with pytest.raises(CheckpointCorruptError, match="where none can be"):
        open_live(live_row(Place("key", 7, start, size)), "it")


@pytest.mark.parametrize(
    "entries",
    [
        pytest.param([Entry("k", 0, 300), Entry("k", 300, 300)], id="written twice"),
        pytest.param([Entry("k", -2, 1, b"a"), Entry("k", 0, 300)], id="written once in the list, once in data"),
        pytest.param([Entry("k", -1, 0), Entry("k", -1, 0)], id="removed twice"),
        pytest.param([Entry("k", -1, 0), Entry("k", -2, 1, b"a")], id="removed and written"),
    ],
)
def test_a_key_that_is_listed_twice_is_damage(entries: list[Entry]) -> None:
    """No commit does two things to a key, and whoever counts records counts on that."""
    with pytest.raises(CheckpointCorruptError, match="has a key twice"):
        open_entries(seal_entries(entries, "it"), "it")


def test_bytes_that_belong_to_nothing_are_no_keys() -> None:
    """There may be several stretches of them in a row from which records were forgotten."""
    entries = [Entry("a", 300, 300), Entry("b", 900, -300), Entry("c", 1500, 300)]
    assert open_entries(seal_entries(entries, "it"), "it") == entries


@pytest.mark.parametrize(
    "listed",
    [  # made when they are needed: each worker would make them as it loads this module
        pytest.param(lambda: [[""] * KEYS, [], [], 0, b""], id="removes"),
        pytest.param(lambda: [[], [""] * KEYS, [], 0, b""], id="keys"),
        pytest.param(lambda: [[], [], [0] * KEYS, 0, b""], id="sizes"),
        pytest.param(lambda: [[], ["k"], [BYTES], 1, bytes(BYTES)], id="bytes"),
    ],
)
def test_a_list_that_is_too_large_is_damage(listed: Callable[[], list[object]]) -> None:
    """It is as short as it can be packed, and nothing is built from it."""
    packing = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = packing.compress(msgspec.msgpack.encode(listed())) + packing.flush()
    assert len(packed) < 40_000
    with pytest.raises(CheckpointCorruptError, match=r"length <= 1048576|truncated"):
        open_entries(hashlib.sha256(packed).digest()[:4] + packed, "it")


@pytest.mark.parametrize(
    "entries",
    [
        pytest.param(lambda: [Entry(str(number), -1, 0) for number in range(KEYS)], id="removes"),
        pytest.param(lambda: [Entry(str(number), number, 1) for number in range(KEYS)], id="keys"),
        pytest.param(lambda: [Entry("k", INLINE, BYTES, bytes(BYTES))], id="bytes"),
    ],
)
def test_a_list_that_could_not_be_read_again_is_not_made(entries: Callable[[], list[Entry]]) -> None:
    """The error says what can be listed, and what to do."""
    with pytest.raises(StoreUnavailableError, match=r"list 1048576 records with 32 MB .* Let a superstep write fewer"):
        seal_entries(entries(), "it")


def test_many_small_records_lie_in_data() -> None:
    """So that any number of bytes of them can be written: 16 MB lie in the list."""
    layout = laid_out(CommitMaker().claim({f"k{number}": bytes(250) for number in range(70_000)}), "it")
    assert len(layout.data) == 70_000 * 250 - 16 * 1024 * 1024 // 250 * 250
    assert open_entries(layout.sealed, "it") == layout.entries


def test_a_commit_that_is_too_large_holds_up_no_other(postgres: server.Place) -> None:
    """Of commits that share a transaction only that one is refused, and nothing of it is there."""

    async def main() -> None:
        async with postgres.store() as store:
            makers = [CommitMaker(f"r{number}") for number in range(5)]
            many = {"k" * 1024 * 1024 + str(number): b"v" for number in range(33)}
            commits = [maker.claim(many if number == 2 else {}) for number, maker in enumerate(makers)]
            results = await asyncio.gather(*map(store.commit, commits), return_exceptions=True)
            assert [type(result) for result in results if result is not None] == [StoreUnavailableError]
            assert [header.run_id for header in await store.runs()] == ["r0", "r1", "r3", "r4"]

    asyncio.run(main())
