"""Which remembered call a call of today is: by branch, position, name and arguments."""

import asyncio
import itertools

import pytest

from rehydrate import FunctionalContext, Status, step, workflow
from rehydrate.errors import NonDeterminismError
from tests.functional.book import answers, failed, run, turns


def made(book, store, body, **options):
    """Make a workflow `flow` whose body gets the context and two steps that are told apart by name."""
    one, two = book.step("one"), book.step("two")

    @workflow(name="flow", checkpoint_storage=store, types=[str], **options)
    async def flow(text: str, ctx: FunctionalContext) -> str:
        return await body(ctx, one, two)

    return flow


async def asked(ctx, what="?"):
    return await ctx.request_info(what, response_type=str)


ORDERS = list(itertools.permutations("abc"))


@pytest.mark.parametrize("gather", ["ctx.gather", "asyncio.gather"])
@pytest.mark.parametrize("arguments", ["abc", "aaa"])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_parallel_calls_finish_in_any_order_and_are_remembered_right(book, store, gather, arguments, order):
    """With equal or different arguments, whichever is done first: each place gets what it gave, and none runs again."""
    finished = itertools.count()
    places = itertools.count()

    @step
    async def work(text: str) -> str:
        place = next(places)
        book(f"work {text}")
        await turns(3 * order.index(place) * 5)
        return f"{text}{place} was {next(finished)}"

    def flow():
        @workflow(name="flow", checkpoint_storage=store, types=[str])
        async def flow(text: str, ctx: FunctionalContext) -> list[str]:
            side_by_side = ctx.gather if gather == "ctx.gather" else asyncio.gather
            found = await side_by_side(*(work(argument) for argument in arguments))
            await asked(ctx)
            return list(found)

        return flow

    first = run(flow(), "x", run_id="r")
    assert book.took() == [f"work {argument}" for argument in arguments]
    second = run(flow(), checkpoint=first, responses=answers(first, "go"))
    assert book.took() == []
    assert [text.split(" ")[0] for text in second.output] == [f"{a}{n}" for n, a in enumerate(arguments)]


def test_arguments_by_keyword_and_by_position_are_the_same_call(book, store):
    """How a call is written is not part of what it is."""

    def flow(way):
        @step
        async def add(first: int, second: int = 2) -> int:
            book(f"add {first} {second}")
            return first + second

        @workflow(name="flow", checkpoint_storage=store, types=[str])
        async def flow(text: str, ctx: FunctionalContext) -> int:
            ways = {
                "position": lambda: add(1, 2),
                "keyword": lambda: add(1, second=2),
                "other order": lambda: add(second=2, first=1),
            }
            found = await ways[way]()
            await asked(ctx)
            return found

        return flow

    first = run(flow("position"), "x", run_id="r")
    assert book.took() == ["add 1 2"]
    for way in ("keyword", "other order"):
        second = run(flow(way), checkpoint=first, responses=answers(first, "go"), fork=True)
        assert (second.output, book.took()) == (3, []), way


def test_a_step_is_known_by_its_name_and_not_by_its_function(store):
    """With `name=` the function may be called otherwise, or stand elsewhere."""

    def flow(function_name):
        def body(text: str) -> str:
            return f"{function_name} {text}"

        body.__name__ = function_name
        named = step(name="stable")(body)

        @workflow(name="flow", checkpoint_storage=store, types=[str])
        async def flow(text: str, ctx: FunctionalContext) -> str:
            found = await named(text)
            await asked(ctx)
            return found

        return flow

    first = run(flow("old"), "x", run_id="r")
    assert run(flow("new"), responses=answers(first, "go")).output == "old x"


async def two_steps(ctx, one, two):
    found = await one("a") + await two("b")
    return found + await asked(ctx)


async def other_order(ctx, one, two):
    found = await two("b") + await one("a")
    return found + await asked(ctx)


async def other_name(ctx, one, two):
    found = await one("a") + await one("b")
    return found + await asked(ctx)


async def other_argument(ctx, one, two):
    found = await one("a") + await two("c")
    return found + await asked(ctx)


async def one_more(ctx, one, two):
    found = await one("a") + await one("z") + await two("b")
    return found + await asked(ctx)


async def one_less(ctx, one, two):
    return await one("a") + await asked(ctx)


async def none_left(ctx, one, two):
    return await one("a") + await two("b")


async def other_question(ctx, one, two):
    found = await one("a") + await two("b")
    return found + await asked(ctx, "!")


CHANGES = {
    "order": (other_order, "1", "step 'one'", "step 'two'"),
    "name": (other_name, "2", "step 'two'", "step 'one'"),
    "argument": (other_argument, "2", "step 'two'", "called with other arguments"),
    "one call more": (one_more, "2", "step 'two'", "step 'one'"),
    "one call less": (one_less, "2", "step 'two'", "question 'str'"),
    "ends early": (none_left, "3", "question 'str'", "not called any more"),
    "another question": (other_question, "3", "question 'str'", "called with other arguments"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_code_that_calls_otherwise_is_refused_by_place_and_repaired_code_goes_on(book, store, change):
    """The run fails naming what stood there and what stands there now; nothing has run, and nothing is lost."""
    body, call, before, now = CHANGES[change]
    first = run(made(book, store, two_steps), "x", run_id="r")
    book.took()
    error = failed(made(book, store, body), responses=answers(first, " yes"))
    cause = error.__cause__
    assert isinstance(cause, NonDeterminismError)
    assert (cause.call, cause.before, cause.now) == (call, before, now)
    for part in (f"call {call}", before, now, "ctx.version", "migrate=", "new run", "migration"):
        assert part in str(cause)
    assert book.took() == []
    repaired = run(made(book, store, two_steps), checkpoint="latest", run_id="r")
    assert (repaired.status, repaired.output, book.took()) == (Status.IDLE, "AB yes", [])


@pytest.mark.parametrize("catch", [Exception, BaseException])
def test_a_function_cannot_catch_that_it_has_changed(book, store, catch):
    """The error is the run's, whatever the function would make of it."""

    async def catches(ctx, one, two):
        try:
            return await other_name(ctx, one, two)
        except catch:
            return await one("caught")

    first = run(made(book, store, two_steps), "x", run_id="r")
    book.took()
    error = failed(made(book, store, catches), responses=answers(first, " yes"))
    assert isinstance(error.__cause__, NonDeterminismError)
    assert (book.took(), error.result.outputs) == ([], [])
    assert run(made(book, store, two_steps), checkpoint="latest", run_id="r").output == "AB yes"


def test_a_changed_branch_of_a_gather_is_named_with_its_branch(book, store):
    """The place of a call in a branch names the branch, and only its order is checked there."""

    def body(first, second):
        async def body(ctx, one, two):
            async def branch(texts):
                return "".join([await one(text) for text in texts])

            found = await ctx.gather(branch(first), branch(second))
            return "".join(found) + await asked(ctx)

        return body

    first = run(made(book, store, body("ab", "cd")), "x", run_id="r")
    error = failed(made(book, store, body("ab", "dc")), responses=answers(first, "!"))
    cause = error.__cause__
    assert isinstance(cause, NonDeterminismError)
    assert cause.call == "g1.1:1"
    assert "call 1 of branch g1.1" in str(cause)
    assert run(made(book, store, body("ab", "cd")), checkpoint="latest", run_id="r").output == "ABCD!"


def test_a_new_version_keeps_what_a_pass_had_begun_with(book, store):
    """The first way out: a branch on `ctx.version`, with a version and a migration that has nothing to do."""

    async def both(ctx, one, two):
        if ctx.version < 2:
            return await two_steps(ctx, one, two)
        return await two("new") + await asked(ctx)

    first = run(made(book, store, two_steps), "x", run_id="r")
    book.took()

    def newer():
        return made(book, store, both, version=2, migrate={1: lambda view: None})

    second = run(newer(), "y", checkpoint="latest", run_id="r", on_pending="keep")
    assert book.took() == ["two new"]
    assert second.pending_requests[0].request_id == first.pending_requests[0].request_id
    third = run(newer(), checkpoint="latest", run_id="r", responses=answers(second, " old", " young"))
    assert (third.outputs, book.took()) == (["AB old", "NEW young"], [])


def test_a_new_run_is_not_bound_to_what_another_one_remembers(book, store):
    """The second way out: what a run has called binds this run only."""
    run(made(book, store, two_steps), "x", run_id="r")
    other = run(made(book, store, other_order), "x", run_id="s")
    assert run(made(book, store, other_order), responses=answers(other, " yes")).output == "BA yes"
