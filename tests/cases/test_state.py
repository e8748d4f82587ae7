"""State: what is read and kept, how writes of one superstep come together, and reducers (section 3.3 and 3.4)."""

import asyncio
from copy import deepcopy
from dataclasses import dataclass
from typing import Never

import pytest

from rehydrate import (
    Reducer,
    Status,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    add,
    append,
    executor,
    extend,
    merge,
)
from rehydrate.errors import EffectError, StateConflictError
from tests.cases.flows import adder
from tests.cases.kit import failed, run


def writers(actions, *, order=None, reducers=None, log=None, first=None):
    """s → one executor for each action, named by its key in `actions`; they finish in `order`, if one is given.

    An action gets the context; `first` is done by s.
    """
    finished = {name: asyncio.Event() for name in actions}
    order = list(order or ())

    @executor(id="s")
    async def s(number: int, ctx: WorkflowContext[int]) -> None:
        if first is not None:
            first(ctx)
        await ctx.send_message(number)

    def writer(id):
        @executor(id=id)
        async def write(number: int, ctx: WorkflowContext) -> int:
            for other in order[: order.index(id)] if order else ():
                await finished[other].wait()
            finished[id].set()
            if log is not None:
                log.append(id)
            actions[id](ctx)
            return number

        return write

    nodes = [writer(id) for id in actions]
    builder = WorkflowBuilder("writers", s, reducers=reducers).add_fan_out_edges(s, nodes)
    return builder.build()


def kept(place, *arguments, **options):
    """Run such a workflow and return the state that is then in the checkpoint."""
    return dict(run(writers(*arguments, **options), 1, checkpoint_storage=place.store).checkpoint.state)


def setting(key, value):
    return lambda ctx: ctx.set_state(key, value)


def updating(key, *values):
    def update(ctx):
        for value in values:
            ctx.update_state(key, value)

    return update


# Conflicts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_a_conflict_names_both_executors_and_the_key(place, order):
    """Section 3.3: two executors that write different values to one key in one superstep are a `StateConflictError`."""
    workflow = writers({"b": setting("color", "blue"), "a": setting("color", "amber")}, order=order)
    error = failed(workflow, 1, checkpoint_storage=place.store)
    cause = error.__cause__
    assert isinstance(cause, StateConflictError)
    assert (cause.key, cause.first, cause.second, cause.path) == ("color", "a", "b", "")
    for name in ("'a'", "'b'", "'color'"):
        assert name in str(error)
    assert error.result.checkpoint.state == {}


def test_a_conflict_in_a_sub_workflow_names_its_path(place):
    """Section 3.3: the conflict of an inner scope fails the run with the path."""
    inner = writers({"a": setting("k", 1), "b": setting("k", 2)})
    node = WorkflowExecutor(inner, id="inner")
    error = failed(WorkflowBuilder("outer", node).build(), 1, checkpoint_storage=place.store)
    assert isinstance(error.__cause__, StateConflictError)
    assert error.__cause__.path == "inner#1"
    assert "inner#1" in str(error)


def test_after_a_conflict_a_resume_runs_the_conflicting_invocations_only(place):
    """Section 3.9: a conflict marks the conflicting invocations as failed; the others stay finished."""
    actions = {"a": setting("k", 1), "b": setting("k", 2), "c": setting("other", 3)}
    error = failed(writers(actions), 1, run_id="r", checkpoint_storage=place.store)
    log = []
    repaired = writers({**actions, "b": setting("k", 1)}, log=log)
    result = run(repaired, checkpoint=error.result, checkpoint_storage=place.reopen())
    assert sorted(log) == ["a", "b"]
    assert result.checkpoint.state == {"k": 1, "other": 3}


def test_two_executors_may_write_the_same_value(place):
    """Section 3.3: only different bytes conflict."""
    value = {"deep": [1, (2, 3)]}
    assert kept(place, {"a": setting("k", value), "b": setting("k", {"deep": [1, (2, 3)]})}) == kept(
        place, {"a": setting("k", value)}
    )


def test_a_deletion_conflicts_with_a_write(place):
    """Section 3.3: one executor that deletes a key and one that sets it do not go together."""
    actions = {"a": lambda ctx: ctx.delete_state("k"), "b": setting("k", 2)}
    error = failed(writers(actions, first=setting("k", 1)), 1, checkpoint_storage=place.store)
    assert isinstance(error.__cause__, StateConflictError)
    assert error.result.checkpoint.state == {"k": 1}


def test_writes_to_different_keys_do_not_conflict(place):
    """Section 3.3: what different executors write to different keys is all kept."""
    assert kept(place, {"a": setting("k", 1), "b": setting("l", 2)}) == {"k": 1, "l": 2}


# Reducers ------------------------------------------------------------------------------------------------------------


def longest(current: str | None, word: str) -> str:
    return word if current is None or len(word) > len(current) else current


REDUCED = [
    (append, None, [("a", ["a1", "a2"]), ("b", ["b1"])], ["a1", "a2", "b1"]),
    (append, setting("k", ["old"]), [("a", [["nested"]]), ("b", [None])], ["old", ["nested"], None]),
    (extend, None, [("a", [[1, 2], []]), ("b", [[3]])], [1, 2, 3]),
    (extend, setting("k", [0]), [("a", [(1, 2)]), ("b", [[3]])], [0, 1, 2, 3]),
    (add, None, [("a", [1, 2]), ("b", [3])], 6),
    (add, setting("k", "x"), [("a", ["a"]), ("b", ["b"])], "xab"),
    (merge, None, [("a", [{"p": 1}, {"q": 2}]), ("b", [{"p": 3}])], {"p": 3, "q": 2}),
    (merge, setting("k", {"r": 0}), [("a", [{"p": 1}]), ("b", [{"r": 9}])], {"r": 9, "p": 1}),
    (longest, None, [("a", ["to", "three"]), ("b", ["other"])], "three"),
    (Reducer("longest", longest), setting("k", "x"), [("a", ["ab"]), ("b", ["cd"])], "ab"),
]


@pytest.mark.parametrize("order", ["ab", "ba"])
@pytest.mark.parametrize(("reducer", "first", "contributions", "expected"), REDUCED)
def test_a_reducer_takes_contributions_in_executor_order(place, order, reducer, first, contributions, expected):
    """Section 3.4: contributions of several executors come together by executor, then call, whatever finished first."""
    actions = {name: updating("k", *values) for name, values in contributions}
    found = kept(place, actions, order=order, first=first, reducers={"k": reducer})
    assert found == {"k": expected}


@pytest.mark.parametrize(("reducer", "value"), [(append, ["x"]), (extend, [["x"]]), (merge, {"x": 1}), (add, [1])])
def test_a_contribution_is_sealed_at_its_line(place, reducer, value):
    """Section 3.4: what a handler does to a contribution afterwards changes nothing."""

    def contribute(ctx):
        ctx.update_state("k", value)
        before.append(ctx.get_state("k"))
        value.clear()

    value, before = deepcopy(value), []
    state = kept(place, {"a": contribute}, reducers={"k": reducer})
    assert state == {"k": before[0]}
    assert before[0]


def test_a_value_is_sealed_at_the_line_that_sets_it(place):
    """Section 3.4: what a handler does to a value after setting it changes nothing."""

    def change(ctx):
        value = {"list": [1]}
        ctx.set_state("k", value)
        value["list"].append(2)

    assert kept(place, {"a": change}) == {"k": {"list": [1]}}


def test_an_executor_reads_its_own_contributions_at_once(place):
    """Section 3.3 and 3.4: a read sees the writes of this invocation, through every kind of reducer."""
    seen = []

    def contribute(ctx):
        for key, value in (("listed", 1), ("joined", [2]), ("summed", 3), ("merged", {"x": 4}), ("word", "five")):
            ctx.update_state(key, value)
            ctx.update_state(key, value)
            seen.append(ctx.get_state(key))

    reducers = {"listed": append, "joined": extend, "summed": add, "merged": merge, "word": longest}
    kept(place, {"a": contribute}, reducers=reducers)
    assert seen == [[1, 1], [2, 2], 6, {"x": 4}, "five"]


def test_set_state_replaces_the_whole_of_a_reduced_key(place):
    """Section 3.4: `set_state` on a key with a reducer replaces what was there; later contributions go on top."""

    def replace(ctx):
        ctx.update_state("k", "lost")
        ctx.set_state("k", ["new"])
        ctx.update_state("k", "top")

    def first(ctx):
        ctx.set_state("k", ["old", "older"])

    assert kept(place, {"a": replace}, first=first, reducers={"k": append}) == {"k": ["new", "top"]}


@pytest.mark.parametrize("reducer", [append, add], ids=["append", "add"])
def test_set_state_on_a_reduced_key_conflicts_with_any_other_write(place, reducer):
    """Section 3.4: replacing and contributing in one superstep is a conflict that names both."""
    actions = {"a": updating("k", ["x"]), "b": setting("k", [])}
    error = failed(writers(actions, reducers={"k": reducer}), 1, checkpoint_storage=place.store)
    assert isinstance(error.__cause__, StateConflictError)
    assert {error.__cause__.first, error.__cause__.second} == {"a", "b"}


def test_two_equal_replacements_of_a_reduced_key_conflict_too(place):
    """Section 3.4: on a key with a reducer `set_state` conflicts with any other write to it in the superstep."""
    actions = {"a": setting("k", [1]), "b": setting("k", [1])}
    error = failed(writers(actions, reducers={"k": append}), 1, checkpoint_storage=place.store)
    assert isinstance(error.__cause__, StateConflictError)


def test_update_state_without_a_reducer_is_an_error_at_the_line(place):
    """Section 3.4: contributing to a key that has no reducer is refused there and says how to declare one."""
    caught = []

    def contribute(ctx):
        try:
            ctx.update_state("plain", 1)
        except EffectError as error:
            caught.append(str(error))

    assert kept(place, {"a": contribute}, reducers={"other": append}) == {}
    assert "'plain'" in caught[0]
    assert "reducers" in caught[0]


def test_a_contribution_is_kept_through_a_failure_beside_it(place):
    """Section 3.9: a finished contribution stays recorded, unmerged, and is merged once by the resume."""

    def breaks(ctx):
        raise ValueError("beside")

    actions = {"a": updating("k", "from a"), "b": breaks}
    error = failed(writers(actions, reducers={"k": append}), 1, run_id="r", checkpoint_storage=place.store)
    assert error.result.checkpoint.state == {}
    repaired = writers({**actions, "b": updating("k", "from b")}, reducers={"k": append})
    result = run(repaired, checkpoint=error.result, checkpoint_storage=place.reopen())
    assert result.checkpoint.state == {"k": ["from a", "from b"]}


# Reading -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Look:
    start: int | None


TAILS = {
    -2: [199, 200],
    -100: list(range(101, 201)),
    -1000: list(range(1, 201)),
    198: [199, 200],
    0: list(range(1, 201)),
}


@pytest.mark.parametrize("start", TAILS)
def test_a_tail_of_a_list_can_be_read(place, start):
    """Section 3.4: `get_state(key, start=-2)` reads the last two elements, also of a list that grew by parts."""
    seen = []

    @executor(id="grow")
    async def grow(look: Look, ctx: WorkflowContext) -> None:
        if look.start is None:
            for number in range(1, 201):
                await ctx.update_state("log", number)
        else:
            seen.append(ctx.get_state("log", start=look.start))

    workflow = WorkflowBuilder("growing", grow, reducers={"log": append}).build()
    first = run(workflow, Look(None), checkpoint_storage=place.store)
    run(workflow, Look(start), checkpoint=first, checkpoint_storage=place.reopen())
    assert seen == [TAILS[start]]


def test_a_tail_has_the_contributions_of_this_superstep(place):
    """Section 3.3: the tail of a list ends with what this executor has just contributed."""
    seen = []

    def look(ctx):
        ctx.update_state("k", "mine")
        seen.append(ctx.get_state("k", start=-2))

    kept(place, {"a": look}, first=setting("k", ["x", "y"]), reducers={"k": append})
    assert seen == [["y", "mine"]]


def test_a_missing_key_gives_the_default(place):
    """Section 2: `get_state` of a key that is not there is `None`, or the default given; a stored `None` is a value."""
    seen = []

    def look(ctx):
        ctx.set_state("none", None)
        seen.extend([ctx.get_state("missing"), ctx.get_state("missing", 7), ctx.get_state("none", 7)])

    kept(place, {"a": look})
    assert seen == [None, 7, None]


def test_a_deleted_key_is_gone(place):
    """Section 2: `delete_state` removes a key, at once for this executor and at the barrier for all."""
    seen = []

    def delete(ctx):
        ctx.delete_state("k")
        ctx.delete_state("never there")
        seen.append(ctx.get_state("k", "gone"))

    assert kept(place, {"a": delete}, first=setting("k", 1)) == {}
    assert seen == ["gone"]


def test_a_deleted_list_starts_anew(place):
    """Section 3.4: a list that was deleted and gets contributions again has only these."""

    def renew(ctx):
        ctx.delete_state("k")
        ctx.update_state("k", "new")

    assert kept(place, {"a": renew}, first=setting("k", ["old"]), reducers={"k": append}) == {"k": ["new"]}


def test_a_list_keeps_its_order_over_many_turns_and_restores(place):
    """Section 3.4: a list that grows by parts is the same list, however its parts were merged and restored."""

    @executor(id="grow")
    async def grow(number: int, ctx: WorkflowContext[Never, list[int]]) -> None:
        await ctx.update_state("log", number)
        if number == 70:
            await ctx.yield_output(ctx.get_state("log"))

    workflow = WorkflowBuilder("growing", grow, reducers={"log": append}).build()
    result = run(workflow, 1, checkpoint_storage=place.store)
    for number in range(2, 71):
        store = place.reopen() if number % 20 == 0 else place.store
        result = run(workflow, number, checkpoint=result, checkpoint_storage=store)
    assert result.outputs == [list(range(1, 71))]
    assert result.checkpoint.state == {"log": list(range(1, 71))}


@dataclass
class Box:
    """A message that can be changed."""

    items: list[int]


def test_messages_are_handed_out_as_copies(place):
    """Section 3.4: what one receiver or the sender does to a message, or a predicate to its payload, no other sees."""
    seen = {}

    def spoil(box):
        box.items.append(-1)
        return True

    @executor(id="s")
    async def s(number: int, ctx: WorkflowContext[Box]) -> None:
        box = Box([number])
        await ctx.send_message(box)
        box.items.append(-2)

    def receiver(id):
        @executor(id=id)
        async def receive(box: Box, ctx: WorkflowContext) -> None:
            seen[id] = box.items.copy()
            box.items.append(-3)

        return receive

    builder = WorkflowBuilder("copies", s)
    for id in ("a", "b", "c"):
        builder.add_edge(s, receiver(id), condition=spoil)
    result = run(builder.build(), 1, checkpoint_storage=place.store)
    assert seen == {"a": [1], "b": [1], "c": [1]}
    assert result.status is Status.IDLE


def test_outputs_and_run_arguments_are_copies(place):
    """Section 3.4: changing an output after yielding it, or run arguments after reading them, changes nothing."""
    seen = []

    @executor(id="s")
    async def s(number: int, ctx: WorkflowContext[int, list[int]]) -> None:
        ctx.run_args["who"].append("changed")
        output = [number]
        await ctx.yield_output(output)
        output.append(-1)
        await ctx.send_message(number)

    @executor(id="t")
    async def t(number: int, ctx: WorkflowContext) -> None:
        seen.append(ctx.run_args)

    given = {"who": ["me"]}
    workflow = WorkflowBuilder("copies", s).add_edge(s, t).build()
    result = run(workflow, 1, run_args=given, checkpoint_storage=place.store)
    assert result.outputs == [[1]]
    assert seen == [{"who": ["me"]}]
    assert given == {"who": ["me"]}


def test_the_callers_message_is_not_the_handlers(place):
    """Section 3.4: what a handler does to its message does not reach the object that the caller passed."""

    @executor(id="s")
    async def s(box: Box, ctx: WorkflowContext[Never, int]) -> None:
        box.items.append(2)
        await ctx.yield_output(len(box.items))

    box = Box([1])
    assert run(WorkflowBuilder("copies", s).build(), box, checkpoint_storage=place.store).outputs == [2]
    assert box.items == [1]


def test_state_of_two_runs_and_of_two_scopes_does_not_mix(place):
    """Section 4: state is isolated, between runs of one definition and between scopes of one node."""

    @executor(id="count")
    async def count(number: int, ctx: WorkflowContext[Never, int]) -> None:
        total = ctx.get_state("total", 0) + number
        await ctx.set_state("total", total)
        await ctx.yield_output(total)

    child = WorkflowBuilder("child", count).build()
    s, node = adder("s", 0, []), WorkflowExecutor(child, id="node")
    workflow = WorkflowBuilder("parent", s).add_edge(s, node).build()
    first = run(workflow, 1, checkpoint_storage=place.store)
    second = run(workflow, 2, checkpoint=first, checkpoint_storage=place.store)
    other = run(workflow, 3, checkpoint_storage=place.store)
    assert (first.outputs, second.outputs, other.outputs) == ([1], [2], [3])
    assert second.checkpoint.state == {}
