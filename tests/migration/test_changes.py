"""What a migration can do to a waiting run: drop, move, change types, state and handlers; nothing goes in silence."""

import asyncio
from typing import Never

import pytest

from rehydrate import (
    Executor,
    PlainMessage,
    PlainObject,
    PlainScope,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    append,
    executor,
    handler,
    response_handler,
)
from rehydrate.engine.invariants import check_run
from rehydrate.errors import HomelessWorkError, MigrationError, RequestCancelledError
from rehydrate.model.events import OutputYielded, WorkDiscarded
from tests.migration.flows import Ask, asking, chain, gather, go, step
from tests.migration.types import cost, with_amount, with_cents


def discarded(result) -> tuple[str, ...]:
    """What the turn's event says went."""
    return next((event.what for event in result.events if isinstance(event, WorkDiscarded)), ())


def test_a_dropped_executor_is_told_with_all_that_waited_for_it(store) -> None:
    """The call returns what went, the turn's event lists it, and the rest of the run goes on."""
    returned = []
    first = go(chain("a", "b", "c", broken="b"), "x", run_id="r", checkpoint_storage=store)
    later = chain("a", "c", version=2, migrate={1: lambda run: returned.extend(run.drop_executor("b"))})
    second = go(later, checkpoint=first, checkpoint_storage=store)
    assert returned == ["message for b#1"]
    assert discarded(second) == ("message for b#1",)
    assert (second.status.value, second.outputs) == ("IDLE", [])
    assert check_run(second.checkpoint.records) == []


def test_a_dropped_question_cannot_be_answered_any_more(store) -> None:
    """Its sub-workflow ends without it; a late answer is told that it was withdrawn."""
    first = go(asking(), "x", run_id="r", checkpoint_storage=store)
    last = step("last")
    later = WorkflowBuilder("asking", last, version=2, migrate={1: lambda run: run.drop_executor("ask")}).build()
    second = go(later, "y", checkpoint=first, checkpoint_storage=store)
    assert discarded(second) == ("ask#1: request inner#1?0", "running sub-workflow ask#1")
    assert second.outputs == ["y last"]
    (request,) = first.pending_requests
    with pytest.raises(RequestCancelledError):
        go(later, run_id="r", checkpoint="latest", responses=[request.answer("late")], checkpoint_storage=store)


def joined(*, version: int = 1, migrate=None, inner: str = "inner", ids=("quick", "slow")):
    """A join of a quick step and a sub-workflow that asks."""
    source, quick = step("source"), step(ids[0])
    child = WorkflowBuilder("child", Ask(inner)).build()
    builder = WorkflowBuilder("joined", source, version=version, migrate=migrate)
    if len(ids) == 1:
        return builder.add_edge(source, quick).add_fan_in_edges([quick], gather("all")).build()
    slow = WorkflowExecutor(child, ids[1])
    return builder.add_fan_out_edges(source, [quick, slow]).add_fan_in_edges([quick, slow], gather("all")).build()


def test_a_join_that_waited_for_a_dropped_branch_fires_without_it(store) -> None:
    """Nothing else has to happen: the continuation gives the join its barrier."""
    first = go(joined(), "x", run_id="r", checkpoint_storage=store)
    later = joined(ids=("quick",), version=2, migrate={1: lambda run: run.drop_executor("slow")})
    second = go(later, checkpoint=first, checkpoint_storage=store)
    assert second.outputs == ["all(x source quick)"]
    assert second.pending_requests == ()


def test_a_join_is_kept_when_its_sources_are_renamed(store) -> None:
    """What it holds and the question that it waits for come together under the new ids."""

    def migrate(run) -> None:
        run.rename_executor("quick", "fast")
        run.rename_executor("slow", "late")
        run.rename_executor("inner", "clerk", at="late#*")

    first = go(joined(), "x", run_id="r", checkpoint_storage=store)
    (request,) = first.pending_requests
    later = joined(ids=("fast", "late"), inner="clerk", version=2, migrate={1: migrate})
    second = go(later, checkpoint=first, responses=[request.answer("yes")], checkpoint_storage=store)
    assert second.outputs == ["all(x source quick, x source: yes)"]


def test_a_join_that_lost_a_source_lists_what_it_holds(store) -> None:
    """Case 49 for joins: a message of a source that the join no longer has is homeless."""
    go(joined(), "x", run_id="r", checkpoint_storage=store)
    later = joined(ids=("fast", "slow"), version=2, migrate={1: lambda run: None})
    with pytest.raises(HomelessWorkError) as caught:
        go(later, run_id="r", checkpoint="latest", checkpoint_storage=store)
    assert caught.value.waiting == ("all: a message from 'quick' waits in its join, which has no such source now",)


def test_waiting_messages_can_go_to_another_executor(store) -> None:
    """They are delivered in the next superstep; the executor that is gone needs no drop then."""
    moved = []
    first = go(chain("a", "b", "c", broken="b"), "x", run_id="r", checkpoint_storage=store)
    later = chain("a", "d", "c", version=2, migrate={1: lambda run: moved.append(run.move_messages("b", "d"))})
    second = go(later, checkpoint=first, checkpoint_storage=store)
    assert moved == [1]
    assert second.outputs == ["x a d c"]


def test_waiting_messages_can_go_to_a_sub_workflow(store) -> None:
    """A step has become a sub-workflow: the message that waits for it starts one."""
    first = go(chain("a", "b", broken="b"), "x", run_id="r", checkpoint_storage=store)

    def later(migrate):
        child = WorkflowBuilder("child", step("inside")).build()
        nodes = [step("a"), WorkflowExecutor(child, "b")]
        return WorkflowBuilder("chain", nodes[0], version=2, migrate={1: migrate}).add_chain(nodes).build()

    with pytest.raises(HomelessWorkError, match="and it is a sub-workflow now"):
        go(later(lambda run: None), run_id="r", checkpoint="latest", checkpoint_storage=store)
    moving = later(lambda run: run.move_messages("b", "b"))
    assert go(moving, checkpoint=first, checkpoint_storage=store).outputs == ["x a inside"]


def test_a_finished_neighbour_keeps_its_decided_way(store) -> None:
    """A step that had finished beside a failed one sends to whom it had decided, whatever number the edge has now."""

    def fan(*, broken: bool, extra: bool, version: int = 1):
        source, left, right = step("source"), step("left"), step("right", broken=broken)
        migrate = {1: lambda run: None} if version == 2 else None
        builder = WorkflowBuilder("fan", source, version=version, migrate=migrate)
        builder.add_fan_out_edges(source, [left, right])
        if extra:
            builder.add_edge(source, step("0"), lambda text: False).add_edge(left, step("1"), lambda text: False)
        return builder.add_edge(left, step("z")).add_edge(right, step("y")).build()

    first = go(fan(broken=True, extra=False), "x", run_id="r", checkpoint_storage=store)
    second = go(fan(broken=False, extra=True, version=2), checkpoint=first, checkpoint_storage=store)
    assert sorted(second.outputs) == ["x source left z", "x source right y"]


def test_an_output_on_its_way_gets_the_edges_that_are_new(store) -> None:
    """A sub-workflow was the last node and yields in a superstep that did not end; behind it there is a node now."""

    @executor(id="twice")
    async def twice(text: str, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output(text)

    def flow(*, broken: bool, more: bool, version: int = 1):
        child = WorkflowExecutor(WorkflowBuilder("child", twice).build(), "child")
        source, other = step("source"), step("other", broken=broken)
        migrate = {1: lambda run: None} if version == 2 else None
        builder = WorkflowBuilder("flow", source, version=version, migrate=migrate)
        builder.add_fan_out_edges(source, [child, other])
        return (builder.add_edge(child, step("new")) if more else builder).build()

    first = go(flow(broken=True, more=False), "x", run_id="r", checkpoint_storage=store)
    second = go(flow(broken=False, more=True, version=2), checkpoint=first, checkpoint_storage=store)
    assert second.outputs == ["x source other", "x source new"]


def cents(fields):
    return {"cents": fields["amount"] * 100}


@pytest.mark.parametrize("name", ["Price", "Cost"])
def test_a_type_changes_wherever_a_value_of_it_is(store, name: str) -> None:
    """In state, inside of containers, in lists that grow, in questions and in run arguments, two levels deep."""
    counted = []
    first = go(with_amount(), 5, run_id="r", run_args={"by": 1}, checkpoint_storage=store)
    make = with_cents if name == "Price" else cost
    later = make(2, {1: lambda run: counted.append(run.change_type("Price", name, cents))})
    (request,) = go(later, checkpoint=first, checkpoint_storage=store).pending_requests
    second = go(
        later, checkpoint=first, responses=[request.answer(type(request.data)(7))], checkpoint_storage=store
    )  # fmt: skip
    assert second.outputs == ["{'cents': 500} {'cents': 7} {'cents': 600} {'cents': 500} {'by': 1}"]
    assert counted[0] == 5


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda fields: fields["gone"], "KeyError: 'gone'"),
        (lambda fields: None, "the fields of an object are a dict with names as keys"),
        (lambda fields: {"cents": object()}, "cannot be stored"),
        (lambda fields: {"other": 1}, "it has no cents and nothing takes its other"),
    ],
)
def test_a_wrong_change_of_a_type_is_named(store, change, problem: str) -> None:
    """What the function raises or returns is reported, and nothing changes."""
    go(with_amount(), 5, run_id="r", checkpoint_storage=store)
    later = with_cents(2, {1: lambda run: run.change_type("Price", "Price", change)})
    with pytest.raises(MigrationError) as caught:
        go(later, run_id="r", checkpoint="latest", checkpoint_storage=store)
    assert problem in caught.value.problem


def test_a_message_that_its_executor_takes_no_more_is_homeless(store) -> None:
    """The executor is there, but has no handler for what waits."""

    @executor(id="b")
    async def number(value: int) -> str:
        return str(value)

    @executor(id="a")
    async def length(text: str) -> int:
        return len(text)

    go(chain("a", "b", broken="b"), "x", run_id="r", checkpoint_storage=store)
    later = WorkflowBuilder("chain", length, version=2, migrate={1: lambda run: None}).add_edge(length, number)
    with pytest.raises(HomelessWorkError) as caught:
        go(later.build(), run_id="r", checkpoint="latest", checkpoint_storage=store)
    assert caught.value.waiting == ("b: a str waits for it and it takes none",)


def test_a_view_shows_a_run_in_plain_data(store) -> None:
    """Scopes by path with state, messages, requests and counters; objects with the names of their types."""
    shown = []
    first = go(with_amount(), 5, run_id="r", checkpoint_storage=store)

    def look(run) -> None:
        shown.extend((run.executors(), run.executors("ask#*"), *run.scopes(), *run.scopes("ask#1")))

    (request,) = first.pending_requests
    go(with_amount(2, {1: look}), checkpoint=first, checkpoint_storage=store)
    outer, inner, root, scope = shown
    assert (outer, inner) == (("ask",), ("ask",))
    assert root == PlainScope("", counters={"ask": 1})
    assert (scope.path, scope.counters) == ("ask#1", {"ask": 1})
    assert [(r.request_id, r.executor, r.response_type) for r in scope.requests] == [
        (request.request_id, "ask", "Price")
    ]
    data = scope.requests[0].data
    assert isinstance(data, PlainObject)
    assert (data.type, data.version, data.fields) == ("Price", 1, {"amount": 5})
    assert [item.fields for item in scope.state["log"]] == [{"amount": 5}]


def test_a_view_shows_what_waits(store) -> None:
    """Messages that are not handled, and what joins hold, with its source."""
    shown = []
    first = go(joined(), "x", run_id="r", checkpoint_storage=store)
    go(joined(version=2, migrate={1: lambda run: shown.extend(run.scopes())}), checkpoint=first)
    assert shown[0].held == (PlainMessage("all", "x source quick", "quick"),)
    failed = go(chain("a", "b", broken="b"), "x")
    go(chain("a", "b", version=2, migrate={1: lambda run: shown.extend(run.scopes())}), checkpoint=failed)
    assert shown[1].messages == (PlainMessage("b", "x a"),)


def counting(reducer=None, *, version: int = 1, migrate=None, key: str = "log"):
    """Keeps a list in state and yields it."""

    @executor(id="keep")
    async def keep(text: str, ctx: WorkflowContext[Never, list]) -> None:
        if reducer is None:
            ctx.set_state(key, [*ctx.get_state(key, []), text])
        else:
            ctx.update_state(key, text)
        ctx.yield_output(ctx.get_state(key))

    reducers = {} if reducer is None else {key: reducer}
    return WorkflowBuilder("counting", keep, version=version, migrate=migrate, reducers=reducers).build()


@pytest.mark.parametrize("reducers", [(None, append), (append, None), (append, append), (None, None)])
def test_state_is_kept_under_another_key_and_another_reducer(store, reducers) -> None:
    """A list goes on growing, whether it was stored as a whole or in parts before."""
    old, new = reducers
    first = go(counting(old), "a", run_id="r", checkpoint_storage=store)
    second = go(counting(old), "b", checkpoint=first, checkpoint_storage=store)
    later = counting(new, key="lines", version=2, migrate={1: lambda run: run.rename_state_key("log", "lines")})
    third = go(later, "c", checkpoint=second, checkpoint_storage=store)
    assert third.outputs == [["a", "b", "c"]]
    assert check_run(third.checkpoint.records) == []
    assert go(later, "d", run_id="r", checkpoint="latest", checkpoint_storage=store).outputs == [["a", "b", "c", "d"]]


@pytest.mark.parametrize("reducer", [None, append])
def test_a_plain_value_in_state_can_be_changed(store, reducer) -> None:
    """The function gets it and gives the new one; a key that is not set is left alone."""
    counted = []

    def migrate(run) -> None:
        counted.append(run.change_state("log", lambda value: [text.upper() for text in value]))
        counted.append(run.change_state("other", lambda value: 1))

    first = go(counting(reducer), "a", run_id="r", checkpoint_storage=store)
    second = go(counting(reducer, version=2, migrate={1: migrate}), "b", checkpoint=first, checkpoint_storage=store)
    assert second.outputs == [["A", "b"]]
    assert counted == [1, 0]


def test_a_list_that_grows_cannot_become_something_else(store) -> None:
    """The reducer could not take it, so it is an error at the call."""
    go(counting(append), "a", run_id="r", checkpoint_storage=store)
    later = counting(append, version=2, migrate={1: lambda run: run.change_state("log", len)})
    with pytest.raises(MigrationError, match="holds a list that grows, and its new value is a int"):
        go(later, "b", run_id="r", checkpoint="latest", checkpoint_storage=store)


class Clerk(Executor):
    """Asks as `Ask` does, with another name for the handler of the answer."""

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        ctx.request_info(text, response_type=str)

    @response_handler
    async def on_reply(self, asked: str, answer: str, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output(f"{asked}: {answer}!")


def test_a_response_handler_of_another_name_is_named(store) -> None:
    """Without the name the waiting question is homeless; with it the answer arrives."""

    def clerks(migrate):
        child = WorkflowBuilder("child", Clerk("inner"), version=2, migrate={1: migrate}).build()
        nodes = [WorkflowExecutor(child, "ask"), step("last")]
        return WorkflowBuilder("asking", nodes[0]).add_chain(nodes).build()

    first = go(asking(), "x", run_id="r", checkpoint_storage=store)
    with pytest.raises(HomelessWorkError, match="waits for its response handler 'on_answer', which does not take it"):
        go(clerks(lambda run: None), run_id="r", checkpoint="latest", checkpoint_storage=store)
    (request,) = first.pending_requests
    renamed = clerks(lambda run: run.rename_handler("inner", "on_answer", "on_reply"))
    second = go(renamed, checkpoint=first, responses=[request.answer("yes")], checkpoint_storage=store)
    assert second.outputs == ["x: yes! last"]


def test_effect_keys_stay_when_an_executor_is_renamed(store) -> None:
    """An outside system that was asked before the rename recognises the same invocation after it."""
    keys = []

    def flow(id: str, *, broken: bool, version: int = 1, migrate=None):
        @executor(id=id)
        async def call(text: str, ctx: WorkflowContext) -> str:
            keys.append(ctx.effect_key)
            if broken:
                raise RuntimeError("later")
            return text

        return WorkflowBuilder("calling", call, version=version, migrate=migrate).build()

    first = go(flow("old", broken=True), "x", run_id="r", checkpoint_storage=store)
    later = flow("new", broken=False, version=2, migrate={1: lambda run: run.rename_executor("old", "new")})
    second = go(later, checkpoint=first, checkpoint_storage=store)
    go(later, "y", checkpoint=second, checkpoint_storage=store)
    assert (keys[0] == keys[1], keys[1] == keys[2]) == (True, False)
    assert "alias" not in {kind for (_, kind, _), _ in second.checkpoint.records.records()}


def test_an_id_that_was_used_before_repeats_no_name(store) -> None:
    """A node is renamed, later another one gets its old id: their questions have different ids."""

    def three(first: str, second: str | None = None, *, version: int = 1, migrate=None):
        source, one = step("source"), Ask(first)
        builder = WorkflowBuilder("ids", source, version=version, migrate=migrate).add_edge(source, one)
        return (builder.add_edge(source, Ask(second)) if second else builder).build()

    one = go(three("a"), "x", run_id="r", checkpoint_storage=store)
    later = three("b", "a", version=2, migrate={1: lambda run: run.rename_executor("a", "b")})
    two = go(later, "y", checkpoint=one, checkpoint_storage=store)
    ids = [request.request_id for request in two.pending_requests]
    assert (len(ids), len(set(ids))) == (3, 3)
    assert one.pending_requests[0].request_id in ids


def test_the_outputs_of_a_turn_are_not_lost(store) -> None:
    """A recorded turn that is brought up still has its outputs, of a type that has changed."""
    first = go(chain("a", "b"), "x", run_id="r", checkpoint_storage=store)
    later = chain("a", "d", version=2, migrate={1: lambda run: run.rename_executor("b", "d")})
    second = go(later, checkpoint=first, checkpoint_storage=store)
    assert [event.data for event in second.events if isinstance(event, OutputYielded)] == []
    assert second.outputs == ["x a b"]


def test_an_inspection_shows_renamed_requests_under_their_ids(store) -> None:
    """The store, which knows no workflow, gives the id that the outside has, and finds the run by it."""
    first = go(asking(), "x", run_id="r", checkpoint_storage=store)
    (request,) = first.pending_requests
    later = asking("query", version=2, migrate={1: lambda run: run.rename_executor("ask", "query")})
    second = go(later, "y", checkpoint=first, checkpoint_storage=store)

    async def look():
        found = await store.inspect(second.checkpoint_id)
        return [r.request_id for r in found.requests], await store.find_request(request.request_id)

    ids, row = asyncio.run(look())
    assert ids == [r.request_id for r in second.pending_requests]
    assert (row.run_id, row.path, row.state) == ("r", "query#1", "open")


def mapped(*, worker: str = "worker", end: str = "end", asks: bool = True, version: int = 1, migrate=None):
    """A map whose worker asks about each item."""

    @executor(id="plan")
    async def plan(text: str) -> list[str]:
        return text.split()

    work = Ask(worker) if asks else step(worker)
    child = WorkflowExecutor(WorkflowBuilder("child", work).build(), "child")
    builder = WorkflowBuilder("mapped", plan, version=version, migrate=migrate)
    return builder.add_map_edge(plan, child, into=gather(end)).build()


def test_a_half_done_map_goes_on_under_other_names(store) -> None:
    """What the end of the map holds, the items at work and their questions come together under the new ids."""

    def migrate(run) -> None:
        run.rename_executor("end", "all")
        run.rename_executor("worker", "clerk", at="child#*")

    first = go(mapped(), "a b c", run_id="r", checkpoint_storage=store)
    one, two, three = first.pending_requests
    second = go(mapped(), checkpoint=first, responses=[two.answer("2")], checkpoint_storage=store)
    later = mapped(worker="clerk", end="all", version=2, migrate={1: migrate})
    third = go(later, checkpoint=second, responses=[one.answer("1"), three.answer("3")], checkpoint_storage=store)
    assert third.outputs == ["all(a: 1, b: 2, c: 3)"]


def test_a_map_whose_end_is_gone_is_listed(store) -> None:
    """It can be moved to another end; dropping the end while items are at work is an error that says so."""
    first = go(mapped(), "a b", run_id="r", checkpoint_storage=store)
    with pytest.raises(HomelessWorkError) as caught:
        go(mapped(end="all", version=2, migrate={1: lambda run: None}), checkpoint=first, checkpoint_storage=store)
    assert caught.value.waiting == ("end: items of a map that ends in it are at work and it is not there",)
    dropping = mapped(end="all", version=2, migrate={1: lambda run: run.drop_executor("end")})
    with pytest.raises(MigrationError, match="items of a map that ends in 'end' are at work in the root"):
        go(dropping, checkpoint=first, checkpoint_storage=store)
    moving = mapped(end="all", version=2, migrate={1: lambda run: run.move_messages("end", "all")})
    answers = [request.answer("yes") for request in first.pending_requests]
    assert go(moving, checkpoint=first, responses=answers, checkpoint_storage=store).outputs == ["all(a: yes, b: yes)"]


def test_work_that_stands_inside_of_a_new_map_is_listed(store) -> None:
    """A message that belongs to no item cannot go through a map that came around its executor."""

    @executor(id="a")
    async def several(text: str) -> list[str]:
        return [text]

    first = go(chain("a", "b", "c", broken="b"), "x", run_id="r", checkpoint_storage=store)
    builder = WorkflowBuilder("chain", several, version=2, migrate={1: lambda run: None})
    later = builder.add_map_edge(several, step("b"), into=gather("c")).build()
    with pytest.raises(HomelessWorkError) as caught:
        go(later, checkpoint=first, checkpoint_storage=store)
    assert caught.value.waiting == ("b: something waits for it, and it works for items of a map into 'c' now",)
