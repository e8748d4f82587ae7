"""`timeout=` of a sub-workflow: how long a scope may be busy."""

import asyncio
from collections import defaultdict
from typing import Never

import pytest

from rehydrate import (
    Executor,
    InMemoryCheckpointStorage,
    Status,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    executor,
    handler,
    response_handler,
)
from rehydrate.errors import ExecutorDefinitionError, RunFailedError, SubWorkflowTimeoutError
from rehydrate.model.events import InvocationFailed
from rehydrate.runtime.clock import SystemClock


class Hours:
    """A clock of the wall and of the event loop that only the test moves on."""

    def __init__(self) -> None:
        self.ahead = 0.0
        #: By how much the clock of the wall was set.
        self.set_by = 0.0

    async def go_by(self, seconds: float) -> None:
        """Let time pass and what is due happen."""
        self.ahead += seconds
        for _ in range(30):
            await asyncio.sleep(0)


@pytest.fixture
def hours(monkeypatch) -> Hours:
    """Time for `SystemClock`; `under` puts a loop on it."""
    hours = Hours()
    monkeypatch.setattr(SystemClock, "time", lambda self: 1_000_000 + hours.ahead + hours.set_by)
    return hours


def under(hours: Hours, scenario):
    """Run a coroutine in a loop whose clock is moved by the test."""

    async def run():
        loop = asyncio.get_running_loop()
        clock = loop.time
        begin = clock()
        loop.time = lambda: begin + hours.ahead
        return await scenario

    return asyncio.run(run())


class Doors:
    """Where handlers wait: `entered` says who stands or stood there, `cancelled` who was sent away."""

    def __init__(self) -> None:
        self.entered: list[str] = []
        self.cancelled: list[str] = []
        self._open: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._here: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)

    def open(self, *names: str) -> None:
        """Let through whoever stands or will stand before these doors."""
        for name in names:
            self._open[name].set()

    def forget(self) -> None:
        """Forget who stood there."""
        self.entered.clear()
        self._here.clear()

    async def wait(self, name: str) -> None:
        """Stand before a door until it is open."""
        self.entered.append(name)
        self._here[name].set()
        try:
            await self._open[name].wait()
        except asyncio.CancelledError:
            self.cancelled.append(name)
            raise

    async def somebody_at(self, name: str) -> None:
        """Wait until a handler stands before a door."""
        await self._here[name].wait()


def step(doors: Doors, name: str, *, last: bool = False) -> Executor:
    """Return an executor that stands before its door."""

    async def work(text: str, ctx: WorkflowContext) -> str:
        ctx.set_state(name, "was here")
        await doors.wait(name)
        return f"{text} {name}"

    return executor(id=name)(work)


def job(doors: Doors, timeout: float | None = 10, depth: int = 1) -> Workflow:
    """start -> [a slow sub-workflow of two steps, a quick executor beside it]."""
    first, second = step(doors, "first"), step(doors, "second")
    inner = WorkflowBuilder("slow", first).add_edge(first, second).build()
    for _ in range(1, depth):
        inner = WorkflowBuilder("slow", WorkflowExecutor(inner, "slow")).build()
    start, beside = step(doors, "start"), step(doors, "beside")
    doors.open("start", "beside")
    node = WorkflowExecutor(inner, "slow", timeout=timeout)
    return WorkflowBuilder("job", start).add_fan_out_edges(start, [node, beside]).build()


async def failure_of(task: "asyncio.Task[object]") -> RunFailedError:
    """Return how a run failed."""
    with pytest.raises(RunFailedError) as failed:
        await task
    return failed.value


@pytest.mark.parametrize("depth", [1, 3])
def test_a_scope_that_is_busy_for_too_long_fails_its_run_and_a_resume_goes_on_inside(place, hours, depth) -> None:
    """What runs in it at any depth is cancelled without a trace; what had finished, inside and beside, is kept."""

    async def scenario() -> None:
        doors = Doors()
        store = place.open()
        running = asyncio.create_task(job(doors, depth=depth).run("go", run_id="r", checkpoint_storage=store))
        await doors.somebody_at("first")
        await hours.go_by(6)
        doors.open("first")
        await doors.somebody_at("second")
        await hours.go_by(3)
        assert (doors.cancelled, running.done()) == ([], False)
        await hours.go_by(2)
        failed = await failure_of(running)
        assert doors.cancelled == ["second"]
        error = failed.__cause__
        assert isinstance(error, SubWorkflowTimeoutError)
        assert (error.path, error.seconds) == ("slow#1", 10)
        assert "failed in slow#1: SubWorkflowTimeoutError: it was busy for more than 10 seconds" in str(failed)
        (told,) = [event for event in failed.result.events if isinstance(event, InvocationFailed)]
        assert (told.path, told.executor_id, told.failure.kind) == ("slow#1", "", "timeout")
        assert failed.result.outputs == []

        doors.open("second")
        doors.forget()
        ended = await job(doors, depth=depth).run(checkpoint=failed.result, checkpoint_storage=place.open())
        assert doors.entered == ["second"]
        assert (ended.status, ended.outputs) == (Status.IDLE, ["go start beside", "go start first second"])

    under(hours, scenario())


def test_a_resume_gives_a_new_time(hours) -> None:
    """All of it, and when that is up the run fails again."""

    async def scenario() -> None:
        doors = Doors()
        workflow = job(doors)
        running = asyncio.create_task(workflow.run("go"))
        await doors.somebody_at("first")
        await hours.go_by(6)
        doors.open("first")
        await doors.somebody_at("second")
        await hours.go_by(5)
        failed = await failure_of(running)
        await hours.go_by(1000)
        doors.forget()
        again = asyncio.create_task(workflow.run(checkpoint=failed.result))
        await doors.somebody_at("second")
        await hours.go_by(9)
        assert not again.done()
        await hours.go_by(2)
        assert isinstance((await failure_of(again)).__cause__, SubWorkflowTimeoutError)

    under(hours, scenario())


class Asks(Executor):
    """Stands before a door, asks, and stands before another one when it is answered."""

    def __init__(self, id: str, doors: Doors) -> None:
        super().__init__(id)
        self.doors = doors

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        await self.doors.wait("before")
        ctx.request_info(text, response_type=str)

    @response_handler
    async def on_answer(self, text: str, answer: str, ctx: WorkflowContext[Never, str]) -> None:
        await self.doors.wait("after")
        ctx.yield_output(f"{text} {answer}")


def asking(doors: Doors, **options: object) -> Workflow:
    """A workflow around one that asks."""
    inner = WorkflowBuilder("asking", Asks("asks", doors)).build()
    return WorkflowBuilder("w", WorkflowExecutor(inner, "asking", timeout=10, **options)).build()


@pytest.mark.parametrize("after", [3.0, 5.0])
def test_waiting_for_an_answer_does_not_count_and_what_was_used_before_does(place, hours, after: float) -> None:
    """Six seconds before the question and three after it are within ten, five after it are not."""

    async def scenario() -> None:
        doors = Doors()
        running = asyncio.create_task(asking(doors).run("why", checkpoint_storage=place.open(), run_id="r"))
        await doors.somebody_at("before")
        await hours.go_by(6)
        doors.open("before")
        paused = await running
        await hours.go_by(100_000)
        answer = [paused.pending_requests[0].answer("so")]
        call = asking(doors).run(checkpoint=paused.checkpoint_id, responses=answer, checkpoint_storage=place.open())
        running = asyncio.create_task(call)
        await doors.somebody_at("after")
        await hours.go_by(after)
        doors.open("after")
        if after < 4:
            assert (await running).outputs == ["why so"]
        else:
            assert isinstance((await failure_of(running)).__cause__, SubWorkflowTimeoutError)

    under(hours, scenario())


def test_an_answer_in_the_running_turn_lets_the_time_go_on(hours) -> None:
    """The stream answers while another branch keeps the turn running."""

    async def scenario() -> None:
        doors = Doors()
        doors.open("before")
        inner = WorkflowBuilder("asking", Asks("asks", doors)).build()
        start = step(doors, "start")
        node = WorkflowExecutor(inner, "asking", timeout=10)
        workflow = WorkflowBuilder("w", start).add_fan_out_edges(start, [node, step(doors, "beside")]).build()
        doors.open("start")
        stream = workflow.run("why", stream=True, checkpoint_storage=InMemoryCheckpointStorage())
        asked = ""
        async for event in stream:
            asked = getattr(event, "request_id", "")
            if asked:
                break
        await hours.go_by(1000)
        await stream.answer({asked: "so"})
        await doors.somebody_at("after")
        await hours.go_by(9)
        assert doors.cancelled == []
        await hours.go_by(2)
        assert doors.cancelled == ["after"]
        doors.open("beside")
        with pytest.raises(RunFailedError, match="asking#1: SubWorkflowTimeoutError"):
            await stream.result()

    under(hours, scenario())


def test_time_in_which_nobody_drives_the_run_does_not_count(hours) -> None:
    """A process dies in the scope; the next one goes on with what was left at the newest barrier of the scope."""

    async def scenario() -> None:
        doors = Doors()
        store = InMemoryCheckpointStorage()
        running = asyncio.create_task(job(doors).run("go", run_id="r", checkpoint_storage=store))
        await doors.somebody_at("first")
        await hours.go_by(6)
        doors.open("first")
        await doors.somebody_at("second")
        newest = (await store.head("r")).header
        assert newest.status is Status.RUNNING
        await hours.go_by(100_000)
        await failure_of(running)

        doors.forget()
        call = job(doors).run(checkpoint=newest.checkpoint_id, fork=True, checkpoint_storage=store)
        running = asyncio.create_task(call)
        await doors.somebody_at("second")
        await hours.go_by(3)
        assert not running.done()
        await hours.go_by(2)
        assert isinstance((await failure_of(running)).__cause__, SubWorkflowTimeoutError)

    under(hours, scenario())


def test_a_clock_that_is_set_back_gives_no_time_back(hours) -> None:
    """What a scope has used by its newest barrier stays used for the process that goes on with it."""
    doors = Doors()
    inner = WorkflowBuilder("slow", step(doors, "first"))
    inner.add_chain(["first", step(doors, "second"), step(doors, "third")])
    workflow = WorkflowBuilder("job", WorkflowExecutor(inner.build(), "slow", timeout=10)).build()

    async def scenario() -> None:
        store = InMemoryCheckpointStorage()
        running = asyncio.create_task(workflow.run("go", run_id="r", checkpoint_storage=store))
        await doors.somebody_at("first")
        await hours.go_by(6)
        doors.open("first")
        await doors.somebody_at("second")
        hours.set_by = -3600
        doors.open("second")
        await doors.somebody_at("third")
        newest = (await store.head("r")).header
        await hours.go_by(5)
        await failure_of(running)

        doors.forget()
        call = workflow.run(checkpoint=newest.checkpoint_id, fork=True, checkpoint_storage=store)
        running = asyncio.create_task(call)
        await doors.somebody_at("third")
        await hours.go_by(3)
        assert not running.done()
        await hours.go_by(2)
        assert running.done()
        assert isinstance((await failure_of(running)).__cause__, SubWorkflowTimeoutError)

    under(hours, scenario())


def test_a_handler_that_swallows_its_cancellation_is_not_seen(hours) -> None:
    """Its context is closed, the run does not wait for it, and what it gives back counts for nothing."""
    seen: list[str] = []
    doors = Doors()

    @executor(id="stubborn")
    async def stubborn(text: str, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output(f"{text} {ctx.attempt}")
        if ctx.attempt > 1:
            return
        try:
            await doors.wait("stubborn")
        except asyncio.CancelledError:
            try:
                ctx.yield_output("after")
            except Exception as error:
                seen.append(str(error))

    start, beside = step(doors, "start"), step(doors, "beside")
    doors.open("start")
    node = WorkflowExecutor(WorkflowBuilder("inner", stubborn).build(), "inner", timeout=5)
    workflow = WorkflowBuilder("w", start).add_fan_out_edges(start, [node, beside]).build()

    async def scenario() -> None:
        running = asyncio.create_task(workflow.run("x"))
        await doors.somebody_at("stubborn")
        await hours.go_by(6)
        assert (len(seen), running.done()) == (1, False)
        doors.open("beside")
        failed = await failure_of(running)
        assert (await workflow.run(checkpoint=failed.result)).outputs == ["x start beside", "x start 2"]

    under(hours, scenario())
    assert seen == [
        "inner#1/stubborn: yield_output was called after the invocation was stopped: its sub-workflow took too long."
        " Await everything that uses the context before the handler returns."
    ]


def test_other_scopes_go_on_when_the_time_of_one_is_up(hours) -> None:
    """Two executions of one node have a time each; the run fails when neither can go on."""

    async def scenario() -> None:
        doors = Doors()

        class Two(Executor):
            @handler
            async def on_text(self, text: str, ctx: WorkflowContext[str]) -> None:
                ctx.send_message("slow")
                ctx.send_message("fine")

        async def work(text: str, ctx: WorkflowContext[Never, str]) -> None:
            await doors.wait(text)
            ctx.yield_output(text)

        inner = WorkflowBuilder("inner", executor(id="work")(work)).build()
        two = Two("two")
        workflow = WorkflowBuilder("w", two).add_edge(two, WorkflowExecutor(inner, "inner", timeout=10)).build()
        running = asyncio.create_task(workflow.run("x"))
        await doors.somebody_at("slow")
        await doors.somebody_at("fine")
        await hours.go_by(9)
        doors.open("fine")
        await hours.go_by(2)
        failed = await failure_of(running)
        assert doors.cancelled == ["slow"]
        doors.open("slow")
        doors.forget()
        assert (await workflow.run(checkpoint=failed.result)).outputs == ["slow", "fine"]
        assert doors.entered == ["slow"]

    under(hours, scenario())


@pytest.mark.parametrize(("inner", "outer", "where"), [(5, 7, "outer#1/inner#1"), (7, 5, "outer#1")])
def test_of_two_limits_that_are_up_the_first_one_fails(hours, inner: int, outer: int, where: str) -> None:
    """One failure, that of the scope whose time was up first."""

    async def scenario() -> None:
        doors = Doors()
        below = WorkflowExecutor(WorkflowBuilder("inner", step(doors, "first")).build(), "inner", timeout=inner)
        node = WorkflowExecutor(WorkflowBuilder("outer", below).build(), "outer", timeout=outer)
        running = asyncio.create_task(WorkflowBuilder("w", node).build().run("x"))
        await doors.somebody_at("first")
        await hours.go_by(20)
        failed = await failure_of(running)
        assert f"failed in {where}: SubWorkflowTimeoutError: it was busy for more than 5 seconds. Fin" in str(failed)

    under(hours, scenario())


def test_a_shared_scope_has_its_time_anew_with_each_input(hours) -> None:
    """Three inputs of six seconds are within ten each."""

    async def scenario() -> None:
        doors = Doors()

        @executor(id="three")
        async def three(text: str, ctx: WorkflowContext[str]) -> None:
            for name in ("a", "b", "c"):
                ctx.send_message(name)

        async def work(text: str, ctx: WorkflowContext[Never, str]) -> None:
            await doors.wait(text)
            ctx.yield_output(text)

        inner = WorkflowBuilder("inner", executor(id="work")(work)).build()
        node = WorkflowExecutor(inner, "inner", timeout=10, isolation="shared")
        running = asyncio.create_task(WorkflowBuilder("w", three).add_edge(three, node).build().run("x"))
        for name in ("a", "b", "c"):
            await doors.somebody_at(name)
            await hours.go_by(6)
            doors.open(name)
        assert (await running).outputs == ["a", "b", "c"]

    under(hours, scenario())


def test_a_limit_is_todays_and_not_the_checkpoints(hours) -> None:
    """A longer one, or none, holds for a run that was begun with another."""

    async def scenario() -> None:
        doors = Doors()
        running = asyncio.create_task(job(doors).run("go"))
        await doors.somebody_at("first")
        await hours.go_by(11)
        failed = await failure_of(running)
        doors.forget()
        running = asyncio.create_task(job(doors, timeout=None).run(checkpoint=failed.result))
        await doors.somebody_at("first")
        await hours.go_by(100_000)
        doors.open("first", "second")
        assert (await running).outputs == ["go start beside", "go start first second"]

    under(hours, scenario())


def test_new_input_can_leave_a_scope_behind_whose_time_was_up(hours) -> None:
    """Its work is dropped, and the next message has a scope and a time of its own."""

    async def scenario() -> None:
        doors = Doors()
        workflow = job(doors)
        running = asyncio.create_task(workflow.run("go"))
        await doors.somebody_at("first")
        await hours.go_by(11)
        failed = await failure_of(running)
        doors.open("first", "second")
        ended = await workflow.run("on", checkpoint=failed.result, on_unfinished="discard")
        assert ended.outputs == ["on start beside", "on start first second"]

    under(hours, scenario())


@pytest.mark.parametrize("timeout", [0, -1, True, "5", float("nan"), float("inf"), 1e12, 10**400])
def test_a_limit_that_is_no_time_is_refused_at_the_line(timeout: object) -> None:
    """Seconds above zero, and not more than a century."""
    inner = WorkflowBuilder("inner", step(Doors(), "first")).build()
    says = r"'inner': timeout is .*Use a number of seconds above 0, at most 100 years"
    with pytest.raises(ExecutorDefinitionError, match=says):
        WorkflowExecutor(inner, timeout=timeout)
