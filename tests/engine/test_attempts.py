"""Attempts in the records: what a failed one leaves, what a restart makes of them, and when the next one starts."""

import pytest

from rehydrate.engine.commands import Commit, StartInvocation
from rehydrate.engine.inputs import AttemptBroken, CancelAsked, Input, InvocationBroken, InvocationFinished
from rehydrate.engine.reading import attempts
from rehydrate.model.effects import Failure, Output, Route, Send
from rehydrate.model.records import AttemptRecord
from tests.engine.driver import START, Driver, Hands, continuing, first_turn, sealed
from tests.engine.test_transition import chain

FAILURE = Failure("handler", "Fault", "told to")
WAITS = AttemptBroken("", "start", 1, FAILURE, START + 60)
OVERDUE = AttemptBroken("", "start", 1, FAILURE, START - 60)


@pytest.fixture
def driver() -> Driver:
    """A run whose only invocation has begun."""
    found = Driver(Hands(chain("start", "last")))
    found.begin(first_turn(3))
    return found


def starts(driver: Driver, *inputs: Input) -> list[tuple[str, int, float | None]]:
    """The invocations that a transition starts, and when."""
    commands = driver.take(*inputs).commands
    return [
        (command.delivery.executor, command.delivery.activation, command.due)
        for command in commands
        if isinstance(command, StartInvocation)
    ]


def record(driver: Driver) -> AttemptRecord:
    """What is recorded of the invocation."""
    return attempts(driver.run, "", "start", 1)


def test_a_failed_attempt_is_saved_before_the_next_one_starts(driver: Driver) -> None:
    """The order to start it, with its time, stands behind a commit that holds the record."""
    commands = driver.take(WAITS).commands
    assert [type(command) for command in commands] == [Commit, StartInvocation]
    assert record(driver) == AttemptRecord(1, failed=1, due=START + 60)
    assert driver.ended is None


def test_what_waited_at_a_restart_waits_on(driver: Driver) -> None:
    """Nothing is counted: the attempt has not begun, whether the process was lost or the run cancelled."""
    driver.take(WAITS)
    for interrupted in (True, False):
        assert starts(driver, continuing(interrupted=interrupted)) == [("start", 1, START + 60)]
        assert record(driver) == AttemptRecord(1, failed=1, due=START + 60)


def test_what_was_due_at_a_restart_may_have_begun(driver: Driver) -> None:
    """It counts as an attempt, and as a lost one where its process was; the budget is as it was."""
    driver.take(OVERDUE)
    assert starts(driver, continuing(interrupted=False)) == [("start", 1, None)]
    assert record(driver) == AttemptRecord(2, failed=1)
    starts(driver, continuing(interrupted=True))
    found = record(driver)
    assert (found.started, found.lost, found.failed, found.due) == (3, 1, 1, None)


def test_a_call_that_goes_on_after_a_failure_gives_a_new_budget(driver: Driver) -> None:
    """Also where the run was lost after the failure had been saved; attempts are counted on."""
    driver.take(WAITS)
    driver.take(InvocationBroken("", "start", 1, FAILURE))
    assert starts(driver, continuing(interrupted=True)) == [("start", 1, None)]
    assert record(driver) == AttemptRecord(2)


def test_a_failed_attempt_ends_a_row_of_lost_ones(driver: Driver) -> None:
    """A process that told of a failure was not lost."""
    for number in range(1, 5):
        starts(driver, continuing(interrupted=True))
        assert record(driver).lost == number
    driver.take(OVERDUE)
    starts(driver, continuing(interrupted=True))
    assert (record(driver).lost, record(driver).started) == (1, 6)


def test_the_fifth_lost_attempt_in_a_row_fails_for_good(driver: Driver) -> None:
    """Nothing starts, and the run ends."""
    for _ in range(4):
        assert starts(driver, continuing(interrupted=True)) == [("start", 1, None)]
    assert starts(driver, continuing(interrupted=True)) == []
    failure = driver.run.get("", "failure", "start#1")
    assert failure.failure.kind == "lost"
    assert driver.ended is not None


@pytest.mark.parametrize("late", [WAITS, CancelAsked()], ids=["attempt", "cancel"])
def test_nothing_of_attempts_is_left_of_a_finished_invocation(driver: Driver, late: Input) -> None:
    """The record goes with the invocation, and a late word of an attempt changes nothing."""
    driver.take(WAITS)
    driver.take(InvocationFinished("", "start", 1, (Output(sealed(1, 0)),)))
    assert driver.run.totals["attempt"] == 0
    driver.take(late)
    assert driver.run.totals["attempt"] == 0


def test_the_one_behind_an_attempt_that_failed_waits_for_it() -> None:
    """A chain goes on only when its first invocation has finished, however often that was tried."""
    driver = Driver(Hands(chain("start", "last")))
    driver.begin(first_turn(3))
    sends = tuple(Send(sealed(number, 1), (Route(0, "last"),)) for number in (1, 2))
    driver.take(InvocationFinished("", "start", 1, sends))
    failed = AttemptBroken("", "last", 1, FAILURE, START)
    assert starts(driver, failed) == [("last", 1, START)]
    assert starts(driver, failed) == [("last", 1, START)]
    assert starts(driver, InvocationFinished("", "last", 1, ())) == [("last", 2, None)]
