"""Joins, loops and order: the third chapter of the situations, and the rules of joins beside them."""

import asyncio

import pytest

from rehydrate import (
    Case,
    Default,
    Runner,
    Status,
    WorkflowBuilder,
    WorkflowCheckpoint,
    WorkflowContext,
    WorkflowExecutor,
    executor,
)
from rehydrate.errors import JoinDeadlockError, PredicateError
from rehydrate.model.events import InvocationStarted
from tests.cases.flows import Asker, adder, lister, loop, skipped_branch, text_passer, uneven_join
from tests.cases.kit import answers, failed, run


def half_filled(place, run_id):
    """Return the last checkpoint in which the join holds the message of `a` and waits for `b2`."""
    return place.checkpoints_with(run_id, "join")[-1]


def test_a_join_of_uneven_branches_fires_once_after_a_restore(place, fresh):
    """Case 21: saved after a arrived, a fresh process joins both once and runs neither s nor a again."""
    result = run(uneven_join([]), 1, run_id="r", checkpoint_storage=place.store)
    assert result.outputs == ["[2, 111]"]
    told = place.told(half_filled(place, "r"))
    reply = fresh.ask("uneven_join", told, fork=True)
    assert reply == {"status": "IDLE", "outputs": ["[2, 111]"], "open": [], "log": ["b2", "join [2, 111]"]}


def test_a_join_is_the_same_from_every_checkpoint(place):
    """Case 21: whichever checkpoint of the run is restored, the join gets the same list once."""
    run(uneven_join([]), 1, run_id="r", checkpoint_storage=place.store)
    store = place.reopen()
    history = place.history("r")
    for header in history:
        log = []
        result = run(uneven_join(log), checkpoint=header.checkpoint_id, fork=True, checkpoint_storage=store)
        assert result.outputs == ["[2, 111]"]
        assert log.count("join [2, 111]") == (0 if header == history[-1] else 1)


def test_a_checkpoint_that_is_resumed_twice_gives_the_same_result_twice(place):
    """Case 22: the first resume takes nothing from the checkpoint, and the second reads the very same bytes."""
    run(uneven_join([]), 1, run_id="r", checkpoint_storage=place.store)
    middle = half_filled(place, "r")
    before = asyncio.run(place.store.load(middle))
    logs = [[], []]
    results = [run(uneven_join(log), checkpoint=middle, fork=True, checkpoint_storage=place.store) for log in logs]
    assert [result.outputs for result in results] == [["[2, 111]"], ["[2, 111]"]]
    assert logs == [["b2", "join [2, 111]"]] * 2
    assert asyncio.run(place.store.load(middle)) == before


def test_a_checkpoint_object_that_is_resumed_twice_without_a_store_gives_the_same_twice():
    """Case 22: without a store each call goes on independently from the object and changes nothing in it."""

    async def captured():
        gate = asyncio.Event()

        @executor(id="b2")
        async def b2(number: int) -> int:
            await gate.wait()
            return number + 100

        workflow = uneven_with(b2)
        runner = Runner(workflow)
        async with runner.run(1, stream=True) as stream:
            async for event in stream:
                if isinstance(event, InvocationStarted) and event.executor_id == "b2":
                    checkpoint = await runner.capture_checkpoint_object(in_flight=True)
                    gate.set()
        return checkpoint

    def uneven_with(b2):
        s, a, b1, join = adder("s", 0, []), adder("a", 1, []), adder("b1", 10, []), lister("join", [])
        builder = WorkflowBuilder("uneven", s).add_fan_out_edges(s, [a, b1]).add_edge(b1, b2)
        return builder.add_fan_in_edges([a, b2], join).build()

    checkpoint = asyncio.run(captured())
    before = checkpoint.to_bytes()
    results = [run(uneven_join([]), checkpoint=checkpoint) for _ in range(2)]
    results.append(run(uneven_join([]), checkpoint=WorkflowCheckpoint.from_bytes(before)))
    assert [result.outputs for result in results] == [["[2, 111]"]] * 3
    assert checkpoint.to_bytes() == before


def twice_round(log):
    """gate → [x, y] → join → gate, until the sum is five or more."""
    gate, x, y = adder("gate", 0, log), adder("x", 1, log), adder("y", 2, log)

    @executor(id="join")
    async def join(numbers: list[int], ctx: WorkflowContext[int, int]) -> None:
        log.append(f"join {numbers}")
        if sum(numbers) < 5:
            await ctx.send_message(sum(numbers))
        else:
            await ctx.yield_output(sum(numbers))

    builder = WorkflowBuilder("round", gate).add_fan_out_edges(gate, [x, y]).add_fan_in_edges([x, y], join)
    return builder.add_edge(join, gate).build()


def test_a_join_in_a_loop_fires_once_each_time_round(place):
    """Case 23: twice round the loop, the join fires once each time, also from every checkpoint of the middle."""
    log = []
    result = run(twice_round(log), 0, run_id="r", checkpoint_storage=place.store)
    assert result.outputs == [9]
    assert [line for line in log if line.startswith("join")] == ["join [1, 2]", "join [4, 5]"]
    for header in place.history("r"):
        log = []
        result = run(twice_round(log), checkpoint=header.checkpoint_id, fork=True, checkpoint_storage=place.store)
        assert result.outputs == [9]
        joins = [line for line in log if line.startswith("join")]
        assert joins == ["join [1, 2]", "join [4, 5]"][2 - len(joins) :]


def test_a_join_does_not_wait_for_a_branch_that_was_not_taken(place, fresh):
    """Case 24: b was declined and c paused; after the answer, in a fresh process, d runs with what c sent."""
    log = []
    first = run(skipped_branch(log), "x", run_id="r", checkpoint_storage=place.store)
    assert first.status is Status.IDLE_WITH_PENDING_REQUESTS
    assert log == ["a", "c asks x"]
    request = first.pending_requests[0]
    reply = fresh.ask("skipped_branch", place.told(first.checkpoint_id), responses={request.request_id: "yes"})
    assert reply == {"status": "IDLE", "outputs": ["x=yes"], "open": [], "log": ["c is told yes", "d"]}


def test_a_run_saved_inside_a_loop_goes_on_at_the_next_node(place, fresh):
    """Case 25: from every checkpoint in the loop the named executor runs next, and no number begins anew."""
    log = []
    assert run(loop(log), 0, run_id="r", checkpoint_storage=place.store).outputs == [5]
    inside = [h for h in place.history("r") if h.status is Status.RUNNING]
    assert len(inside) == 11
    for header in inside:
        following = asyncio.run(place.store.inspect(header.checkpoint_id)).next_executors
        told = place.told(header.checkpoint_id)
        reply = fresh.ask("loop", told, **({"fork": True} if place.kind == "sqlite" else {}))
        assert (reply["status"], reply["outputs"]) == ("IDLE", [5])
        assert reply["log"] == log[-len(reply["log"]) :]
        assert reply["log"][0].split()[0] == following[0]
        assert header.superstep == 12 - len(reply["log"])


@pytest.mark.parametrize("last", ["a", "b"])
def test_an_executor_handles_messages_of_one_superstep_one_at_a_time(place, last):
    """Case 27: whoever finishes last, the messages of a and b are handled in that order and never at once."""
    log = []

    def built():
        finished = asyncio.Event()

        def sender(id):
            @executor(id=id)
            async def send(number: int) -> str:
                if id == last:
                    await finished.wait()
                finished.set()
                return id

            return send

        @executor(id="sink")
        async def sink(name: str) -> str:
            log.append(f"begins {name}")
            for _ in range(3):
                await asyncio.sleep(0)
            log.append(f"ends {name}")
            return name

        s, senders = adder("s", 0, []), [sender("b"), sender("a")]
        builder = WorkflowBuilder("two", s).add_fan_out_edges(s, senders)
        return builder.add_edge(senders[0], sink).add_edge(senders[1], sink).build()

    result = run(built(), 1, checkpoint_storage=place.store)
    assert log == ["begins a", "ends a", "begins b", "ends b"]
    assert result.outputs == ["a", "b"]


@pytest.mark.parametrize("writer_id", ["a-writer", "z-writer"])
@pytest.mark.parametrize("writer_first", [True, False])
def test_a_reader_sees_the_value_from_before_the_superstep(place, writer_id, writer_first):
    """Case 28: a write of the same superstep is not seen, whatever the order of edges, ids and finishing."""
    seen = []

    def built():
        written = asyncio.Event()

        @executor(id="s")
        async def s(number: int, ctx: WorkflowContext[int]) -> None:
            await ctx.set_state("key", "before")
            await ctx.send_message(number)

        @executor(id=writer_id)
        async def writer(number: int, ctx: WorkflowContext) -> None:
            await ctx.set_state("key", "after")
            written.set()

        @executor(id="reader")
        async def reader(number: int, ctx: WorkflowContext[int]) -> None:
            await written.wait()
            seen.append(ctx.get_state("key"))
            await ctx.send_message(number)

        @executor(id="later")
        async def later(number: int, ctx: WorkflowContext) -> None:
            seen.append(ctx.get_state("key"))

        targets = [writer, reader] if writer_first else [reader, writer]
        return WorkflowBuilder("two", s).add_fan_out_edges(s, targets).add_edge(reader, later).build()

    run(built(), 1, checkpoint_storage=place.store)
    assert seen == ["before", "after"]


def test_a_switch_whose_predicate_raises_does_not_take_the_default(place):
    """Case 29: the error names the edge and the message, and the default branch does not run."""
    log = []
    s, chosen, default = adder("s", 0, log), adder("chosen", 1, log), adder("default", 2, log)
    cases = [Case(lambda number: number.missing > 1, chosen), Default(default)]
    workflow = WorkflowBuilder("switching", s).add_switch_case_edge_group(s, cases).build()
    error = failed(workflow, 7, checkpoint_storage=place.store)
    assert isinstance(error.__cause__, PredicateError)
    assert error.__cause__.edge == "s -> chosen"
    assert error.__cause__.message == "int"
    assert "AttributeError" in str(error)
    assert log == ["s"]
    assert error.result.status is Status.FAILED


def test_a_source_that_sends_twice_fires_the_join_twice(place):
    """Section 3.5: the second time the join gets what there is."""
    log = []

    @executor(id="twice")
    async def twice(number: int, ctx: WorkflowContext[int]) -> None:
        await ctx.send_message(number + 1)
        await ctx.send_message(number + 2)

    s, once, join = adder("s", 0, []), adder("once", 10, []), lister("join", log)
    builder = WorkflowBuilder("double", s).add_fan_out_edges(s, [twice, once])
    workflow = builder.add_fan_in_edges([once, twice], join).build()
    assert run(workflow, 0, checkpoint_storage=place.store).outputs == ["[10, 1]", "[2]"]
    assert log == ["join [10, 1]", "join [2]"]


def test_a_join_gives_its_list_in_the_order_of_its_sources(place):
    """Section 3.5: the list is in the order in which the sources were named, not in that of arrival or ids."""
    s, x, y, z = (adder(name, amount, []) for name, amount in (("s", 0), ("x", 1), ("y", 2), ("z", 3)))
    join = lister("join", [])
    builder = WorkflowBuilder("named", s).add_fan_out_edges(s, [x, y, z]).add_fan_in_edges([z, x, y], join)
    assert run(builder.build(), 0, checkpoint_storage=place.store).outputs == ["[3, 1, 2]"]


def test_two_joins_that_wait_for_each_other_are_named(place):
    """Section 3.5: two half-filled joins of which each needs the other's result are a `JoinDeadlockError`."""
    s, a, b = adder("s", 0, []), adder("a", 0, []), adder("b", 0, [])

    def sum_of(id):
        @executor(id=id)
        async def summed(numbers: list[int]) -> int:
            return sum(numbers)

        return summed

    left, right = sum_of("left"), sum_of("right")
    builder = WorkflowBuilder("knot", s).add_fan_out_edges(s, [a, b])
    workflow = builder.add_fan_in_edges([a, right], left).add_fan_in_edges([b, left], right).build()
    error = failed(workflow, 1, checkpoint_storage=place.store)
    assert isinstance(error.__cause__, JoinDeadlockError)
    assert set(error.__cause__.joins) == {"left", "right"}
    assert error.result.outputs == []


def test_joins_that_wait_for_each_other_are_told_although_a_question_is_open(place):
    """Section 3.5: nothing that the answer leads to can fill them, so the run does not wait for it; it may be given."""
    s, a, b = text_passer("s", []), text_passer("a", []), text_passer("b", [])
    asker, last = Asker("asker", []), text_passer("last", [])

    def joined(id):
        @executor(id=id)
        async def join(texts: list[str]) -> str:
            return "".join(texts)

        return join

    left, right = joined("left"), joined("right")
    builder = WorkflowBuilder("knot", s).add_fan_out_edges(s, [a, b, asker]).add_edge(asker, last)
    workflow = builder.add_fan_in_edges([a, right], left).add_fan_in_edges([b, left], right).build()
    error = failed(workflow, "x", checkpoint_storage=place.store)
    assert isinstance(error.__cause__, JoinDeadlockError)
    assert set(error.__cause__.joins) == {"left", "right"}
    again = failed(
        workflow,
        checkpoint=error.result.checkpoint_id,
        responses=answers(error.result, "yes"),
        checkpoint_storage=place.reopen(),
    )
    assert isinstance(again.__cause__, JoinDeadlockError)
    assert again.result.outputs == ["x=yes"]


def test_a_join_that_an_open_question_can_fill_waits_for_it(place):
    """Beside two joins that each other could fill: the answer fills one, and that one the other."""
    s, a, asker = text_passer("s", []), text_passer("a", []), Asker("asker", [])

    def joined(id):
        @executor(id=id)
        async def join(texts: list[str]) -> str:
            return "".join(texts)

        return join

    first, second = joined("first"), joined("second")
    builder = WorkflowBuilder("chain", s).add_fan_out_edges(s, [a, asker])
    workflow = builder.add_fan_in_edges([a, asker], first).add_fan_in_edges([a, first], second).build()
    waiting = run(workflow, "x", checkpoint_storage=place.store)
    assert waiting.status is Status.IDLE_WITH_PENDING_REQUESTS
    options = {"responses": answers(waiting, "yes"), "checkpoint_storage": place.reopen()}
    assert run(workflow, checkpoint=waiting.checkpoint_id, **options).outputs == ["xxx=yes"]


def test_a_join_takes_one_message_of_each_source_at_a_time(place):
    """Section 3.5: sources that send twice each fire the join twice, first with the first ones."""

    def twice(id, *sent):
        @executor(id=id)
        async def send(number: int, ctx: WorkflowContext[int]) -> None:
            for each in sent:
                await ctx.send_message(each)

        return send

    s, a, b = adder("s", 0, []), twice("a", 1, 2), twice("b", 30, 40)
    builder = WorkflowBuilder("pairs", s).add_fan_out_edges(s, [a, b])
    workflow = builder.add_fan_in_edges([a, b], lister("join", [])).build()
    assert run(workflow, 0, checkpoint_storage=place.store).outputs == ["[1, 30]", "[2, 40]"]


def test_a_join_behind_a_join_waits_for_it(place):
    """Section 3.5: a message that another join still holds counts as on its way, so the second join fires once."""

    @executor(id="first")
    async def first(numbers: list[int]) -> int:
        return sum(numbers)

    s, a, b1, b2, c = (
        adder(name, amount, []) for name, amount in (("s", 0), ("a", 1), ("b1", 10), ("b2", 0), ("c", 5))
    )
    builder = WorkflowBuilder("joins", s).add_fan_out_edges(s, [a, b1, c]).add_edge(b1, b2)
    workflow = builder.add_fan_in_edges([a, b2], first).add_fan_in_edges([first, c], lister("second", [])).build()
    result = run(workflow, 0, run_id="r", checkpoint_storage=place.store)
    assert result.outputs == ["[11, 5]"]
    for header in place.history("r"):
        options = {"checkpoint": header.checkpoint_id, "fork": True, "checkpoint_storage": place.store}
        assert run(workflow, **options).outputs == ["[11, 5]"]


def joined_with_a_child(*, gives):
    """s → [child, quick] → join; the child asks, and yields what it is told if it `gives`."""
    inner = Asker("asker", [])

    @executor(id="last")
    async def last(text: str) -> str | None:
        return text if gives else None

    child = WorkflowExecutor(WorkflowBuilder("inner", inner).add_edge(inner, last).build(), id="child")
    s, quick = text_passer("s", []), text_passer("quick", [])

    @executor(id="join")
    async def join(texts: list[str]) -> str:
        return " + ".join(texts)

    builder = WorkflowBuilder("joined", s).add_fan_out_edges(s, [child, quick])
    return builder.add_fan_in_edges([child, quick], join).build()


@pytest.mark.parametrize(("gives", "expected"), [(True, "x=yes + x"), (False, "x")])
def test_a_join_waits_for_a_sub_workflow_with_an_open_request(place, gives, expected):
    """Section 3.5: the join fires when the scope has yielded or ended without, never while a request is open."""
    workflow = joined_with_a_child(gives=gives)
    first = run(workflow, "x", checkpoint_storage=place.store)
    assert (first.status, first.outputs) == (Status.IDLE_WITH_PENDING_REQUESTS, [])
    second = run(workflow, checkpoint=first, responses=answers(first, "yes"), checkpoint_storage=place.reopen())
    assert (second.status, second.outputs) == (Status.IDLE, [expected])


def test_a_join_behind_a_failed_branch_does_not_fire_without_it(place):
    """Section 3.9 and 4: no barrier comes before a resume has run the rest, so the join never has too little."""
    error = failed(uneven_join([], broken={"b1"}), 1, run_id="r", checkpoint_storage=place.store)
    assert error.result.outputs == []
    log = []
    assert run(uneven_join(log), checkpoint=error.result, checkpoint_storage=place.reopen()).outputs == ["[2, 111]"]
    assert log == ["b1", "b2", "join [2, 111]"]
