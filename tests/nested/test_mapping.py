"""`inputs=` and `outputs=`: state that goes into a scope when it starts and comes back when it ends."""

import asyncio
from typing import Never

import pytest

from rehydrate import (
    Executor,
    InMemoryCheckpointStorage,
    Status,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    add,
    append,
    executor,
    extend,
    handler,
    response_handler,
)
from rehydrate.errors import ExecutorDefinitionError, RunFailedError, StateConflictError, WorkflowBuildError
from tests.nested.mapped import mapped
from tests.nested.places import both_places, in_fresh_process


def run(workflow, message=None, store=None, **options):
    """Do one call and wait for it."""
    return asyncio.run(workflow.run(message, checkpoint_storage=store, **options))


def child_of(result, executor_id: str, number: int = 1):
    """Return the checkpoint of a scope of the root."""
    return result.checkpoint.executor_states[executor_id]["sub_workflow_checkpoint"][number]


def test_a_scope_gets_what_is_mapped_and_nothing_else(place) -> None:
    """A key that the parent does not have is not written, and no other key of the parent is seen."""
    paused = run(mapped(), "Ada", place.open())
    assert paused.outputs == ["given ['Ada', None, None, ['desk Ada']]"]
    assert child_of(paused, "review").state == {
        "name": "Ada",
        "notes": ["desk Ada", "review Ada"],
        "verdict": "none yet",
    }
    assert paused.checkpoint.state == {"customer": "Ada", "secret": "of the parent", "log": ["desk Ada"]}


def test_a_scope_gives_back_what_is_mapped_when_it_ends_and_not_before(place) -> None:
    """A list replaces the parent's; what the scope never set is not written."""
    paused = run(mapped(), "Ada", place.open())
    ended = run(
        mapped(),
        None,
        place.open(),
        checkpoint=paused.checkpoint_id,
        responses=[paused.pending_requests[0].answer("yes")],
    )
    assert ended.outputs == ["answered ['desk Ada', 'review Ada']"]
    assert ended.checkpoint.state == {
        "customer": "Ada",
        "secret": "of the parent",
        "log": ["desk Ada", "review Ada"],
        "verdict": "yes",
    }


def test_a_mapping_survives_a_restore_in_a_fresh_process(tmp_path) -> None:
    """The copy was made when the scope started: a fresh process goes on with it and brings it back."""
    jobs = []
    for place in both_places(tmp_path):
        paused = run(mapped(), "Ada", place.open())
        jobs.append(
            {
                "story": "mapped",
                "answers": {paused.pending_requests[0].request_id: "fine"},
                "hand_over": place.hand_over(paused),
            }
        )
    for outcome in in_fresh_process(*jobs):
        assert (outcome.status, outcome.outputs) == ("IDLE", [repr("answered ['desk Ada', 'review Ada']")])


@executor(id="start")
async def start(number: int, ctx: WorkflowContext[int]) -> None:
    """Send a number on, beside a write to the state."""
    ctx.set_state("number", number)
    ctx.send_message(number)


class Leave(Executor):
    """Leaves its message in its state."""

    @handler
    async def on_number(self, number: int, ctx: WorkflowContext[Never, int]) -> None:
        ctx.set_state("left", number)


def leaving(id: str, key: str = "left"):
    """Return a node whose scopes leave their message in the parent's key."""
    return WorkflowExecutor(WorkflowBuilder(f"leaving {id}", Leave("leave")).build(), id, outputs={"left": key})


def test_state_is_copied_as_it_was_committed_before_the_superstep() -> None:
    """A write beside the start of a scope, in the same superstep, does not show in it."""

    @executor(id="see")
    async def see(number: int, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output(f"{number} sees {ctx.get_state('seen')}")

    @executor(id="beside")
    async def beside(number: int, ctx: WorkflowContext[int]) -> None:
        ctx.set_state("number", number + 100)
        ctx.send_message(number + 1)

    child = WorkflowExecutor(WorkflowBuilder("child", see).build(), "child", inputs={"number": "seen"})
    builder = WorkflowBuilder("w", start).add_fan_out_edges(start, [child, beside]).add_edge(beside, child)
    assert run(builder.build(), 1).outputs == ["1 sees 1", "2 sees 101"]


def test_of_two_scopes_of_one_node_the_later_one_wins() -> None:
    """They are writes of one executor, in the order of the scopes."""

    @executor(id="two")
    async def two(number: int, ctx: WorkflowContext[int]) -> None:
        ctx.send_message(number)
        ctx.send_message(number + 1)

    assert run(WorkflowBuilder("w", two).add_edge(two, leaving("a")).build(), 5).checkpoint.state == {"left": 6}


def test_two_nodes_that_leave_different_values_conflict() -> None:
    """The run fails with both named and the scopes stay; each message of this graph brings the conflict again."""
    nodes = [leaving("a"), leaving("b")]
    store = InMemoryCheckpointStorage()

    @executor(id="differ")
    async def differ(number: int, ctx: WorkflowContext[int]) -> None:
        for offset, node in enumerate(("a", "b")):
            ctx.send_message(number + offset, target_id=node)

    workflow = WorkflowBuilder("w", differ).add_fan_out_edges(differ, nodes).build()
    with pytest.raises(RunFailedError) as failed:
        run(workflow, 1, store)
    cause = failed.value.__cause__
    assert isinstance(cause, StateConflictError)
    assert (cause.key, cause.first, cause.second) == ("left", "a", "b")
    again = {"checkpoint": failed.value.result, "on_unfinished": "discard"}
    with pytest.raises(RunFailedError):
        run(workflow, 2, store, **again)
    assert child_of(failed.value.result, "a").state == {"left": 1}


def test_a_scope_and_an_executor_that_write_one_key_conflict() -> None:
    """What a scope leaves is checked like what any executor writes; a resume runs the executor again."""
    tries = []

    @executor(id="write")
    async def write(number: int, ctx: WorkflowContext) -> None:
        tries.append(number)
        ctx.set_state("left", number + (1 if len(tries) == 1 else 0))

    workflow = WorkflowBuilder("w", start).add_fan_out_edges(start, [leaving("a"), write]).build()
    with pytest.raises(RunFailedError, match="StateConflictError") as failed:
        run(workflow, 1)
    assert tries == [1]
    assert failed.value.result.checkpoint.state == {"number": 1}
    healed = run(workflow, None, checkpoint=failed.value.result)
    assert (healed.status, healed.checkpoint.state) == (Status.IDLE, {"number": 1, "left": 1})


def test_what_a_scope_leaves_replaces_a_value_under_a_reducer() -> None:
    """It is no contribution: the value before it is gone."""
    node = leaving("a", "sum")

    @executor(id="first")
    async def first(number: int, ctx: WorkflowContext[int]) -> None:
        ctx.update_state("sum", 10)
        ctx.send_message(number)

    workflow = WorkflowBuilder("w", first, reducers={"sum": add}).add_edge(first, node).build()
    assert run(workflow, 3).checkpoint.state == {"sum": 3}


class Asking(Executor):
    """Leaves something and asks."""

    @handler
    async def on_number(self, number: int, ctx: WorkflowContext[Never, int]) -> None:
        ctx.set_state("left", number)
        ctx.request_info(number, response_type=int)

    @response_handler
    async def on_answer(self, asked: int, answer: int, ctx: WorkflowContext[Never, int]) -> None:
        ctx.set_state("left", answer)


def test_a_scope_whose_question_is_withdrawn_leaves_its_state() -> None:
    """Without its question a scope ends like any other."""
    node = WorkflowExecutor(WorkflowBuilder("asking", Asking("ask")).build(), "a", outputs={"left": "left"})

    @executor(id="gate")
    async def gate(number: int) -> int | None:
        return number or None

    workflow = WorkflowBuilder("w", gate).add_edge(gate, node).build()
    paused = run(workflow, 7)
    assert paused.checkpoint.state == {}
    assert run(workflow, 0, checkpoint=paused, on_pending="cancel").checkpoint.state == {"left": 7}


def test_a_scope_that_is_discarded_leaves_nothing() -> None:
    """It had come to its end, but its superstep failed; dropped work writes nothing."""

    @executor(id="fail")
    async def fail(number: int, ctx: WorkflowContext) -> None:
        if number:
            raise ValueError("no")

    @executor(id="gate")
    async def gate(number: int, ctx: WorkflowContext[int]) -> None:
        for target in ("a", "fail") if number else ("fail",):
            ctx.send_message(number, target_id=target)

    workflow = WorkflowBuilder("w", gate).add_fan_out_edges(gate, [leaving("a"), fail]).build()
    with pytest.raises(RunFailedError) as failed:
        run(workflow, 7)
    dropped = run(workflow, 0, checkpoint=failed.value.result, on_unfinished="discard")
    assert dropped.checkpoint.state == {}


def test_a_long_list_is_copied_as_a_whole() -> None:
    """A list of many parts arrives complete and grows on from there."""

    @executor(id="loop")
    async def loop(number: int, ctx: WorkflowContext[int]) -> None:
        ctx.update_state("all", number)
        ctx.send_message(number - 1)

    @executor(id="tell")
    async def tell(number: int, ctx: WorkflowContext[Never, list[int]]) -> None:
        ctx.update_state("more", [-1, -2])
        ctx.yield_output(ctx.get_state("more"))

    child = WorkflowBuilder("child", tell, reducers={"more": extend}).build()
    node = WorkflowExecutor(child, "child", inputs={"all": "more"}, outputs={"more": "all"})
    builder = WorkflowBuilder("w", loop, reducers={"all": append}, max_supersteps=500)
    builder.add_edge(loop, loop, lambda number: number > 0).add_edge(loop, node, lambda number: number == 0)
    result = run(builder.build(), 150)
    expected = [*range(150, 0, -1), -1, -2]
    assert result.output == expected
    assert result.checkpoint.state["all"] == expected


def problems_of(node, **options) -> list[str]:
    """Return what `build()` says of a workflow around a node."""
    with pytest.raises(WorkflowBuildError) as error:
        WorkflowBuilder("w", start, **options).add_edge(start, node).build()
    return list(error.value.problems)


def test_a_list_maps_only_to_a_list() -> None:
    """Each direction is checked, and both keys are named."""
    child = WorkflowBuilder("child", Leave("leave"), reducers={"notes": append}).build()
    node = WorkflowExecutor(child, "child", inputs={"log": "text"}, outputs={"notes": "plain"})
    assert problems_of(node, reducers={"log": extend}) == [
        "inputs of executor 'child' copies the parent's state key 'log' to the child's 'text', of which only one is a"
        " list (reducer append or extend); declare both as lists, or neither",
        "outputs of executor 'child' copies the child's state key 'notes' to the parent's 'plain', of which only one is"
        " a list (reducer append or extend); declare both as lists, or neither",
    ]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"inputs": ["a"]}, "inputs is a list"),
        ({"inputs": {"a": 1}}, "inputs has 1"),
        ({"outputs": {"": "a"}}, "outputs has ''"),
        ({"outputs": {"a": "c", "b": "c"}}, "outputs copies 'a' and 'b' to one key 'c'"),
    ],
)
def test_a_mapping_that_is_none_is_refused_at_the_line(arguments, text) -> None:
    """The executor is named, and what is wrong with its argument."""
    child = WorkflowBuilder("child", Leave("leave")).build()
    with pytest.raises(ExecutorDefinitionError, match=f"'child': {text}"):
        WorkflowExecutor(child, **arguments)


def test_scopes_of_the_items_of_a_map_write_each_on_its_behalf() -> None:
    """Different items that leave different values conflict, as their executors' writes would; equal ones do not."""

    @executor(id="split")
    async def split(text: str) -> list[int]:
        return [int(word) for word in text.split()]

    @executor(id="end")
    async def end(given: list[int]) -> str:
        return str(given)

    def mapped_over():
        node = leaving("a")
        builder = WorkflowBuilder("w", split)
        return builder.add_map_edge(split, node, into=end).build()

    assert run(mapped_over(), "7 7 7").checkpoint.state == {"left": 7}
    with pytest.raises(RunFailedError, match="StateConflictError"):
        run(mapped_over(), "7 8")
