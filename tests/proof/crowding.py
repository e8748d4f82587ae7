"""What each run of a crowd does, and what is left of all of them.

Of ten runs two are cancelled, one before its question and one behind it, and one fails; each is taken up again.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import re
import sys
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from rehydrate import CheckpointStorage, FunctionalWorkflow, Status, Workflow, WorkflowRunResult
from rehydrate.errors import RunFailedError
from rehydrate.model.checkpoint import Latest
from tests.processes.line import PATIENCE
from tests.proof.crowd import Order, Tools, expected, mark

#: What this process has open.
FILES = Path("/proc/self/fd" if Path("/proc/self/fd").exists() else "/dev/fd")
Flow = Workflow | FunctionalWorkflow


@dataclass
class Meeting:
    """Where all runs wait for one another."""

    count: int
    complete: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self) -> None:
        self.count -= 1
        if self.count == 0:
            self.complete.set()
        await self.complete.wait()


async def wrong_in_a_crowd(flow: Flow, store: CheckpointStorage, numbers: Iterable[int]) -> list[str]:
    """Run all at once to their questions, and from there to their ends; name all that is not their own."""
    wanted = list(numbers)
    meeting = Meeting(len(wanted))
    told = await asyncio.gather(*(_Run(flow, store, number, meeting).told() for number in wanted))
    left = asyncio.all_tasks() - {asyncio.current_task()}
    return [text for texts in told for text in texts] + [f"a task is left: {task!r:.80}" for task in left]


@dataclass
class _Run:
    flow: Flow
    store: CheckpointStorage
    number: int
    meeting: Meeting

    async def told(self) -> list[str]:
        """Run to the question, wait for all others, answer, and name what was wrong."""
        try:
            paused = await self._to_the_question()
            found = [request.data.mark for request in paused.pending_requests]
            wrong = [] if found == [mark(self.number)] else [f"asked {found}"]
        except Exception as error:
            paused, wrong = None, [f"{type(error).__name__}: {error}"]
        await self.meeting.wait()
        if paused is not None:
            try:
                wrong += await self._to_the_end(paused)
            except Exception as error:
                wrong.append(f"{type(error).__name__}: {error}")
        return [f"run {self.number}: {text}" for text in wrong]

    async def _to_the_question(self) -> WorkflowRunResult:
        run_id, fate = f"run {self.number}", self.number % 10
        if fate == 3:
            await self._cancelled(Order(self.number), run_id=run_id, at="start")
        elif fate == 6:
            await self._failed(Order(self.number), run_id=run_id, at="before")
        else:
            return await self._call(Order(self.number), run_id=run_id)
        return await self._call(checkpoint="latest", run_id=run_id)

    async def _to_the_end(self, paused: WorkflowRunResult) -> list[str]:
        wrong = await self._strangers()
        answers = [request.answer(f"answer {request.data.mark}") for request in paused.pending_requests]
        if self.number % 10 == 8:
            await self._cancelled(checkpoint=paused, responses=answers, at="answered")
            ended = await self._call(checkpoint="latest", run_id=paused.run_id)
        else:
            # Half of them find their run by the ids of what it has asked.
            ended = await self._call(checkpoint=paused if self.number % 2 else None, responses=answers)
        wanted = [expected(f"run {self.number}", self.number)]
        wrong += [] if ended.outputs == wanted else [f"{ended.outputs} instead of {wanted}"]
        wrong += [] if ended.status is Status.IDLE else [f"ended {ended.status}"]
        return wrong + await self._strangers()

    async def _call(self, message: Order | None = None, at: str = "", **options: object) -> WorkflowRunResult:
        options = {"resources": {"tools": Tools(mark(self.number), at, fails=True)}, **options}
        run_args = mark(self.number) if message is not None else None
        return await self.flow.run(message, checkpoint_storage=self.store, run_args=run_args, **options)

    async def _failed(self, message: Order | None = None, **options: object) -> None:
        try:
            await self._call(message, **options)
        except RunFailedError as error:
            if mark(self.number) not in str(error):
                raise
            return
        raise AssertionError("it did not fail")

    async def _cancelled(self, message: Order | None = None, at: str = "", **options: object) -> None:
        tools = Tools(mark(self.number), at)
        call = asyncio.ensure_future(self._call(message, resources={"tools": tools}, **options))
        entered = asyncio.ensure_future(tools.entered.wait())
        await asyncio.wait({call, entered}, return_when=asyncio.FIRST_COMPLETED)
        entered.cancel()
        call.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            raise AssertionError(f"it was not cancelled: {await call}")

    async def _strangers(self) -> list[str]:
        """Name the marks of other runs that stand in the records of this one."""
        stored = await self.store.load(Latest(f"run {self.number}"))
        marks = set(re.findall(rb"<\d{6}>", b"".join(stored.records.values())))
        return [] if marks == {mark(self.number).encode()} else [f"its records hold {sorted(marks)}"]


class Left(NamedTuple):
    """What there is in this process: objects by class, threads and files by name, and blocks of memory."""

    things: Counter[str]
    blocks: int

    def since(self, before: Left, blocks: int) -> list[str]:
        """Name what is more than before, and more blocks than are allowed for."""
        found = [f"{count} {name}" for name, count in (self.things - before.things).items()]
        more = self.blocks - before.blocks
        return [*found, f"{more} blocks"] if more > blocks else found


def settle() -> None:
    """Let the collector pass over all that is there by now: what other tests have left need not be counted."""
    gc.collect()
    gc.freeze()


def what_is_there() -> Left:
    """Count the objects of the package's classes, of the tests' and of tasks, and what else a run could leave."""
    for thread in threading.enumerate():
        if thread.name == "rehydrate runs.db":  # it has said that its store is closed, and ends now
            thread.join(PATIENCE)
    gc.collect()
    kinds = (type(found) for found in gc.get_objects())
    things = Counter(
        f"{kind.__module__}.{kind.__qualname__}"
        for kind in kinds
        if kind.__module__.partition(".")[0] in {"rehydrate", "tests", "_asyncio", "asyncio"}
    )
    del things[f"{__name__}.Left"]  # what was there before
    things.update(f"thread {thread.name}" for thread in threading.enumerate())
    things["files"] = len(
        list((Path("/proc/self/fd") if Path("/proc/self/fd").exists() else Path("/dev/fd")).iterdir())
    )
    return Left(things, sys.getallocatedblocks())
