"""Failure, cancellation and doing things exactly once: the fourth chapter of the situations."""

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
from rehydrate.errors import RunFailedError, SaveFailedError
from rehydrate.model.events import Emitted, InvocationFailed, OutputYielded, StatusChanged
from tests.cases.flows import adder, asking_child, four_parallel, three
from tests.cases.kit import answers, failed, run


def test_a_failed_executor_gets_its_message_again(place):
    """Case 30: 3 raised; the resume gives 3 its message, and 1 and 2 do not run."""
    error = failed(three([], broken={"three"}), 1, run_id="r", checkpoint_storage=place.store)
    assert error.result.status is Status.FAILED
    assert error.result.outputs == []
    assert isinstance(error.__cause__, ValueError)
    log = []
    result = run(three(log), checkpoint=error.result, checkpoint_storage=place.reopen())
    assert log == ["three"]
    assert (result.status, result.outputs) == (Status.IDLE, [4])


def test_a_failed_executor_gets_its_message_again_in_a_fresh_process(place, fresh):
    """Case 30: the same where another process repairs the cause and goes on."""
    error = failed(three([], broken={"three"}), 1, run_id="r", checkpoint_storage=place.store)
    reply = fresh.ask("three", place.told(error.result.checkpoint_id))
    assert reply == {"status": "IDLE", "outputs": [4], "open": [], "log": ["three"]}


def test_an_executor_that_fails_again_keeps_its_message(place):
    """Case 30: however often 3 fails, its message stays, and nothing before it runs again."""
    result = failed(three([], broken={"three"}), 1, run_id="r", checkpoint_storage=place.store).result
    for _ in range(3):
        log = []
        result = failed(three(log, broken={"three"}), checkpoint=result, checkpoint_storage=place.reopen()).result
        assert log == ["three"]
    assert run(three([]), checkpoint=result, checkpoint_storage=place.store).outputs == [4]


@pytest.mark.parametrize("broken", ["w1", "w3", "w4"])
def test_only_the_one_that_failed_of_four_runs_again(place, fresh, broken):
    """Case 32: the finished ones are kept, unmerged, and the outputs come in canonical order."""
    log = []
    workflow = four_parallel(log, broken={broken})
    error = failed(workflow, 10, run_id="r", checkpoint_storage=place.store)
    assert sorted(log) == ["s", "w1", "w2", "w3", "w4"]
    assert error.result.outputs == []
    reply = fresh.ask("four_parallel", place.told(error.result.checkpoint_id))
    assert reply == {"status": "IDLE", "outputs": [11, 12, 13, 14], "open": [], "log": [broken]}


def test_the_first_of_several_failures_in_executor_order_is_told_first(place):
    """Section 3.9: the run fails with the first failure in executor order, the others beside it."""
    error = failed(four_parallel([], broken={"w4", "w2"}), 10, checkpoint_storage=place.store)
    assert error.where == "w2"
    assert "w2 is broken" in error.reason
    assert "w4" in error.reason
    assert str(error.__cause__) == "w2 is broken"


def remembering(log, *, broken):
    """first → second; second writes state, then yields what it had found there, or raises."""
    first = adder("first", 0, log)

    @executor(id="second")
    async def second(number: int, ctx: WorkflowContext[Never, str | None]) -> None:
        log.append(ctx.get_state("secret"))
        before = ctx.get_state("secret")
        await ctx.set_state("secret", "left-behind")
        await ctx.yield_output(before)
        if broken:
            raise ValueError("after the write")

    return WorkflowBuilder("remembering", first).add_edge(first, second).build()


def test_a_write_of_an_executor_that_raised_is_nowhere(place):
    """Case 33: neither another run, nor the resumed one, nor any stored record has the value."""
    error = failed(remembering([], broken=True), 1, run_id="r", checkpoint_storage=place.store)
    records = asyncio.run(place.store.load(error.result.checkpoint_id)).records
    assert not any(b"left-behind" in data for data in records.values())
    assert error.result.outputs == []
    other, same = [], []
    run(remembering(other, broken=False), 1, run_id="other", checkpoint_storage=place.store)
    run(remembering(same, broken=False), checkpoint=error.result, checkpoint_storage=place.store)
    assert other == ["first", None]
    assert same == [None]


def test_two_runs_of_one_definition_do_not_see_each_other(place):
    """Case 33: the definition holds no state, so a run that failed leaves nothing in the next."""
    log = []
    workflow = remembering(log, broken=True)
    failed(workflow, 1, checkpoint_storage=place.store)
    failed(workflow, 2, checkpoint_storage=place.store)
    assert log == ["first", None, "first", None]


def test_a_broad_except_around_a_question_does_not_swallow_the_pause(place):
    """Case 35: asking raises no signal, so `except Exception` finds nothing and the run pauses."""
    caught = []

    class Careful(Executor):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
            try:
                await ctx.request_info(text, response_type=bool)
            except BaseException as error:
                caught.append(error)
            await ctx.yield_output("asked")

        @response_handler
        async def on_answer(self, text: str, answer: bool, ctx: WorkflowContext[Never, str]) -> None:
            await ctx.yield_output(f"{text}: {answer}")

    workflow = WorkflowBuilder("careful", Careful("careful")).build()
    first = run(workflow, "sure?", checkpoint_storage=place.store)
    assert first.status is Status.IDLE_WITH_PENDING_REQUESTS
    assert first.outputs == ["asked"]
    assert caught == []
    second = run(workflow, checkpoint=first, responses=answers(first, True), checkpoint_storage=place.reopen())
    assert second.outputs == ["sure?: True"]


def test_a_store_whose_every_save_fails_lets_no_executor_run(place):
    """Case 36: the run fails at the first save, which is the claim."""
    place.store.fails_from = 1
    log = []
    with pytest.raises(SaveFailedError, match="the disk is full"):
        run(three(log), 1, run_id="r", checkpoint_storage=place.store)
    assert log == []
    assert asyncio.run(place.store.head("r")) is None


@pytest.mark.parametrize(("fails_from", "ran"), [(2, ["one"]), (3, ["one", "two"]), (4, ["one", "two", "three"])])
def test_a_save_that_fails_later_stops_the_run_there(place, fails_from, ran):
    """Case 36: no executor runs after the save that failed; with the store repaired the run goes on from its head."""
    place.store.fails_from = fails_from
    log = []
    with pytest.raises(SaveFailedError, match="the disk is full"):
        run(three(log), 1, run_id="r", checkpoint_storage=place.store)
    assert log == ran
    place.store.fails_from = None
    again = []
    result = run(three(again), run_id="r", checkpoint="latest", checkpoint_storage=place.store)
    assert result.outputs == [4]
    assert again == ["one", "two", "three"][len(ran) - 1 :]


def test_a_failed_save_is_raised_in_a_stream_too(place):
    """Case 36: the iteration of a stream ends with the error; no event of what was not saved comes before it."""
    place.store.fails_from = 2
    seen = []

    async def read():
        stream = three([]).run(1, stream=True, checkpoint_storage=place.store)
        while True:
            seen.append(await anext(stream))

    with pytest.raises(SaveFailedError):
        asyncio.run(read())
    assert not any(isinstance(event, OutputYielded | StatusChanged) for event in seen)


def test_two_processes_that_resume_one_pause_do_not_both_continue(file_place, fresh, another_fresh):
    """Case 37: one continues, the other gets an error before anything of its own ran."""
    first = run(asking_child([]), "x", run_id="r", checkpoint_storage=file_place.store)
    told, responses = file_place.told(first.checkpoint_id), {first.pending_requests[0].request_id: "yes"}
    file_place.close()
    for process in (fresh, another_fresh):
        process.send("asking_child", told, responses=responses)
    replies = [fresh.reply(), another_fresh.reply()]
    winners = [reply for reply in replies if "error" not in reply]
    losers = [reply for reply in replies if "error" in reply]
    assert [reply["outputs"] for reply in winners] == [["X=YES"]]
    assert [reply["log"] for reply in losers] == [[]]
    file_place.reopen()
    assert file_place.head("r").status is Status.IDLE


def test_a_process_is_refused_while_another_one_continues(file_place, fresh):
    """Case 37: while this process drives the run, another one gets `RunBusyError` and runs nothing."""

    async def meet():
        reached, goes_on = asyncio.Event(), asyncio.Event()

        class Gated(Executor):
            @handler
            async def on_text(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
                reached.set()
                await goes_on.wait()
                await ctx.yield_output(text)

        workflow = WorkflowBuilder("asking", Gated("gated")).build()
        running = asyncio.create_task(workflow.run("x", run_id="r", checkpoint_storage=file_place.store))
        await reached.wait()
        head = await file_place.store.head("r")
        told = {"path": str(file_place.path), "checkpoint": head.header.checkpoint_id}
        reply = await asyncio.to_thread(fresh.ask, "asking_child", told)
        goes_on.set()
        return reply, await running

    reply, result = asyncio.run(meet())
    assert reply["error"] == "RunBusyError"
    assert reply["log"] == []
    assert result.outputs == ["x"]


def test_events_of_an_executor_arrive_while_it_runs(place):
    """Case 38: what it emits is read one by one in between, not together at its end."""
    read = []

    async def talk():
        heard = asyncio.Event()

        @executor(id="talker")
        async def talker(count: int, ctx: WorkflowContext[Never, str]) -> None:
            for number in range(count):
                heard.clear()
                await ctx.emit(number)
                await heard.wait()
            await ctx.yield_output("done")

        workflow = WorkflowBuilder("talk", talker).build()
        async for event in workflow.run(3, stream=True, checkpoint_storage=place.store):
            if isinstance(event, Emitted):
                read.append(event.data)
                heard.set()
            elif isinstance(event, OutputYielded):
                read.append(event.data)

    asyncio.run(asyncio.wait_for(talk(), 5))
    assert read == [0, 1, 2, "done"]


def failing_at_the_start(depth):
    """A workflow whose start executor fails, in a sub-workflow so many levels down."""

    @executor(id="start")
    async def start(number: int) -> int:
        raise ValueError(f"not {number}")

    workflow = WorkflowBuilder("inner", start).build()
    for level in range(depth):
        node = WorkflowExecutor(workflow, id=f"level{level}")
        workflow = WorkflowBuilder(f"outer{level}", node).build()
    return workflow


@pytest.mark.parametrize(("depth", "path"), [(0, ""), (1, "level0#1"), (2, "level1#1/level0#1")])
def test_the_failure_of_a_start_executor_is_told_before_the_end_of_the_run(place, depth, path):
    """Case 40: its failure event, with path and exception, comes before the run's, and the stream then raises."""

    async def read():
        stream = failing_at_the_start(depth).run(7, stream=True, checkpoint_storage=place.store)
        events = [event async for event in stream]
        with pytest.raises(RunFailedError) as caught:
            await stream.result()
        return events, caught.value

    events, error = asyncio.run(read())
    failures = [event for event in events if isinstance(event, InvocationFailed)]
    assert [(e.path, e.executor_id, e.failure.type, e.failure.text) for e in failures] == [
        (path, "start", "ValueError", "not 7")
    ]
    assert "not 7" in failures[0].failure.trace
    assert isinstance(events[-1], StatusChanged)
    assert (events[-1].status, events[-1].paths) == (Status.FAILED, (path,))
    assert events.index(failures[0]) < len(events) - 1
    assert isinstance(error.__cause__, ValueError)
    assert error.where == (f"{path}/start" if path else "start")


def test_a_failed_run_says_what_it_has(place):
    """Section 2: the error holds the result: checkpoint id, outputs so far and open requests."""

    class Both(Executor):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[str, str]) -> None:
            await ctx.request_info(text, response_type=str)
            await ctx.yield_output("so far")
            await ctx.send_message(text)

        @response_handler
        async def on_answer(self, text: str, answer: str, ctx: WorkflowContext[str, str]) -> None:
            await ctx.yield_output(answer)

    @executor(id="breaks")
    async def breaks(text: str) -> str:
        raise ValueError(text)

    start = Both("both")
    workflow = WorkflowBuilder("both", start).add_edge(start, breaks).build()
    error = failed(workflow, "x", run_id="r", checkpoint_storage=place.store)
    assert error.result.outputs == ["so far"]
    assert [request.data for request in error.result.pending_requests] == ["x"]
    assert error.result.checkpoint_id == place.head("r").checkpoint_id


def test_a_failed_run_goes_on_without_a_store():
    """Case 30 and 32: the error's result stands for its checkpoint, also where nothing is stored."""
    error = failed(four_parallel([], broken={"w2"}), 10)
    log = []
    result = run(four_parallel(log), checkpoint=error.result)
    assert (log, result.outputs) == (["w2"], [11, 12, 13, 14])


def test_an_executor_that_changed_its_message_before_it_failed_gets_the_message_as_it_was(place):
    """Section 3.4 and case 30: each attempt gets a fresh copy."""
    seen, broken = [], {True}

    @executor(id="s")
    async def s(items: list[int]) -> list[int]:
        return items

    @executor(id="spoils")
    async def spoils(items: list[int]) -> int:
        seen.append(items.copy())
        items.append(9)
        if broken:
            raise ValueError("spoilt")
        return len(items)

    workflow = WorkflowBuilder("spoils", s).add_edge(s, spoils).build()
    error = failed(workflow, [1], run_id="r", checkpoint_storage=place.store)
    broken.clear()
    result = run(workflow, checkpoint=error.result, checkpoint_storage=place.store)
    assert (seen, result.outputs) == ([[1], [1]], [2])


class UnprintableError(Exception):
    """Cannot be made a text."""

    def __str__(self):
        raise RuntimeError("no text")


RAISED = {
    "a lone surrogate": lambda: ValueError("\ud800"),
    "a NUL": lambda: ValueError("\0"),
    "no text at all": UnprintableError,
    "a long text": lambda: ValueError("x" * 1_000_000),
    "cancelled by itself": asyncio.CancelledError,
    "a group": lambda: ExceptionGroup("several", [ValueError("one"), KeyError("two")]),
    "a stop": StopIteration,
    "a timeout": TimeoutError,
}


@pytest.mark.parametrize("kind", RAISED)
def test_a_run_fails_whatever_its_executor_raises(place, kind):
    """Section 2: any exception of a handler makes the run FAILED and is its error's cause; a resume goes on there."""
    broken = {True}
    raised = []

    @executor(id="raises")
    async def raises(number: int) -> int:
        if broken:
            raised.append(RAISED[kind]())
            raise raised[0]
        return number

    workflow = WorkflowBuilder("raises", raises).build()
    error = failed(workflow, 1, run_id="r", checkpoint_storage=place.store)
    assert error.result.status is Status.FAILED
    assert error.where == "raises"
    if kind != "a stop":
        assert error.__cause__ is raised[0]
    broken.clear()
    assert run(workflow, checkpoint=error.result, checkpoint_storage=place.reopen()).outputs == [1]


@pytest.mark.parametrize(
    ("raised", "text"),
    [
        (lambda: ExceptionGroup("several", [ValueError("one"), KeyError("two")]),
         "ExceptionGroup: several (2 sub-exceptions): ValueError: one; KeyError: 'two'"),
        (lambda: ExceptionGroup("out", [ExceptionGroup("in", [ValueError("one")]), UnprintableError()]),
         "ExceptionGroup: out (2 sub-exceptions): ValueError: one;"
         " UnprintableError: <its text could not be made: RuntimeError>"),
        (lambda: ExceptionGroup("g" * 5000, [ValueError("x" * 5000), KeyError("two")]),
         f"ExceptionGroup: {'g' * 300}: ValueError: {'x' * 288}; KeyError: 'two'"),
        (lambda: ExceptionGroup("many", [ValueError(number) for number in range(100)]),
         "ExceptionGroup: many (100 sub-exceptions):" + ";".join(f" ValueError: {number}" for number in range(5))),
    ],
)  # fmt: skip
def test_the_failure_of_a_task_group_names_what_failed_in_it(place, raised, text):
    """The first five, through groups in groups: the group's own text says only how many there are."""

    @executor(id="raises")
    async def raises(number: int) -> int:
        raise raised()

    error = failed(WorkflowBuilder("raises", raises).build(), 1, run_id="r", checkpoint_storage=place.store)
    assert f"failed in raises: {text}. Finished work" in str(error)
