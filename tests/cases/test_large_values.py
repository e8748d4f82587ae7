"""Large values that are set again and again: what handlers read, what each checkpoint holds, and what is written."""

import asyncio
from dataclasses import dataclass, field

import pytest

from rehydrate import WorkflowBuilder, WorkflowContext, WorkflowExecutor, append, checkpointable, executor, merge
from rehydrate.engine.invariants import check_run
from rehydrate.model.checkpoint import At
from rehydrate.model.records import Spliced
from rehydrate.runtime.checkpoint import restored
from tests.cases.kit import Place, run

_STEPS = 90
_REDUCERS = {"list": append, "merged": merge}


@checkpointable
@dataclass
class Log:
    """A list between other fields."""

    name: str = "log"
    lines: list[str] = field(default_factory=list)
    closed: bool = False


def line(number: int) -> str:
    """About 200 bytes that repeat, with a number in front."""
    return f"{number:04}" + "x" * 200


def lines(number: int) -> list[str]:
    """What there is after so many supersteps: one line is new each time, and one in the middle is another."""
    found = [line(n) for n in range(number)]
    if number > 20:
        found[10 + number % 7] = line(9000 + number)
    return found


def expected(number: int) -> dict[str, object]:
    """The state after so many supersteps, in plain values."""
    last_set = number - number % 3
    added = [line(n) for n in range(last_set + 1, number + 1)]
    return {
        "dict": {"name": "log", "lines": lines(number), "number": number},
        "object": {"$type": "Log", "name": "log", "lines": lines(number), "closed": number % 2 == 0},
        "list": (lines(last_set) if last_set else []) + added,
        "merged": {str(n): line(n) for n in range(1, number + 1)},
        "same": "y" * 5000,
    }


@executor(id="step")
async def step(number: int, ctx: WorkflowContext[int, int]) -> None:
    """Check what is there, and set all of it again."""
    if number > _STEPS:
        ctx.yield_output(number)
        return
    if number == 1:
        ctx.set_state("same", "y" * 5000)
    else:
        before = expected(number - 1)
        assert ctx.get_state("dict") == before["dict"]
        assert ctx.get_state("object").lines == lines(number - 1)
        assert ctx.get_state("list") == before["list"]
        assert ctx.get_state("list", start=-4) == before["list"][-4:]
        assert ctx.get_state("merged") == before["merged"]
    ctx.set_state("dict", expected(number)["dict"])
    ctx.set_state("object", Log("log", lines(number), closed=number % 2 == 0))
    if number % 3 == 0:
        ctx.set_state("list", lines(number))
    else:
        ctx.update_state("list", line(number))
    assert ctx.get_state("list") == expected(number)["list"]
    ctx.update_state("merged", {str(number): line(number)})
    if number < _STEPS:
        await ctx.send_message(number + 1)
    else:
        await ctx.yield_output(number)


def flow(*, version: int = 1, migrate=None):
    """A loop of ninety supersteps."""
    builder = WorkflowBuilder(
        "large", step, reducers=_REDUCERS, max_supersteps=_STEPS + 1, version=version, migrate=migrate
    )
    return builder.add_edge(step, step).build()


def test_every_checkpoint_holds_the_values_of_its_superstep(place) -> None:
    """All kinds of values are whole in each of ninety checkpoints, and each of the records fits together."""
    result = run(flow(), 1, run_id="r", checkpoint_storage=place.store)
    assert result.outputs == [_STEPS]
    assert result.checkpoint.state == expected(_STEPS)
    place.reopen()
    for seq in range(1, _STEPS + 1):
        stored = asyncio.run(place.store.load(At("r", seq)))
        checkpoint = restored(stored)
        assert checkpoint.state == expected(seq)
        assert check_run(checkpoint.records) == []


@pytest.fixture
def memory(tmp_path):
    """A place in memory, where the kind makes no difference."""
    return Place("memory", tmp_path)


def test_a_fork_from_the_middle_reaches_the_same(place) -> None:
    """What was set in pieces before goes on being set, from an earlier checkpoint in a store that was opened again."""
    run(flow(), 1, run_id="r", checkpoint_storage=place.store)
    header = asyncio.run(place.store.history("r", before=72, limit=1))[0]
    place.reopen()
    forked = run(flow(), checkpoint=header.checkpoint_id, fork=True, run_id="f", checkpoint_storage=place.store)
    assert forked.outputs == [_STEPS]
    assert forked.checkpoint.state == expected(_STEPS)


def test_a_save_costs_what_changed(memory) -> None:
    """Four values of 18 KB that change in one or two lines of 200 bytes: half of the saves take less than 3 KB."""
    run(flow(), 1, run_id="r", checkpoint_storage=memory.store)
    sizes = sorted(sum(len(put.data) for put in commit.puts) for commit in memory.store.commits[20:])
    assert sizes[len(sizes) // 2] < 3000
    assert sum(sizes) < 70 * 4500


def test_a_checkpoint_in_bytes_has_the_pieces(memory) -> None:
    """Values in pieces go through `to_bytes`, and a call without a store goes on from them."""
    result = run(flow(), 1, run_id="r", checkpoint_storage=memory.store)
    copy = type(result.checkpoint).from_bytes(result.checkpoint.to_bytes())
    assert copy.state == expected(_STEPS)
    assert isinstance(copy.records.get("", "state", "dict").value, Spliced)


def test_a_migration_sees_whole_values_and_leaves_the_others_in_pieces(memory) -> None:
    """It changes one key and renames another; those that it does not touch are not written again."""

    def up(view) -> None:
        view.change_state("dict", lambda value: {**value, "version": 2})
        view.rename_state_key("object", "thing")
        (scope,) = view.scopes()
        assert scope.state["list"] == expected(_STEPS)["list"]

    first = run(flow(), 1, run_id="r", checkpoint_storage=memory.store)
    before = first.checkpoint.records
    commits = len(memory.store.commits)
    second = run(flow(version=2, migrate={1: up}), _STEPS + 1, checkpoint=first, checkpoint_storage=memory.store)
    wanted = expected(_STEPS)
    assert second.checkpoint.state["thing"] == wanted["object"]
    written = [put.key for put in memory.store.commits[commits].puts]
    assert any("\x1fdict" in key for key in written)
    assert not any("\x1fmerged" in key or "\x1flist" in key for key in written)
    assert before.get("", "state", "same") == second.checkpoint.records.get("", "state", "same")
    assert check_run(second.checkpoint.records) == []


def test_large_values_go_into_a_sub_workflow_and_come_out(place) -> None:
    """In pieces or not, the child gets the value, and what it leaves is the parent's."""

    @executor(id="fill")
    async def fill(number: int, ctx: WorkflowContext[int]) -> None:
        ctx.set_state("log", lines(40))
        ctx.set_state("rows", lines(30))
        ctx.update_state("rows", "last")
        await ctx.send_message(number)

    @executor(id="child")
    async def child(number: int, ctx: WorkflowContext) -> None:
        assert ctx.get_state("mine") == lines(40)
        assert ctx.get_state("lines") == [*lines(30), "last"]
        ctx.set_state("mine", [*lines(40), "child"])
        ctx.update_state("lines", "child")

    inner = WorkflowBuilder("inner", child, reducers={"lines": append}).build()
    node = WorkflowExecutor(
        inner, "inner", inputs={"log": "mine", "rows": "lines"}, outputs={"mine": "log", "lines": "rows"}
    )
    outer = WorkflowBuilder("outer", fill, reducers={"rows": append}).add_edge(fill, node).build()
    result = run(outer, 1, checkpoint_storage=place.store)
    assert result.checkpoint.state == {"log": [*lines(40), "child"], "rows": [*lines(30), "last", "child"]}
