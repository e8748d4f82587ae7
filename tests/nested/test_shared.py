"""`isolation="shared"`: one scope that takes each message in order, when it is at rest."""

import asyncio
from typing import Never

import pytest

from rehydrate import (
    ExecutionContext,
    Executor,
    InMemoryCheckpointStorage,
    LegacyRequest,
    Runner,
    Status,
    WorkflowBuilder,
    WorkflowCheckpoint,
    WorkflowContext,
    WorkflowExecutor,
    append,
    errors,
    executor,
    handler,
    response_handler,
)
from rehydrate.errors import RunFailedError
from rehydrate.model.events import ScopeEnded, ScopeStarted, SuperstepCompleted
from tests.nested.intercepted import Clerk, Policy
from tests.nested.places import both_places, in_fresh_process
from tests.nested.sharing import shared, split, teller


def run(workflow, message=None, store=None, **options):
    """Do one call and wait for it."""
    return asyncio.run(workflow.run(message, checkpoint_storage=store, **options))


def scope_of(result, id: str = "telling") -> WorkflowCheckpoint:
    """Return the shared scope as a checkpoint of its own."""
    return result.checkpoint.executor_states[id]["sub_workflow_checkpoint"]


def test_all_messages_go_through_one_scope_in_order(place) -> None:
    """State and instance state stay between messages and between turns; the view is the checkpoint itself."""
    first = run(shared(), "one two three", place.open(), run_id="r")
    assert first.outputs == ["one is 1", "two is 2", "three is 3"]
    second = run(shared(), "four", place.open(), checkpoint=first.checkpoint_id)
    assert (second.status, second.outputs) == (Status.IDLE, ["four is 4"])
    assert scope_of(second).state == {"words": ["one", "two", "three", "four"], "count": 4}
    assert scope_of(second).executor_states == {"teller": {"seen": 4}}


def test_messages_of_one_superstep_are_taken_within_it() -> None:
    """The scope takes one after the other; its parent passes one barrier, and one scope begins and none ends."""
    result = run(shared(), "one two three")
    done = [event.path for event in result.events if isinstance(event, SuperstepCompleted)]
    assert done == ["", "telling#1", "telling#1", "telling#1", ""]
    assert [event.path for event in result.events if isinstance(event, ScopeStarted)] == ["telling#1"]
    assert not any(isinstance(event, ScopeEnded) for event in result.events)


def test_a_question_holds_no_later_message_up(place) -> None:
    """The scope is at rest while it waits; what is answered finds what the others left."""
    paused = run(shared(), "why? two", place.open())
    assert paused.outputs == ["two is 2"]
    (request,) = paused.pending_requests
    assert (request.path, request.data) == ("telling#1", "why?")
    more = run(shared(), "three", place.open(), checkpoint=paused.checkpoint_id, on_pending="keep")
    assert more.outputs == ["three is 3"]
    ended = run(shared(), None, place.open(), checkpoint=more.checkpoint_id, responses=[request.answer("so")])
    assert (ended.status, ended.outputs) == (Status.IDLE, ["why? so of 3"])
    assert scope_of(ended).state["words"] == ["why?", "two", "three", "so"]


def test_an_answer_and_a_message_in_one_call_both_get_there() -> None:
    """The answer comes to the scope in the turn that brings it the next message."""
    paused = run(shared(), "why?")
    both = run(shared(), "two", checkpoint=paused, responses=[paused.pending_requests[0].answer("so")])
    assert sorted(both.outputs) == ["two is 2", "why? so of 1"]
    assert both.status is Status.IDLE


def test_a_shared_scope_survives_a_restore_in_a_fresh_process(tmp_path) -> None:
    """What it counted and what it waits for is there."""
    jobs = []
    for place in both_places(tmp_path):
        paused = run(shared(), "one why? three", place.open())
        answers = {paused.pending_requests[0].request_id: "so"}
        jobs.append({"story": "shared", "answers": answers, "hand_over": place.hand_over(paused)})
    for outcome in in_fresh_process(*jobs):
        assert (outcome.status, outcome.outputs) == ("IDLE", ["'why? so of 3'"])


def test_every_checkpoint_goes_on_to_the_same_end() -> None:
    """Also those in which some messages of a superstep are taken and others not."""

    async def scenario() -> None:
        store = InMemoryCheckpointStorage()
        await shared().run("one two three four", run_id="r", checkpoint_storage=store)
        expected = ["one is 1", "two is 2", "three is 3", "four is 4"]
        history = await store.history("r", limit=100)
        for header in history[1:]:
            fork = await shared().run(checkpoint=header.checkpoint_id, fork=True, checkpoint_storage=store)
            assert fork.outputs == expected, header.seq

    asyncio.run(scenario())


def test_outputs_carry_the_trail_of_the_input_that_they_descend_from() -> None:
    """A join after the scope gets what belongs together, also where the answers come crosswise."""

    @executor(id="start")
    async def start(text: str) -> str:
        return text

    @executor(id="show")
    async def show(text: str) -> str:
        return f"shown {text}"

    @executor(id="gather")
    async def gather(texts: list[str]) -> str:
        return " + ".join(texts)

    node = teller()
    builder = WorkflowBuilder("w", start).add_fan_out_edges(start, [node, show])
    workflow = builder.add_fan_in_edges([node, show], gather).build()
    first = run(workflow, "a?")
    second = run(workflow, "b?", checkpoint=first, on_pending="keep")
    asked = {request.data: request for request in second.pending_requests}
    third = run(workflow, checkpoint=second, responses=[asked["b?"].answer("B")])
    assert third.outputs == []  # into a join what it yields is passed on once nothing of it is open
    fourth = run(workflow, checkpoint=third, responses=[asked["a?"].answer("A")])
    assert fourth.outputs == ["a? A of 2 + shown a?", "b? B of 2 + shown b?"]
    assert fourth.status is Status.IDLE


def test_a_join_does_not_wait_for_a_shared_scope_that_is_done_with_its_input() -> None:
    """It stays for ever, but nothing of that input stands in it."""

    @executor(id="start")
    async def start(text: str) -> str:
        return text

    @executor(id="show")
    async def show(text: str) -> str:
        return f"shown {text}"

    @executor(id="silent")
    async def silent(text: str, ctx: WorkflowContext[Never, str]) -> None:
        pass

    @executor(id="gather")
    async def gather(texts: list[str]) -> str:
        return " + ".join(texts)

    node = WorkflowExecutor(WorkflowBuilder("quiet", silent).build(), "quiet", isolation="shared")
    builder = WorkflowBuilder("w", start).add_fan_out_edges(start, [node, show])
    workflow = builder.add_fan_in_edges([node, show], gather).build()
    assert run(workflow, "a").outputs == ["shown a"]


@executor(id="loop")
async def loop(number: int, ctx: WorkflowContext[int, str]) -> None:
    """Run for so many supersteps."""
    ctx.set_state("rounds", ctx.get_state("rounds", 0) + 1)
    if number > 1:
        ctx.send_message(number - 1)
    else:
        ctx.yield_output(f"after {ctx.get_state('rounds')}")


@executor(id="numbers")
async def numbers(given: list[int], ctx: WorkflowContext[int]) -> None:
    """Send each number on."""
    for number in given:
        ctx.send_message(number)


def looping(limit: int):
    """numbers -> a shared loop with a limit."""
    inner = WorkflowBuilder("looping", loop, max_supersteps=limit).add_edge(loop, loop).build()
    node = WorkflowExecutor(inner, "looping", isolation="shared")
    return WorkflowBuilder("w", numbers).add_edge(numbers, node).build()


def test_the_limit_starts_anew_with_each_input() -> None:
    """Three inputs of three supersteps each are within a limit of three; one of four is not."""
    assert run(looping(3), [3, 3, 3]).outputs == ["after 3", "after 6", "after 9"]
    stopped = run(looping(3), [3, 4, 1])
    assert (stopped.status, stopped.outputs) == (Status.LIMIT_REACHED, [])
    assert run(looping(3), None, checkpoint=stopped).outputs == ["after 3", "after 7", "after 8"]


def test_state_is_copied_in_with_each_message_and_out_at_each_rest() -> None:
    """What the parent has changed meanwhile arrives; what the scope has is there after each turn."""

    @executor(id="start")
    async def start(text: str, ctx: WorkflowContext[str]) -> None:
        ctx.set_state("customer", text)
        ctx.send_message(text)

    @executor(id="serve")
    async def serve(text: str, ctx: WorkflowContext[Never, str]) -> None:
        ctx.update_state("served", ctx.get_state("name"))
        ctx.set_state("last", text)

    inner = WorkflowBuilder("serving", serve, reducers={"served": append}).build()
    node = WorkflowExecutor(
        inner, "serving", isolation="shared", inputs={"customer": "name"}, outputs={"served": "all", "last": "last"}
    )
    workflow = WorkflowBuilder("w", start, reducers={"all": append}).add_edge(start, node).build()
    first = run(workflow, "Ada")
    assert first.checkpoint.state == {"customer": "Ada", "all": ["Ada"], "last": "Ada"}
    second = run(workflow, "Bob", checkpoint=first)
    assert second.checkpoint.state == {"customer": "Bob", "all": ["Ada", "Bob"], "last": "Bob"}


def test_state_is_not_copied_out_while_a_question_is_open() -> None:
    """At rest with an open request is no end."""
    node = teller(outputs={"count": "count"})
    workflow = WorkflowBuilder("w", split).add_edge(split, node).build()
    paused = run(workflow, "one two?")
    assert paused.checkpoint.state == {}
    ended = run(workflow, None, checkpoint=paused, responses=[paused.pending_requests[0].answer("so")])
    assert ended.checkpoint.state == {"count": 2}


@pytest.mark.parametrize(("policy", "word"), [("cancel", "two?"), ("discard", "two?"), ("discard", "two")])
def test_state_and_numbers_stay_after_cancel_and_discard(policy: str, word: str) -> None:
    """The scope goes on with the next message as if the withdrawn or dropped one had come to nothing."""
    tries: list[str] = []

    @executor(id="fails")
    async def fails(text: str, ctx: WorkflowContext) -> None:
        tries.append(text)
        if policy == "discard" and len(tries) == 2:
            raise ValueError("no")

    node = teller()
    workflow = WorkflowBuilder("w", split).add_fan_out_edges(split, [node, fails]).build()
    paused = run(workflow, "one")
    if policy == "discard":
        with pytest.raises(RunFailedError) as failed:
            run(workflow, word, checkpoint=paused)
        paused = failed.value.result
        options = {"on_unfinished": "discard", "on_pending": "cancel"}
    else:
        paused = run(workflow, word, checkpoint=paused)
        options = {"on_pending": "cancel"}
    third = run(workflow, "three", checkpoint=paused, **options)
    assert (third.outputs, third.pending_requests) == (["three is 3"], ())
    assert scope_of(third).state == {"words": ["one", word, "three"], "count": 3}
    assert run(workflow, "four", checkpoint=third).outputs == ["four is 4"]


def test_a_failure_in_the_middle_is_taken_up_where_it_was() -> None:
    """Messages before it are not handled again, those behind it are."""
    tries: list[str] = []

    @executor(id="fussy")
    async def fussy(text: str, ctx: WorkflowContext[Never, str]) -> None:
        tries.append(text)
        if tries == ["one", "two"]:
            raise ValueError("not yet")
        ctx.yield_output(text)

    node = WorkflowExecutor(WorkflowBuilder("inner", fussy).build(), "inner", isolation="shared")
    workflow = WorkflowBuilder("w", split).add_edge(split, node).build()
    with pytest.raises(RunFailedError, match="inner#1/fussy") as failed:
        run(workflow, "one two three")
    healed = run(workflow, None, checkpoint=failed.value.result)
    assert (healed.outputs, tries) == (["one", "two", "three"], ["one", "two", "two", "three"])


def test_a_shared_scope_in_an_isolated_one_goes_with_it() -> None:
    """Each execution of the outer workflow has one of its own, and ends although the inner one never does."""
    middle = WorkflowBuilder("middle", split).add_edge(split, teller()).build()
    outer = WorkflowExecutor(middle, "middle")

    @executor(id="lines")
    async def lines(text: str, ctx: WorkflowContext[str]) -> None:
        for line in text.split("/"):
            ctx.send_message(line)

    workflow = WorkflowBuilder("w", lines).add_edge(lines, outer).build()
    result = run(workflow, "a b/c d")
    assert result.outputs == ["a is 1", "b is 2", "c is 1", "d is 2"]
    assert result.checkpoint.executor_states == {}
    paused = run(workflow, "a? b/c")
    assert list(paused.checkpoint.executor_states["middle"]["sub_workflow_checkpoint"]) == [1]
    ended = run(workflow, None, checkpoint=paused, responses=[paused.pending_requests[0].answer("so")])
    assert (ended.outputs, ended.checkpoint.executor_states) == (["a? so of 2"], {})


def test_a_shared_scope_can_be_intercepted() -> None:
    """Its requests go up, and the answers come back to the one scope."""
    inner = WorkflowBuilder("inner", Clerk("clerk")).build()
    node = WorkflowExecutor(inner, "inner", isolation="shared", requests="intercept", forward_outputs="output")
    workflow = WorkflowBuilder("w", split).add_edge(split, node).add_edge(node, Policy("policy")).build()
    paused = run(workflow, "tea cake milk")
    assert paused.outputs == ["tea up to 5", "milk up to 2"]
    question = next(r for r in paused.pending_requests if r.executor_id == "policy")
    ended = run(workflow, None, checkpoint=paused, responses=[question.answer(3)])
    assert (ended.status, ended.outputs) == (Status.IDLE, ["cake up to 3"])


def test_the_view_of_a_shared_scope_can_be_put_into_another_checkpoint() -> None:
    """The hooks of the node give and take the checkpoint itself."""
    workflow = shared()
    rich, poor = run(workflow, "one two"), run(workflow, "zero")
    node = workflow.definition.executors["telling"]
    assert isinstance(node, WorkflowExecutor)
    given = node.on_checkpoint_save(rich.checkpoint)
    assert isinstance(given["sub_workflow_checkpoint"], WorkflowCheckpoint)
    changed = node.on_checkpoint_restore(given, poor.checkpoint)

    async def scenario():
        runner = Runner(workflow)
        await runner.restore_from_checkpoint_object(changed)
        return await runner.run("three")

    assert asyncio.run(scenario()).outputs == ["three is 3"]


def test_an_answer_comes_before_the_message_that_is_brought_with_it() -> None:
    """As at the root: the scope takes the answer that it waits for, and then the next message."""

    class Asks(Executor):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
            if text == "ask":
                ctx.request_info(text, response_type=str)
            else:
                ctx.yield_output(text)

        @response_handler
        async def on_answer(self, question: str, answer: str, ctx: WorkflowContext[Never, str]) -> None:
            ctx.yield_output(answer)

    inner = WorkflowBuilder("inner", Asks("asks")).build()
    once = WorkflowBuilder("once", WorkflowExecutor(inner, "inner", isolation="shared")).build()
    twice = WorkflowBuilder("twice", WorkflowExecutor(once, "once", isolation="shared")).build()
    for workflow in (inner, once, twice):
        store = InMemoryCheckpointStorage()
        paused = run(workflow, "ask", store)
        (asked,) = paused.pending_requests
        both = run(workflow, "next", store, checkpoint=paused.checkpoint_id, responses=[asked.answer("first")])
        assert both.outputs == ["first", "next"]


def test_a_legacy_checkpoint_has_one_execution_of_a_shared_sub_workflow() -> None:
    """Its question is answered in the one scope, and the next message comes to it; a second execution is refused."""
    workflow = shared()
    context = ExecutionContext("telling", [LegacyRequest("teller", "old?", str)])
    legacy = WorkflowCheckpoint.legacy(workflow, "old", execution_contexts=[context])
    (asked,) = legacy.pending_request_ids
    result = run(workflow, None, checkpoint=legacy, responses={asked: "so"})
    assert result.outputs == ["old? so of None"]
    with pytest.raises(errors.CaptureError, match="second execution of a shared sub-workflow"):
        WorkflowCheckpoint.legacy(workflow, "old", execution_contexts=[context, context])


def test_next_executors_of_a_stopped_run_are_named_where_they_wait() -> None:
    """A message that the scope has taken is inside of it; one that waits for it is before it."""

    class Stops(Executor):
        @handler
        async def on_word(self, word: str, ctx: WorkflowContext[Never, str]) -> None:
            raise ValueError(word)

    node = WorkflowExecutor(WorkflowBuilder("inner", Stops("stops")).build(), "inner", isolation="shared")
    store = InMemoryCheckpointStorage()
    with pytest.raises(RunFailedError) as failed:
        run(WorkflowBuilder("w", split).add_edge(split, node).build(), "a", store)
    assert asyncio.run(store.inspect(failed.value.result.checkpoint_id)).next_executors == ("inner#1/stops",)
    with pytest.raises(RunFailedError) as failed:
        run(WorkflowBuilder("w", split).add_edge(split, node).build(), "a b", store)
    inspected = asyncio.run(store.inspect(failed.value.result.checkpoint_id))
    assert inspected.next_executors == ("inner", "inner#1/stops")


def test_a_shared_scope_cannot_work_for_the_items_of_a_map() -> None:
    """They go side by side, and it takes one message after the other."""

    @executor(id="words")
    async def words(text: str) -> list[str]:
        return text.split()

    @executor(id="end")
    async def end(given: list[str]) -> str:
        return " ".join(given)

    node = teller()
    with pytest.raises(errors.WorkflowBuildError, match="'telling' works for many items at once and cannot have isol"):
        WorkflowBuilder("w", words).add_map_edge(words, node, into=end).build()
