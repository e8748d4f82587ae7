"""Superstep limits: who stops, what goes on, what resumes (section 3.7)."""

import asyncio
from typing import Never

import pytest

from rehydrate import (
    Executor,
    Status,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    executor,
    handler,
    response_handler,
)
from rehydrate.model.events import StatusChanged, SuperstepStarted
from tests.cases.flows import adder
from tests.cases.kit import answers, failed, run


def looping(limit, *, until=10, log=None, name="looping"):
    """One executor that sends itself a number, one more each superstep, until it yields it."""

    @executor(id="step")
    async def step(number: int, ctx: WorkflowContext[int, int]) -> None:
        if log is not None:
            log.append(number)
        if number < until:
            await ctx.send_message(number + 1)
        else:
            await ctx.yield_output(number)

    return WorkflowBuilder(name, step, max_supersteps=limit).add_edge(step, step).build()


def end_of(result):
    """Return the status event at the end of a call."""
    assert isinstance(result.events[-1], StatusChanged)
    return result.events[-1]


def test_a_run_that_reaches_its_limit_stops_and_says_where(place):
    """Section 3.7: it runs as many supersteps as are allowed, then is LIMIT_REACHED, and returns."""
    log = []
    result = run(looping(4, log=log), 1, checkpoint_storage=place.store)
    assert log == [1, 2, 3, 4]
    assert result.status is Status.LIMIT_REACHED
    assert (end_of(result).status, end_of(result).paths) == (Status.LIMIT_REACHED, ("",))
    assert result.outputs == []


def test_a_run_within_its_limit_is_not_stopped(place):
    """Section 3.7: a limit of n lets n supersteps run, the last of which may end the run."""
    result = run(looping(10), 1, checkpoint_storage=place.store)
    assert (result.status, result.outputs) == (Status.IDLE, [10])


def test_a_continuation_starts_the_limit_anew(place):
    """Section 5: continuing LIMIT_REACHED runs as many again, with the waiting message, and none twice."""
    log = []
    workflow = looping(4, log=log)
    result = run(workflow, 1, checkpoint_storage=place.store)
    result = run(workflow, checkpoint=result, checkpoint_storage=place.reopen())
    assert (result.status, log) == (Status.LIMIT_REACHED, [1, 2, 3, 4, 5, 6, 7, 8])
    result = run(workflow, checkpoint=result, checkpoint_storage=place.reopen())
    assert (result.status, result.outputs) == (Status.IDLE, [10])
    assert log == list(range(1, 11))
    assert result.turn == 1


def test_a_limit_is_todays_configuration(place):
    """Section 3.7: today's definition says the limit: a higher one lets the run end, a lower one stops it sooner."""
    result = run(looping(4), 1, checkpoint_storage=place.store)
    log = []
    lower = run(looping(2, log=log), checkpoint=result, checkpoint_storage=place.store)
    assert (lower.status, log) == (Status.LIMIT_REACHED, [5, 6])
    higher = run(looping(50), checkpoint=lower, checkpoint_storage=place.store)
    assert (higher.status, higher.outputs) == (Status.IDLE, [10])


@pytest.mark.parametrize(("limit", "runs"), [(5, 1), (6, 2)])
def test_a_limit_is_not_read_from_a_checkpoint_in_the_middle(place, limit, runs):
    """Section 3.7: a turn interrupted after four supersteps goes on under today's limit, counting those four."""
    run(looping(100), 1, run_id="r", checkpoint_storage=place.store)
    middle = next(h for h in place.history("r") if h.superstep == 5)
    log = []
    options = {"checkpoint": middle.checkpoint_id, "fork": True, "checkpoint_storage": place.store}
    result = run(looping(limit, log=log), **options)
    assert result.status is Status.LIMIT_REACHED
    assert log == list(range(5, 5 + runs))


def test_a_new_turn_has_a_fresh_limit(place):
    """Section 3.7: supersteps of earlier turns do not count, however many there were."""
    workflow = looping(6, until=6)
    result = run(workflow, 1, checkpoint_storage=place.store)
    for _ in range(5):
        result = run(workflow, 1, checkpoint=result, checkpoint_storage=place.store)
        assert (result.status, result.outputs) == (Status.IDLE, [6])
    assert result.turn == 6


def test_a_turn_that_reached_its_limit_can_be_followed_by_another(place):
    """Section 5: a new message finishes the superstep that waited and is delivered in the next."""
    log = []
    workflow = looping(4, until=5, log=log)
    first = run(workflow, 1, checkpoint_storage=place.store)
    second = run(workflow, 4, checkpoint=first, checkpoint_storage=place.store)
    assert log == [1, 2, 3, 4, 5, 4, 5]
    assert (second.status, second.outputs) == (Status.IDLE, [5, 5])


class Asks(Executor):
    """Asks, and after each answer sends itself a number of times."""

    @handler
    async def on_number(self, number: int, ctx: WorkflowContext[int, str]) -> None:
        if number == 0:
            await ctx.request_info("how many?", response_type=int)
        elif number == 1:
            await ctx.yield_output("done")
        else:
            await ctx.send_message(number - 1)

    @response_handler
    async def on_answer(self, question: str, number: int, ctx: WorkflowContext[int, str]) -> None:
        await ctx.send_message(number)


@pytest.mark.parametrize(("rounds", "status"), [(4, Status.IDLE), (5, Status.LIMIT_REACHED)])
def test_supersteps_that_an_answer_starts_count(place, rounds, status):
    """Section 3.7: the superstep that takes the answer is the first of the turn."""
    asks = Asks("asks")
    workflow = WorkflowBuilder("asking", asks, max_supersteps=5).add_edge(asks, asks).build()
    first = run(workflow, 0, checkpoint_storage=place.store)
    second = run(workflow, checkpoint=first, responses=answers(first, rounds), checkpoint_storage=place.store)
    assert second.status is status


def beside(child_limit, *, root_limit=100, log=None, breaks=False):
    """s → [child (loops), peer → after]."""
    s = adder("s", 0, [])
    child = WorkflowExecutor(looping(child_limit, until=6, name="inner"), id="child")

    @executor(id="peer")
    async def peer(number: int) -> int:
        if breaks:
            raise ValueError("peer is broken")
        return number + 100

    last = adder("last", 1000, log if log is not None else [])
    builder = WorkflowBuilder("beside", s, max_supersteps=root_limit).add_fan_out_edges(s, [child, peer])
    return builder.add_edge(peer, last).build()


def test_a_scope_that_reaches_its_limit_is_named_by_path_and_the_rest_finishes(place):
    """Section 3.7: the scope stops, the others of its superstep finish, no barrier comes above it."""
    log = []
    result = run(beside(3, log=log), 1, checkpoint_storage=place.store)
    assert (end_of(result).status, end_of(result).paths) == (Status.LIMIT_REACHED, ("child#1",))
    assert (log, result.outputs) == ([], [])
    result = run(beside(3, log=log), checkpoint=result, checkpoint_storage=place.reopen())
    assert (result.status, result.outputs, log) == (Status.IDLE, [6, 1101], ["last"])


def test_the_limit_of_the_root_does_not_count_the_supersteps_of_its_scopes(place):
    """Section 3.7: `max_supersteps` counts the supersteps of its own scope."""
    result = run(beside(100, root_limit=3), 1, checkpoint_storage=place.store)
    assert (result.status, result.outputs) == (Status.IDLE, [6, 1101])


def test_a_failure_wins_over_a_limit(place):
    """Section 4: where one scope reached its limit and another place failed, the run is FAILED."""
    error = failed(beside(3, breaks=True), 1, checkpoint_storage=place.store)
    assert error.result.status is Status.FAILED
    assert error.where == "peer"
    result = run(beside(100), checkpoint=error.result, checkpoint_storage=place.store)
    assert (result.status, result.outputs) == (Status.IDLE, [6, 1101])


def test_a_limit_is_told_in_a_stream_as_in_a_call(place):
    """Section 2: LIMIT_REACHED returns; it raises nothing, and its status is the stream's last event."""

    async def read():
        stream = looping(2).run(1, stream=True, checkpoint_storage=place.store)
        events = [event async for event in stream]
        return events, await stream.result()

    events, result = asyncio.run(read())
    assert sum(isinstance(event, SuperstepStarted) for event in events) == 2
    assert (events[-1].status, events[-1].paths) == (Status.LIMIT_REACHED, ("",))
    assert result.status is Status.LIMIT_REACHED


def test_an_open_question_is_kept_while_another_branch_reaches_its_limit(place):
    """Section 3.7 and 4: a limit closes no question; the answer and the rest are taken by the next call."""

    class Question(Executor):
        @handler
        async def on_number(self, number: int, ctx: WorkflowContext[Never, int]) -> None:
            await ctx.request_info("which?", response_type=int)

        @response_handler
        async def on_answer(self, question: str, answer: int, ctx: WorkflowContext[Never, int]) -> None:
            await ctx.yield_output(answer)

    s = adder("s", 0, [])
    child = WorkflowExecutor(looping(3, until=6, name="inner"), id="child")
    workflow = WorkflowBuilder("asking", s).add_fan_out_edges(s, [child, Question("question")]).build()
    first = run(workflow, 1, checkpoint_storage=place.store)
    assert first.status is Status.LIMIT_REACHED
    assert first.pending_requests == ()
    second = run(workflow, checkpoint=first, checkpoint_storage=place.store)
    assert (second.status, second.outputs) == (Status.IDLE_WITH_PENDING_REQUESTS, [6])
    third = run(workflow, checkpoint=second, responses=answers(second, 9), checkpoint_storage=place.reopen())
    assert (third.status, third.outputs) == (Status.IDLE, [9])
