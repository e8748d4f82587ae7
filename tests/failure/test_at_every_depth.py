"""What a failure leaves, at every depth: siblings, conflicts, conditions, limits, and a new message that finds them."""

import asyncio
from typing import Never

import pytest

from rehydrate import Retry, Status, WorkflowBuilder, WorkflowContext, WorkflowExecutor, executor
from rehydrate.errors import PredicateError, StateConflictError, UnfinishedWorkError
from rehydrate.model.events import WorkDiscarded
from tests.failure.kit import Timed, World, facts, failing, line, path_of, until

run = asyncio.run
DEPTHS = [0, 1, 2, 3]


def nested(inner, depth):
    """A workflow, so many levels below the root."""
    for level in range(depth):
        inner = WorkflowBuilder(f"level {level + 1}", WorkflowExecutor(inner, id="inner")).build()
    return inner


def where(depth, executor_id):
    """How an error names an executor."""
    return "/".join(filter(None, (path_of(depth), executor_id)))


def said(depth, *messages):
    """The outputs of a line for its messages."""
    return [" ".join([text, *["into"] * depth, "one two three", *["out"] * depth]) for text in messages]


async def stopped_by_failure(workflow, world, time, store):
    """A run that used its budget up in the second step."""
    world.fails["two"] = 2
    running = asyncio.create_task(failing(workflow.run("x", run_id="r")))
    for _ in range(100_000):
        if running.done():
            break
        await time.move(1)
    return (await running).result


async def stopped_in_back_off(workflow, world, time, store):
    """A run that was cancelled while its second step waited for another attempt."""
    world.fails["two"] = 1
    stream = workflow.run("x", run_id="r", stream=True)
    reading = asyncio.create_task(stream.result())
    await until(lambda: "two 1" in world.log)
    result = await stream.cancel()
    await asyncio.wait([reading])
    return result


STOPS = {"failed": stopped_by_failure, "in back-off": stopped_in_back_off}


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("policy", ["finish", "discard", "reject"])
def test_a_new_message_finds_an_invocation_that_is_tried_again(world, time, anywhere, depth, stop, policy):
    """Finished, dropped with its attempts, or refused, by the three policies, as all unfinished work."""
    workflow = Timed(line(world, depth, retry=Retry(attempts=2, delay=60)), time, anywhere)

    async def scenario():
        time.drive()
        stopped = await STOPS[stop](workflow, world, time, anywhere)
        work = asyncio.create_task(workflow.run("y", checkpoint=stopped, on_unfinished=policy))
        for _ in range(100_000):
            if work.done():
                break
            await time.move(5)
        return work

    work = run(scenario())
    if policy == "reject":
        error = work.exception()
        assert isinstance(error, UnfinishedWorkError)
        assert path_of(depth) in error.where
        assert world.log[-1].startswith("two")
        return
    result = work.result()
    assert (result.status, result.turn) == (Status.IDLE, 2)
    assert result.outputs == said(depth, *(("x", "y") if policy == "finish" else ("y",)))
    assert result.checkpoint.records.totals["attempt"] == 0
    dropped = [event.what for event in result.events if isinstance(event, WorkDiscarded)]
    assert bool(dropped) == (policy == "discard")
    assert not dropped or any(what.startswith(where(depth, "two")) for what in dropped[0])


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_conflict_is_no_failed_attempt(anywhere, depth):
    """Both writers are marked, neither is tried again by its policy, and a resume runs both once the cause is gone."""
    ran, values = [], {"a": 1, "b": 2}

    def writer(name):
        @executor(id=name, retry=Retry(delay=0))
        async def write(text: str, ctx: WorkflowContext[Never, str]) -> None:
            ran.append(name)
            ctx.set_state("k", values[name])
            ctx.yield_output(f"{text} {name}")

        return write

    @executor(id="start")
    async def start(text: str) -> str:
        return text

    graph = WorkflowBuilder("conflict", start).add_fan_out_edges(start, [writer("a"), writer("b")]).build()
    workflow = nested(graph, depth)
    error = run(failing(workflow.run("x", checkpoint_storage=anywhere)))
    assert isinstance(error.__cause__, StateConflictError)
    assert (error.__cause__.path, error.where) == (path_of(depth), where(depth, "a"))
    assert sorted(ran) == ["a", "b"]
    values["b"] = 1
    result = run(workflow.run(checkpoint=error.result, checkpoint_storage=anywhere))
    assert result.outputs == ["x a", "x b"]
    assert sorted(ran) == ["a", "a", "b", "b"]


@pytest.mark.parametrize("depth", DEPTHS)
def test_case_29_a_condition_that_raises_is_no_failed_attempt(anywhere, depth):
    """The sender is not tried again; a resume asks the condition again, at any depth."""
    ran, broken = [], [True]

    def passes(text: str) -> bool:
        if broken:
            raise LookupError("asked too early")
        return True

    @executor(id="sender", retry=Retry(delay=0))
    async def sender(text: str) -> str:
        ran.append("sender")
        return text

    @executor(id="taker")
    async def taker(text: str) -> str:
        ran.append("taker")
        return f"{text} taken"

    workflow = nested(WorkflowBuilder("condition", sender).add_edge(sender, taker, passes).build(), depth)
    error = run(failing(workflow.run("x", checkpoint_storage=anywhere)))
    assert isinstance(error.__cause__, PredicateError)
    assert error.where == where(depth, "sender")
    broken.clear()
    assert run(workflow.run(checkpoint=error.result, checkpoint_storage=anywhere)).outputs == ["x taken"]
    assert ran == ["sender", "taker"]


@pytest.mark.parametrize("depth", DEPTHS)
def test_case_32_siblings_of_one_that_used_its_budget_up_are_kept(world, anywhere, depth):
    """Four in parallel, one fails in each of its attempts; only that one runs again."""

    def worker(name, **policies):
        @executor(id=name, **policies)
        async def work(text: str, ctx: WorkflowContext) -> str:
            await world.enter(ctx)
            return f"{text} {name}"

        return work

    @executor(id="start")
    async def start(text: str) -> str:
        return text

    workers = [worker(name, retry=Retry(attempts=2, delay=0)) for name in "abcd"]
    workflow = nested(WorkflowBuilder("four", start).add_fan_out_edges(start, workers).build(), depth)
    world.fails["c"] = 2
    error = run(failing(workflow.run("x", checkpoint_storage=anywhere)))
    assert (error.where, error.result.outputs) == (where(depth, "c"), [])
    result = run(workflow.run(checkpoint=error.result, checkpoint_storage=anywhere))
    assert result.outputs == ["x a", "x b", "x c", "x d"]
    assert sorted(world.log) == ["a 1", "b 1", "c 1", "c 2", "c 3", "d 1"]


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_reached_limit_goes_on_with_a_higher_one(anywhere, depth):
    """Attempts are no supersteps: the limit is reached where it would be without failures, and then moved."""
    world = World()
    world.fails |= {"one": 2, "three": 1}

    def limited(world, most):
        @executor(id="again", retry=Retry(attempts=3, delay=0))
        async def again(number: int, ctx: WorkflowContext[int, int]) -> None:
            ctx.set_state("n", number)
            if number in (2, 4) and ctx.attempt < 3 and world.fails:
                raise LookupError(number)
            if number:
                ctx.send_message(number - 1)
            else:
                ctx.yield_output(7)

        inner = WorkflowBuilder("loop", again, max_supersteps=most)
        return nested(inner.add_edge(again, again).build(), depth)

    stopped = run(limited(world, 3).run(5, checkpoint_storage=anywhere))
    assert stopped.status is Status.LIMIT_REACHED
    assert stopped.events[-1].paths == (path_of(depth),)
    result = run(limited(world, 100).run(checkpoint=stopped, checkpoint_storage=anywhere))
    smooth = run(limited(World(), 3).run(5, checkpoint_storage=anywhere))
    same = run(limited(World(), 100).run(checkpoint=smooth, checkpoint_storage=anywhere))
    assert (result.outputs, facts(result)) == ([7], facts(same))
