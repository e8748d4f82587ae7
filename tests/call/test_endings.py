"""How a call ends: failed, cancelled, at its limit, or with a result."""

import asyncio
from typing import Never

import pytest

from rehydrate import Executor, Status, WorkflowBuilder, WorkflowContext, WorkflowExecutor, executor, handler
from rehydrate.errors import ClosedContextError, RunFailedError, SingleOutputError
from rehydrate.model.events import InvocationFailed, StatusChanged
from tests.call.desk import Fault, Gate, Note, desk, solo, team

run = asyncio.run


# failed ----------------------------------------------------------------------------------------------------------


def test_a_failed_run_raises_from_the_executors_exception(anywhere):
    """The cause of `RunFailedError` is the very exception that the handler raised, with its traceback."""
    fault = Fault("mine")

    @executor(id="fail")
    async def fail(text: str) -> str:
        raise fault

    workflow = WorkflowBuilder(name="fails", start_executor=fail, checkpoint_storage=anywhere).build()
    with pytest.raises(RunFailedError, match="fail: Fault: mine") as failed:
        run(workflow.run("a"))
    assert failed.value.__cause__ is fault
    assert "run(checkpoint=" in str(failed.value)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_failure_carries_checkpoint_outputs_and_requests(world, anywhere, depth):
    """The result of a failed turn has its newest checkpoint id, the outputs so far and what is still open."""
    workflow = desk(world, anywhere, depth=depth)
    first = run(workflow.run(Note("a?,x?"), run_id="r"))
    answer, left = first.pending_requests
    world.faults.add("clerk b")
    with pytest.raises(RunFailedError) as failed:
        run(workflow.run(Note("b"), checkpoint=first, responses=[answer.answer(True)], on_pending="keep"))
    error = failed.value
    assert isinstance(error.__cause__, Fault)
    assert (error.result.status, error.result.outputs) == (Status.FAILED, ["1: a? yes"])
    assert [request.request_id for request in error.result.pending_requests] == [left.request_id]
    assert (error.result.run_id, error.result.turn) == ("r", 2)
    assert ("/".join(["inner#2", "inner#1"][: depth - 1]) + "/clerk").lstrip("/") in str(error)
    if anywhere:
        assert run(anywhere.head("r")).header.checkpoint_id == error.result.checkpoint_id


@pytest.mark.parametrize("last", ["left a", "right a"])
def test_two_failures_name_the_first_whichever_came_first(world, anywhere, last):
    """The first in executor order is raised, the other stands beside it, and the events come in the same order."""
    workflow = team(world, anywhere)

    async def scenario():
        gate = world.gates[last] = Gate()
        world.faults |= {"left a", "right a"}
        running = asyncio.create_task(workflow.run(Note("a"), run_id="r"))
        await gate.entered.wait()
        for _ in range(20):
            await asyncio.sleep(0)
        gate.opened.set()
        with pytest.raises(RunFailedError) as failed:
            await running
        return failed.value

    error = run(scenario())
    assert str(error.__cause__) == "left a"
    assert "right" in str(error)
    failures = [event.executor_id for event in error.result.events if isinstance(event, InvocationFailed)]
    assert failures == ["left", "right"]


def test_the_status_is_the_last_event_of_a_failed_turn(world, anywhere):
    """The failure event, with path and exception, comes before the run's."""
    workflow = desk(world, anywhere, depth=2)
    world.faults.add("clerk a")
    with pytest.raises(RunFailedError) as failed:
        run(workflow.run(Note("a"), run_id="r"))
    failure, last = failed.value.result.events[-2:]
    assert isinstance(failure, InvocationFailed)
    assert (failure.path, failure.executor_id, failure.failure.type) == ("inner#1", "clerk", "Fault")
    assert isinstance(last, StatusChanged)
    assert (last.status, last.paths) == (Status.FAILED, ("inner#1",))


# cancelled -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("entry", ["intake b", "clerk b"])
def test_a_cancelled_await_saves_cancelled_and_raises_again(world, store, depth, entry):
    """When the caller sees `CancelledError` the head is `CANCELLED` already; the run goes on where it was."""
    workflow = desk(world, store, depth=depth)
    first = run(workflow.run(Note("a"), run_id="r"))

    async def scenario():
        gate = world.gates[entry] = Gate()
        running = asyncio.create_task(workflow.run(Note("b"), checkpoint=first))
        await gate.entered.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return await store.head("r")

    head = run(scenario())
    assert (head.header.status, head.header.turn, head.owner) == (Status.CANCELLED, 2, None)
    world.gates.clear()
    result = run(workflow.run(checkpoint=head.header.checkpoint_id))
    assert (result.outputs, result.turn) == (["2: b"], 2)
    assert world.diary.count(entry) == 2


def test_a_timeout_of_the_caller_is_a_cancelled_await(world, store):
    """`asyncio.timeout` around the call raises `TimeoutError`, and the run is `CANCELLED` and resumable."""
    workflow = desk(world, store)

    async def limited(call, gate):
        async with asyncio.timeout(None) as limit:
            running = asyncio.create_task(call)
            await gate.entered.wait()
            limit.reschedule(0)
            await running

    async def scenario():
        gate = world.gates["clerk a"] = Gate()
        with pytest.raises(TimeoutError):
            await limited(workflow.run(Note("a"), run_id="r"), gate)

    run(scenario())
    world.gates.clear()
    assert run(store.head("r")).header.status is Status.CANCELLED
    assert run(workflow.run(Note("a"), run_id="r")).outputs == ["1: a"]


def test_a_handler_that_swallows_cancellation_is_ignored(store):
    """The run is `CANCELLED` although its handler goes on; nothing that it does afterwards is kept."""
    told, gates = [], []

    class Stubborn(Executor):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
            ctx.yield_output("before")
            told.append("entered")
            if len(told) > 1:
                return
            try:
                await gates[0].wait()
            except asyncio.CancelledError:
                with pytest.raises(ClosedContextError):
                    ctx.yield_output("after")
                told.append("swallowed")

    workflow = WorkflowBuilder(name="stubborn", start_executor=Stubborn("s"), checkpoint_storage=store).build()

    async def scenario():
        gates.append(Gate())
        running = asyncio.create_task(workflow.run("a", run_id="r"))
        await gates[0].entered.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    run(scenario())
    assert told == ["entered", "swallowed"]
    assert run(store.head("r")).header.status is Status.CANCELLED
    assert run(workflow.run(checkpoint="latest", run_id="r")).outputs == ["before"]


def test_a_cancelled_call_touches_no_other_run(world, anywhere):
    """Two runs of one workflow at once: one is cancelled, the other ends well."""
    workflow = desk(world, anywhere)

    async def scenario():
        gates = [world.gates.setdefault(f"clerk {name}", Gate()) for name in "xy"]
        x, y = (asyncio.create_task(workflow.run(Note(name), run_id=name)) for name in "xy")
        await asyncio.gather(*(gate.entered.wait() for gate in gates))
        x.cancel()
        with pytest.raises(asyncio.CancelledError):
            await x
        gates[1].opened.set()
        return await y

    assert run(scenario()).outputs == ["1: y"]


# other ends ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 3])
def test_a_reached_limit_returns_and_names_the_paths(anywhere, depth):
    """`LIMIT_REACHED` is a result, not an error; its status event names the scopes that stopped."""

    @executor(id="again")
    async def again(number: int) -> int:
        return number + 1

    workflow = WorkflowBuilder(name="loop", start_executor=again, max_supersteps=4).add_edge(again, again).build()
    for level in ("b", "a") if depth == 3 else ():
        node = WorkflowExecutor(workflow, id=level)
        workflow = WorkflowBuilder(name=level, start_executor=node).build()
    result = run(workflow.run(0, checkpoint_storage=anywhere))
    assert result.status is Status.LIMIT_REACHED
    assert result.events[-1].paths == ("a#1/b#1" if depth == 3 else "",)


def test_output_is_the_only_one(world, anywhere):
    """`result.output` is the single output; none or several are an error that says what to read."""
    workflow = solo(world, anywhere)
    assert run(workflow.run(Note("a"))).output == "0: a"
    for text in ("a,b", "a?"):
        with pytest.raises(SingleOutputError, match="outputs"):
            _ = run(workflow.run(Note(text))).output


def test_a_result_says_what_it_is(world, anywhere):
    """Run, checkpoint, status, outputs, requests, turn and replayed are there, and its `repr` shows no data."""
    result = run(desk(world, anywhere).run(Note("secret?"), run_id="r"))
    assert (result.run_id, result.turn, result.replayed, result.outputs) == ("r", 1, False, [])
    assert result.checkpoint.checkpoint_id == result.checkpoint_id
    assert result.status is Status.IDLE_WITH_PENDING_REQUESTS
    (request,) = result.pending_requests
    assert (request.path, request.executor_id, request.data.text, request.response_type) == (
        "", "clerk", "secret?", bool,
    )  # fmt: skip
    assert "secret" not in repr(result)
    assert "'r'" in repr(result)
