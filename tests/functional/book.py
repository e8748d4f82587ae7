"""What behaviour tests of functions share: a log of what ran, steps that write it, and ways to make a call.

A workflow is made anew for every call, so that nothing but the store brings it back.
"""

import asyncio

from rehydrate import FunctionalContext, step, workflow
from tests.cases.kit import answers, bounded, failed, run

__all__ = ["Book", "Gate", "answers", "bounded", "failed", "ledger", "run", "turns"]


class Book:
    """A log of what ran, and what goes wrong: entries at which something is raised or waited for."""

    def __init__(self):
        self.log = []
        self.faults = {}
        self.gates = {}

    def __call__(self, entry):
        self.log.append(entry)
        if entry in self.faults:
            raise self.faults[entry]

    def took(self):
        """Return what was logged since the last time."""
        found, self.log = self.log, []
        return found

    def step(self, name="note", **options):
        """Return a step that logs its argument and gives it back in capitals."""

        async def note(text: str) -> str:
            self(f"{name} {text}")
            if text in self.gates:
                await self.gates[text].wait()
            return text.upper()

        return step(name=name, **options)(note)


async def turns(count=20):
    """Let everybody else go on for some turns of the loop."""
    for _ in range(count):
        await asyncio.sleep(0)


class Gate:
    """Where a step waits until it is let on."""

    def __init__(self):
        self.entered = asyncio.Event()
        self.opened = asyncio.Event()

    async def wait(self):
        self.entered.set()
        await self.opened.wait()


def ledger(book, store=None, **options):
    """Make a workflow that counts its messages in state, notes each, and asks where it ends with `?`."""
    note = book.step()

    @workflow(name="ledger", checkpoint_storage=store, types=[str], **options)
    async def ledger(text: str, ctx: FunctionalContext) -> str:
        count = ctx.state.get("count", 0) + 1
        ctx.state.set("count", count)
        found = await note(text)
        if text.endswith("?"):
            found += await ctx.request_info(text, response_type=str)
        return f"{count}: {found}"

    return ledger


def kinds_of(result):
    """Return the kinds of the records of a result."""
    return {key[1] for key, _ in result.checkpoint.records.records()}
