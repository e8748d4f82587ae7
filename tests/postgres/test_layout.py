"""Lists of what commits did and rows of what is live: what nobody wrote is damage before anything is built upon it."""

import pytest

from rehydrate.errors import CheckpointCorruptError
from rehydrate.stores.postgres.layout import Entry, Place, live_row, open_entries, open_live, seal_entries

#: The largest number of an `integer`.
MOST = 2**31 - 1


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
        open_entries(seal_entries(entries), "it")


def test_bytes_that_belong_to_nothing_are_no_keys() -> None:
    """There may be several stretches of them in a row from which records were forgotten."""
    entries = [Entry("a", 300, 300), Entry("b", 900, -300), Entry("c", 1500, 300)]
    assert open_entries(seal_entries(entries), "it") == entries
