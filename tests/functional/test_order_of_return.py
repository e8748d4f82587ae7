"""What came first comes first again: functions that go by the order in which their calls come back."""

import asyncio

import pytest

from rehydrate import FunctionalContext, step, workflow
from rehydrate.testing import VirtualClock, run_virtually
from tests.differential.moments import pause
from tests.functional.book import answers, run, turns

ORDERS = ["abc", "cba", "bca"]


def works(book, order):
    """Make a step whose calls with the letters of `order` are done one after the other, in that order."""

    @step
    async def work(text: str) -> str:
        book(f"work {text}")
        await turns(40 * (1 + order.index(text)))
        return text.upper()

    return work


def as_completed(book, store, order):
    """Make a function that calls a step for each of three as they are done, asks, and does so again."""
    work, note = works(book, order), book.step()

    @workflow(name="flow", checkpoint_storage=store, types=[str])
    async def flow(text: str, ctx: FunctionalContext) -> str:
        found = ""
        for call in asyncio.as_completed([work(letter) for letter in text]):
            found += await note(await call)
        found += await ctx.request_info("?", response_type=str)
        return found + await ctx.request_info("??", response_type=str)

    return flow


@pytest.mark.parametrize("order", ORDERS)
def test_as_completed_gives_them_in_the_same_order_again(book, store, order):
    """Whichever was first is first in every run of the function, so what is called for each is the same."""
    first = run(as_completed(book, store, order), "abc", run_id="r")
    assert book.took()[3:] == [f"note {letter.upper()}" for letter in order]
    second = run(as_completed(book, store, "abc"), responses=answers(first, "!"))
    third = run(as_completed(book, store, "abc"), responses=answers(second, "?"))
    assert (third.output, book.took()) == (f"{order.upper()}!?", [])


@pytest.mark.parametrize("order", ORDERS)
def test_workers_on_a_queue_take_the_same_items_again(book, store, order):
    """Which worker gets which item goes by who is free; one of them asks in the middle."""

    def flow(order):
        work = works(book, order)

        @workflow(name="flow", checkpoint_storage=store, types=[str])
        async def flow(text: str, ctx: FunctionalContext) -> list[str]:
            queue: asyncio.Queue[str] = asyncio.Queue()
            found = []

            async def worker(name):
                while not queue.empty():
                    letter = queue.get_nowait()
                    done = await work(letter)
                    if letter == "b":
                        done += await ctx.request_info(letter, response_type=str)
                    found.append(f"{name}{done}")

            for letter in text:
                queue.put_nowait(letter)
            await asyncio.gather(worker(1), worker(2))
            return sorted(found)

        return flow

    first = run(flow(order), "abc", run_id="r")
    assert sorted(book.took()) == ["work a", "work b", "work c"]
    second = run(flow("abc"), responses=answers(first, "!"))
    assert sorted(text[1:] for text in second.output) == ["A", "B!", "C"]
    assert book.took() == []


def test_an_answer_comes_where_it_came(book, store):
    """Steps that were done after an answer are given after it, in every later run of the function."""

    def flow():
        note = book.step()

        @workflow(name="flow", checkpoint_storage=store, types=[str])
        async def flow(text: str, ctx: FunctionalContext) -> list[str]:
            came = []

            async def asks(what):
                came.append(await ctx.request_info(what, response_type=str))
                came.append(await note(f"after {what}"))

            await ctx.gather(asks("a"), asks("b"))
            await ctx.request_info("last", response_type=str)
            return came

        return flow

    first = run(flow(), "x", run_id="r")
    one, two = first.pending_requests
    second = run(flow(), responses=[two.answer("two")])
    third = run(flow(), responses=[one.answer("one")])
    last = run(flow(), responses=answers(third, "go"))
    assert second.pending_requests[0].request_id == one.request_id
    assert last.output == ["two", "AFTER B", "one", "AFTER A"]
    assert book.took() == ["note after b", "note after a"]


def test_what_is_not_called_any_more_holds_nothing_up_for_long(book, store):
    """A changed function is told that it has changed, and does not wait for what it has left out."""

    def flow(left_out):
        note = book.step()

        @workflow(name="flow", checkpoint_storage=store, types=[str])
        async def flow(text: str, ctx: FunctionalContext) -> str:
            async def first():
                return "" if left_out else await note("first")

            async def second():
                return await note("second")

            parts = await ctx.gather(first(), second())
            return "".join(parts) + await ctx.request_info("?", response_type=str)

        return flow

    first = run(flow(left_out=False), "x", run_id="r")
    with pytest.raises(Exception, match=r"branch g1\.0 was step 'note' before, and is not called any more"):
        run(flow(left_out=True), responses=answers(first, "!"))


def in_reverse(clock, came):
    """Make a function with steps that end one after the other, the last first, and code that takes time after each."""

    @step
    async def ended(number: int) -> int:
        await pause(5 - number)
        return number

    @workflow(types=[bool])
    async def flow(count: int, ctx: FunctionalContext) -> list[int]:
        order = []

        async def one(number):
            order.append(await ended(number))
            clock.advance(0.4)

        await asyncio.gather(*[one(number) for number in range(count)])
        came.append(order)
        await ctx.request_info("?", response_type=bool)
        return order

    return flow


def test_code_that_takes_time_after_each_does_not_change_the_order():
    """Two seconds of it hold up the last for longer than anybody waits for one that is not called any more."""
    clock, came = VirtualClock(), []

    async def scenario():
        flow = in_reverse(clock, came)
        first = await flow.run(5)
        await flow.run(checkpoint=first.checkpoint, responses=answers(first, True))

    run_virtually(scenario(), clock=clock)
    assert came == [[4, 3, 2, 1, 0], [4, 3, 2, 1, 0]]


def late_beside_others(came):
    """Make a function with a branch that takes time of its own before its steps, beside two that are called in the
    wrong order, and a step after all of them."""

    @step
    async def ended(name: str, seconds: float) -> str:
        await pause(seconds)
        return name

    @workflow(types=[bool])
    async def flow(text: str, ctx: FunctionalContext) -> list[str]:
        order = []

        async def late():
            await pause(1.5)
            order.append(await ended("a", 0))
            order.append(await ended("b", 0))
            order.append(await ended("c", 0))

        async def other(name, seconds):
            order.append(await ended(name, seconds))

        await asyncio.gather(late(), other("e", 3), other("d", 2))
        order.append(await ended("f", 0))
        came.append(order)
        await ctx.request_info("?", response_type=bool)
        return order

    return flow


def test_where_one_is_late_the_others_are_given_in_their_order_and_it_waits_for_none():
    """Those that wait for it go on after a second, the one that came first before the other; then it takes its own
    time and no more."""
    came, clock = [], VirtualClock()

    async def scenario():
        flow = late_beside_others(came)
        first = await flow.run("x")
        passed = clock.passed
        await flow.run(checkpoint=first.checkpoint, responses=answers(first, True))
        return clock.passed - passed

    assert run_virtually(scenario(), clock=clock) == 1.5
    assert came == [list("abcdef"), list("deabcf")]


def slow_to_note(came, seconds):
    """Make a function of four branches, of which two take some turns of the loop to note what came back to them."""

    @step
    async def ended(number: int) -> int:
        await pause(number * seconds)
        return number

    @workflow(types=[int])
    async def flow(text: str, ctx: FunctionalContext) -> list[int]:
        order = []

        def call(number):
            return ended(number) if text == "steps" else ctx.request_info(number, response_type=int)

        async def slow(number):
            found = await call(number)
            await turns(3)
            order.append(found)

        async def quick(number):
            order.append(await call(number))

        await ctx.gather(slow(0), quick(1), slow(2), quick(3))
        came.append(order)
        await ctx.request_info("last", response_type=int)
        return order

    return flow


@pytest.mark.parametrize(("what", "seconds"), [("steps", 1), ("steps", 0), ("questions", 0)])
def test_what_came_back_at_once_is_noted_as_what_came_back_one_after_the_other(what, seconds):
    """The function has time for what it makes of one before it is given the next, at first as when it runs anew."""
    came = []

    async def scenario():
        flow = slow_to_note(came, seconds)
        result = await flow.run(what)
        while result.pending_requests:
            given = [request.answer(number) for number, request in enumerate(result.pending_requests)]
            result = await flow.run(checkpoint=result.checkpoint, responses=given)

    run_virtually(scenario())
    assert came == [[0, 1, 2, 3], [0, 1, 2, 3]]
