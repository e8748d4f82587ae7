"""Found while the design was reviewed: the last chapter of the situations, as far as it is about running."""

import asyncio

import pytest

from rehydrate import Status, WorkflowBuilder, WorkflowExecutor, executor
from rehydrate.errors import RunFailedError
from rehydrate.model.events import RequestOpened
from tests.cases.flows import asking_child, overlapping_turns, three_children
from tests.cases.kit import answers, bounded, failed, run

ENDS = ["A asked: now", "A risked", "A worked"]


def test_an_answer_after_a_failure_lets_every_child_end_right(place, fresh):
    """Case 58: one asked, one worked, one failed; answer and repair in one call give all outputs in canonical order."""
    log = []
    error = failed(three_children(log, broken={"risk"}), "A", run_id="r", checkpoint_storage=place.store)
    assert sorted(log) == ["asks", "begin", "risk", "work"]
    assert error.where == "fails#1/risk"
    assert error.result.outputs == []
    (request,) = error.result.pending_requests
    assert request.path == "asks#1"
    told = place.told(error.result.checkpoint_id)
    reply = fresh.ask("three_children", told, responses={request.request_id: "now"})
    assert (reply["status"], reply["outputs"]) == ("IDLE", ENDS)
    assert sorted(reply["log"]) == ["risk", "told"]


def test_a_repair_before_the_answer_lets_every_child_end_right(place):
    """Case 58: the failed child is repaired first; its outputs come, and the answer's later, each once."""
    error = failed(three_children([], broken={"risk"}), "A", run_id="r", checkpoint_storage=place.store)
    second = run(three_children([]), checkpoint=error.result, checkpoint_storage=place.reopen())
    assert (second.status, second.outputs) == (Status.IDLE_WITH_PENDING_REQUESTS, ENDS[1:])
    third = run(
        three_children([]), checkpoint=second, responses=answers(second, "now"), checkpoint_storage=place.reopen()
    )
    assert (third.status, third.outputs) == (Status.IDLE, ENDS[:1])


def test_an_answer_through_the_stream_lets_every_child_end_right(place):
    """Case 58: the answer comes while one child still works; outputs are in canonical order all the same."""

    async def answered():
        gate = asyncio.Event()
        workflow = three_children([], gate=gate)
        stream = workflow.run("A", run_id="r", stream=True, checkpoint_storage=place.store)
        async for event in stream:
            if isinstance(event, RequestOpened):
                await stream.answer({event.request_id: "now"})
                gate.set()
        return await stream.result()

    result = bounded(answered())
    assert (result.status, result.outputs, result.turn) == (Status.IDLE, ENDS, 1)


def test_an_answer_through_the_stream_after_a_failure_is_part_of_the_turn(place, fresh):
    """Case 58: one child has failed, one still works, and the third is answered in the middle, through the stream.

    The turn ends FAILED with the answer taken and all other work done; a fresh process runs the failed child only.
    """
    log = []

    async def answered():
        gate = asyncio.Event()
        stream = three_children(log, broken={"risk"}, gate=gate).run(
            "A", run_id="r", stream=True, checkpoint_storage=place.store
        )
        told = []
        async for event in stream:
            told.append(type(event).__name__)
            if isinstance(event, RequestOpened):
                for _ in range(2000):
                    if {"work", "risk"} <= {*log}:
                        break
                    await asyncio.sleep(0)
                await stream.answer({event.request_id: "now"})
                gate.set()
        try:
            await stream.result()
        except RunFailedError as error:
            return error, told
        raise AssertionError("the run did not fail")

    error, told = bounded(answered())
    assert sorted(log) == ["asks", "begin", "risk", "told", "work"]
    assert (error.where, error.result.pending_requests, error.result.outputs) == ("fails#1/risk", (), [])
    assert told[-2:] == ["InvocationFailed", "StatusChanged"]
    reply = fresh.ask("three_children", place.told(error.result.checkpoint_id))
    assert (reply["status"], reply["outputs"], reply["log"]) == ("IDLE", ENDS, ["risk"])


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_join_never_mixes_two_turns_that_overlap(place, fresh, order):
    """Case 59: the second message came while the first waited for an answer; each join has what belongs together."""
    workflow = overlapping_turns([])
    store = place.store
    first = run(workflow, "A", run_id="r", checkpoint_storage=store)
    second = run(workflow, "B", checkpoint=first, on_pending="keep", checkpoint_storage=store)
    assert [request.data for request in second.pending_requests] == ["A", "B"]
    expected = ["A + A=yes", "B + B=yes"]
    pending = second.pending_requests
    earlier, later = (pending[index] for index in order)
    told = place.told(second.checkpoint_id)
    reply = fresh.ask("overlapping_turns", told, responses={earlier.request_id: "yes"}, **forking(place))
    assert reply["outputs"] == [expected[order[0]]]
    third = run(workflow, checkpoint=second, responses=[earlier.answer("yes")], checkpoint_storage=store)
    assert third.outputs == [expected[order[0]]]
    fourth = run(workflow, checkpoint=third, responses=[later.answer("yes")], checkpoint_storage=place.reopen())
    assert fourth.outputs == [expected[order[1]]]
    assert fourth.status is Status.IDLE


def forking(place):
    """Return the option by which a fresh process leaves the run in a file as it is."""
    return {"fork": True} if place.kind == "sqlite" else {}


def test_answers_of_two_overlapping_turns_in_one_call_fire_the_join_by_turn(place):
    """Case 59: given together, in whatever order, the answers fire the join once for each turn, the first first."""
    workflow = overlapping_turns([])
    first = run(workflow, "A", run_id="r", checkpoint_storage=place.store)
    second = run(workflow, "B", checkpoint=first, on_pending="keep", checkpoint_storage=place.store)
    given = answers(second, "1", "2")[::-1]
    third = run(workflow, checkpoint=second, responses=given, checkpoint_storage=place.store)
    assert third.outputs == ["A + A=1", "B + B=2"]


class Bounded:
    """Counts how many handlers run at once."""

    def __init__(self):
        self.now = self.most = 0

    async def work(self):
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(3):
            await asyncio.sleep(0)
        self.now -= 1


def three_deep(bound, limit):
    """A workflow in which a sub-workflow three levels down does the work, beside executors on each level."""

    def worker(id):
        @executor(id=id)
        async def work(number: int) -> int:
            await bound.work()
            return number + 1

        return work

    workflow = WorkflowBuilder("level3", worker("deepest")).build()
    for level in (2, 1, 0):
        first, child, beside = worker("first"), WorkflowExecutor(workflow, id="child"), worker("beside")
        options = {"max_concurrency": limit} if level == 0 else {}
        builder = WorkflowBuilder(f"level{level}", first, **options)
        workflow = builder.add_fan_out_edges(first, [child, beside]).build()
    return workflow


@pytest.mark.parametrize("limit", [1, 2])
def test_a_bound_on_running_handlers_does_not_deadlock_three_levels_deep(place, limit):
    """Case 66: the bound holds over the whole tree, and scopes hold no slot."""
    bound = Bounded()

    async def bounded():
        workflow = three_deep(bound, limit)
        return await asyncio.wait_for(workflow.run(0, checkpoint_storage=place.store), 5)

    result = asyncio.run(bounded())
    assert result.outputs == [2, 3, 4, 4]
    assert bound.most == limit


def test_a_wait_for_an_answer_holds_no_slot(place):
    """Case 66: while a question is open, a bound of one lets the next turn run."""
    log = []
    workflow = asking_child(log, max_concurrency=1)
    first = run(workflow, "x", checkpoint_storage=place.store)
    second = run(workflow, "y", checkpoint=first, on_pending="keep", checkpoint_storage=place.store)
    assert log == ["asker asks x", "asker asks y"]
    assert second.status is Status.IDLE_WITH_PENDING_REQUESTS
