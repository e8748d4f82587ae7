"""A new message for functions that wait or are unfinished: what becomes of these, by the policies of the call."""

import asyncio
import logging

import pytest

from rehydrate import FunctionalContext, InMemoryCheckpointStorage, RunFailedError, Status, workflow
from rehydrate.errors import PendingRequestsError, RequestCancelledError, UnfinishedWorkError
from rehydrate.model.events import RequestsCancelled, RequestsKept, WorkDiscarded
from rehydrate.testing import run_virtually
from tests.functional.book import answers, failed, kinds_of, ledger, run


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
    with pytest.raises(UnfinishedWorkError):
        run(ledger(book, store), "b", checkpoint="latest", run_id="r", on_unfinished="reject")
    book.faults.clear()
    assert run(ledger(book, store), checkpoint=error.result).output == "1: BAD"


def test_a_timer_that_is_over_does_not_keep_a_pass_that_is_discarded(book):
    """It slept and asked, went on and failed: discarded, its step does not run again, and nothing is due."""

    @workflow(name="flow", checkpoint_storage=InMemoryCheckpointStorage())
    async def flow(text: str, ctx: FunctionalContext) -> str:
        if text == "a":
            await ctx.gather(ctx.request_info("?", response_type=str), ctx.sleep(60))
        return await book.step()(text)

    async def calls() -> None:
        first = await flow.run("a", run_id="r")
        assert first.next_due is not None
        later: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(100, later.set_result, None)
        await later
        book.faults["note a"] = OSError("no network")
        with pytest.raises(RunFailedError) as failed:
            await flow.run(responses=answers(first, "!"))
        assert failed.value.result.next_due is None
        book.faults.clear()
        book.took()
        second = await flow.run("b", checkpoint="latest", run_id="r", on_unfinished="discard")
        (dropped,) = [event for event in second.events if isinstance(event, WorkDiscarded)]
        assert dropped.what == ("flow#2", "pass 1")
        assert (second.outputs, book.took()) == (["B"], ["note b"])

    run_virtually(calls())
