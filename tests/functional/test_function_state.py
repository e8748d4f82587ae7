"""State of a function: one picture for a whole pass, written when the function returns."""

import asyncio

import pytest

from rehydrate import FunctionalContext, Status, add, append, workflow
from rehydrate.errors import EffectError, NotStorableError
from tests.functional.book import answers, failed, run


def accounts(book, store, **options):
    """Make a workflow that reads, asks, reads again and writes; told by the words of its message."""
    note = book.step()

    @workflow(name="accounts", checkpoint_storage=store, types=[str], reducers={"log": append, "sum": add}, **options)
    async def accounts(text: str, ctx: FunctionalContext) -> str:
        state = ctx.state
        before = state.get("key", "none")
        if "set" in text:
            state.set("key", text)
        if "log" in text:
            state.update("log", text)
            state.update("sum", 1)
        if "fail" in text:
            await note("fail")
        answer = await ctx.request_info(text, response_type=str) if text.endswith("?") else ""
        return f"{before}>{state.get('key', 'none')} {state.get('log', [])} {state.get('sum', 0)}{answer}"

    return accounts


def test_writes_become_real_when_the_function_returns(book, store):
    """While it waits nobody sees them, but the pass itself does."""
    first = run(accounts(book, store), "set a?", run_id="r")
    second = run(accounts(book, store), "look", checkpoint=first)
    assert second.output == "none>none [] 0"
    third = run(accounts(book, store), responses=answers(first, "!"))
    assert third.output == "none>set a? [] 0!"
    assert run(accounts(book, store), "look", checkpoint=third).output == "set a?>set a? [] 0"


def test_a_waiting_pass_reads_what_it_has_read(book, store):
    """Another pass writes the key meanwhile, and an edit too: the one that waits reads as before."""
    first = run(accounts(book, store), "a?", run_id="r")
    second = run(accounts(book, store), "set b", checkpoint=first)
    edited = asyncio.run(accounts(book, store).edit(second, {"key": "edited"}, reason="a test"))
    third = run(accounts(book, store), checkpoint=edited, responses=answers(first, "!"))
    assert third.output == "none>none [] 0!"
    assert run(accounts(book, store), "look", checkpoint=third).output == "edited>edited [] 0"


def test_a_key_that_a_waiting_pass_had_not_read_is_read_as_it_is(book, store):
    """Only what it has read is kept for it."""

    def late():
        @workflow(name="late", checkpoint_storage=store, types=[str])
        async def late(text: str, ctx: FunctionalContext) -> str:
            if text == "writes":
                ctx.state.set("key", "new")
                return "written"
            await ctx.request_info(text, response_type=str)
            return ctx.state.get("key", "none")

        return late

    first = run(late(), "?", run_id="r")
    run(late(), "writes", checkpoint=first)
    assert run(late(), responses=answers(first, "go")).output == "new"


def test_a_pass_that_fails_writes_nothing(book, store):
    """Neither its values nor what it gave to reducers; repaired, it writes them once."""
    book.faults["note fail"] = OSError("no network")
    error = failed(accounts(book, store), "set log fail", run_id="r")
    assert dict(error.result.checkpoint.state) == {}
    book.faults.clear()
    second = run(accounts(book, store), checkpoint=error.result)
    assert second.output == "none>set log fail ['set log fail'] 1"
    assert dict(second.checkpoint.state) == {"key": "set log fail", "log": ["set log fail"], "sum": 1}


def test_reducers_add_what_each_pass_contributes_once(book, store):
    """Passes that overlap contribute to the same keys, in whatever order they end; nothing is lost or doubled."""
    first = run(accounts(book, store), "log a?", run_id="r")
    second = run(accounts(book, store), "log b?", checkpoint=first)
    third = run(accounts(book, store), "log c", checkpoint=second)
    assert third.output == "none>none ['log c'] 1"
    fourth = run(accounts(book, store), checkpoint=third, responses=[second.pending_requests[1].answer("!")])
    fifth = run(accounts(book, store), checkpoint=fourth, responses=[second.pending_requests[0].answer("!")])
    assert sorted(fifth.checkpoint.state["log"]) == ["log a?", "log b?", "log c"]
    assert fifth.checkpoint.state["sum"] == 3


def test_a_value_that_cannot_be_stored_is_refused_where_it_is_set(book, store):
    """Naming the key; the same for a contribution without a reducer."""

    @workflow(name="flow", checkpoint_storage=store)
    async def flow(text: str, ctx: FunctionalContext) -> str:
        with pytest.raises(NotStorableError, match="key"):
            ctx.state.set("key", object())
        with pytest.raises(EffectError, match="reducer"):
            ctx.state.update("key", 1)
        ctx.state.set("key", "fine")
        ctx.state.delete("key")
        ctx.state.delete("never there")
        return str(ctx.state.get("key"))

    result = run(flow, "x")
    assert (result.output, dict(result.checkpoint.state)) == ("None", {})


def test_a_function_begins_anew_with_its_state_and_nothing_remembered(book, store):
    """`ctx.continue_as_new`: the same turn, a fresh record, and its result is the last one's."""

    def loop():
        note = book.step()

        @workflow(name="loop", checkpoint_storage=store, types=[str])
        async def loop(number: int, ctx: FunctionalContext) -> str:
            total = ctx.state.get("total", 0) + number
            ctx.state.set("total", total)
            await note(f"round {number}")
            if number == 2:
                await ctx.request_info("go on?", response_type=str)
            if number < 4:
                await ctx.continue_as_new(number + 1)
            return f"total {total}"

        return loop

    first = run(loop(), 0, run_id="r")
    assert book.took() == ["note round 0", "note round 1", "note round 2"]
    assert dict(first.checkpoint.state) == {"total": 1}
    second = run(loop(), responses=answers(first, "yes"))
    assert (second.outputs, book.took()) == (["total 10"], ["note round 3", "note round 4"])
    assert {key[1] for key, _ in second.checkpoint.records.records()} & {"pass", "call", "calls", "read"} == set()


def test_a_loop_of_beginnings_stops_at_the_limit_and_goes_on(book, store):
    """`max_supersteps` holds for a function that begins anew for ever; a continuation has a new allowance."""

    def loop():
        @workflow(name="loop", checkpoint_storage=store, max_supersteps=3)
        async def loop(number: int, ctx: FunctionalContext) -> int:
            book(number)
            if number < 5:
                await ctx.continue_as_new(number + 1)
            return number

        return loop

    first = run(loop(), 0, run_id="r")
    assert (first.status, book.took()) == (Status.LIMIT_REACHED, [0, 1, 2])
    second = run(loop(), checkpoint="latest", run_id="r")
    assert (second.status, second.output, book.took()) == (Status.IDLE, 5, [3, 4, 5])


def test_state_of_a_called_workflow_is_its_own(book, store):
    """Each call begins with none, and what it writes is seen by no other."""

    @workflow
    async def inner(text: str, ctx: FunctionalContext) -> str:
        found = ctx.state.get("key", "none")
        ctx.state.set("key", text)
        return found

    @workflow(name="outer", calls=[inner], checkpoint_storage=store)
    async def outer(text: str, ctx: FunctionalContext) -> list[str]:
        ctx.state.set("key", "outer")
        return [await ctx.call(inner, "a"), await ctx.call(inner, "b"), ctx.state.get("key")]

    assert run(outer, "x").output == ["none", "none", "outer"]
