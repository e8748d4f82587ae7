"""What is not the same at two checkpoints: rows by scope path, kind and key, with plain values."""

import asyncio
import itertools
from dataclasses import dataclass
from typing import Never

import pytest

from rehydrate import (
    Cut,
    Difference,
    InMemoryCheckpointStorage,
    RunHistory,
    WorkflowBuilder,
    WorkflowContext,
    append,
    diff_checkpoints,
    executor,
)
from rehydrate.errors import RunFailedError, WrongCallError
from tests.differential.drawing import draw
from tests.differential.harness import calls_of, reference_run, stored_checkpoints
from tests.history.flows import BIG, SMALL, desk

run = asyncio.run


def told(differences):
    """Rows as tuples without their values."""
    return [(row.path, row.kind, row.key, row.inside, row.change) for row in differences]


def test_a_turn_is_told_by_scope_kind_and_key(store):
    """From before a question to after it: state, messages, the request, the new scope, and the numbers."""

    async def story():
        session = desk(store).session("r")
        await session.run(SMALL)
        await session.run(BIG)
        return await RunHistory(store, "r").diff(3)

    found = run(story())
    assert list(found) == [
        Difference("", "output", "[0]", "", "removed", "c-1 within 1000: paid at 100%", None),
        Difference("", "state", "log", "[1:]", "added", None, ["c-2"]),
        Difference("", "state", "total", "", "changed", 90, 5090),
        Difference("", "status", "", "", "changed", "IDLE", "IDLE_WITH_PENDING_REQUESTS"),
        Difference("", "superstep", "", "", "changed", 3, 5),
        Difference("", "turn", "", "", "changed", 1, 2),
        Difference(
            "review#2",
            "request",
            "assess#1?0",
            "",
            "added",
            None,
            {"$type": "Claim", "id": "c-2", "amount": 5000},
        ),
        Difference("review#2", "state", "limit", "", "added", None, 1000),
        Difference("review#2", "superstep", "", "", "added", None, 1),
    ]
    assert str(found).splitlines() == [
        "r #3 IDLE -> r #6 IDLE_WITH_PENDING_REQUESTS",
        "the root",
        '  - output [0]: "c-1 within 1000: paid at 100%"',
        '  + state log[1:]: ["c-2"]',
        "  ~ state total: 90 -> 5090",
        '  ~ status: "IDLE" -> "IDLE_WITH_PENDING_REQUESTS"',
        "  ~ superstep: 3 -> 5",
        "  ~ turn: 1 -> 2",
        "review#2",
        '  + request assess#1?0: {"$type":"Claim","id":"c-2","amount":5000}',
        "  + state limit: 1000",
        "  + superstep: 1",
    ]


def test_the_same_checkpoint_has_no_differences(store):
    """Nothing is told of what is the same; the result is false then."""

    async def story():
        await desk(store).run(SMALL, run_id="r")
        return await RunHistory(store, "r").diff(2, 2)

    found = run(story())
    assert (len(found), bool(found), str(found)) == (0, False, "r #2 RUNNING -> r #2 RUNNING\n  no differences")


def test_a_fork_is_compared_with_its_source(store):
    """Two runs: a fork differs in what it did otherwise, not in ids."""

    async def story():
        workflow = desk(store)
        paused = await workflow.run(BIG, run_id="r")
        await workflow.edit(paused, {"rate": 50}, fork=True, run_id="what-if", reason="what if")
        other = await RunHistory(store, "what-if").load("latest")
        return await RunHistory(store, "r").diff("latest", other)

    assert list(run(story())) == [Difference("", "state", "rate", "", "added", None, 50)]


def test_failures_attempts_and_finished_invocations_are_told(store):
    """A superstep that failed: what failed and why, and what others of it have done that is not merged yet."""

    async def story():
        @executor(id="fan")
        def fan(text: str, ctx: WorkflowContext[str]) -> None:
            ctx.send_message(text)

        @executor(id="good")
        def good(text: str, ctx: WorkflowContext[Never, str]) -> None:
            ctx.set_state("seen", text)
            ctx.yield_output(text)

        @executor(id="bad")
        def bad(text: str) -> None:
            raise ValueError("no \x1b[31m")

        builder = WorkflowBuilder("fan", fan, checkpoint_storage=store)
        with pytest.raises(RunFailedError):
            await builder.add_fan_out_edges(fan, [good, bad]).build().run("x", run_id="r")
        return await RunHistory(store, "r").diff(0)

    found = run(story())
    assert told(found) == [
        ("", "failure", "bad#1", "", "added"),
        ("", "finished", "good#1", "", "added"),
        ("", "message", "bad#1", "", "added"),
        ("", "message", "fan#1", "", "removed"),
        ("", "status", "", "", "changed"),
        ("", "superstep", "", "", "changed"),
    ]
    assert found.rows[1].after == [{"sets": "seen", "to": "x"}, {"yields": "x"}]
    assert "ValueError: no \\u001b[31m" in str(found)
    assert "\x1b" not in str(found)


@dataclass(frozen=True)
class Order:
    items: list[str]
    note: str
    total: float


VALUES = {
    "a member": ({"a": 1, "b": 2}, {"a": 1, "b": 3}, [("['b']", "changed", 2, 3)]),
    "a member more and less": (
        {"a": 1, "b": 2},
        {"b": 2, "c": None},
        [("['a']", "removed", 1, None), ("['c']", "added", None, None)],
    ),
    "deep inside": ({"a": [{"b": [1, 2]}]}, {"a": [{"b": [1, 3]}]}, [("['a'][0]['b'][1]", "changed", 2, 3)]),
    "elements at the end": ([1, 2], [1, 2, 3, 4], [("[2:]", "added", None, [3, 4])]),
    "elements at the start": ([1, 2], [0, 1, 2], [("[0:1]", "added", None, [0])]),
    "elements in the middle": ([1, 2, 3, 4], [1, 4], [("[1:3]", "removed", [2, 3], None)]),
    "another list": ([1, 2, 3], ["a"], [("", "changed", [1, 2, 3], ["a"])]),
    "a number of another type": (1, 1.0, [("", "changed", 1, 1.0)]),
    "true and one": ([1], [True], [("[0]", "changed", 1, True)]),
    "a tuple and a list": (
        (1, 2),
        [1, 2],
        [("", "changed", {"$type": "tuple", "value": [1, 2]}, {"$type": "list", "value": [1, 2]})],
    ),
    "an object": (
        Order(["a"], "n", 1.5),
        Order(["a", "b"], "n", 2.5),
        [("['items'][1:]", "added", None, ["b"]), ("['total']", "changed", 1.5, 2.5)],
    ),
    "another class": (
        Order([], "", 0.0),
        3,
        [("", "changed", {"$type": "Order", "items": [], "note": "", "total": 0.0}, 3)],
    ),
    "too many places": (list(range(30)), list(range(1, 31)), None),
}


@pytest.mark.parametrize("case", VALUES)
def test_a_changed_value_is_told_by_the_places_inside(case):
    """A value that was set whole is told by what changed in it, at any depth."""
    before, after, expected = VALUES[case]

    @executor(id="a")
    def a(order: Order) -> None:
        return None

    workflow = WorkflowBuilder("values", a).build()

    async def story():
        first = (await workflow.run(Order([], "", 0.0))).checkpoint
        one = await workflow.edit(first, {"key": before}, reason="one")
        return diff_checkpoints(one, await workflow.edit(one, {"key": after}, reason="other"))

    found = run(story())
    if expected is None:
        assert [(row.inside, row.change, row.before, row.after) for row in found] == [("", "changed", before, after)]
        return
    assert [(row.inside, row.change, row.before, row.after) for row in found] == expected
    assert {(row.path, row.kind, row.key) for row in found} == {("", "state", "key")}


def test_a_long_value_is_cut_and_its_size_is_told():
    """Ten megabytes are told in a line with their size; a list of as much that grew is told by its growth."""

    @executor(id="work")
    def work(letter: str, ctx: WorkflowContext[Never, str]) -> None:
        ctx.set_state("big", letter * 10_000_000)
        ctx.update_state("log", letter * (5_000_000 if letter == "x" else 3))

    async def story():
        workflow = WorkflowBuilder("big", work, reducers={"log": append}).build()
        first = await workflow.run("x")
        return diff_checkpoints(first.checkpoint, (await workflow.run("y", checkpoint=first)).checkpoint)

    found = run(story())
    assert told(found)[:2] == [("", "state", "big", "", "changed"), ("", "state", "log", "[1:]", "added")]
    big, log = found.rows[:2]
    assert big.before == Cut('"' + "x" * 99, 10_000_005)
    assert big.after == Cut('"' + "y" * 99, 10_000_005)
    assert log.after == ["yyy"]
    assert len(str(found)) < 1000
    assert "(10,000,005 bytes)" in str(found)


def test_only_checkpoints_are_compared():
    """Something else is refused."""
    with pytest.raises(WrongCallError):
        diff_checkpoints("a", "b")


@pytest.mark.parametrize("seed", [4, 22])
def test_checkpoints_of_random_runs_can_be_compared(seed):
    """Whatever stands in a checkpoint can be told: each neighbour pair differs, and back again in mirror image."""

    async def story():
        store = InMemoryCheckpointStorage()
        await reference_run(calls_of(draw(seed), store, chance=1), "r")
        return await stored_checkpoints(store, "r")

    checkpoints = run(story())
    mirror = {"added": "removed", "removed": "added", "changed": "changed"}
    kinds = set()
    for one, other in itertools.pairwise(checkpoints):
        there, back = diff_checkpoints(one, other), diff_checkpoints(other, one)
        assert [(*t[:4], mirror[t[4]]) for t in told(there)] == told(back)
        assert [(row.before, row.after) for row in there] == [(row.after, row.before) for row in back]
        kinds |= {row.kind for row in there}
        assert len(str(there)) > 0
    assert {"message", "state", "superstep"} <= kinds
