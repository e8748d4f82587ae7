"""A run that is cancelled at any moment, in any way: it stops there, and goes on as if nothing had happened."""

from pathlib import Path

import pytest

from tests.differential.moments import CANCELS
from tests.differential.spawning import spawn
from tests.differential.stopped import StoreKind, handed_over, stopped_runs
from tests.widest import one_in


@pytest.mark.parametrize(
    ("store", "seeds"), [("memory", range(5200, 5205)), ("sqlite", range(5200, 5202)), ("none", range(5210, 5215))]
)
def test_a_run_goes_on_after_a_cancellation_as_if_nothing_had_happened(
    store: StoreKind, seeds: range, tmp_path: Path
) -> None:
    """Whatever was cancelled, also where a handler does not heed it, leaves no trace: outputs, state, requests and kept
    events are the same, and nothing that had finished runs again."""
    wrong, ends = stopped_runs(seeds, CANCELS, store, tmp_path, variants=4)
    assert wrong == []
    seen = {"cancel: CANCELLED", "leave: CANCELLED"}
    if store != "none":
        seen |= {"await: cancelled", "result: cancelled", "drop"}
    assert seen <= ends.keys()


def test_another_process_goes_on_after_a_cancellation(tmp_path: Path) -> None:
    """It has the SQLite file only, and what must follow."""
    left = handed_over(range(5220, 5225), CANCELS, tmp_path, variants=1)
    assert len(left) >= 3
    assert spawn(left, tmp_path / "tasks") == []


LONG: list[tuple[StoreKind, int, range]] = [
    *(("memory", 6, range(first, first + 20)) for first in range(7000, 7400, 20)),
    *(("sqlite", 4, range(first, first + 10)) for first in range(7400, 7500, 10)),
    *(("none", 4, range(first, first + 20)) for first in range(7500, 7700, 20)),
]


@pytest.mark.proof
@pytest.mark.parametrize(
    ("store", "variants", "seeds"), one_in(4, LONG), ids=[f"{store}-{seeds[0]}-{seeds[-1]}" for store, _, seeds in LONG]
)
def test_a_run_goes_on_after_a_cancellation_at_any_moment(
    store: StoreKind, variants: int, seeds: range, tmp_path: Path
) -> None:
    """The long form of the same."""
    assert stopped_runs(seeds, CANCELS, store, tmp_path, variants)[0] == []


@pytest.mark.proof
@pytest.mark.parametrize("first", one_in(3, range(7700, 7800, 10)))
def test_another_process_goes_on_after_a_cancellation_at_any_moment(first: int, tmp_path: Path) -> None:
    """The long form of the same."""
    assert spawn(handed_over(range(first, first + 10), CANCELS, tmp_path, variants=2), tmp_path / "tasks") == []
