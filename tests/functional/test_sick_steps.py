"""Steps that end in odd ways, and what is left of a run of a function once it has ended."""

import asyncio
import gc
from dataclasses import dataclass

import pytest

from rehydrate import FunctionalContext, Retry, Status, step, workflow
from rehydrate.errors import InvocationTimeoutError, NotStorableError, StepFailedError
from rehydrate.runtime.step_run import in_time
from rehydrate.testing import run_virtually
from tests.functional.book import answers, failed, run


@pytest.mark.parametrize(("on", "times"), [(Exception, 1), (BaseException, 3)])
def test_a_step_that_is_cancelled_by_its_own_doing_has_failed(book, store, on, times):
    """It awaited something that was cancelled: tried again where its policy says so, remembered, and caught."""

    @step(retry=Retry(attempts=3, delay=0, on=(on,)))
    async def sick(text: str) -> str:
        book("sick")
        other: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        other.cancel()
        await other
        return text

    @workflow(name="flow", checkpoint_storage=store)
    async def flow(text: str, ctx: FunctionalContext) -> str:
        try:
            await sick(text)
        except StepFailedError as error:
            return f"{error.type} {await ctx.request_info('?', response_type=str)}"
        return "well"

    first = run(flow, "a", run_id="r")
    assert (first.status, book.took()) == (Status.IDLE_WITH_PENDING_REQUESTS, ["sick"] * times)
    assert run(flow, responses=answers(first, "!")).output == "CancelledError !"
    assert book.took() == []


def test_a_step_whose_result_cannot_be_stored_is_not_done_twice(book, store):
    """It has done what it does: caught, the failure is remembered as any other."""

    @step(retry=Retry(attempts=3, delay=0))
    async def odd(text: str) -> object:
        book("odd")
        return object()

    @workflow(name="flow", checkpoint_storage=store)
    async def flow(text: str, ctx: FunctionalContext) -> str:
        try:
            await odd(text)
        except StepFailedError as error:
            return f"{error.type} {await ctx.request_info('?', response_type=str)}"
        return "well"

    first = run(flow, "a", run_id="r")
    assert run(flow, responses=answers(first, "!")).output == "NotStorableError !"
    assert book.took() == ["odd"]


@dataclass(frozen=True)
class Draft:
    """A type that only a step names."""

    text: str


@step
async def write(text: str) -> Draft:
    return Draft(text)


@step
async def read(draft: Draft) -> str:
    return draft.text


def test_a_type_that_only_a_step_names_is_the_steps_alone(book, store):
    """It goes from step to step; asked or set it is refused, in the process that runs the step as in any other."""

    @workflow(name="flow", checkpoint_storage=store)
    async def flow(text: str, ctx: FunctionalContext) -> str:
        draft = await write(text)
        for use in (
            lambda: ctx.request_info(draft, response_type=str),
            lambda: ctx.state.set("draft", draft),
        ):
            try:
                use()
            except NotStorableError as error:
                book(error.type)
        return await read(draft)

    assert run(flow, "a").output == "a"
    assert book.took() == ["Draft", "Draft"]


async def waited(future: asyncio.Future[object]) -> object:
    return await future


def test_the_time_of_a_step_begins_with_it():
    """One that waits for a thread for longer than its time has that time still, and no more."""

    async def one(seconds: float) -> object:
        loop = asyncio.get_running_loop()
        begun: asyncio.Future[None] = loop.create_future()
        loop.call_later(10, begun.set_result, None)
        done: asyncio.Future[object] = loop.create_future()
        loop.call_later(10 + seconds, lambda: done.done() or done.set_result("done"))
        return await in_time(asyncio.ensure_future(waited(done)), begun, 0.5, "here", "work")

    assert run_virtually(one(0.4)) == "done"
    with pytest.raises(InvocationTimeoutError, match="step 'work' of here did not end"):
        run_virtually(one(0.6))


def test_nothing_of_an_ended_run_waits_for_the_collector(book, store):
    """No pass, crew or records of ten runs that returned, asked or failed are left, with the collector switched off."""

    @workflow(name="flow", checkpoint_storage=store)
    async def flow(text: str, ctx: FunctionalContext) -> str:
        if text == "fail":
            raise ValueError
        await book.step()(text)
        ctx.state.set("text", text)
        return await ctx.request_info("?", response_type=str) if text == "ask" else text

    def left() -> list[str]:
        names = {"Pass", "Crew", "Actor", "Surroundings"}
        return sorted(type(thing).__name__ for thing in gc.get_objects() if type(thing).__name__ in names)

    async def runs() -> list[str]:
        for text in ("a", "ask"):
            await flow.run(text)
        for _ in range(3):
            await asyncio.sleep(0)
        gc.collect()
        gc.disable()
        try:
            for text in ["a", "ask"] * 5:
                await flow.run(text)
            for _ in range(100):  # what a cancelled function still does
                await asyncio.sleep(0)
            return left()
        finally:
            gc.enable()

    assert asyncio.run(runs()) == []
    failed(flow, "fail")
