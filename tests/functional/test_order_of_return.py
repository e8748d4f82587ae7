"""What came first comes first again: functions that go by the order in which their calls come back."""

import asyncio

import pytest

from rehydrate import FunctionalContext, step, workflow
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
