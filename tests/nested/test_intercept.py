"""`requests="intercept"`: what a sub-workflow asks goes to an executor of its parent."""

import asyncio
from typing import Never

import pytest

from rehydrate import (
    Executor,
    InMemoryCheckpointStorage,
    Status,
    SubWorkflowRequestMessage,
    SubWorkflowResponseMessage,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    executor,
    handler,
    response_handler,
)
from rehydrate.errors import (
    AlreadyAnsweredError,
    EffectError,
    LateResponseError,
    RunFailedError,
    SendTypeError,
    WorkflowBuildError,
)
from rehydrate.model.events import MessageDropped, RequestOpened
from tests.nested.intercepted import Clerk, Limit, Policy, buying, policed, show
from tests.nested.places import both_places, in_fresh_process


def run(workflow, message=None, store=None, **options):
    """Do one call and wait for it."""
    return asyncio.run(workflow.run(message, checkpoint_storage=store, **options))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_request_is_answered_by_the_parent(place, depth: int) -> None:
    """It goes up through levels that propagate to the one that intercepts, and its answer comes down again."""
    result = run(policed(depth), "tea milk", place.open())
    assert (result.status, result.outputs) == (Status.IDLE, ["shown: tea up to 5", "shown: milk up to 2"])
    assert result.pending_requests == ()


def test_a_request_says_where_it_comes_from() -> None:
    """Path, executor, data, type of the answer, and the id by which the outside knows it."""
    seen: list[SubWorkflowRequestMessage] = []

    @executor(id="see")
    async def see(message: SubWorkflowRequestMessage, ctx: WorkflowContext) -> None:
        seen.append(message)

    node = WorkflowExecutor(buying(2), "buying", requests="intercept", forward_outputs="output")
    result = run(WorkflowBuilder("w", node).add_edge(node, see).build(), "tea")
    (message,) = seen
    (pending,) = result.pending_requests
    assert (message.path, message.request.executor_id) == ("buying#1/inner#1", "clerk")
    assert (message.request.data, message.request.response_type) == (Limit("tea"), "int")
    assert message.request.request_id == pending.request_id
    assert (pending.path, pending.executor_id, pending.intercepted) == ("buying#1/inner#1", "clerk", True)


def test_the_inner_of_two_levels_that_intercept_answers() -> None:
    """The outer one sees nothing of it."""
    inner = policed()
    outer = WorkflowExecutor(inner, "outer", requests="intercept")
    result = run(WorkflowBuilder("w", outer).add_fan_out_edges(outer, [Policy("police"), show]).build(), "milk")
    assert result.outputs == ["shown: shown: milk up to 2"]


def test_an_executor_of_the_parent_can_ask_the_outside_and_answer_later(place) -> None:
    """The outer question shows the message; its answer goes down to the scope that asked."""
    paused = run(policed(2), "tea cake", place.open())
    assert paused.outputs == ["shown: tea up to 5"]
    inner, outer = sorted(paused.pending_requests, key=lambda request: request.executor_id)
    assert (inner.executor_id, inner.intercepted, outer.executor_id) == ("clerk", True, "policy")
    ended = run(policed(2), None, place.open(), checkpoint=paused.checkpoint_id, responses=[outer.answer(9)])
    assert (ended.status, ended.outputs) == (Status.IDLE, ["shown: cake up to 9"])


def test_a_response_in_flight_survives_a_restore_in_a_fresh_process(tmp_path) -> None:
    """Every checkpoint of the run, each in a fork of its own, ends in the same outputs."""
    jobs = []
    for place in both_places(tmp_path):
        paused = run(policed(2), "cake", place.open())
        outer = next(r for r in paused.pending_requests if r.executor_id == "policy")
        jobs.append(
            {
                "story": "policed",
                "arguments": [2],
                "answers": {outer.request_id: 7},
                "hand_over": place.hand_over(paused),
            }
        )
    for outcome in in_fresh_process(*jobs):
        assert (outcome.status, outcome.outputs) == ("IDLE", ["'shown: cake up to 7'"])


def test_every_checkpoint_goes_on_to_the_same_end() -> None:
    """Whatever line the process dies on: the request on its way up, the answer in a step, in the scope that asked."""

    async def scenario() -> None:
        store = InMemoryCheckpointStorage()
        await policed(3).run("tea milk", run_id="r", checkpoint_storage=store)
        history = await store.history("r", limit=100)
        assert len(history) == 5
        for header in history[1:]:
            fork = await policed(3).run(checkpoint=header.checkpoint_id, fork=True, checkpoint_storage=store)
            assert fork.outputs == ["shown: tea up to 5", "shown: milk up to 2"], header.seq

    asyncio.run(scenario())


def silent() -> Workflow:
    """A parent that intercepts and never answers."""

    @executor(id="ignore")
    async def ignore(message: SubWorkflowRequestMessage, ctx: WorkflowContext) -> None:
        pass

    node = WorkflowExecutor(buying(), "buying", requests="intercept", forward_outputs="output")
    return WorkflowBuilder("silent", node).add_edge(node, ignore).build()


def test_what_the_parent_does_not_answer_stays_open_and_the_outside_can(place) -> None:
    """The run rests with the request listed; its answer goes to the scope like any other."""
    paused = run(silent(), "tea", place.open())
    assert paused.status is Status.IDLE_WITH_PENDING_REQUESTS
    (request,) = paused.pending_requests
    assert (request.path, request.data, request.intercepted) == ("buying#1", Limit("tea"), True)
    ended = run(silent(), None, place.open(), checkpoint=paused.checkpoint_id, responses=[request.answer(3)])
    assert (ended.status, ended.outputs) == (Status.IDLE, ["tea up to 3"])


def test_an_answer_from_inside_leaves_a_receipt() -> None:
    """A person who answers it again is told so."""
    store = InMemoryCheckpointStorage()
    result = run(policed(), "tea", store)
    (opened,) = [event for event in result.events if isinstance(event, RequestOpened)]
    assert opened.intercepted
    with pytest.raises(AlreadyAnsweredError):
        run(policed(), None, store, checkpoint=result.checkpoint_id, responses={opened.request_id: 5})


def test_answers_carry_the_trail_of_the_asker_into_a_join() -> None:
    """Two overlapping inputs whose answers come crosswise are joined each with its own."""

    @executor(id="start")
    async def start(text: str) -> str:
        return text

    @executor(id="gather")
    async def gather(texts: list[str]) -> str:
        return " + ".join(texts)

    node = WorkflowExecutor(buying(), "buying", requests="intercept")
    builder = WorkflowBuilder("w", start, checkpoint_storage=InMemoryCheckpointStorage())
    builder.add_fan_out_edges(start, [node, show]).add_edge(node, Policy("policy"))
    workflow = builder.add_fan_in_edges([node, show], gather).build()
    first = run(workflow, "cake")
    second = run(workflow, "pie", checkpoint=first, on_pending="keep")
    asked = {r.data.path: r for r in second.pending_requests if r.executor_id == "policy"}
    third = run(workflow, checkpoint=second, responses=[asked["buying#2"].answer(2)])
    assert third.outputs == ["pie up to 2 + shown: pie"]
    fourth = run(workflow, checkpoint=third, responses=[asked["buying#1"].answer(1)])
    assert fourth.outputs == ["cake up to 1 + shown: cake"]


class Forwarding(Executor):
    """Does with each request what the test says."""

    def __init__(self, id: str, act) -> None:
        super().__init__(id)
        self.act = act

    @handler
    async def on_request(
        self,
        message: SubWorkflowRequestMessage,
        ctx: WorkflowContext[SubWorkflowRequestMessage | SubWorkflowResponseMessage],
    ) -> None:
        self.act(message, ctx)


def acting(*acts, depth: int = 1) -> Workflow:
    """A parent with one executor for each way to answer; the first also sends requests on to the others."""
    node = WorkflowExecutor(buying(depth), "buying", requests="intercept", forward_outputs="output")
    others = [Forwarding(f"act {number}", act) for number, act in enumerate(acts)]
    last = Forwarding("last", lambda message, ctx: None)
    builder = WorkflowBuilder("acting", node, checkpoint_storage=InMemoryCheckpointStorage())
    builder.add_fan_out_edges(node, others).add_edge(last, last)
    for other in others:
        builder.add_edge(other, last)
    return builder.build()


def error_of(workflow, message="tea", **options) -> Exception:
    """Return what a run failed with."""
    with pytest.raises(RunFailedError) as failed:
        run(workflow, message, **options)
    assert isinstance(failed.value.__cause__, Exception)
    return failed.value.__cause__


def test_an_answer_of_another_type_is_refused_at_the_line() -> None:
    """A bool is no int."""
    error = error_of(acting(lambda message, ctx: ctx.send_message(message.create_response(True))))
    assert isinstance(error, SendTypeError)
    assert "act 0: it answers buying#1/clerk with a bool. That request expects int." in str(error)


def test_a_response_that_was_made_up_is_refused_at_the_line() -> None:
    """It names a request that nobody made."""
    made_up = SubWorkflowResponseMessage("buying#9", "clerk#1?0", 1)
    error = error_of(acting(lambda message, ctx: ctx.send_message(made_up)))
    assert isinstance(error, EffectError)
    assert "it answers 'clerk#1?0' of 'buying#9', which did not ask that" in str(error)


def test_two_answers_in_one_superstep_fail_the_run_and_name_both() -> None:
    """Neither is taken, the request stays open, and the outside can still answer it."""

    def answer(message, ctx):
        ctx.send_message(message.create_response(1))

    workflow = acting(answer, answer)
    error = error_of(workflow)
    assert isinstance(error, LateResponseError)
    assert "which act 0#1 and act 1#1 answered in one superstep" in str(error)


def test_one_handler_that_answers_twice_fails() -> None:
    """The same in one invocation."""

    def answer(message, ctx):
        ctx.send_message(message.create_response(1))
        ctx.send_message(message.create_response(2))

    assert "act 0#1 and act 0#1 answered in one superstep" in str(error_of(acting(answer)))


def test_an_answer_to_a_closed_request_is_refused_at_the_line() -> None:
    """The request was sent on, and whoever got it is too late; it may catch the error."""
    caught: list[str] = []

    def answer(message, ctx):
        ctx.send_message(message.create_response(1))
        ctx.send_message(message, target_id="last")

    def late(message, ctx):
        try:
            ctx.send_message(message.create_response(2))
        except LateResponseError as error:
            caught.append(str(error))

    node = WorkflowExecutor(buying(), "buying", requests="intercept", forward_outputs="output")
    first, last = Forwarding("first", answer), Forwarding("last", late)
    builder = WorkflowBuilder("w", node).add_edge(node, first).add_edge(first, last).add_edge(last, last)
    assert run(builder.build(), "tea").outputs == ["tea up to 1"]
    assert caught == [
        "last: it answers 'clerk#1?0' of 'buying#1', which was answered before. Answer each request once; catch this"
        " error where others may be first."
    ]


def test_an_answer_that_the_outside_was_faster_with_fails_at_the_barrier() -> None:
    """The line could not know: the answer came through the stream while the handler ran."""
    entered, go_on = asyncio.Event(), asyncio.Event()

    @executor(id="slow")
    async def slow(message: SubWorkflowRequestMessage, ctx: WorkflowContext[SubWorkflowResponseMessage]) -> None:
        ctx.send_message(message.create_response(1))
        entered.set()
        await go_on.wait()

    node = WorkflowExecutor(buying(), "buying", requests="intercept", forward_outputs="output")
    workflow = WorkflowBuilder("w", node, checkpoint_storage=InMemoryCheckpointStorage()).add_edge(node, slow).build()

    async def scenario():
        async with workflow.run("tea", stream=True) as stream:
            asked = ""
            async for event in stream:
                if isinstance(event, RequestOpened):
                    asked = event.request_id
                if entered.is_set() and asked:
                    break
            await entered.wait()
            await stream.answer({asked: 2})
            go_on.set()
            with pytest.raises(RunFailedError) as failed:
                await stream.result()
            return failed.value

    failed = asyncio.run(scenario())
    assert isinstance(failed.__cause__, LateResponseError)
    assert "which was closed while slow#1 answered" in str(failed.__cause__)


def test_a_request_that_is_cancelled_on_its_way_up_does_not_arrive() -> None:
    """It is withdrawn in the claim of a call that finds it in an outbox."""
    seen: list[str] = []

    tries: list[str] = []

    class Fails(Executor):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext) -> None:
            tries.append(text)
            if tries == ["tea"]:
                raise ValueError("not now")

    @executor(id="start")
    async def start(text: str) -> str:
        return text

    @executor(id="see")
    async def see(message: SubWorkflowRequestMessage, ctx: WorkflowContext) -> None:
        seen.append(message.path)

    node = WorkflowExecutor(buying(), "buying", requests="intercept", forward_outputs="output")
    builder = WorkflowBuilder("w", start).add_edge(start, node).add_edge(start, Fails("fails"))
    workflow = builder.add_edge(node, see).build()
    with pytest.raises(RunFailedError) as failed:
        run(workflow, "tea")
    assert [r.path for r in failed.value.result.pending_requests] == ["buying#1"]
    result = run(workflow, "pie", checkpoint=failed.value.result, on_pending="cancel", on_unfinished="finish")
    assert (tries, seen) == (["tea", "tea", "pie"], ["buying#2"])
    assert [request.path for request in result.pending_requests] == ["buying#2"]


def test_a_request_that_every_condition_declines_is_told_and_stays_open() -> None:
    """Conditions see the message; each is asked once."""
    asked: list[str] = []

    def is_small(message: SubWorkflowRequestMessage) -> bool:
        assert isinstance(message.request.data, Limit)
        asked.append(message.request.data.what)
        return message.request.data.what == "tea"

    node = WorkflowExecutor(buying(), "buying", requests="intercept", forward_outputs="output")
    result = run(WorkflowBuilder("w", node).add_edge(node, Policy("policy"), is_small).build(), "tea cake")
    assert asked == ["tea", "cake"]
    assert result.outputs == ["tea up to 5"]
    assert [request.data for request in result.pending_requests] == [Limit("cake")]
    assert len([event for event in result.events if isinstance(event, MessageDropped)]) == 1


def test_a_condition_that_raised_is_asked_again_by_a_resume() -> None:
    """The handler that asked does not run again."""
    tries: list[int] = []

    def raises_once(message: SubWorkflowRequestMessage) -> bool:
        tries.append(1)
        if len(tries) == 1:
            raise ValueError("not yet")
        return True

    node = WorkflowExecutor(buying(), "buying", requests="intercept", forward_outputs="output")
    workflow = WorkflowBuilder("w", node).add_edge(node, Policy("policy"), raises_once).build()
    with pytest.raises(RunFailedError, match="PredicateError") as failed:
        run(workflow, "tea")
    assert run(workflow, None, checkpoint=failed.value.result).outputs == ["tea up to 5"]


def test_a_function_answers_by_what_it_returns() -> None:
    """Its response needs no edge and is no output."""

    @executor(id="five")
    async def five(message: SubWorkflowRequestMessage) -> SubWorkflowResponseMessage:
        return message.create_response(5)

    node = WorkflowExecutor(buying(), "buying", requests="intercept", forward_outputs="output")
    assert run(WorkflowBuilder("w", node).add_edge(node, five).build(), "x").outputs == ["x up to 5"]


def test_a_sub_workflow_can_take_the_requests_of_its_sibling() -> None:
    """Its start executor handles the message like any executor; to answer is for the executors of the parent."""

    @executor(id="decide")
    async def think(message: SubWorkflowRequestMessage, ctx: WorkflowContext[Never, int]) -> None:
        ctx.set_state("asked by", message.path)
        ctx.yield_output(8)

    node = WorkflowExecutor(buying(), "buying", requests="intercept", forward_outputs="output")
    brain = WorkflowExecutor(WorkflowBuilder("brain", think).build(), "brain")
    result = run(WorkflowBuilder("w", node).add_edge(node, brain).build(), "tea")
    assert result.outputs == [8]
    assert [request.path for request in result.pending_requests] == ["buying#1"]


def test_an_intercepted_request_does_not_wait_for_the_scope_to_finish() -> None:
    """Into a join outputs wait until then, requests do not."""

    class Half(Clerk):
        @handler
        async def on_number(self, number: int, ctx: WorkflowContext[Never, str]) -> None:
            ctx.yield_output("half")
            ctx.request_info(Limit("tea"), response_type=int)

    @executor(id="gather")
    async def gather(texts: list[str]) -> str:
        return " + ".join(texts)

    node = WorkflowExecutor(WorkflowBuilder("c", Half("half")).build(), "c", requests="intercept")
    builder = WorkflowBuilder("w", node).add_edge(node, Policy("policy")).add_fan_in_edges([node], gather)
    assert run(builder.build(), 1).outputs == ["half", "tea up to 5"]


def problems_of(builder) -> tuple[str, ...]:
    """Return what `build()` finds."""
    with pytest.raises(WorkflowBuildError) as error:
        builder.build()
    return error.value.problems


def test_intercepting_without_anybody_to_take_requests_is_refused_when_built() -> None:
    """Without an edge, with one to somebody else, and with a join alone."""
    text = (
        "executor 'buying' has requests=\"intercept\" but no edge leads from it to an executor that handles"
        ' SubWorkflowRequestMessage; add one, or use requests="propagate"'
    )

    def node():
        return WorkflowExecutor(buying(), "buying", requests="intercept")

    @executor(id="join")
    async def join(requests: list[SubWorkflowRequestMessage]) -> str:
        return str(len(requests))

    alone = node()
    assert problems_of(WorkflowBuilder("w", alone)) == (text,)
    other = node()
    assert problems_of(WorkflowBuilder("w", other).add_edge(other, show)) == (text,)
    joined = node()
    assert text in problems_of(WorkflowBuilder("w", joined).add_fan_in_edges([joined], join))


def test_answering_where_nothing_is_intercepted_is_refused_when_built() -> None:
    """The executor that says it would answer is named."""

    class Asks(Executor):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[SubWorkflowResponseMessage]) -> None:
            pass

        @response_handler
        async def on_answer(self, asked: str, answer: int, ctx: WorkflowContext) -> None:
            pass

    (problem,) = problems_of(WorkflowBuilder("w", Asks("answers")))
    assert problem.startswith("executor 'answers' says that it sends SubWorkflowResponseMessage, but no sub-workflow")


def test_an_answer_from_another_level_is_refused_at_the_line() -> None:
    """A request is for the executors beside the node that intercepts, not for those above or below."""
    kept: list[SubWorkflowRequestMessage] = []

    @executor(id="keep")
    async def keep(message: SubWorkflowRequestMessage, ctx: WorkflowContext[Never, str]) -> None:
        kept.append(message)
        ctx.yield_output("kept")

    inner_node = WorkflowExecutor(buying(), "buying", requests="intercept", forward_outputs="output")
    inner = WorkflowBuilder("inner", inner_node).add_edge(inner_node, keep).build()

    class Above(Executor):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[SubWorkflowResponseMessage]) -> None:
            ctx.send_message(kept[0].create_response(1))

        @handler
        async def on_request(self, message: SubWorkflowRequestMessage, ctx: WorkflowContext) -> None:
            pass

    outer = WorkflowExecutor(inner, "outer", requests="intercept")
    error = error_of(WorkflowBuilder("w", outer).add_edge(outer, Above("above")).build())
    assert isinstance(error, EffectError)
    assert "which executors of outer#1 can answer" in str(error)


def test_requests_of_the_items_of_a_map_are_answered_each_by_itself() -> None:
    """The executor that answers works for the items, and what they yield is gathered in their order."""

    @executor(id="words")
    async def words(text: str) -> list[str]:
        return text.split()

    @executor(id="end")
    async def end(given: list[str]) -> str:
        return ", ".join(given)

    node = WorkflowExecutor(buying(), "buying", requests="intercept")
    builder = WorkflowBuilder("w", words).add_map_edge(words, node, into=end).add_edge(node, end)
    workflow = builder.add_edge(node, Policy("policy")).build()
    paused = run(workflow, "milk cake tea")
    assert paused.outputs == []
    question = next(r for r in paused.pending_requests if r.executor_id == "policy")
    ended = run(workflow, checkpoint=paused, responses=[question.answer(4)])
    assert ended.outputs == ["milk up to 2, cake up to 4, tea up to 5"]
