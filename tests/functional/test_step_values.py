"""What steps take and give: stored at their line or refused there, handed out as fresh copies."""

import asyncio
import enum
import threading
from dataclasses import dataclass, field

import pytest

from rehydrate import FunctionalContext, Status, step, workflow
from rehydrate.errors import AnswerTypeError, EffectError, NotStorableError, StepFailedError
from tests.functional.book import answers, failed, run


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Basket:
    items: list[str] = field(default_factory=list)
    colour: Colour = Colour.RED


class Unknown:
    """A class that nothing declares and nothing can store."""


def one_step(book, store, work, give, types=(str,)):
    """Make a workflow that gives something to a step, asks, and returns what the step gave as text."""

    @workflow(name="flow", checkpoint_storage=store, types=list(types))
    async def flow(text: str, ctx: FunctionalContext) -> str:
        try:
            found = await step(name="work")(work)(give)
        except (NotStorableError, StepFailedError) as error:
            book(f"refused: {error.type}")
            raise
        await ctx.request_info("?", response_type=str)
        return f"{type(found).__name__} {found!r}"

    return flow


@pytest.mark.parametrize("value", [None, False, 0, "", 0.0, [], {}, (), b""])
def test_an_empty_result_is_a_result(book, store, value):
    """It is remembered as what it is and of its type, and its step does not run again."""

    async def work(value: object) -> object:
        book("work")
        return value

    first = run(one_step(book, store, work, value), "x", run_id="r")
    second = run(one_step(book, store, work, value), responses=answers(first, "go"))
    assert (second.output, book.took()) == (f"{type(value).__name__} {value!r}", ["work"])


def test_a_result_that_cannot_be_stored_is_refused_at_its_step(book, store):
    """As a failure of the step, naming it and the type; nothing later has run, and the run can be repaired."""

    async def gives(value: str) -> object:
        book("work")
        return {"a": [Unknown()]}

    error = failed(one_step(book, store, gives, "x"), "x", run_id="r")
    assert isinstance(error.__cause__, StepFailedError)
    assert error.__cause__.type == "NotStorableError"
    assert book.took()[:1] == ["work"]
    for part in ("Unknown", "the result of step 'work'"):
        assert part in str(error)

    async def repaired(value: str) -> object:
        return "fine"

    assert run(one_step(book, store, repaired, "x"), checkpoint=error.result).pending_requests != ()


def test_an_argument_that_cannot_be_stored_is_refused_where_it_is_given(book, store):
    """The step does not run."""

    async def work(value: object) -> str:
        book("work")
        return "x"

    error = failed(one_step(book, store, work, [Unknown()]), "x", run_id="r")
    assert isinstance(error.__cause__, NotStorableError)
    assert "an argument of step 'work'" in str(error)
    assert "work" not in book.took()


def test_wrong_arguments_are_an_error_of_the_call(book, store):
    """As for the plain function: `TypeError`, at the line, and nothing is remembered of it."""

    async def work(value: str) -> str:
        return value

    called = step(work)

    @workflow(name="flow", checkpoint_storage=store)
    async def flow(text: str) -> str:
        with pytest.raises(TypeError):
            await called(other=1)
        with pytest.raises(TypeError):
            await called()
        with pytest.raises(TypeError):
            await called("a", "b")
        return await called(text)

    assert run(flow, "x").output == "x"


def test_what_a_step_does_to_its_argument_is_not_seen(book, store):
    """The function's own object stays what it was, in the live run as after a restore."""

    @step
    async def fills(basket: Basket) -> Basket:
        basket.items.append("apple")
        return basket

    def flow():
        @workflow(name="flow", checkpoint_storage=store, types=[str])
        async def flow(text: str, ctx: FunctionalContext) -> str:
            basket = Basket()
            filled = await fills(basket)
            live = f"{basket.items} {filled.items} {filled is basket}"
            await ctx.request_info(live, response_type=str)
            return live

        return flow

    first = run(flow(), "x", run_id="r")
    assert first.pending_requests[0].data == "[] ['apple'] False"
    assert run(flow(), responses=answers(first, "go")).output == "[] ['apple'] False"


def test_what_a_function_does_to_a_result_is_not_remembered(store):
    """Each run of the function gets a fresh copy of what the step gave."""

    @step
    async def gives() -> list[str]:
        return ["given"]

    def flow():
        @workflow(name="flow", checkpoint_storage=store, types=[str])
        async def flow(text: str, ctx: FunctionalContext) -> list[str]:
            found = await gives()
            found.append("added")
            await ctx.request_info("?", response_type=str)
            await ctx.request_info("??", response_type=str)
            return found

        return flow

    first = run(flow(), "x", run_id="r")
    second = run(flow(), responses=answers(first, "go"))
    assert run(flow(), responses=answers(second, "go")).output == ["given", "added"]


def test_types_that_only_a_step_names_are_known(book, store):
    """A dataclass in a result annotation, with an enum in it, comes back as what it was in a new object."""

    def flow():
        @step
        async def fills(name: str) -> Basket:
            book("fills")
            return Basket([name])

        @step
        async def counts(baskets: list[Basket]) -> int:
            return sum(len(basket.items) for basket in baskets)

        @workflow(name="flow", checkpoint_storage=store, types=[str])
        async def flow(text: str, ctx: FunctionalContext) -> str:
            basket = await fills(text)
            await ctx.request_info("?", response_type=str)
            return f"{basket} {await counts([basket, basket])}"

        return flow

    first = run(flow(), "apple", run_id="r")
    second = run(flow(), responses=answers(first, "go"))
    assert second.output == f"{Basket(['apple'])} 2"
    assert book.took() == ["fills"]


def test_an_answer_of_another_type_changes_nothing(store):
    """It is refused before the claim, beside a good one too."""

    def flow():
        @workflow(name="flow", checkpoint_storage=store, types=[int, Basket])
        async def flow(text: str, ctx: FunctionalContext) -> str:
            found = await ctx.gather(
                ctx.request_info("how many", response_type=int), ctx.request_info("which", response_type=Basket)
            )
            return f"{found[0]} {found[1].items}"

        return flow

    first = run(flow(), "x", run_id="r")
    number, basket = first.pending_requests
    for wrong in ("3", 3.0, True, None):
        with pytest.raises(AnswerTypeError):
            run(flow(), responses={number.request_id: wrong, basket.request_id: Basket()})
    second = run(flow(), responses={number.request_id: 3, basket.request_id: Basket(["apple"])})
    assert (second.status, second.output) == (Status.IDLE, "3 ['apple']")


def test_an_answer_type_that_is_not_declared_is_an_error_at_the_question(store):
    """The text says where it is declared."""

    @workflow(name="flow", checkpoint_storage=store)
    async def flow(text: str, ctx: FunctionalContext) -> str:
        return str(await ctx.request_info("?", response_type=Basket))

    error = failed(flow, "x", run_id="r")
    assert isinstance(error.__cause__, EffectError)
    assert "@workflow(types=[Basket])" in str(error.__cause__)


def test_a_failed_step_is_an_error_that_can_be_caught_the_same_way_each_time(book, store):
    """The function goes on without it, and after a restore it does so again, from what is remembered."""

    def flow():
        @step
        async def fails(text: str) -> str:
            book("fails")
            raise LookupError(f"no {text}")

        @workflow(name="flow", checkpoint_storage=store, types=[str])
        async def flow(text: str, ctx: FunctionalContext) -> str:
            try:
                found = await fails(text)
            except StepFailedError as error:
                found = f"{error.step} {error.type} {error.reason}"
            return found + await ctx.request_info("?", response_type=str)

        return flow

    first = run(flow(), "x", run_id="r")
    second = run(flow(), responses=answers(first, "!"))
    assert (second.output, book.took()) == ("fails LookupError no x!", ["fails"])


def test_a_plain_function_as_a_step_runs_in_a_thread(book, store):
    """With its arguments and context variables; the loop goes on meanwhile."""
    entered, go_on = threading.Event(), threading.Event()

    @step
    def blocking(text: str) -> str:
        entered.set()
        assert go_on.wait(10)
        return f"{text} {threading.current_thread() is threading.main_thread()}"

    @step
    async def opens() -> str:
        await asyncio.to_thread(entered.wait)
        go_on.set()
        return "opened"

    @workflow(name="flow", checkpoint_storage=store)
    async def flow(text: str, ctx: FunctionalContext) -> list[str]:
        return list(await ctx.gather(blocking(text), opens()))

    assert run(flow, "x").output == ["x False", "opened"]


def test_a_step_called_outside_of_a_workflow_is_its_function(book):
    """Also inside of another step, where it is part of that one."""
    note = book.step()

    @step
    def double(number: int) -> int:
        return number * 2

    @step
    async def both(text: str) -> str:
        return await note(text) + str(await double(2))

    @workflow
    async def flow(text: str) -> str:
        return await both(text)

    assert asyncio.run(both("a")) == "A4"
    assert run(flow, "b").output == "B4"
