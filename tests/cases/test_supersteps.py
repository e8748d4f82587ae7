"""Supersteps: what is delivered and seen when, and the order that is part of the contract (section 3.1 to 3.3)."""

import asyncio
import contextvars
from typing import Never

import pytest

from rehydrate import (
    Executor,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    executor,
    handler,
    response_handler,
)
from rehydrate.model.events import OutputYielded
from tests.cases.flows import adder, asking_child, four_parallel
from tests.cases.kit import answers, failed, run, scope_events, streamed, supersteps


class Line:
    """Executors that finish in a given order: each waits until those named before it have finished."""

    def __init__(self, order):
        self.order = list(order)
        self.finished = {name: asyncio.Event() for name in self.order}

    async def turn_of(self, name):
        before = self.order[: self.order.index(name)]
        for other in before:
            await self.finished[other].wait()
        self.finished[name].set()


def spreading(order, noted=None):
    """s → [a, b, c] → sink; each of the three sends two texts, yields one, and writes; they finish in `order`."""
    line = Line(order)
    s = adder("s", 0, [])

    def worker(id):
        @executor(id=id)
        async def work(number: int, ctx: WorkflowContext[str, str]) -> None:
            await ctx.send_message(f"{id}1")
            await line.turn_of(id)
            await ctx.send_message(f"{id}2")
            await ctx.yield_output(f"{id} out")
            await ctx.set_state(f"by {id}", number)
            if noted is not None:
                noted.append(id)

        return work

    @executor(id="sink")
    async def sink(text: str, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(text)

    workers = [worker(id) for id in ("c", "a", "b")]
    builder = WorkflowBuilder("spreading", s).add_fan_out_edges(s, workers)
    for node in workers:
        builder.add_edge(node, sink)
    return builder.build()


ORDERS = ["abc", "cba", "bca"]


@pytest.mark.parametrize("order", ORDERS)
def test_messages_are_handled_by_position_of_their_source_then_send_order(place, order):
    """Section 3.1: whatever finished first, messages come by (place of the source in the graph, order of sending)."""
    noted = []
    result = run(spreading(order, noted), 1, checkpoint_storage=place.store)
    assert "".join(noted) == order
    assert result.outputs[3:] == ["a1", "a2", "b1", "b2", "c1", "c2"]


@pytest.mark.parametrize("order", ORDERS)
def test_outputs_are_in_canonical_order_whatever_finishes_first(place, order):
    """Section 3: outputs come by superstep, then executor, then send order."""
    result = run(spreading(order), 1, checkpoint_storage=place.store)
    assert result.outputs[:3] == ["a out", "b out", "c out"]
    assert len(result.outputs) == 9


def test_everything_that_matters_is_the_same_whatever_finishes_first(place):
    """Section 3: state, messages, outputs, status, and the events of each scope in their order are the same."""
    facts = []
    for order in ORDERS:
        result = run(spreading(order), 1, checkpoint_storage=place.store)
        facts.append((result.outputs, result.status, dict(result.checkpoint.state), scope_events(result.events)))
    assert facts[0] == facts[1] == facts[2]


def test_a_superstep_delivers_what_was_waiting_at_its_start(place):
    """Section 3.1: every waiting message is handled in one superstep, and what it sends in the next."""
    result = run(spreading("abc"), 1, checkpoint_storage=place.store)
    began, completed = supersteps(result.events)
    assert began == completed == [("", 1), ("", 2), ("", 3)]
    steps = [event.superstep for event in result.events if isinstance(event, OutputYielded)]
    assert steps == [2, 2, 2, 3, 3, 3, 3, 3, 3]


def test_no_effect_is_visible_before_the_barrier(place):
    """Section 3.2: while one executor of a superstep still runs, the others' effects are in no event and no state."""

    async def look():
        finished, looked = asyncio.Event(), asyncio.Event()
        s = adder("s", 0, [])

        @executor(id="quick")
        async def quick(number: int, ctx: WorkflowContext[Never, int]) -> None:
            await ctx.set_state("quick", number)
            await ctx.yield_output(number)
            finished.set()

        @executor(id="slow")
        async def slow(number: int, ctx: WorkflowContext[Never, int]) -> None:
            await looked.wait()
            await ctx.yield_output(ctx.get_state("quick", -1))

        workflow = WorkflowBuilder("two", s).add_fan_out_edges(s, [quick, slow]).build()
        seen = []
        stream = workflow.run(1, run_id="r", stream=True, checkpoint_storage=place.store)
        async with stream:
            reading = asyncio.create_task(read(stream, seen))
            await finished.wait()
            for _ in range(5):
                await asyncio.sleep(0)
            early = list(seen)
            looked.set()
            await reading
        return early, seen

    async def read(stream, seen):
        async for event in stream:
            if isinstance(event, OutputYielded):
                seen.append(event.data)

    assert asyncio.run(look()) == ([], [1, -1])


def chained(log, *, breaks_at=None):
    """s sends 1, 2, 3 to worker, which adds each to a total that it keeps in state; peer looks at the total."""

    @executor(id="s")
    async def s(number: int, ctx: WorkflowContext[int]) -> None:
        await ctx.set_state("total", 100)
        for each in (1, 2, 3):
            await ctx.send_message(each)

    @executor(id="worker")
    async def worker(number: int, ctx: WorkflowContext[Never, int]) -> None:
        total = ctx.get_state("total") + number
        log.append(f"worker {number}: {total}")
        await ctx.set_state("total", total)
        if number == breaks_at:
            raise ValueError("in the chain")
        await ctx.yield_output(total)

    @executor(id="peer")
    async def peer(number: int, ctx: WorkflowContext) -> None:
        log.append(f"peer {number}: {ctx.get_state('total')}")

    return WorkflowBuilder("chained", s).add_edge(s, worker).add_edge(s, peer).build()


def test_an_executor_sees_what_it_wrote_for_the_messages_before(place):
    """Section 3.3: reads see what was committed before, plus the writes of the same executor's earlier messages."""
    log = []
    result = run(chained(log), 0, checkpoint_storage=place.store)
    assert [line for line in log if line.startswith("worker")] == ["worker 1: 101", "worker 2: 103", "worker 3: 106"]
    assert [line for line in log if line.startswith("peer")] == ["peer 1: 100", "peer 2: 100", "peer 3: 100"]
    assert result.outputs == [101, 103, 106]
    assert result.checkpoint.state == {"total": 106}


@pytest.mark.parametrize(("breaks_at", "ran"), [(1, 1), (2, 2), (3, 3)])
def test_a_failure_ends_the_chain_and_a_resume_goes_on_there(place, breaks_at, ran):
    """Section 3.3: what follows a failure in a chain stays unfinished; a resume runs the failed one and the rest."""
    log = []
    error = failed(chained(log, breaks_at=breaks_at), 0, run_id="r", checkpoint_storage=place.store)
    assert [line.split(":")[0] for line in log if line.startswith("worker")] == ["worker 1", "worker 2", "worker 3"][
        :ran
    ]
    assert sum(line.startswith("peer") for line in log) == 3
    assert (error.result.outputs, error.result.checkpoint.state) == ([], {"total": 100})
    again = []
    result = run(chained(again), checkpoint=error.result, checkpoint_storage=place.reopen())
    assert again == ["worker 1: 101", "worker 2: 103", "worker 3: 106"][ran - 1 :]
    assert result.outputs == [101, 103, 106]
    assert result.checkpoint.state == {"total": 106}


class Many(Executor):
    """Asks several questions at once and notes the order in which answers and messages come."""

    def __init__(self, log, count):
        super().__init__("many")
        self.log, self.count = log, count

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext) -> None:
        self.log.append(text)
        if text == "ask":
            for number in range(self.count):
                await ctx.request_info(number, response_type=str)

    @response_handler
    async def on_answer(self, number: int, answer: str, ctx: WorkflowContext) -> None:
        self.log.append(number)


def test_answers_come_by_inner_name_and_before_the_message(place):
    """Section 3.1: answers come by the name of their request, numbers as numbers, then the message."""
    log = []
    workflow = WorkflowBuilder("many", Many(log, 12)).build()
    first = run(workflow, "ask", checkpoint_storage=place.store)
    given = answers(first, *["yes"] * 12)
    run(workflow, "message", checkpoint=first, responses=given[5:] + given[:5], checkpoint_storage=place.store)
    assert log == ["ask", *range(12), "message"]


def test_answers_come_in_the_order_of_activations(place):
    """Section 3.1: requests of earlier activations are answered first, the tenth after the ninth."""
    log = []
    workflow = WorkflowBuilder("many", Many(log, 1)).build()
    result = run(workflow, "ask", checkpoint_storage=place.store)
    for _ in range(10):
        result = run(workflow, "ask", checkpoint=result, on_pending="keep", checkpoint_storage=place.store)
    seen = []
    workflow = WorkflowBuilder("many", Noting(seen)).build()
    given = {request.request_id: str(number) for number, request in enumerate(result.pending_requests)}
    run(workflow, checkpoint=result, responses=dict(reversed(given.items())), checkpoint_storage=place.store)
    assert seen == list(range(11))


class Noting(Executor):
    """Stands in for `Many` and notes the answers."""

    def __init__(self, seen):
        super().__init__("many")
        self.seen = seen

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext) -> None:
        raise AssertionError("no message was sent")

    @response_handler
    async def on_answer(self, number: int, answer: str, ctx: WorkflowContext) -> None:
        self.seen.append(int(answer))


def test_a_message_from_outside_stands_before_those_from_inside(place):
    """Section 3.1: a new turn's message that meets unfinished work is delivered in the next superstep, and first."""
    log, broken = [], {"back"}

    @executor(id="front")
    async def front(number: int, ctx: WorkflowContext[int, int]) -> None:
        log.append(number)
        if number < 100:
            await ctx.send_message(number)
        else:
            await ctx.yield_output(number)

    @executor(id="back")
    async def back(number: int, ctx: WorkflowContext[int]) -> None:
        if "back" in broken:
            raise ValueError("back is broken")
        await ctx.send_message(number + 100)

    workflow = WorkflowBuilder("circle", front).add_chain([front, back, front]).build()
    error = failed(workflow, 1, run_id="r", checkpoint_storage=place.store)
    broken.clear()
    result = run(workflow, 200, checkpoint=error.result, checkpoint_storage=place.reopen())
    assert log == [1, 200, 101]
    assert result.outputs == [200, 101]


def test_answers_that_meet_unfinished_work_come_by_inner_name_in_the_next_superstep(place):
    """Section 3.1: they wait until the superstep is completed, and are then ordered by name, before the message."""
    log, broken = [], {"breaks"}
    many = Many(log, 12)

    @executor(id="breaks")
    async def breaks(text: str, ctx: WorkflowContext) -> None:
        if broken:
            raise ValueError("not now")
        log.append("completed")

    @executor(id="s")
    async def s(text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(text, target_id="many" if text == "ask" else "breaks")

    workflow = WorkflowBuilder("many", s).add_fan_out_edges(s, [many, breaks]).build()
    first = run(workflow, "ask", run_id="r", checkpoint_storage=place.store)
    error = failed(workflow, "break", checkpoint=first, on_pending="keep", checkpoint_storage=place.store)
    given = answers(first, *["yes"] * 12)
    broken.clear()
    run(workflow, checkpoint=error.result, responses=given[5:] + given[:5], checkpoint_storage=place.reopen())
    assert log == ["ask", "completed", *range(12)]


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1)])
def test_outputs_of_scopes_come_by_scope_number_whatever_ends_first(place, order):
    """Section 3: outputs of scopes of one node are taken by scope number, then send order."""

    def built():
        line = Line(map(str, order))

        @executor(id="inner")
        async def inner(number: int, ctx: WorkflowContext[Never, str]) -> None:
            await line.turn_of(str(number))
            await ctx.yield_output(f"{number}a")
            await ctx.yield_output(f"{number}b")

        @executor(id="s")
        async def s(start: int, ctx: WorkflowContext[int]) -> None:
            for number in (1, 2, 3):
                await ctx.send_message(number)

        child = WorkflowExecutor(WorkflowBuilder("child", inner).build(), id="child")
        return WorkflowBuilder("parent", s).add_edge(s, child).build()

    result = run(built(), 0, checkpoint_storage=place.store)
    assert result.outputs == ["1a", "1b", "2a", "2b", "3a", "3b"]


def test_different_executors_of_a_superstep_run_at_the_same_time(place):
    """Section 3.1: two executors that wait for each other inside one superstep both finish."""

    def built():
        met = {"a": asyncio.Event(), "b": asyncio.Event()}

        def waiter(id, other):
            @executor(id=id)
            async def wait(number: int) -> str:
                met[id].set()
                await met[other].wait()
                return id

            return wait

        s = adder("s", 0, [])
        return WorkflowBuilder("meeting", s).add_fan_out_edges(s, [waiter("a", "b"), waiter("b", "a")]).build()

    async def bounded():
        return await asyncio.wait_for(built().run(0, checkpoint_storage=place.store), 5)

    assert asyncio.run(bounded()).outputs == ["a", "b"]


def test_a_stream_has_the_same_committed_events_as_a_call(place):
    """Section 2: streaming changes how events are read, not which there are."""
    called = run(four_parallel([]), 1, checkpoint_storage=place.store).events
    read = asyncio.run(streamed(four_parallel([]), 1, checkpoint_storage=place.store))
    assert scope_events(called) == scope_events(read)
    assert [type(e) for e in called if not e.live] == [type(e) for e in read if not e.live]


def test_scopes_and_executors_of_a_superstep_take_their_turn_in_executor_order(place):
    """Section 3 and 4: a scope's outputs come in the place of its `WorkflowExecutor`, in outputs and in messages."""

    def child(id):
        return WorkflowExecutor(WorkflowBuilder(f"in {id}", adder("inner", 0, [])).build(), id=id)

    def namer(id):
        @executor(id=id)
        async def name(number: int, ctx: WorkflowContext[int, int]) -> None:
            await ctx.yield_output(number)
            await ctx.send_message(number)

        return name

    @executor(id="spread")
    async def spread(start: int, ctx: WorkflowContext[int]) -> None:
        for number, target in enumerate(("a", "b", "c", "d"), start=1):
            await ctx.send_message(number, target_id=target)

    got = []

    @executor(id="sink")
    async def sink(number: int, ctx: WorkflowContext) -> None:
        got.append(number)

    nodes = [child("a"), namer("b"), child("c"), namer("d")]
    builder = WorkflowBuilder("mixed", spread).add_fan_out_edges(spread, nodes)
    for node in nodes:
        builder.add_edge(node, sink)
    result = run(builder.build(), 0, checkpoint_storage=place.store)
    assert result.outputs == [2, 4]
    assert got == [1, 2, 3, 4]
    outputs = WorkflowBuilder("outputs", spread).add_fan_out_edges(
        spread, [child("a"), adder("b", 0, []), child("c"), adder("d", 0, [])]
    )
    assert run(outputs.build(), 0, checkpoint_storage=place.store).outputs == [1, 2, 3, 4]


def test_an_answer_and_a_message_of_one_call_share_the_next_superstep(place):
    """Section 4: where no superstep is unfinished, the message and all that the answers woke share the next one."""
    first = run(asking_child([]), "x", checkpoint_storage=place.store)
    given = answers(first, "y")
    second = run(asking_child([]), "z", checkpoint=first, responses=given, checkpoint_storage=place.reopen())
    began, _ = supersteps(second.events)
    assert sorted(began[:3]) == [("", 2), ("ask#1", 2), ("ask#2", 1)]
    assert second.outputs == ["X=Y"]


def test_handlers_see_a_copy_of_the_callers_context_variables(place):
    """Section 3.13: what the caller set is seen, and what a handler sets is seen by nobody else."""
    variable = contextvars.ContextVar("variable", default="unset")
    seen = []

    @executor(id="s")
    async def s(number: int) -> int:
        seen.append(variable.get())
        variable.set("changed by s")
        return number

    @executor(id="t")
    async def t(number: int) -> int:
        seen.append(variable.get())
        return number

    async def call():
        variable.set("the caller's")
        await WorkflowBuilder("context", s).add_edge(s, t).build().run(1, checkpoint_storage=place.store)
        seen.append(variable.get())

    asyncio.run(call())
    assert seen == ["the caller's"] * 3
