"""The numbered situations, written as functions: conversations, double clicks, failures after an answer, joins."""

import asyncio

import pytest

from rehydrate import FunctionalContext, Status, append, step, workflow
from rehydrate.errors import AlreadyAnsweredError, CheckpointNotFoundError, RunExistsError
from tests.functional.book import answers, failed, run


def chat(book, store):
    """Make a conversation: each message is worked on by a step, and what was said is in state."""
    note = book.step()

    @workflow(name="chat", checkpoint_storage=store, reducers={"said": append}, types=[str])
    async def chat(text: str, ctx: FunctionalContext) -> str:
        reply = await note("reply")
        said = [*ctx.state.get("said", []), text]
        ctx.state.update("said", text)
        if text.endswith("?"):
            reply += await ctx.request_info(text, response_type=str)
        return f"{reply} to {' '.join(said)}"

    return chat


def test_each_turn_of_a_chain_computes_anew(book, store):
    """Case 14: three turns with the same call inside; nothing remembered of an earlier turn is given back."""
    outputs = []
    checkpoint = None
    for text in ("a", "b", "c"):
        result = run(chat(book, store), text, **({"run_id": "r"} if checkpoint is None else {"checkpoint": checkpoint}))
        outputs.append(result.output)
        assert book.took() == ["note reply"]
        checkpoint = result.checkpoint_id
    assert outputs == ["REPLY to a", "REPLY to a b", "REPLY to a b c"]


def test_a_continuation_keeps_what_its_turn_remembers(book, store):
    """Case 14: the answer goes on in the turn that asked, and its step is not made again."""
    first = run(chat(book, store), "a?", run_id="r")
    assert book.took() == ["note reply"]
    second = run(chat(book, store), responses=answers(first, " yes"))
    assert (second.output, book.took()) == ("REPLY yes to a?", [])
    third = run(chat(book, store), "b", checkpoint=second)
    assert (third.output, book.took()) == ("REPLY to a? b", ["note reply"])


def two_questions(book, store):
    note = book.step()

    @workflow(name="two", checkpoint_storage=store, types=[str])
    async def two(text: str, ctx: FunctionalContext) -> str:
        one = await ctx.request_info("one", response_type=str)
        await note(one)
        other = await ctx.request_info("two", response_type=str)
        return await note(f"{one} {other}")

    return two


def test_an_answer_sent_twice_is_told_so_and_leaves_the_other_question(book, store):
    """Case 18: a double click on the first question, while the second one is open."""
    first = run(two_questions(book, store), "x", run_id="r")
    click = answers(first, "yes")
    second = run(two_questions(book, store), responses=click)
    assert [request.data for request in second.pending_requests] == ["two"]
    with pytest.raises(AlreadyAnsweredError):
        run(two_questions(book, store), responses=click)
    with pytest.raises(AlreadyAnsweredError):
        run(two_questions(book, store), responses=[first.pending_requests[0].answer("no")], checkpoint=second)
    found = run(two_questions(book, store), checkpoint="latest", run_id="r")
    assert [request.request_id for request in found.pending_requests] == [second.pending_requests[0].request_id]
    third = run(two_questions(book, store), responses=answers(found, "no"))
    assert (third.output, book.took()) == ("YES NO", ["note yes", "note yes no"])


def test_an_answer_outlives_the_failure_of_its_turn(book, store):
    """Case 20: the turn fails after it took the answer; the same call again goes on with it, and repeats nothing."""

    def flow():
        note = book.step()

        @workflow(name="flow", checkpoint_storage=store, types=[str])
        async def flow(text: str, ctx: FunctionalContext) -> str:
            await note("before")
            answer = await ctx.request_info(text, response_type=str)
            return await note("pay") + await note(answer)

        return flow

    first = run(flow(), "x", run_id="r")
    call = {"responses": answers(first, "yes")}
    book.faults["note yes"] = OSError("no network")
    error = failed(flow(), **call)
    assert (error.where, error.result.pending_requests) == ("flow", ())
    assert book.took() == ["note before", "note pay", "note yes"]
    book.faults.clear()
    second = run(flow(), **call)
    assert (second.status, second.output, book.took()) == (Status.IDLE, "PAYYES", ["note yes"])


@pytest.mark.parametrize("catch", [Exception, BaseException])
def test_a_wrapper_that_catches_everything_does_not_swallow_the_pause(book, store, catch):
    """Case 35: a tool wrapper around a question, two levels of calls down, that turns exceptions into texts."""

    async def tool(ctx, text):
        try:
            return await ctx.request_info(text, response_type=str)
        except catch as error:
            return f"the tool failed: {error}"

    async def wrapper(call):
        try:
            return await call
        except catch as error:
            return f"failed: {error}"

    def agent():
        @workflow(name="agent", checkpoint_storage=store, types=[str])
        async def agent(text: str, ctx: FunctionalContext) -> str:
            return await wrapper(wrapper(tool(ctx, text)))

        return agent

    first = run(agent(), "Pay?", run_id="r")
    assert (first.status, len(first.pending_requests)) == (Status.IDLE_WITH_PENDING_REQUESTS, 1)
    assert run(agent(), responses=answers(first, "yes")).output == "yes"


def joined(book, store):
    """Make two branches, of one and of two steps, that come together; the second asks in the middle."""
    note = book.step()

    @workflow(name="joined", checkpoint_storage=store, types=[str])
    async def joined(text: str, ctx: FunctionalContext) -> str:
        async def b():
            first = await note("b1")
            answer = await ctx.request_info(text, response_type=str)
            return first + await note(f"b2 {answer}")

        parts = await ctx.gather(note("a"), b())
        return await note("+".join(parts))

    return joined


def test_a_gather_comes_together_once_after_a_restore(book, store):
    """Cases 21 and 22: one branch was done before the wait; it joins once, also when resumed again in a fork."""
    first = run(joined(book, store), "x", run_id="r")
    assert book.took() == ["note a", "note b1"]
    for answer, options in (("one", {"fork": True}), ("two", {"fork": True}), ("last", {})):
        result = run(joined(book, store), checkpoint=first.checkpoint_id, responses=answers(first, answer), **options)
        assert result.output == f"A+B1B2 {answer.upper()}"
        assert book.took() == [f"note b2 {answer}", f"note A+B1B2 {answer.upper()}"]


def test_a_gather_in_a_loop_comes_together_each_time(book, store):
    """Cases 23 and 25: twice round, with a question in each round; the branches of the rounds are told apart."""

    def looping():
        note = book.step()

        @workflow(name="looping", checkpoint_storage=store, types=[str])
        async def looping(text: str, ctx: FunctionalContext) -> list[str]:
            found = []
            for _ in range(2):
                parts = await ctx.gather(note("x"), note("y"), ctx.request_info("go on?", response_type=str))
                found.append("".join(parts))
            return found

        return looping

    first = run(looping(), "start", run_id="r")
    assert sorted(book.took()) == ["note x", "note y"]
    second = run(looping(), responses=answers(first, "1"))
    assert sorted(book.took()) == ["note x", "note y"]
    third = run(looping(), responses=answers(second, "2"))
    assert (third.output, book.took()) == (["XY1", "XY2"], [])


def test_a_branch_that_is_not_taken_is_not_waited_for(book, store):
    """Case 24: what a condition leaves out holds nothing up after the answer."""

    def flow():
        note = book.step()

        @workflow(name="flow", checkpoint_storage=store, types=[str])
        async def flow(text: str, ctx: FunctionalContext) -> str:
            async def b():
                return await note("b") if text == "never" else ""

            parts = await ctx.gather(b(), ctx.request_info("c?", response_type=str))
            return await note("d" + "".join(parts))

        return flow

    first = run(flow(), "x", run_id="r")
    second = run(flow(), responses=answers(first, "c"))
    assert (second.output, book.took()) == ("DC", ["note dc"])


@pytest.mark.parametrize("count", [0, 1, 5, pytest.param(1000, marks=pytest.mark.proof)])
def test_a_planner_has_each_item_worked_on_once(book, store, count):
    """Case 26: a gather over what a step planned; half of the items ask, and the answers come in the other order."""

    def planned():
        @step
        async def plan(count: int) -> list[int]:
            return list(range(count))

        @step
        async def work(item: int) -> int:
            book(item)
            return item * 10

        @workflow(name="planned", checkpoint_storage=store, types=[int])
        async def planned(count: int, ctx: FunctionalContext) -> list[int]:
            async def each(item):
                if item % 2:
                    item = await ctx.request_info(item, response_type=int)
                return await work(item)

            return list(await ctx.gather(*map(each, await plan(count))))

        return planned

    result = run(planned(), count, run_id="r")
    assert [request.data for request in result.pending_requests] == list(range(1, count, 2))
    assert book.took() == list(range(0, count, 2))
    if result.pending_requests:
        given = [request.answer(request.data) for request in reversed(result.pending_requests)]
        result = run(planned(), responses=given)
    assert (result.status, result.output) == (Status.IDLE, [item * 10 for item in range(count)])
    assert sorted(book.took()) == list(range(1, count, 2))


def test_only_the_step_that_failed_runs_again(book, store):
    """Cases 30 and 32: four side by side, one fails; a resume makes that one alone."""

    def four():
        note = book.step()

        @workflow(name="four", checkpoint_storage=store)
        async def four(text: str, ctx: FunctionalContext) -> str:
            first = await note("first")
            parts = await asyncio.gather(*(note(name) for name in "abcd"), return_exceptions=True)
            for part in parts:
                if isinstance(part, Exception):
                    raise part
            return first + "".join(parts)

        return four

    book.faults["note c"] = OSError("no network")
    failed(four(), "x", run_id="r")
    assert book.took() == ["note first", "note a", "note b", "note c", "note d"]
    book.faults.clear()
    second = run(four(), checkpoint="latest", run_id="r")
    assert (second.output, book.took()) == ("FIRSTABCD", ["note c"])


def test_a_finished_run_runs_nothing(book, store):
    """Cases 17 and 31: its outputs are there; another checkpoint, or the same run id, is an error."""
    first = run(chat(book, store), "a", run_id="r")
    book.took()
    again = run(chat(book, store), checkpoint="latest", run_id="r")
    assert (again.outputs, again.checkpoint_id, book.took()) == (["REPLY to a"], first.checkpoint_id, [])
    with pytest.raises(RunExistsError):
        run(chat(book, store), "b", run_id="r")
    with pytest.raises(CheckpointNotFoundError):
        run(chat(book, store), "b", checkpoint="nowhere")
    assert book.took() == []
