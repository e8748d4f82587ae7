"""Maps: lists that an edge takes apart, and the one list that comes of their items (cases 26 and 60)."""

import asyncio

import pytest

from rehydrate import (
    Status,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    append,
    executor,
)
from rehydrate.errors import RunFailedError, StateConflictError
from rehydrate.model.events import MessageDropped
from tests.cases.flows import mapped, mapped_children, planner
from tests.cases.kit import answers, failed, run


@executor(id="work")
async def work(item: int) -> str:
    return f"<{item}>"


@executor(id="end")
async def end(parts: list[str]) -> str:
    return "".join(parts)


@pytest.mark.parametrize("count", [0, 1, 5, 1000])
def test_a_map_hands_over_one_list_in_the_order_of_its_items(count, place):
    """Case 26: each item is handled once, whatever their number; an empty list gives an empty list."""
    workflow = WorkflowBuilder("map", planner()).add_map_edge("plan", work, into=end).build()
    result = run(workflow, count, checkpoint_storage=place.store)
    assert result.outputs == ["".join(f"<{i}>" for i in range(count))]


def test_items_run_side_by_side_on_one_executor():
    """Every item has begun before any has ended."""
    begun, all_begun = [], asyncio.Event()

    @executor(id="work")
    async def slow(item: int) -> str:
        begun.append(item)
        if len(begun) == 20:
            all_begun.set()
        await all_begun.wait()
        return f"{item},"

    workflow = WorkflowBuilder("map", planner()).add_map_edge("plan", slow, into=end).build()
    assert run(workflow, 20).outputs == ["".join(f"{i}," for i in range(20))]


def test_max_concurrency_bounds_the_items_that_run_at_once():
    """Three of ten items are in their handler at most, and at some time."""
    inside, seen = [], []

    @executor(id="work")
    async def watched(item: int) -> str:
        inside.append(item)
        for _ in range(5):
            await asyncio.sleep(0)
        seen.append(len(inside))
        inside.remove(item)
        return f"{item},"

    builder = WorkflowBuilder("map", planner(), max_concurrency=3)
    run(builder.add_map_edge("plan", watched, into=end).build(), 10)
    assert max(seen) == 3


def test_a_half_done_map_goes_on_from_every_checkpoint_and_handles_each_item_once(place):
    """Case 26: what was finished at a checkpoint does not run again, and no item is lost or doubled."""
    log = []
    workflow = mapped(log)
    first = run(workflow, 5, run_id="r", checkpoint_storage=place.store)
    assert first.status is Status.IDLE_WITH_PENDING_REQUESTS
    assert first.outputs == []
    for header in place.history("r"):
        log = []
        again = run(mapped(log), checkpoint=header.checkpoint_id, fork=True, checkpoint_storage=place.reopen())
        assert len(log) == len(set(log))
        done = run(
            mapped(log), checkpoint=again.checkpoint_id, responses=answers(again, "two"),
            checkpoint_storage=place.store,
        )  # fmt: skip
        assert done.outputs == [["0", "1 a", "1 b", "two", "4 after 3 rounds"]]


def test_a_map_that_waits_is_answered_in_a_fresh_process(place, fresh):
    """Case 60: one asks, one loops, one sends nothing, one sends two; the rest is kept until the answer is there."""
    first = run(mapped([]), 5, run_id="r", checkpoint_storage=place.store)
    request = first.pending_requests[0]
    told = place.told(first.checkpoint_id)
    reply = fresh.ask("mapped", told, responses={request.request_id: "two"})
    assert reply["outputs"] == [["0", "1 a", "1 b", "two", "4 after 3 rounds"]]
    assert reply["log"] == ["odd is told two", "end"]


def test_items_go_through_scopes_and_keep_their_place(place, fresh):
    """Case 60: a sub-workflow as the worker asks for one item; its answer takes that item's place."""
    first = run(mapped_children([]), 4, run_id="r", checkpoint_storage=place.store)
    assert [request.path for request in first.pending_requests] == ["child#3"]
    told = place.told(first.checkpoint_id)
    reply = fresh.ask("mapped_children", told, responses={first.pending_requests[0].request_id: "two"})
    assert reply["outputs"] == [["0", "1 a", "1 b", "two"]]


def test_a_thousand_items_of_which_one_asks_end_in_one_list(place):
    """Case 60: 999 wait in the record for the one, and are handed over once."""
    workflow = mapped([])
    first = run(workflow, 1000, run_id="r", checkpoint_storage=place.store)
    assert len(first.pending_requests) == 1
    done = run(workflow, checkpoint=first, responses=answers(first, "two"), checkpoint_storage=place.reopen())
    (listed,) = done.outputs
    assert listed[:5] == ["0", "1 a", "1 b", "two", "4 after 3 rounds"]
    assert listed[5:] == [str(number) for number in range(5, 1000)]


def test_maps_lie_within_maps():
    """An item that is a list itself is taken apart; each inner end gives one part of the outer list."""

    @executor(id="rows")
    async def rows(size: int) -> list[int]:
        return list(range(size))

    @executor(id="row")
    async def row(number: int) -> list[str]:
        return [f"{number}{letter}" for letter in "abc"[:number]]

    @executor(id="cell")
    async def cell(text: str) -> str:
        return text.upper()

    @executor(id="line")
    async def line(cells: list[str]) -> str:
        return "+".join(cells)

    @executor(id="table")
    async def table(lines: list[str]) -> list[str]:
        return lines

    builder = WorkflowBuilder("table", rows).add_map_edge(rows, row, into=table)
    workflow = builder.add_map_edge(row, cell, into=line).add_edge(line, table).build()
    assert run(workflow, 4).outputs == [["", "1A", "2A+2B", "3A+3B+3C"]]


def test_two_lists_of_one_handler_are_two_maps():
    """Their items do not mix, and the end gets two lists."""

    @executor(id="twice")
    async def twice(number: int, ctx: WorkflowContext[list[int]]) -> None:
        ctx.send_message([number, number + 1])
        ctx.send_message([number + 10])

    workflow = WorkflowBuilder("map", twice).add_map_edge(twice, work, into=end).build()
    assert run(workflow, 1).outputs == ["<1><2>", "<11>"]


def test_what_a_condition_declines_adds_nothing():
    """The item is done, and its place in the list is not kept."""

    @executor(id="work")
    async def number(item: int) -> int:
        return item

    @executor(id="sum")
    async def sum_up(numbers: list[int]) -> str:
        return f"{numbers}"

    builder = WorkflowBuilder("map", planner()).add_map_edge("plan", number, into=sum_up)
    workflow = builder.add_edge(number, sum_up, lambda item: item % 2 == 1).build()
    result = run(workflow, 6)
    assert result.outputs == ["[1, 3, 5]"]
    assert sum(isinstance(event, MessageDropped) for event in result.events) == 3


def test_items_contribute_to_state_in_their_order_and_read_what_was_before():
    """Each reads the state of before the superstep, as an executor of its own does."""

    @executor(id="work")
    async def note(item: int, ctx: WorkflowContext[str]) -> str:
        assert ctx.get_state("log", []) == []
        ctx.update_state("log", item)
        return f"{item}"

    @executor(id="end")
    async def show(parts: list[str], ctx: WorkflowContext) -> str:
        return f"{parts} {ctx.get_state('log')}"

    builder = WorkflowBuilder("map", planner(), reducers={"log": append})
    assert run(builder.add_map_edge("plan", note, into=show).build(), 3).outputs == ["['0', '1', '2'] [0, 1, 2]"]


def test_items_that_write_different_values_to_one_key_are_a_conflict():
    """As between executors: the run fails and names the key; nothing is merged."""

    @executor(id="work")
    async def write(item: int, ctx: WorkflowContext[str]) -> str:
        ctx.set_state("last", item)
        return f"{item}"

    workflow = WorkflowBuilder("map", planner()).add_map_edge("plan", write, into=end).build()
    error = failed(workflow, 3)
    assert isinstance(error.__cause__, StateConflictError)
    assert "'last'" in str(error)


def test_an_item_that_fails_is_the_only_one_that_runs_again(place):
    """Case 32 for items: the finished ones stay recorded."""
    log, broken = [], {2}

    def build():
        @executor(id="work")
        async def picky(item: int) -> str:
            log.append(item)
            if item in broken:
                raise ValueError(f"item {item}")
            return f"{item},"

        return WorkflowBuilder("map", planner()).add_map_edge("plan", picky, into=end).build()

    with pytest.raises(RunFailedError, match="item 2") as caught:
        run(build(), 4, run_id="r", checkpoint_storage=place.store)
    assert sorted(log) == [0, 1, 2, 3]
    log.clear()
    broken.clear()
    result = run(build(), checkpoint=caught.value.result.checkpoint_id, checkpoint_storage=place.reopen())
    assert (result.outputs, log) == (["0,1,2,3,"], [2])


def test_two_messages_of_one_item_are_handled_one_after_the_other():
    """An item's own messages to one executor keep their order; other items run beside them."""
    seen = []

    @executor(id="work")
    async def double(item: int, ctx: WorkflowContext[str]) -> None:
        ctx.send_message(f"{item}a")
        ctx.send_message(f"{item}b")

    @executor(id="then")
    async def then(text: str, ctx: WorkflowContext[str]) -> str:
        before = ctx.get_state("mine", "")
        ctx.set_state("mine", before + text[1:])
        seen.append(before + text[1:])
        return text

    builder = WorkflowBuilder("map", planner()).add_map_edge("plan", double, into=end)
    workflow = builder.add_edge(double, then).add_edge(then, end).build()
    assert run(workflow, 3).outputs == ["0a0b1a1b2a2b"]
    assert sorted(seen) == ["a", "a", "a", "ab", "ab", "ab"]


def test_discarding_drops_the_maps_that_no_open_request_belongs_to(place):
    """One waits for an answer and keeps what it gathered; the other failed and is gone."""
    first = run(mapped([]), 3, run_id="r", checkpoint_storage=place.store)
    broken = mapped([], broken=("odd 5",))
    error = failed(broken, 6, checkpoint=first, checkpoint_storage=place.store)
    third = run(
        mapped([]), 1, checkpoint=error.result.checkpoint_id, on_unfinished="discard", checkpoint_storage=place.store
    )
    assert third.outputs == [["0"]]
    assert len(third.pending_requests) == 1
    last = run(mapped([]), checkpoint=third, responses=answers(third, "two"), checkpoint_storage=place.reopen())
    assert last.outputs == [["0", "1 a", "1 b", "two"]]
    assert "map" not in place.kinds(last.checkpoint_id)


def test_a_withdrawn_question_ends_its_item(place):
    """`on_pending="cancel"`: the item adds nothing, and its map is handed over."""
    first = run(mapped([]), 4, run_id="r", checkpoint_storage=place.store)
    assert first.status is Status.IDLE_WITH_PENDING_REQUESTS
    second = run(mapped([]), 1, checkpoint=first, on_pending="cancel", checkpoint_storage=place.store)
    assert second.outputs == [["0", "1 a", "1 b"], ["0"]]


def test_a_list_that_a_sub_workflow_yields_is_taken_apart():
    """The map edge of a `WorkflowExecutor` works like that of any executor."""
    inner = WorkflowBuilder("inner", planner()).build()
    workflow = WorkflowBuilder("outer", WorkflowExecutor(inner, "inner")).add_map_edge("inner", work, into=end).build()
    assert run(workflow, 3).outputs == ["<0><1><2>"]
