"""What `build()` says of map edges, and what a wrong list is told at its line."""

import pytest

from rehydrate import Executor, WorkflowBuilder, WorkflowContext, executor, handler
from rehydrate.errors import RunFailedError, SendTypeError, WorkflowBuildError


@executor(id="plan")
async def plan(count: int) -> list[int]:
    return list(range(count))


@executor(id="work")
async def work(item: int) -> str:
    return str(item)


@executor(id="polish")
async def polish(text: str) -> str:
    return text


@executor(id="end")
async def end(parts: list[str]) -> str:
    return ",".join(parts)


class Counting(Executor):
    """An executor with instance state."""

    count = 0

    @handler
    async def on_item(self, item: int, ctx: WorkflowContext[str]) -> None:
        ctx.send_message(str(item))

    def on_checkpoint_save(self) -> dict[str, object]:
        return {"count": self.count}

    def on_checkpoint_restore(self, state: dict[str, object]) -> None:
        self.count = 0


def problems(builder: WorkflowBuilder) -> tuple[str, ...]:
    """What `build()` finds."""
    with pytest.raises(WorkflowBuildError) as caught:
        builder.build()
    return caught.value.problems


def test_a_worker_without_edges_leads_to_the_end() -> None:
    """The edge that was not written is one of the graph."""
    workflow = WorkflowBuilder("map", plan).add_map_edge(plan, work, into=end).build()
    assert [(edge.source, edge.target, edge.into, edge.gathers) for edge in workflow.definition.edges] == [
        ("work", "end", None, True),
        ("plan", "work", "end", False),
    ]


def test_the_signature_says_where_a_map_ends() -> None:
    """Another end is another graph."""
    workflow = WorkflowBuilder("map", plan).add_map_edge(plan, work, into=end).build()
    assert "plan -> work: kind map; into end" in workflow.definition.signature.split("\n")


def test_the_order_of_building_does_not_show_in_the_signature() -> None:
    """A chain between worker and end may be added before or after the map."""
    first = WorkflowBuilder("map", plan).add_map_edge(plan, work, into=end).add_chain([work, polish, end]).build()
    second = WorkflowBuilder("map", plan).add_chain([work, polish, end]).add_map_edge(plan, work, into=end).build()
    assert first.definition.signature == second.definition.signature


def test_items_must_be_taken_by_the_worker() -> None:
    """The error names the types on both sides."""
    builder = WorkflowBuilder("map", plan).add_map_edge(plan, polish, into=end)
    assert problems(builder) == (
        "map 'plan' -> 'polish': 'plan' sends list[int], 'polish' takes items of str; change one of them or remove the"
        " edge",
    )


def test_a_source_must_send_lists() -> None:
    """An executor that sends single messages needs an edge, not a map."""
    builder = WorkflowBuilder("map", work).add_map_edge(work, polish, into=end)
    assert problems(builder) == (
        "map 'work' -> 'polish': 'work' sends str, 'polish' takes items of str; change one of them or remove the edge",
    )


def test_the_end_must_take_a_list_of_what_the_workers_send() -> None:
    """The end gets one list."""
    builder = WorkflowBuilder("map", plan).add_map_edge(plan, work, into=polish)
    assert problems(builder) == (
        "edge 'work' -> 'polish': 'work' sends a list of str, 'polish' takes str; change one of them or remove the"
        " edge",
    )


def test_an_executor_with_instance_state_cannot_work_for_items() -> None:
    """Many items are handled at once, and an instance handles one message at a time."""
    builder = WorkflowBuilder("map", plan).add_map_edge(plan, Counting("count"), into=end)
    assert problems(builder) == (
        "map 'plan' -> 'count' into 'end': 'count' works for many items at once and cannot have checkpoint hooks; keep"
        " its state with ctx.set_state",
    )


def test_what_works_for_items_gets_nothing_else() -> None:
    """A message that belongs to no item could come to the end."""

    @executor(id="other")
    async def other(count: int) -> str:
        return str(count)

    @executor(id="begin")
    async def begin(count: int) -> int:
        return count

    builder = WorkflowBuilder("map", begin).add_fan_out_edges(begin, [plan, other]).add_edge(other, polish)
    builder = builder.add_map_edge(plan, work, into=end).add_chain([work, polish, end])
    assert problems(builder) == (
        "map 'plan' -> 'work' into 'end': 'polish' works for its items and is also reached from 'other', which does"
        " not; give that edge an executor of its own",
    )


def test_the_end_must_be_reached() -> None:
    """A worker that leads elsewhere leaves the end without anything to gather."""

    @executor(id="sink")
    async def sink(text: str) -> None:
        del text

    builder = WorkflowBuilder("map", plan).add_map_edge(plan, work, into=end).add_edge(work, sink).add_edge(plan, "end")
    found = problems(builder)
    assert "map 'plan' -> 'work' into 'end': nothing leads from 'work' to 'end'; add an edge" in found


def test_the_end_is_another_executor() -> None:
    """Neither the worker nor the source can be the end."""
    builder = WorkflowBuilder("map", plan).add_map_edge(plan, work, into=work)
    assert problems(builder)[0] == (
        "map 'plan' -> 'work' into 'work': the end must be another executor than the worker and the source; add one"
        " behind them"
    )


def test_maps_with_different_ends_share_no_workers() -> None:
    """Unless one lies within the other."""

    @executor(id="begin")
    async def begin(count: int) -> int:
        return count

    @executor(id="plan2")
    async def plan2(count: int) -> list[int]:
        return [count]

    @executor(id="end2")
    async def end2(parts: list[str]) -> str:
        return "".join(parts)

    builder = WorkflowBuilder("map", begin).add_fan_out_edges(begin, [plan, plan2])
    builder = builder.add_map_edge(plan, work, into=end).add_map_edge(plan2, work, into=end2)
    assert problems(builder.add_edge(work, end2))[-1] == (
        "maps into 'end' and 'end2' share 'work'; let one lie within the other, or give each of them executors of its"
        " own"
    )


def test_an_unknown_end_is_named() -> None:
    """By the id that was given."""
    builder = WorkflowBuilder("map", plan).add_map_edge(plan, work, into="nobody")
    assert "map 'plan' -> 'work': there is no executor 'nobody'; add it by object" in problems(builder)


def test_a_list_with_an_item_that_no_worker_takes_is_refused_at_its_line() -> None:
    """The error names the item's type and the workers."""

    @executor(id="plan")
    async def loose(count: int) -> list[int | str]:
        return [1, "two"]

    workflow = WorkflowBuilder("map", loose).add_map_edge(loose, work, into=end)
    with pytest.raises(WorkflowBuildError):
        workflow.build()

    @executor(id="plan", returns=list)
    async def anything(count: int) -> list:
        return [1, "two"]

    workflow = WorkflowBuilder("map", anything).add_map_edge(anything, work, into=end).build()
    with pytest.raises(RunFailedError) as caught:
        workflow.run_sync(1)
    assert isinstance(caught.value.__cause__, SendTypeError)
    assert "it sends a list with a str in it, which no worker of its maps takes ('work')" in str(caught.value)


def test_what_is_no_list_does_not_go_along_a_map() -> None:
    """A tuple is refused like any type that nothing takes."""

    class Loose(Executor):
        @handler
        async def on_count(self, count: int, ctx: WorkflowContext[object]) -> None:
            ctx.send_message((1, 2))

    loose = Loose("plan")
    workflow = WorkflowBuilder("map", loose).add_map_edge(loose, work, into=end).build()
    with pytest.raises(RunFailedError, match="no executor behind its edges takes a tuple"):
        workflow.run_sync(1)
