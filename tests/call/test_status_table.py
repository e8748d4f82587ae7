"""The status table: which changes of a status are legal, that runs make all of them, and that no other gets in."""

import asyncio

import pytest

from rehydrate import Status
from rehydrate.model.status_table import STATUS_TABLE, is_legal
from rehydrate.runtime.clock import SystemClock
from rehydrate.runtime.saver import Ledger
from tests.call.desk import Note, desk
from tests.call.stops import cancelled, failed, interrupted

run = asyncio.run


def changes(store):
    """The changes of status between the checkpoints of all runs, a run's beginning included."""
    found = set()
    for head in run(store.runs()):
        statuses = [header.status for header in reversed(run(store.history(head.run_id)))]
        found |= set(zip([None, *statuses], statuses, strict=False))
    return found


def test_runs_change_as_the_table_says_and_no_other_way(world, store):
    """Runs that pause, end, fail, are cancelled, lost and limited, and then go on, make every change of the table."""
    workflow = desk(world, store)
    paused = run(workflow.run(Note("a?"), run_id="one"))
    idle = run(workflow.run(checkpoint=paused, responses=[paused.pending_requests[0].answer(True)]))
    run(workflow.run(checkpoint=failed(world, workflow, "clerk b", Note("b"), checkpoint=idle)))
    run(workflow.run(checkpoint=cancelled(world, workflow, "clerk c", Note("c"), run_id="two")))
    limited = run(desk(world, store, max_supersteps=1).run(Note("d"), run_id="three"))
    assert limited.status is Status.LIMIT_REACHED
    run(workflow.run(checkpoint=limited))
    interrupted(store, 2, workflow, Note("e"), run_id="four")
    run(workflow.run(Note("e"), run_id="four"))
    assert changes(store) == {(change.before, change.after) for change in STATUS_TABLE}


@pytest.mark.parametrize("after", Status)
@pytest.mark.parametrize("before", [None, *Status])
def test_a_ledger_lets_no_other_change_in(before, after):
    """Every change that is not in the table is refused where headers are made."""
    ledger = Ledger("r", "flow", "birth", SystemClock())
    ledger.status = before
    listed = (before, after) in {(change.before, change.after) for change in STATUS_TABLE}
    assert is_legal(before, after) is listed
    if listed:
        ledger.turn_to(after)
        assert ledger.status is after
        return
    with pytest.raises(AssertionError, match=after.value):
        ledger.turn_to(after)


def test_each_change_is_listed_once_with_what_makes_it():
    """A change has one row, and each row says why."""
    assert len({(change.before, change.after) for change in STATUS_TABLE}) == len(STATUS_TABLE)
    assert all(change.by for change in STATUS_TABLE)
    assert (
        {change.after for change in STATUS_TABLE} == {change.before for change in STATUS_TABLE} - {None} == set(Status)
    )
