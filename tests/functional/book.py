"""What behaviour tests of functions share: a log of what ran, steps that write it, and ways to make a call.

A workflow is made anew for every call, so that nothing but the store brings it back.
"""

import asyncio

from rehydrate import step
from rehydrate.errors import RunFailedError


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


def bounded(work):
    """Drive a coroutine on an event loop of its own; one that hangs fails instead of stopping all tests."""

    async def drive():
        async with asyncio.timeout(20):
            return await work

    return asyncio.run(drive())


def run(workflow, message=None, **options):
    """Make one call on an event loop of its own."""
    return bounded(workflow.run(message, **options))


def failed(workflow, message=None, **options):
    """Make one call that ends FAILED and return its error."""
    try:
        result = run(workflow, message, **options)
    except RunFailedError as error:
        return error
    raise AssertionError(f"the run did not fail: {result!r} {result.outputs} {result.pending_requests}")


def answers(result, *values):
    """Answer the open requests of a result in their order."""
    return [request.answer(value) for request, value in zip(result.pending_requests, values, strict=True)]


async def turns(count=20):
    """Let everybody else go on for some turns of the loop."""
    for _ in range(count):
        await asyncio.sleep(0)
