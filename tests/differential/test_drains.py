"""A process that is drained at any moment: whoever goes on with its runs comes to what uninterrupted ones came to."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rehydrate.testing import claim_turns_again
from tests.differential.moments import DRAINS
from tests.differential.spawning import spawn
from tests.differential.stopped import StoreKind, handed_over, stopped_runs
from tests.proof.ledger import Tried
from tests.widest import one_in


@pytest.fixture(autouse=True)
def undrained() -> Iterator[None]:
    """Each test leaves a process that claims turns."""
    yield
    claim_turns_again()


@pytest.mark.promise("drain", "random graphs, drained at random moments")
@pytest.mark.parametrize(
    ("store", "seeds"), [("memory", range(5100, 5105)), ("sqlite", range(5101, 5104)), ("none", range(5110, 5115))]
)
def test_a_run_goes_on_after_a_drain_as_if_nothing_had_happened(
    store: StoreKind, seeds: range, tmp_path: Path, tried: Tried
) -> None:
    """Wherever it is handed on, with handlers finished or cut off: outputs, state, requests and kept events are the
    same, nothing that had finished runs again, and the drain takes no longer than the handlers do, and its grace."""
    wrong, ends = stopped_runs(seeds, DRAINS, store, tmp_path, variants=4)
    tried(4 * len(seeds))
    assert wrong == []
    seen = {"handed on", "cut off"}
    if store == "memory":
        seen |= {"both: cancelled", "both: handed on"}
    assert seen <= ends.keys()


def test_another_process_goes_on_after_a_drain(tmp_path: Path) -> None:
    """It has the SQLite file only, and what must follow."""
    left = handed_over(range(5120, 5125), DRAINS, tmp_path, variants=1)
    assert len(left) >= 3
    assert spawn(left, tmp_path / "tasks") == []


LONG: list[tuple[StoreKind, int, range]] = [
    *(("memory", 6, range(first, first + 20)) for first in range(6000, 6400, 20)),
    *(("sqlite", 4, range(first, first + 10)) for first in range(6400, 6500, 10)),
    *(("none", 4, range(first, first + 20)) for first in range(6500, 6700, 20)),
]


@pytest.mark.proof
@pytest.mark.promise("drain", "random graphs, drained at random moments")
@pytest.mark.parametrize(
    ("store", "variants", "seeds"), one_in(4, LONG), ids=[f"{store}-{seeds[0]}-{seeds[-1]}" for store, _, seeds in LONG]
)
def test_a_run_goes_on_after_a_drain_at_any_moment(
    store: StoreKind, variants: int, seeds: range, tmp_path: Path, tried: Tried
) -> None:
    """The long form of the same."""
    tried(variants * len(seeds))
    assert stopped_runs(seeds, DRAINS, store, tmp_path, variants)[0] == []


@pytest.mark.proof
@pytest.mark.parametrize("first", one_in(2, range(6700, 6800, 10)))
def test_another_process_goes_on_after_a_drain_at_any_moment(first: int, tmp_path: Path) -> None:
    """The long form of the same."""
    assert spawn(handed_over(range(first, first + 10), DRAINS, tmp_path, variants=2), tmp_path / "tasks") == []
