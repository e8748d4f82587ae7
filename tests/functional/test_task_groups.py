"""Tasks that are made by tasks which have ended by the time they call anything."""

import asyncio

from rehydrate import FunctionalContext, workflow
from tests.functional.book import answers, run

LINKS = {"A": "bc", "B": "de", "C": "ef", "D": "", "E": "g", "F": "g", "G": ""}


def crawler(book, store):
    """Make a function that visits a page and all that it links to, two at a time, and asks in the middle and after."""
    fetch = book.step("fetch")

    @workflow(name="crawl", checkpoint_storage=store, types=[str])
    async def crawl(start: str, ctx: FunctionalContext) -> str:
        two, seen = asyncio.Semaphore(2), []

        async def visit(page):
            async with two:
                found = await fetch(page)
            seen.append(found)
            if found == "E":
                seen.append(await ctx.request_info("go on?", response_type=str))
            for link in LINKS[found]:
                group.create_task(visit(link))

        async with asyncio.TaskGroup() as group:
            group.create_task(visit(start))
        return "".join(seen) + await ctx.request_info("?", response_type=str)

    return crawl


def test_a_task_may_call_after_the_one_that_made_it_has_ended(book, store):
    """Each is a branch of its own, also those for the same page, and has the same name when the function runs anew."""
    first = run(crawler(book, store), "a", run_id="r")
    fetched = book.took()
    asked = [request.data for request in first.pending_requests]
    second = run(crawler(book, store), responses=answers(first, "yes", "on"))
    more = book.took()
    last = run(crawler(book, store), responses=answers(second, "!"))
    assert asked == ["go on?", "go on?"]
    assert sorted(fetched) == [f"fetch {page}" for page in "abcdeefg"]
    assert more == ["fetch g", "fetch g"]
    assert (sorted(last.output), book.took()) == (sorted("ABCDEEFGGG!yeson"), [])
