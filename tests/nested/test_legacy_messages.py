"""Legacy checkpoints with messages on their way, with what joins held, and with what is known of inner state."""

import asyncio
from typing import Never

import pytest

from rehydrate import (
    ExecutionContext,
    Executor,
    LegacyMessage,
    LegacyRequest,
    Status,
    Workflow,
    WorkflowBuilder,
    WorkflowCheckpoint,
    WorkflowContext,
    WorkflowExecutor,
    executor,
    handler,
    response_handler,
)
from rehydrate.errors import WorkflowCheckpointException
from tests.nested.journalled import Adder, More, adding
from tests.nested.stories import Question, asking, intake, two_down


def run(workflow, message=None, **options):
    """Do one call and wait for it."""
    return asyncio.run(workflow.run(message, **options))


class AskAndSend(Executor):
    """Asks what it is told to ask, and sends question and answer on."""

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[str, Never]) -> None:
        ctx.request_info(Question(text), response_type=str)

    @response_handler
    async def on_answer(self, question: Question, answer: str, ctx: WorkflowContext[str, Never]) -> None:
        ctx.send_message(f"{question.text}: {answer}")


def legacy_chain(*messages: LegacyMessage, **options) -> tuple[Workflow, WorkflowCheckpoint]:
    """Return first -> [left, right] -> join, and a legacy checkpoint of it with messages."""

    @executor(id="first")
    async def first(text: str) -> str:
        return f"{text} first"

    @executor(id="left")
    async def left(text: str) -> str:
        return f"{text} left"

    @executor(id="join")
    async def join(texts: list[str]) -> str:
        return " + ".join(texts)

    right = AskAndSend("right")
    builder = WorkflowBuilder("chain", first).add_fan_out_edges(first, [left, right])
    workflow = builder.add_fan_in_edges([left, right], join).build()
    return workflow, WorkflowCheckpoint.legacy(workflow, "imported", messages=messages, **options)


@pytest.mark.parametrize(
    ("message", "asked"),
    [
        (LegacyMessage("a"), ["a first"]),
        (LegacyMessage("a", target="first"), ["a first"]),
        (LegacyMessage("a", source="first"), ["a"]),
        (LegacyMessage("a", source="first", target="right"), ["a"]),
        (LegacyMessage("a", source="first", target="left"), []),
    ],
)
def test_a_legacy_message_goes_on_from_where_it_was(message, asked, place) -> None:
    """From outside to the start, from an executor along its edges or the one that is named."""
    workflow, checkpoint = legacy_chain(message)
    assert checkpoint.status is Status.RUNNING
    restored = WorkflowCheckpoint.from_bytes(checkpoint.to_bytes())
    result = run(workflow, checkpoint=restored, checkpoint_storage=place.open())
    assert [request.data.text for request in result.pending_requests] == asked


def test_what_a_legacy_join_held_is_there_when_the_rest_comes() -> None:
    """The answer to an open question completes it; without any question it fires with what there is."""
    asked = LegacyRequest("right", Question("why"), str)
    held = LegacyMessage("held", source="left", target="join")
    workflow, checkpoint = legacy_chain(held, pending_requests=[asked])
    assert checkpoint.status is Status.IDLE_WITH_PENDING_REQUESTS
    (id,) = checkpoint.pending_request_ids
    assert run(workflow, checkpoint=checkpoint, responses={id: "because"}).outputs == ["held + why: because"]
    workflow, checkpoint = legacy_chain(held)
    assert run(workflow, checkpoint=checkpoint).outputs == ["held"]


def test_a_legacy_answer_on_its_way_arrives() -> None:
    """At the handler that its question would have had; a second question of the executor stays open."""
    answered, open_one = (LegacyRequest("right", Question(text), str) for text in ("why", "who"))
    answer = LegacyMessage("because", answers=answered)
    workflow, checkpoint = legacy_chain(answer, pending_requests=[open_one])
    result = run(workflow, checkpoint=checkpoint)
    assert (result.outputs, [r.data for r in result.pending_requests]) == (["why: because"], [Question("who")])
    last = run(workflow, checkpoint=result, responses=[result.pending_requests[0].answer("me")])
    assert last.outputs == ["who: me"]


def test_a_full_legacy_join_fires_beside_an_open_question() -> None:
    """Nobody has to answer for it: the run goes on in the next call, and the question stays open."""
    held = [LegacyMessage(source, source=source) for source in ("left", "right")]
    asked = LegacyRequest("right", Question("why"), str)
    workflow, checkpoint = legacy_chain(*held, pending_requests=[asked])
    assert checkpoint.status is Status.RUNNING
    result = run(workflow, checkpoint=checkpoint)
    assert (result.outputs, result.status) == (["left + right"], Status.IDLE_WITH_PENDING_REQUESTS)
    (open_one,) = result.pending_requests
    assert run(workflow, checkpoint=result, responses=[open_one.answer("so")]).outputs == ["why: so"]


def legacy_sides(*contexts: ExecutionContext, **options) -> tuple[Workflow, WorkflowCheckpoint]:
    """Return intake -> [one, two, three] -> join of three sub-workflows that ask, and a legacy checkpoint of it."""

    @executor(id="join")
    async def join(texts: list[str]) -> str:
        return " + ".join(texts)

    sides = [WorkflowExecutor(asking("child"), name) for name in ("one", "two", "three")]
    builder = WorkflowBuilder("sides", intake).add_fan_out_edges(intake, sides).add_fan_in_edges(sides, join)
    workflow = builder.build()
    return workflow, WorkflowCheckpoint.legacy(workflow, "imported", execution_contexts=contexts, **options)


def side(name: str, text: str) -> ExecutionContext:
    """Return an execution that asked."""
    return ExecutionContext(name, pending_requests=[LegacyRequest("ask", Question(text), str)])


def outputs_of(workflow: Workflow, checkpoint: WorkflowCheckpoint, *orders: str) -> list[str]:
    """Return all outputs once questions are answered by their texts, those of each order in one call."""
    at, found = checkpoint, []
    for texts in orders:
        by_text = {request.data.text: request for request in run(workflow, checkpoint=at).pending_requests}
        at = run(workflow, checkpoint=at, responses=[by_text[text].answer("yes") for text in texts])
        found += at.outputs
    return found


@pytest.mark.parametrize("orders", [("abc",), ("a", "b", "c"), ("c", "a", "b"), ("bc", "a")])
def test_a_join_of_legacy_sub_workflows_fires_once_with_all(orders) -> None:
    """In whatever order they are answered."""
    workflow, checkpoint = legacy_sides(side("one", "a"), side("two", "b"), side("three", "c"))
    assert outputs_of(workflow, checkpoint, *orders) == ["a: yes + b: yes + c: yes"]


def test_what_a_legacy_join_held_goes_with_sub_workflows_that_ask() -> None:
    """It is of the same input as they are."""
    held = LegacyMessage("held", source="one")
    workflow, checkpoint = legacy_sides(side("two", "b"), side("three", "c"), messages=[held])
    assert outputs_of(workflow, checkpoint, "c", "b") == ["held + b: yes + c: yes"]


def test_several_executions_of_legacy_sub_workflows_fill_a_join_one_by_one() -> None:
    """Nothing says which belong together, so that those that come first do; none is handed over while more may come."""
    contexts = [side("one", "a"), side("one", "d"), side("two", "b"), side("two", "e"), side("three", "c")]
    held = LegacyMessage("f", source="three")
    workflow, checkpoint = legacy_sides(*contexts, messages=[held])
    assert outputs_of(workflow, checkpoint, "d") == []
    assert outputs_of(workflow, checkpoint, "d", "b") == ["d: yes + b: yes + f"]
    assert outputs_of(workflow, checkpoint, "d", "b", "ae", "c") == [
        "d: yes + b: yes + f",
        "a: yes + e: yes + c: yes",
    ]


def legacy_below(*messages: LegacyMessage, requests=()) -> tuple[Workflow, WorkflowCheckpoint]:
    """Return two levels around `legacy_chain`, and a legacy checkpoint with messages in the lowest."""
    chain, _ = legacy_chain()
    middle = WorkflowBuilder("middle", WorkflowExecutor(chain, "chain")).build()
    workflow = WorkflowBuilder("outer", WorkflowExecutor(middle, "middle")).build()
    lowest = ExecutionContext("chain", pending_requests=requests, messages=messages)
    context = ExecutionContext("middle", execution_contexts=[lowest])
    return workflow, WorkflowCheckpoint.legacy(workflow, "imported", execution_contexts=[context])


def test_what_a_legacy_join_held_below_is_there_when_the_rest_comes(place) -> None:
    """Two levels down; until then the run is at rest."""
    asked = LegacyRequest("right", Question("why"), str)
    workflow, checkpoint = legacy_below(LegacyMessage("held", source="left"), requests=[asked])
    assert checkpoint.status is Status.IDLE_WITH_PENDING_REQUESTS
    restored = WorkflowCheckpoint.from_bytes(checkpoint.to_bytes())
    (id,) = restored.pending_request_ids
    result = run(workflow, checkpoint=restored, responses={id: "so"}, checkpoint_storage=place.open())
    assert (result.outputs, result.status) == (["held + why: so"], Status.IDLE)


def test_legacy_messages_below_go_on() -> None:
    """A message, an answer, and what a join held without anything that could still come."""
    workflow, checkpoint = legacy_below(LegacyMessage("a", source="first", target="left"))
    assert checkpoint.status is Status.RUNNING
    assert run(workflow, checkpoint=checkpoint).outputs == ["a left"]
    answer = LegacyMessage("so", answers=LegacyRequest("right", Question("why"), str))
    workflow, checkpoint = legacy_below(answer, LegacyMessage("held", source="left"))
    result = run(workflow, checkpoint=checkpoint)
    assert (result.outputs, result.status) == (["held + why: so"], Status.IDLE)
    workflow, checkpoint = legacy_below(LegacyMessage("held", source="left"))
    assert run(workflow, checkpoint=checkpoint).outputs == ["held"]


def test_a_legacy_message_of_nobody_below_is_refused() -> None:
    """The error says in which scope."""
    with pytest.raises(WorkflowCheckpointException, match="middle#1/chain#1 has no executor 'nobody'"):
        legacy_below(LegacyMessage("a", source="nobody"))


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (LegacyMessage("a", source="nobody"), "no executor 'nobody'"),
        (LegacyMessage("a", source="first", target="join"), "no edge leads to 'join'"),
        (LegacyMessage("a", source="join"), "no outgoing edge"),
        (LegacyMessage(5), "takes a int"),
        (LegacyMessage("a", target="nobody"), "'nobody'"),
        (LegacyMessage("a", answers=LegacyRequest("left", Question("why"), str)), "response handler"),
    ],
)
def test_a_legacy_message_without_a_way_is_refused(message, why) -> None:
    """The error says what is missing."""
    with pytest.raises(WorkflowCheckpointException, match=why):
        legacy_chain(message)


def test_a_legacy_sub_workflow_has_its_state() -> None:
    """State and what save hooks gave, where they are known; an executor without hooks has no such state."""
    adder = Adder("adder", [], [])
    asked = LegacyRequest("adder", More(40), int)
    state = {"note": "old"}
    context = ExecutionContext("inner", [asked], state=state, executor_states={"adder": {"total": 7}})
    checkpoint = WorkflowCheckpoint.legacy(adding(adder, depth=1), "imported", execution_contexts=[context])
    below = checkpoint.executor_states["inner"]["sub_workflow_checkpoint"][1]
    assert (below.state, below.executor_states["adder"]) == (state, {"total": 7})
    (id,) = checkpoint.pending_request_ids
    assert run(adding(adder, depth=1), checkpoint=checkpoint, responses={id: 2}).outputs == ["adder has 9"]
    with pytest.raises(WorkflowCheckpointException, match="state of its own"):
        WorkflowCheckpoint.legacy(two_down(), "imported", executor_states={"publish": {}})
