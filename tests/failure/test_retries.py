"""Retry policies: how often, after which errors, and after which time a failed handler is tried again."""

import asyncio
from typing import Never

import pytest

from rehydrate import (
    Executor,
    Retry,
    Status,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    errors,
    executor,
    handler,
    response_handler,
)
from rehydrate.errors import RunFailedError
from rehydrate.model.checkpoint import key_of
from rehydrate.model.events import AttemptFailed, InvocationFailed, InvocationStarted, OutputYielded
from rehydrate.model.records import AttemptRecord
from tests.failure.kit import (
    HOUR,
    NOON,
    Fault,
    Timed,
    facts,
    failing,
    joined,
    line,
    others,
    passing,
    path_of,
    step,
    until,
)

run = asyncio.run


def alone(world, **policies):
    """A workflow of one step."""
    return WorkflowBuilder("alone", step("one", world, **policies), reducers={"seen": joined}).build()


# when ------------------------------------------------------------------------------------------------------------


def test_attempts_come_after_growing_times_up_to_the_longest(world, time, anywhere):
    """The second attempt comes `delay` after the first has failed, each further one `factor` times as long after."""
    policy = Retry(attempts=5, delay=1.0, factor=3.0, max_delay=5.0)
    workflow = Timed(alone(world, retry=policy), time, anywhere)
    world.fails["one"] = 4

    async def scenario():
        time.drive()
        running = asyncio.create_task(workflow.run("x", run_id="r"))
        for number, seconds in enumerate((1.0, 3.0, 5.0, 5.0), start=1):
            await until(lambda number=number: world.log[-1:] == [f"one {number}"])
            await saved(number)
            await time.move(seconds - 0.5)
            assert len(world.log) == number
            await time.move(0.5)
            await until(lambda number=number: len(world.log) == number + 1)
        return await running

    async def saved(number):
        while anywhere is not None and (await anywhere.head("r")).header.seq < number:
            await others()
        await others()

    result = run(scenario())
    assert (result.status, result.outputs) == (Status.IDLE, ["x one"])
    assert world.log == ["one 1", "one 2", "one 3", "one 4", "one 5"]
    assert len(world.keys) == 1


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_a_budget_that_is_used_up_fails_the_run_and_a_call_that_goes_on_has_a_new_one(world, anywhere, depth):
    """Continuing `FAILED` starts the budget anew; attempts are counted on and the effect key stays."""
    workflow = line(world, depth, retry=Retry(attempts=2, delay=0))
    world.fails["two"] = 3
    error = run(failing(workflow.run("x", checkpoint_storage=anywhere)))
    assert isinstance(error.__cause__, Fault)
    assert error.where == "/".join(filter(None, (path_of(depth), "two")))
    assert [entry for entry in world.log if entry.startswith("two")] == ["two 1", "two 2"]
    result = run(workflow.run(checkpoint=error.result, checkpoint_storage=anywhere))
    assert [entry for entry in world.log if entry.startswith("two")] == ["two 1", "two 2", "two 3", "two 4"]
    assert result.outputs == [" ".join(["x", *["into"] * depth, "one two three", *["out"] * depth])]
    assert len(world.keys) == 3 + 2 * depth


def test_only_errors_of_the_named_kinds_are_tried_again(anywhere):
    """`on` names classes; their subclasses count, another error fails for good at once."""
    raised = []

    @executor(retry=Retry(attempts=4, delay=0, on=(LookupError, ConnectionError)))
    async def picky(kinds: list[str], ctx: WorkflowContext) -> str:
        kind = {"key": KeyError, "reset": ConnectionResetError, "type": TypeError}[kinds[ctx.attempt - 1]]
        raised.append(kind.__name__)
        raise kind("no")

    error = run(failing(WorkflowBuilder("w", picky).build().run(["key", "reset", "type"], checkpoint_storage=anywhere)))
    assert raised == ["KeyError", "ConnectionResetError", "TypeError"]
    assert isinstance(error.__cause__, TypeError)


def test_one_class_may_stand_alone():
    """`on=OSError` is the same as a tuple of it."""
    assert Retry(on=OSError).on == (OSError,)
    assert Retry(on=OSError) == Retry(on=(OSError,))


def test_very_long_rows_of_attempts_do_not_overflow():
    """The time after the thousandth failure is the longest one, whatever the factor."""
    assert Retry(attempts=2000, delay=1, factor=1e9).delay_after(1999) == 60.0
    assert Retry(attempts=2000, delay=0, factor=1e9).delay_after(1999) == 0.0


# what is left of a failed attempt --------------------------------------------------------------------------------


def test_a_failed_attempt_leaves_no_trace(store):
    """Neither message, nor output, nor request, nor state, nor record of it is there; the last attempt counts."""
    reads = []

    class Eager(Executor):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[str, str]) -> None:
            reads.append(ctx.get_state("n", 0))
            ctx.set_state("n", ctx.attempt)
            ctx.send_message(f"{text} {ctx.attempt}")
            ctx.yield_output(f"out {ctx.attempt}")
            ctx.request_info(f"ask {ctx.attempt}", response_type=bool)
            if ctx.attempt < 3:
                raise Fault(text)

        @response_handler
        async def on_answer(self, text: str, yes: bool, ctx: WorkflowContext[str, str]) -> None:
            ctx.yield_output(f"{text} {yes} {ctx.get_state('n')}")

    @executor
    async def after(text: str) -> str:
        return f"after {text}"

    eager = Eager("eager", retry=Retry(delay=0))
    workflow = WorkflowBuilder("w", eager, checkpoint_storage=store).add_edge(eager, after).build()
    result = run(workflow.run("x", run_id="r"))
    assert result.outputs == ["out 3", "after x 3"]
    assert [request.data for request in result.pending_requests] == ["ask 3"]
    assert reads == [0, 0, 0]
    assert result.checkpoint.records.totals["attempt"] == 0
    second = run(workflow.run(responses=[result.pending_requests[0].answer(True)]))
    assert second.outputs == ["ask 3 True 3"]


def test_each_attempt_gets_its_message_as_it_was(anywhere):
    """What a failed attempt changed in its message, or read, is not seen by the next."""
    seen = []

    @executor(retry=Retry(delay=0))
    async def spoils(items: list[int], ctx: WorkflowContext) -> int:
        seen.append(list(items))
        items.append(9)
        if ctx.attempt == 1:
            raise Fault("spoilt")
        return len(items)

    result = run(WorkflowBuilder("w", spoils).build().run([1], checkpoint_storage=anywhere))
    assert (seen, result.outputs) == ([[1], [1]], [2])


def test_a_failed_attempt_throws_the_instance_away(anywhere):
    """The next attempt starts from what the hook saved after the message before, also in the middle of a chain."""
    seen, faults = [], {"b": 2}

    class Keeps(Executor):
        def __init__(self, id, **policies):
            super().__init__(id, **policies)
            self.texts = ()

        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
            self.texts += (text,)
            seen.append("".join(self.texts))
            if faults.get(text, 0):
                faults[text] -= 1
                raise Fault(text)
            ctx.yield_output("".join(self.texts))

        def on_checkpoint_save(self):
            return {"texts": self.texts}

        def on_checkpoint_restore(self, state):
            self.texts = state["texts"]

    @executor
    async def split(text: str, ctx: WorkflowContext[str]) -> None:
        for letter in text:
            ctx.send_message(letter)

    workflow = WorkflowBuilder("w", split).add_edge(split, Keeps("keeps", retry=Retry(delay=0))).build()
    result = run(workflow.run("abc", checkpoint_storage=anywhere))
    assert result.outputs == ["a", "ab", "abc"]
    assert seen == ["a", "ab", "ab", "ab", "abc"]


@pytest.mark.parametrize("kind", ["handler", "response handler", "thread", "hook"])
def test_whatever_is_part_of_an_attempt_is_tried_again(anywhere, kind):
    """Handlers of messages and of answers, plain ones, and the save hook, which runs as part of the invocation."""
    faults = [kind]

    def fail(where):
        if where in faults:
            faults.remove(where)
            raise Fault(where)

    class Asks(Executor):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[int]) -> None:
            ctx.request_info(text, response_type=int)
            fail("handler")

        @response_handler
        async def on_answer(self, text: str, answer: int, ctx: WorkflowContext[int]) -> None:
            ctx.send_message(answer)
            fail("response handler")

    class Hooked(Executor):
        @handler
        def on_number(self, number: int, ctx: WorkflowContext[Never, int]) -> None:
            ctx.yield_output(number)
            fail("thread")

        def on_checkpoint_save(self):
            fail("hook")
            return {}

        def on_checkpoint_restore(self, state):
            pass

    asks, hooked = Asks("asks", retry=Retry(delay=0)), Hooked("hooked", retry=Retry(delay=0))
    workflow = WorkflowBuilder("w", asks).add_edge(asks, hooked).build()
    first = run(workflow.run("x", checkpoint_storage=anywhere))
    second = run(
        workflow.run(checkpoint=first, responses=[first.pending_requests[0].answer(7)], checkpoint_storage=anywhere)
    )
    assert (faults, second.outputs, second.status) == ([], [7], Status.IDLE)


# beside others ---------------------------------------------------------------------------------------------------


def test_siblings_finish_once_while_one_waits_and_the_barrier_comes_after_it(world, time, anywhere):
    """What finished in the meantime is kept, unmerged, until the attempt that is due later has succeeded."""
    start = step("start", world)
    ends = [step("left", world, retry=Retry(delay=HOUR, max_delay=HOUR)), step("right", world)]
    graph = WorkflowBuilder("w", start, reducers={"seen": joined}).add_fan_out_edges(start, ends).build()
    world.fails["left"] = 1

    async def scenario():
        time.drive()
        stream = Timed(graph, time, anywhere).run("x", stream=True)
        events = []
        reading = asyncio.create_task(read(stream, events))
        await until(lambda: {"left 1", "right 1"} <= set(world.log))
        await time.move(HOUR - 1)
        assert not any(isinstance(event, OutputYielded) for event in events)
        await time.move(1)
        await until(lambda: "left 2" in world.log)
        await reading
        return await stream.result()

    async def read(stream, events):
        async for event in stream:
            events.append(event)

    result = run(scenario())
    assert result.outputs == ["x start left", "x start right"]
    assert sorted(world.log) == ["left 1", "left 2", "right 1", "start 1"]


def test_a_back_off_holds_no_slot(world, time, anywhere):
    """With `max_concurrency=1` the others run while one waits for its next attempt."""
    start = step("start", world)
    ends = [step(name, world, retry=Retry(delay=60)) for name in ("a", "b", "c")]
    builder = WorkflowBuilder("w", start, reducers={"seen": joined}, max_concurrency=1)
    graph = builder.add_fan_out_edges(start, ends).build()
    world.fails["a"] = 1

    async def scenario():
        time.drive()
        running = asyncio.create_task(Timed(graph, time, anywhere).run("x"))
        await until(lambda: len(world.log) == 4)
        await others()
        assert world.log == ["start 1", "a 1", "b 1", "c 1"]
        await time.move(60)
        return await running

    assert run(scenario()).outputs == ["x start a", "x start b", "x start c"]
    assert world.log[-1] == "a 2"


def test_a_run_whose_scope_waits_is_not_over(world, time, anywhere):
    """A back-off keeps its scope busy: a failure elsewhere ends the run only after it."""
    inner = WorkflowBuilder("inner", step("one", world, retry=Retry(delay=60)), reducers={"seen": joined}).build()
    start = step("start", world)
    node = WorkflowExecutor(inner, id="inner")
    graph = WorkflowBuilder("w", start, reducers={"seen": joined}).add_fan_out_edges(
        start, [node, step("breaks", world)]
    )
    world.fails |= {"one": 1, "breaks": 1}

    async def scenario():
        time.drive()
        running = asyncio.create_task(failing(Timed(graph.build(), time, anywhere).run("x")))
        await until(lambda: {"one 1", "breaks 1"} <= set(world.log))
        await others()
        assert not running.done()
        await time.move(60)
        return await running

    error = run(scenario())
    assert error.where == "breaks"
    assert world.log[-1] == "one 2"


def test_items_of_a_map_are_tried_again_each_for_itself(world, time, anywhere):
    """While some wait for their next attempt the others finish; the list is complete, in order, and comes once."""
    made = []

    @executor
    async def plan(count: int) -> list[int]:
        return list(range(count))

    @executor(retry=Retry(attempts=3, delay=60, factor=1))
    async def work(number: int, ctx: WorkflowContext[int]) -> None:
        made.append((number, ctx.attempt))
        ctx.send_message(number * 10)
        if ctx.attempt <= number % 3:
            raise Fault(str(number))

    @executor
    async def gather(numbers: list[int]) -> list[int]:
        return numbers

    graph = WorkflowBuilder("w", plan, max_concurrency=2).add_map_edge(plan, work, into=gather).build()

    async def scenario():
        time.drive()
        running = asyncio.create_task(Timed(graph, time, anywhere).run(7))
        await until(lambda: len(made) == 7)
        await others()
        assert sorted(made) == [(number, 1) for number in range(7)]
        return await passing(time, running)

    result = run(scenario())
    assert result.outputs == [[0, 10, 20, 30, 40, 50, 60]]
    attempts = [1, 2, 3, 1, 2, 3, 1]
    assert sorted(made) == [(n, a) for n in range(7) for a in range(1, attempts[n] + 1)]


# restarts --------------------------------------------------------------------------------------------------------


async def left_waiting(workflow, store, world, entry):
    """Run until an attempt has failed and that is saved; return that checkpoint, as a killed process leaves it."""
    running = asyncio.create_task(workflow.run("x", run_id="r"))
    await until(lambda: entry in world.log)
    for _ in range(100_000):
        stored = await store.load((await store.head("r")).header.checkpoint_id)
        if any(key_of(key)[1] == "attempt" for key in stored.records):
            break
        await asyncio.sleep(0)
    running.cancel()
    await asyncio.wait([running])
    world.log.clear()
    return stored.header.checkpoint_id


async def forked(store):
    """Let others run until the fork is claimed and its work has begun, as far as it can."""
    for _ in range(100_000):
        if await store.head("forked") is not None:
            break
    await others()


@pytest.mark.parametrize("depth", [0, 2])
def test_a_run_that_was_killed_while_it_waited_waits_for_the_rest_of_the_time(world, time, store, depth):
    """The due time is in the record: the attempt that another process makes comes then, and nothing counts as lost."""
    workflow = Timed(line(world, depth, retry=Retry(attempts=3, delay=60)), time, store)
    world.fails["two"] = 1

    async def scenario():
        time.drive()
        checkpoint = await left_waiting(workflow, store, world, "two 1")
        time.now += 20
        running = asyncio.create_task(workflow.run(checkpoint=checkpoint, fork=True, run_id="forked"))
        await forked(store)
        await time.move(39.9)
        assert world.log == []
        await time.move(0.2)
        return await running

    result = run(scenario())
    assert world.log[0] == "two 2"
    assert result.outputs == [" ".join(["x", *["into"] * depth, "one two three", *["out"] * depth])]


def test_a_run_that_was_killed_and_is_found_after_the_time_goes_on_at_once(world, time, store):
    """The attempt was due and may have begun, so it counts, but not against the budget."""
    workflow = Timed(line(world, retry=Retry(attempts=3, delay=60)), time, store)
    world.fails["two"] = 2

    async def scenario():
        time.drive()
        checkpoint = await left_waiting(workflow, store, world, "two 1")
        time.now += 61
        running = asyncio.create_task(workflow.run(checkpoint=checkpoint, fork=True, run_id="forked"))
        await until(lambda: world.log == ["two 3"])
        await others()
        for _ in range(200):
            await time.move(10)
            if "two 4" in world.log:
                break
        return await running

    assert run(scenario()).outputs == ["x one two three"]
    assert world.log == ["two 3", "two 4", "three 1"]


def test_a_clock_that_went_back_makes_nobody_wait_longer_than_the_policy_does(world, time, store):
    """The due time is an hour ahead by today's clock; `max_delay` is what is waited for."""
    workflow = Timed(line(world, retry=Retry(attempts=3, delay=50, max_delay=60)), time, store)
    world.fails["two"] = 1

    async def scenario():
        time.drive()
        checkpoint = await left_waiting(workflow, store, world, "two 1")
        time.now -= HOUR
        running = asyncio.create_task(workflow.run(checkpoint=checkpoint, fork=True, run_id="forked"))
        await forked(store)
        for _ in range(6):
            await time.move(10)
        await until(lambda: "two 2" in world.log)
        return await running

    assert run(scenario()).outputs == ["x one two three"]
    assert time.now <= NOON - HOUR + 60


def test_a_policy_that_is_gone_makes_nobody_wait(world, time, store):
    """Policies are today's configuration and not in the signature: without `retry` what waited runs at once."""
    world.fails["two"] = 1

    async def scenario():
        time.drive()
        before = Timed(line(world, retry=Retry(attempts=3, delay=60)), time, store)
        checkpoint = await left_waiting(before, store, world, "two 1")
        return await Timed(line(world), time, store).run(checkpoint=checkpoint, fork=True, run_id="forked")

    assert run(scenario()).outputs == ["x one two three"]
    assert (world.log, time.now) == (["two 2", "three 1"], NOON)


def test_the_record_of_an_attempt_says_when_the_next_is_due(world, time, store):
    """One commit for each failed attempt; the record goes with the invocation."""
    workflow = Timed(line(world, retry=Retry(attempts=3, delay=60)), time, store)
    world.fails["two"] = 1

    async def scenario():
        time.drive()
        checkpoint = await left_waiting(workflow, store, world, "two 1")
        return await workflow.run(checkpoint=checkpoint, fork=True, run_id="forked", stream=True).cancel()

    records = run(scenario()).checkpoint.records
    assert records.get("", "attempt", "two#1") == AttemptRecord(1, failed=1, due=NOON + 60)


def test_what_waits_is_dropped_with_the_rest(world, time, store):
    """`on_unfinished="discard"` drops an invocation that waits for its next attempt, and its attempts."""
    workflow = Timed(line(world, 1, retry=Retry(attempts=3, delay=60)), time, store)
    world.fails["two"] = 1

    async def scenario():
        time.drive()
        await left_waiting(workflow, store, world, "two 1")
        return await workflow.run("y", run_id="r", checkpoint="latest", on_unfinished="discard")

    result = run(scenario())
    assert result.outputs == ["y into one two three out"]
    assert (time.now, result.checkpoint.records.totals["attempt"]) == (NOON, 0)


@pytest.mark.parametrize("durability", ["superstep", "turn", "off"])
def test_retries_work_whatever_is_saved(world, store, durability):
    """Also where attempts are not saved one by one, they are counted and made."""
    world.fails["two"] = 2
    workflow = line(world, 1, retry=Retry(attempts=3, delay=0))
    result = run(workflow.run("x", checkpoint_storage=store, durability=durability))
    assert result.outputs == ["x into one two three out"]
    assert [entry for entry in world.log if "two" in entry] == ["two 1", "two 2", "two 3"]


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_a_run_with_retries_ends_as_one_without_failures(world, anywhere, depth):
    """Records, outputs and status are those of a run in which nothing failed."""
    workflow = line(world, depth, retry=Retry(attempts=3, delay=0))
    smooth = run(workflow.run("x", checkpoint_storage=anywhere))
    world.fails |= {"one": 2, "two": 1, "three": 2}
    rough = run(workflow.run("x", checkpoint_storage=anywhere))
    assert facts(rough) == facts(smooth)
    assert rough.events[-1].sequence == smooth.events[-1].sequence


# told ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [0, 2])
def test_each_failed_attempt_is_told_live(world, anywhere, depth):
    """Whoever streams hears of each one at once, with its number, its failure and the time to the next."""
    workflow = line(world, depth, retry=Retry(attempts=3, delay=0, factor=1))
    world.fails["two"] = 3

    async def scenario():
        stream = workflow.run("x", stream=True, checkpoint_storage=anywhere)
        events = [event async for event in stream]
        with pytest.raises(RunFailedError):
            await stream.result()
        return events

    events = run(scenario())
    told = [event for event in events if isinstance(event, AttemptFailed)]
    assert [(event.attempt, event.again, event.failure.type) for event in told] == [
        (1, 0.0, "Fault"),
        (2, 0.0, "Fault"),
        (3, None, "Fault"),
    ]
    assert {(event.path, event.executor_id, event.activation, event.live) for event in told} == {
        (path_of(depth), "two", 1, True)
    }
    begun = [event for event in events if isinstance(event, InvocationStarted) and event.executor_id == "two"]
    assert [events.index(event) < events.index(end) for event, end in zip(begun, told, strict=True)] == [True] * 3
    assert [event.executor_id for event in events if isinstance(event, InvocationFailed)] == ["two"]


def test_an_attempt_without_a_policy_is_told_too(world):
    """The last attempt, and the only one, is told as such."""
    world.fails["one"] = 1

    async def scenario():
        return [event async for event in alone(world).run("x", stream=True) if isinstance(event, AttemptFailed)]

    assert [(event.attempt, event.again) for event in run(scenario())] == [(1, None)]


# wrong policies --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        {"attempts": 0},
        {"attempts": 2.0},
        {"attempts": True},
        {"delay": -1},
        {"delay": "1"},
        {"delay": float("inf")},
        {"delay": 1e12},
        {"factor": 0.5},
        {"factor": float("nan")},
        {"max_delay": -0.1},
        {"max_delay": None},
        {"on": ()},
        {"on": (OSError, "KeyError")},
        {"on": int},
        {"on": [OSError]},
    ],
    ids=str,
)
def test_a_retry_that_makes_no_sense_is_refused(given):
    """The error names the argument and its value, and says what is allowed."""
    with pytest.raises(errors.PolicyError) as caught:
        Retry(**given)
    name, value = next(iter(given.items()))
    assert f"{name}=" in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert (caught.value.code, bool(caught.value.action())) == ("policy", True)
    assert repr(value)[:3] in caught.value.what or name == "on"


@pytest.mark.parametrize(
    "given",
    [{"retry": 3}, {"retry": Retry}, *({"timeout": no_time} for no_time in (0, -1, "5", True, 1e12, 10**400))],
    ids=str,
)
def test_a_policy_of_an_executor_that_makes_no_sense_is_refused(given):
    """For a class and for a function, naming the executor."""
    with pytest.raises(errors.PolicyError, match="of executor 'fetch'"):
        Executor("fetch", **given)
    with pytest.raises(errors.PolicyError, match="of executor 'fetch'"):

        @executor(id="fetch", **given)
        async def fetch(text: str) -> str:
            return text


def test_a_sub_workflow_has_no_retry_of_its_own(world):
    """Its inner executors try again where they failed, so the error says where to put it."""
    with pytest.raises(errors.ExecutorDefinitionError, match="inner workflow") as caught:
        WorkflowExecutor(alone(world), id="node", retry=Retry())
    assert caught.value.executor == "node"
