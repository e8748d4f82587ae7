"""A functional workflow has the whole call surface of a workflow, with the same meaning."""

import asyncio
import logging

import pytest

from rehydrate import FunctionalContext, Retry, Runner, Status, WorkflowBuilder, WorkflowExecutor, step, workflow
from rehydrate.errors import (
    IdempotencyKeyError,
    MessageTypeError,
    MissingResourceError,
    PendingRequestsError,
    RequestCancelledError,
    RunExistsError,
    StaleCheckpointError,
    WorkflowCheckpointException,
)
from rehydrate.model.events import (
    AttemptFailed,
    Emitted,
    OutputYielded,
    RequestOpened,
    RequestsCancelled,
    RequestsKept,
    StatusChanged,
    TurnStarted,
    WorkDiscarded,
)
from tests.functional.book import answers, failed, run


def ledger(book, store=None, **options):
    """Make a workflow that counts its messages in state, notes each, and asks where it ends with `?`."""
    note = book.step()

    @workflow(name="ledger", checkpoint_storage=store, types=[str], **options)
    async def ledger(text: str, ctx: FunctionalContext) -> str:
        count = ctx.state.get("count", 0) + 1
        ctx.state.set("count", count)
        found = await note(text)
        if text.endswith("?"):
            found += await ctx.request_info(text, response_type=str)
        return f"{count}: {found}"

    return ledger


def test_the_same_call_again_and_one_that_exists(book, store):
    """A run id that exists is an error; the same call with its key is the recorded result."""
    options = {"run_id": "r", "idempotency_key": "k"}
    first = run(ledger(book, store), "a", **options)
    again = run(ledger(book, store), "a", **options)
    assert (again.replayed, again.outputs, again.checkpoint_id) == (True, ["1: A"], first.checkpoint_id)
    with pytest.raises(IdempotencyKeyError):
        run(ledger(book, store), "b", **options)
    with pytest.raises(RunExistsError):
        run(ledger(book, store), "b", run_id="r")
    assert book.took() == ["note a"]


def test_a_paused_turn_is_replayed_with_its_question(book, store):
    """The result of a turn that waits is given again with the open question, and nothing runs."""
    first = run(ledger(book, store), "a?", idempotency_key="k")
    again = run(ledger(book, store), "a?", idempotency_key="k")
    assert (again.replayed, again.run_id) == (True, first.run_id)
    assert [r.request_id for r in again.pending_requests] == [r.request_id for r in first.pending_requests]
    assert book.took() == ["note a?"]


def test_answers_and_a_message_in_one_call(book, store):
    """Restore, answer and new turn in one commit: both outputs come in their order."""
    first = run(ledger(book, store), "a?", run_id="r")
    second = run(ledger(book, store), "b", checkpoint="latest", run_id="r", responses=answers(first, "!"))
    assert (second.outputs, second.turn, second.pending_requests) == (["1: A?!", "2: B"], 2, ())
    third = run(ledger(book, store), "c", checkpoint=second)
    assert third.outputs == ["3: C"]


def test_an_old_checkpoint_is_stale_and_can_be_forked(book, store):
    """A fork goes its own way from there; the old request's answer is taken by both."""
    first = run(ledger(book, store), "a?", run_id="r")
    forked = run(ledger(book, store), checkpoint=first, fork=True, run_id="s", responses=answers(first, " fork"))
    own = run(ledger(book, store), responses=answers(first, " own"))
    assert (forked.run_id, forked.outputs, own.outputs) == ("s", ["1: A? fork"], ["1: A? own"])
    with pytest.raises(StaleCheckpointError):
        run(ledger(book, store), "b", checkpoint=first)
    assert book.took() == ["note a?"]


def test_two_calls_do_what_one_does(book, store):
    """First restore, then bring the message and the answer: nothing is computed in between."""
    run(ledger(book, store), "a?", run_id="r")
    book.took()
    made = ledger(book, store)
    restored = run(made, checkpoint="latest", run_id="r")
    assert book.took() == []
    second = run(made, "b", checkpoint=restored, responses=answers(restored, "!"))
    assert (second.outputs, book.took()) == (["1: A?!", "2: B"], ["note b"])


def test_a_session_supplies_run_and_checkpoint(book, store):
    """A chat of three messages, one of them answered through the session."""
    session = ledger(book, store).session("chat")
    first = asyncio.run(session.run("a"))
    second = asyncio.run(session.run("b?"))
    third = asyncio.run(session.run(responses=answers(second, "!")))
    later = asyncio.run(ledger(book, store).session("chat").resume("latest", "c"))
    assert [first.outputs, third.outputs, later.outputs] == [["1: A"], ["2: B?!"], ["3: C"]]


def test_without_a_store_the_checkpoint_object_goes_on(book):
    """Also twice, each independently, in other objects of the workflow."""
    first = run(ledger(book), "a?")
    for answer in ("one", "two"):
        assert (
            run(ledger(book), checkpoint=first.checkpoint, responses=answers(first, answer)).output == f"1: A?{answer}"
        )
    assert book.took() == ["note a?"]


def test_a_runner_captures_and_restores_a_waiting_function(book):
    """The object taken from one runner is put into another, which goes on with the answer."""

    async def scenario():
        runner = Runner(ledger(book))
        first = await runner.run("a?")
        taken = await runner.capture_checkpoint_object()
        other = Runner(ledger(book))
        await other.restore_from_checkpoint_object(taken)
        return await other.run(responses=answers(first, "!"))

    assert asyncio.run(scenario()).output == "1: A?!"
    assert book.took() == ["note a?"]


def test_a_runner_captures_nothing_of_a_function_that_runs(book):
    """Quiescent only by default: a step that runs is work in flight; asked for, it is captured with what is done."""

    async def scenario():
        gate = book.gates["b"] = Gate()
        note = book.step()

        @workflow(name="two")
        async def two(text: str) -> str:
            return await note("a") + await note("b")

        runner = Runner(two)
        call = asyncio.create_task(runner.run("x"))
        await gate.entered.wait()
        with pytest.raises(WorkflowCheckpointException):
            await runner.capture_checkpoint_object()
        taken = await runner.capture_checkpoint_object(in_flight=True)
        gate.opened.set()
        await call
        return await two.run(checkpoint=taken)

    assert asyncio.run(scenario()).output == "AB"
    assert book.took() == ["note a", "note b", "note b"]


class Gate:
    """Where a step waits until it is let on."""

    def __init__(self):
        self.entered = asyncio.Event()
        self.opened = asyncio.Event()

    async def wait(self):
        self.entered.set()
        await self.opened.wait()


def test_a_stream_answers_in_the_turn_that_asks(book, store):
    """The answer comes while another branch works; it is part of the turn, and events come as they happen."""

    async def scenario():
        gate = book.gates["slow"] = Gate()
        note = book.step()

        @workflow(name="flow", checkpoint_storage=store, types=[str])
        async def below(text: str, ctx: FunctionalContext) -> str:
            return await ctx.request_info(text, response_type=str)

        @workflow(name="above", checkpoint_storage=store, calls=[below])
        async def above(text: str, ctx: FunctionalContext) -> str:
            return " ".join(await ctx.gather(ctx.call(below, text), note("slow")))

        stream = above.run("Pay?", run_id="r", stream=True)
        async for event in stream:
            if isinstance(event, RequestOpened):
                await stream.answer({event.request_id: "yes"})
                gate.opened.set()
        return await stream.result()

    result = asyncio.run(scenario())
    assert (result.output, result.turn, result.status) == ("yes SLOW", 1, Status.IDLE)


def test_the_events_of_a_stream_tell_what_happens(book, store):
    """Progress, failed attempts, questions, outputs and statuses, in order; a replay tells no progress again."""

    def flow():
        failures = iter([OSError("once")])

        @step(retry=Retry(attempts=2, delay=0.0))
        async def risky() -> str:
            for failure in failures:
                raise failure
            return "done"

        @workflow(name="flow", checkpoint_storage=store, types=[str])
        async def flow(text: str, ctx: FunctionalContext) -> str:
            ctx.emit("begins")
            found = await risky()
            ctx.emit("asks")
            found += await ctx.request_info(text, response_type=str)
            ctx.emit("ends")
            return found

        return flow

    async def told(*arguments, **options):
        return [event async for event in flow().run(*arguments, stream=True, **options)]

    kinds = (TurnStarted, Emitted, AttemptFailed, RequestOpened, OutputYielded, StatusChanged)
    first = [event for event in asyncio.run(told("?", run_id="r")) if isinstance(event, kinds)]
    assert [type(event).__name__ for event in first if not isinstance(event, StatusChanged)] == [
        "TurnStarted",
        "Emitted",
        "AttemptFailed",
        "Emitted",
        "RequestOpened",
    ]
    (attempt,) = [event for event in first if isinstance(event, AttemptFailed)]
    assert (attempt.step, attempt.attempt, attempt.failure.text, attempt.live) == ("risky", 1, "once", True)
    (asked,) = [event for event in first if isinstance(event, RequestOpened)]
    second = asyncio.run(told(responses={asked.request_id: "!"}))
    assert [event.data for event in second if isinstance(event, Emitted | OutputYielded)] == ["ends", "done!"]


def test_run_arguments_and_resources_reach_function_steps_and_called_workflows(book, store):
    """On the first call and on the one that answers; a resource that was not brought is an error at its line."""

    def flow():
        @workflow(name="below", types=[str])
        async def below(text: str, ctx: FunctionalContext) -> str:
            answer = await ctx.request_info(text, response_type=str)
            return f"{answer} {ctx.run_args} {ctx.resources['tool']}"

        @workflow(name="above", calls=[below], checkpoint_storage=store)
        async def above(text: str, ctx: FunctionalContext) -> str:
            return f"{ctx.run_args} {await ctx.call(below, text)}"

        return above

    first = run(flow(), "?", run_id="r", run_args={"user": 1}, resources={"tool": "hammer"})
    error = failed(flow(), responses=answers(first, "yes"))
    assert isinstance(error.__cause__, MissingResourceError)
    second = run(flow(), checkpoint="latest", run_id="r", resources={"tool": "saw"})
    assert second.output == "{'user': 1} yes {'user': 1} saw"


def test_a_declared_resource_that_is_missing_is_an_error_before_the_claim(book, store):
    """Nothing has run, and the stored run is where it was."""
    made = ledger(book, store, resources={"tool": str})
    with pytest.raises(MissingResourceError):
        run(made, "a", run_id="r")
    first = run(made, "a?", run_id="r", resources={"tool": "hammer"})
    book.took()
    with pytest.raises(MissingResourceError):
        run(made, responses=answers(first, "!"))
    assert run(made, responses=answers(first, "!"), resources={"tool": "saw"}).output == "1: A?!"
    assert book.took() == []


def test_a_message_of_another_type_is_refused(book, store):
    """Before anything is saved."""
    with pytest.raises(MessageTypeError):
        run(ledger(book, store), 5, run_id="r")
    assert asyncio.run(store.head("r")) is None


# what is open and what is unfinished -----------------------------------------------------------------------------


def test_a_new_message_keeps_an_open_question_and_says_so(book, store, caplog):
    """One event and one logged warning name it, and the pass that waits goes on with its answer later."""
    first = run(ledger(book, store), "a?", run_id="r")
    with caplog.at_level(logging.WARNING):
        second = run(ledger(book, store), "b", checkpoint="latest", run_id="r")
    (kept,) = [event for event in second.events if isinstance(event, RequestsKept)]
    assert kept.request_ids == (first.pending_requests[0].request_id,)
    (record,) = caplog.records
    assert kept.request_ids[0] in record.getMessage()
    assert (second.outputs, second.status) == (["1: B"], Status.IDLE_WITH_PENDING_REQUESTS)
    third = run(ledger(book, store), responses=answers(second, "!"))
    assert (third.output, book.took()) == ("1: A?!", ["note a?", "note b"])


def test_a_new_message_can_withdraw_an_open_question(book, store):
    """The pass ends with it, without output; a late answer is told so."""
    first = run(ledger(book, store), "a?", run_id="r")
    second = run(ledger(book, store), "b", checkpoint="latest", run_id="r", on_pending="cancel")
    assert any(isinstance(event, RequestsCancelled) for event in second.events)
    assert (second.outputs, second.status, second.pending_requests) == (["1: B"], Status.IDLE, ())
    with pytest.raises(RequestCancelledError):
        run(ledger(book, store), responses=answers(first, "!"))
    assert kinds_of(second) & {"pass", "call", "calls", "read"} == set()


def kinds_of(result):
    return {key[1] for key, _ in result.checkpoint.records.records()}


def test_a_new_message_can_be_refused_while_a_question_is_open(book, store):
    """Nothing has changed."""
    first = run(ledger(book, store), "a?", run_id="r")
    with pytest.raises(PendingRequestsError):
        run(ledger(book, store), "b", checkpoint="latest", run_id="r", on_pending="reject")
    assert asyncio.run(store.head("r")).header.checkpoint_id == first.checkpoint_id


def test_withdrawing_the_question_of_a_called_workflow_ends_its_caller(book, store):
    """Nothing can let the pass above go on any more, so it ends too, at every depth."""
    inner = ledger(book)

    def flow():
        @workflow(name="outer", calls=[inner], checkpoint_storage=store)
        async def outer(text: str, ctx: FunctionalContext) -> str:
            return await ctx.call(inner, text)

        return outer

    run(flow(), "a?", run_id="r")
    second = run(flow(), "b", checkpoint="latest", run_id="r", on_pending="cancel")
    assert (second.outputs, second.status) == (["1: B"], Status.IDLE)
    assert kinds_of(second) & {"pass", "call", "calls", "read"} == set()


def test_unfinished_work_is_finished_with_the_new_message_by_default(book, store):
    """A turn that failed goes on beside the new one: what had been done is not done again."""
    book.faults["note bad"] = OSError("no network")
    note = book.step()

    def flow():
        @workflow(name="flow", checkpoint_storage=store)
        async def flow(text: str) -> str:
            return await note("good") + await note(text)

        return flow

    failed(flow(), "bad", run_id="r")
    book.faults.clear()
    book.took()
    second = run(flow(), "new", checkpoint="latest", run_id="r")
    assert (second.outputs, book.took()) == (["GOODBAD", "GOODNEW"], ["note bad", "note good", "note new"])


def test_unfinished_work_can_be_discarded(book, store):
    """The failed pass and all that it remembers is dropped by name; a pass that waits stays."""
    first = run(ledger(book, store), "a?", run_id="r")
    book.faults["note bad"] = OSError("no network")
    failed(ledger(book, store), "bad", run_id="r", checkpoint=first)
    book.took()
    second = run(ledger(book, store), "b", checkpoint="latest", run_id="r", on_unfinished="discard")
    (dropped,) = [event for event in second.events if isinstance(event, WorkDiscarded)]
    assert any("ledger#2" in what for what in dropped.what)
    assert (second.outputs, book.took()) == (["1: B"], ["note b"])
    third = run(ledger(book, store), responses=answers(second, "!"))
    assert (third.outputs, book.took()) == (["1: A?!"], [])
    assert kinds_of(third) & {"pass", "call", "calls", "read"} == set()


def test_unfinished_work_can_be_a_reason_to_refuse(book, store):
    """With `reject` nothing changes, and a continuation still works."""
    book.faults["note bad"] = OSError("no network")
    error = failed(ledger(book, store), "bad", run_id="r")
    with pytest.raises(Exception, match="unfinished"):
        run(ledger(book, store), "b", checkpoint="latest", run_id="r", on_unfinished="reject")
    book.faults.clear()
    assert run(ledger(book, store), checkpoint=error.result).output == "1: BAD"


# storing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("durability", ["superstep", "turn", "off"])
def test_weaker_durability_is_asked_for_by_name(book, store, durability):
    """With fewer saves the run and its result are the same; a pause is saved unless saving is off."""
    first = run(ledger(book, store), "a?", run_id="r", durability=durability)
    assert [request.data for request in first.pending_requests] == ["a?"]
    second = run(ledger(book, store), checkpoint=first, responses=answers(first, "!"), durability=durability)
    assert (second.output, book.took()) == ("1: A?!", ["note a?"])


def test_history_inspection_and_differences_know_passes(book, store):
    """What waits is read without the workflow; two checkpoints tell what has changed between them."""
    first = run(ledger(book, store), "a?", run_id="r")
    shown = asyncio.run(store.inspect(first.checkpoint_id))
    (request,) = shown.requests
    assert (shown.header.status, request.request_id) == (
        Status.IDLE_WITH_PENDING_REQUESTS,
        first.pending_requests[0].request_id,
    )
    second = run(ledger(book, store), responses=answers(first, "!"))
    assert asyncio.run(store.inspect(second.checkpoint_id)).requests == ()
    headers = asyncio.run(store.history("r"))
    assert headers[0].checkpoint_id == second.checkpoint_id
    assert len({header.checkpoint_id for header in headers}) == len(headers)


def test_state_can_be_edited_while_a_pass_waits(book, store):
    """The waiting pass reads what it has read before; the next one reads the edit."""
    first = run(ledger(book, store), "a?", run_id="r")
    asyncio.run(ledger(book, store).edit(first, {"count": 10}, reason="a test"))
    second = run(ledger(book, store), "b", checkpoint="latest", run_id="r", responses=answers(first, "!"))
    assert second.outputs[0] == "1: A?!"
    assert second.outputs[1] in {"11: B", "2: B"}


def test_a_function_as_a_node_has_the_same_surface(book, store):
    """In a graph its question surfaces with its path, and the answer goes back to it."""

    def graph():
        node = WorkflowExecutor(ledger(book), id="ledger")
        return WorkflowBuilder("graph", node, checkpoint_storage=store).build()

    first = run(graph(), "a?", run_id="r")
    assert [(request.path, request.data) for request in first.pending_requests] == [("ledger#1", "a?")]
    second = run(graph(), "b", checkpoint=first, responses=answers(first, "!"))
    assert (sorted(second.outputs), book.took()) == (["1: A?!", "1: B"], ["note a?", "note b"])
