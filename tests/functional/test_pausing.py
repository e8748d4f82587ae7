"""A question pauses the run from outside of the function, whatever that has put around it."""

import asyncio
import contextlib

import pytest

from rehydrate import FunctionalContext, Status, append, step, workflow
from rehydrate.errors import EffectError
from rehydrate.model.events import Emitted
from tests.functional.book import answers, failed, run, turns


def asking(book, store, body):
    """Make a workflow that takes a text and whose body is given the context, the message and a step."""
    note = book.step()

    @workflow(name="asking", checkpoint_storage=store, types=[bool, str, int])
    async def asking(text: str, ctx: FunctionalContext) -> str:
        return await body(ctx, text, note)

    return asking


async def in_exception(ctx, text, note):
    try:
        answer = await ctx.request_info(text, response_type=str)
    except Exception:
        return "swallowed"
    return answer


async def in_base_exception(ctx, text, note):
    try:
        answer = await ctx.request_info(text, response_type=str)
    except BaseException:
        return "swallowed"
    return answer


async def in_bare_loop(ctx, text, note):
    for _ in range(3):
        with contextlib.suppress(BaseException):
            return await ctx.request_info(text, response_type=str)
    return "swallowed"


async def in_asyncio_gather(ctx, text, note):
    found = await asyncio.gather(ctx.request_info(text, response_type=str), return_exceptions=True)
    return str(found[0])


async def in_ctx_gather(ctx, text, note):
    (found,) = await ctx.gather(ctx.request_info(text, response_type=str))
    return found


async def in_task_group(ctx, text, note):
    async with asyncio.TaskGroup() as group:
        task = group.create_task(in_exception(ctx, text, note))
    return task.result()


async def in_timeout(ctx, text, note):
    try:
        async with asyncio.timeout(60):
            return await ctx.request_info(text, response_type=str)
    except TimeoutError:
        return "swallowed"


async def in_wait_for(ctx, text, note):
    try:
        return await asyncio.wait_for(ctx.request_info(text, response_type=str), 60)
    except TimeoutError:
        return "swallowed"


async def in_shield(ctx, text, note):
    return await asyncio.shield(ctx.request_info(text, response_type=str))


async def in_finally(ctx, text, note):
    try:
        return await ctx.request_info(text, response_type=str)
    finally:
        await turns()


async def in_finally_with_a_step(ctx, text, note):
    answer = ""
    try:
        answer = await ctx.request_info(text, response_type=str)
    finally:
        answer += await note(" cleaned")
    return answer


async def in_finally_that_returns(ctx, text, note):
    answer = "swallowed"
    try:
        answer = await ctx.request_info(text, response_type=str)
    finally:
        return answer  # noqa: B012  (that is what is tried)


WAYS = {
    "except Exception": (in_exception, "yes"),
    "except BaseException": (in_base_exception, "yes"),
    "suppress in a loop": (in_bare_loop, "yes"),
    "asyncio.gather": (in_asyncio_gather, "yes"),
    "ctx.gather": (in_ctx_gather, "yes"),
    "TaskGroup": (in_task_group, "yes"),
    "asyncio.timeout": (in_timeout, "yes"),
    "asyncio.wait_for": (in_wait_for, "yes"),
    "asyncio.shield": (in_shield, "yes"),
    "finally": (in_finally, "yes"),
    "finally with a step": (in_finally_with_a_step, "yes CLEANED"),
    "finally that returns": (in_finally_that_returns, "yes"),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_question_pauses_whatever_stands_around_it(book, store, way):
    """Case 35: nothing of the function's own keeps the question from being asked, or sees that it waits."""
    body, told = WAYS[way]
    first = run(asking(book, store, body), "Pay?", run_id="r")
    assert (first.status, [request.data for request in first.pending_requests]) == (
        Status.IDLE_WITH_PENDING_REQUESTS,
        ["Pay?"],
    )
    assert book.took() == []
    second = run(asking(book, store, body), checkpoint="latest", run_id="r", responses=answers(first, "yes"))
    assert (second.status, second.output) == (Status.IDLE, told)


def test_steps_that_run_beside_a_question_are_finished_and_recorded_first(book, store):
    """The pause comes when no step runs any more; what they gave is not made again."""

    async def body(ctx, text, note):
        async with asyncio.TaskGroup() as group:
            asked = group.create_task(ctx.request_info(text, response_type=str))
            slow = group.create_task(note("slow"))
            fast = group.create_task(note("fast"))
        return f"{asked.result()} {slow.result()} {fast.result()}"

    class Slow:
        async def wait(self):
            await turns(100)
            book("slow is done")

    book.gates["slow"] = Slow()
    first = run(asking(book, store, body), "Pay?", run_id="r")
    assert (book.took(), len(first.pending_requests)) == (["note slow", "note fast", "slow is done"], 1)
    second = run(asking(book, store, body), responses=answers(first, "yes"))
    assert (book.took(), second.output) == ([], "yes SLOW FAST")


def test_a_branch_that_works_outside_of_steps_before_its_next_step_is_waited_for(book, store):
    """Code of a `ctx.gather` branch that awaits something of its own has not paused; its step still runs."""

    async def body(ctx, text, note):
        async def reads():
            reading = asyncio.get_running_loop().create_future()
            asyncio.get_running_loop().call_later(0.05, reading.set_result, "read")
            return await note(await reading)

        found = await ctx.gather(ctx.request_info(text, response_type=str), reads())
        return " ".join(found)

    first = run(asking(book, store, body), "Pay?", run_id="r")
    assert (book.took(), len(first.pending_requests)) == (["note read"], 1)
    second = run(asking(book, store, body), responses=answers(first, "yes"))
    assert (book.took(), second.output) == ([], "yes READ")


def test_a_function_that_goes_on_after_it_was_left_reaches_nothing(book, store):
    """One that swallows its cancellation and calls on neither spins nor leaves a trace, and its tasks are gone."""

    async def body(ctx, text, note):
        try:
            return await ctx.request_info(text, response_type=str)
        except BaseException:
            book("left")
        ctx.state.set("late", 1)
        return await note("late")

    async def scenario():
        made = asking(book, store, body)
        before = asyncio.all_tasks()
        result = await made.run("Pay?", run_id="r")
        await turns(50)
        return result, asyncio.all_tasks() - before

    first, tasks = asyncio.run(scenario())
    assert (book.took(), len(first.pending_requests), tasks) == (["left"], 1, set())
    second = run(asking(book, store, body), responses=answers(first, "yes"))
    assert (second.status, second.output) == (Status.IDLE, "yes")


def test_a_function_that_swallows_every_cancellation_does_not_hold_its_run_up(book, store):
    """Also one that asks again and again, however often it is cancelled, ends with its call."""

    async def body(ctx, text, note):
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                return await ctx.request_info(text, response_type=str)
            book("again")

    async def scenario():
        made = asking(book, store, body)
        before = asyncio.all_tasks()
        result = await made.run("Pay?", run_id="r")
        await turns(100)
        return result, asyncio.all_tasks() - before

    first, tasks = asyncio.run(scenario())
    assert (len(first.pending_requests), tasks) == (1, set())
    assert len(book.took()) < 20
    second = run(asking(book, store, body), responses=answers(first, "yes"))
    assert second.output == "yes"


def test_a_question_whose_wait_the_function_gives_up_is_not_asked(book, store):
    """A branch that fails beside a question ends the wait for it before anything was asked."""

    async def body(ctx, text, note):
        async def fails():
            await note("before")
            raise LookupError("no")

        try:
            await ctx.gather(ctx.request_info(text, response_type=str), fails())
        except LookupError:
            return await note("gave up")

    result = run(asking(book, store, body), "Pay?", run_id="r")
    assert (result.status, result.output, result.pending_requests) == (Status.IDLE, "GAVE UP", ())


def test_two_questions_in_branches_are_asked_together_and_answered_one_by_one(book, store):
    """Each branch goes on with its own answer; the other one's question stays the same."""

    async def body(ctx, text, note):
        async def ask(what):
            answer = await ctx.request_info(what, response_type=str)
            return await note(f"{what}={answer}")

        return " ".join(await ctx.gather(ask("a"), ask("b")))

    first = run(asking(book, store, body), "Pay?", run_id="r")
    one, two = first.pending_requests
    assert (one.data, two.data) == ("a", "b")
    second = run(asking(book, store, body), responses=[two.answer("no")])
    assert [request.request_id for request in second.pending_requests] == [one.request_id]
    third = run(asking(book, store, body), responses=[one.answer("yes")])
    assert (third.output, book.took()) == ("A=YES B=NO", ["note b=no", "note a=yes"])


@pytest.mark.parametrize("answer", [None, False, 0, ""])
def test_an_empty_answer_is_an_answer(store, answer):
    """`None`, `False`, `0` and the empty text come back as they were given, and the function runs on once."""

    def made():
        @workflow(name="empty", checkpoint_storage=store, types=[bool | int | str | None])
        async def empty(text: str, ctx: FunctionalContext) -> str:
            return repr(await ctx.request_info(text, response_type=bool | int | str | None))

        return empty

    first = run(made(), "?", run_id="r")
    second = run(made(), responses=answers(first, answer))
    assert (second.status, second.output) == (Status.IDLE, repr(answer))


def test_a_step_cannot_ask(book, store):
    """The context is the function's; a step that was given it is told so, and nothing is asked."""

    def made():
        @workflow(name="through", checkpoint_storage=store, types=[str])
        async def through(text: str, ctx: FunctionalContext) -> str:
            @step
            async def asks(text: str) -> str:
                return await ctx.request_info(text, response_type=str)

            return await asks(text)

        return through

    error = failed(made(), "?", run_id="r")
    assert "step 'asks'" in str(error)
    assert error.result.pending_requests == ()


@pytest.mark.parametrize("what", ["sleep", "now", "uuid", "random", "gather", "get", "set", "update", "delete", "call"])
def test_a_step_cannot_use_what_belongs_to_the_order_of_its_function(store, what):
    """What a step would do through the context is not there where the step is only remembered, so it is refused."""

    @workflow
    async def other(text: str) -> str:
        return text

    @workflow(name="through", checkpoint_storage=store, reducers={"list": append}, calls=[other])
    async def through(text: str, ctx: FunctionalContext) -> str:
        uses = {
            "sleep": lambda: ctx.sleep(1),
            "now": ctx.now,
            "uuid": ctx.uuid,
            "random": ctx.random,
            "gather": ctx.gather,
            "get": lambda: ctx.state.get("key"),
            "set": lambda: ctx.state.set("key", 1),
            "update": lambda: ctx.state.update("list", 1),
            "delete": lambda: ctx.state.delete("key"),
            "call": lambda: ctx.call(other, "?"),
        }

        @step
        async def inside(text: str) -> str:
            uses[what]()
            return text

        return await inside(text)

    error = failed(through, "?", run_id="r")
    assert "step 'inside'" in str(error)
    assert isinstance(error.__cause__.__cause__, EffectError)


def test_a_step_may_read_and_tell_what_it_does(store):
    """Run arguments, resources and progress change nothing that is remembered."""
    told = []

    @workflow(name="reading", checkpoint_storage=store)
    async def reading(text: str, ctx: FunctionalContext) -> str:
        @step
        async def reads() -> str:
            ctx.emit("half")
            return f"{ctx.run_args} {ctx.resources['tool']} {ctx.run_id} {ctx.version}"

        return await reads()

    async def scenario():
        stream = reading.run("?", run_id="r", run_args="args", resources={"tool": "hammer"}, stream=True)
        told.extend([event.data async for event in stream if isinstance(event, Emitted)])
        return await stream.result()

    assert asyncio.run(scenario()).output == "args hammer r 1"
    assert told == ["half"]
