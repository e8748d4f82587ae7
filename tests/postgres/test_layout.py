"""Lists of what commits did and rows of what is live: what nobody wrote is damage before anything is built upon it."""

import pytest

from rehydrate.errors import CheckpointCorruptError
from rehydrate.stores.postgres.layout import Place, live_row, open_live

#: The largest number of an `integer`.
MOST = 2**31 - 1


@pytest.mark.parametrize(
    ("start", "size"), [(MOST, 1), (MOST - 9, 9), (0, MOST), (0, -MOST - 1), (-1, 0), (-3, 10), (-MOST - 1, 1)]
)
def test_a_live_record_where_none_can_be_is_damage(start: int, size: int) -> None:
    """Although its checksum fits: the server could not count so far, and others would have that error, too."""
    with pytest.raises(CheckpointCorruptError, match="where none can be"):
        open_live(live_row(Place("key", 7, start, size)), "it")
