"""Walks through orders of answers: each call takes a run up from the bytes that the one before has left.

Orders that begin alike share their calls, so that all of them cost a call for each way to begin one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from rehydrate import (
    FunctionalWorkflow,
    SqliteCheckpointStorage,
    Status,
    Workflow,
    WorkflowCheckpoint,
    WorkflowRunResult,
)
from rehydrate.errors import AlreadyAnsweredError, RehydrateError
from rehydrate.model.events import RequestOpened
from tests.processes.line import Line
from tests.proof.answering import NAMES, Calls, Journal, answer, build, expected, open_after


@dataclass
class Walk:
    """The checkpoints that were reached, by the answers before them. `thorough`: each answer is tried again after."""

    kinds: str
    thorough: bool = True
    left: dict[Calls, bytes] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)

    async def begin(self) -> list[str]:
        """Run to where all is asked."""
        journal = Journal()
        result = await build(self.kinds).run("go", resources={"journal": journal})
        self.ids = {request.data.name: request.request_id for request in result.pending_requests}
        self.left[()] = result.checkpoint.to_bytes()
        return [] if journal.took("asked ") == list(NAMES) else [f"asked {journal.entries}"]

    async def wrong(self, calls: Calls) -> list[str]:
        """Make the last of these calls and name what is not as it should be; those before it have been made."""
        journal, given = Journal(), calls[-1]
        made, resources = build(self.kinds), {"journal": journal}
        # In the call the last name stands first: that order must decide nothing.
        responses = {self.ids[name]: answer(name) for name in reversed(given)}
        try:
            before = WorkflowCheckpoint.from_bytes(self.left[calls[:-1]])
            result = await made.run(checkpoint=before, responses=responses, resources=resources)
        except RehydrateError as error:
            return [f"{self.kinds} {calls}: {type(error).__name__}: {error}"]
        left = self.left[calls] = result.checkpoint.to_bytes()
        found = wrong_after(self.kinds, calls, result, self.ids) + wrong_entries(given, journal)
        if self.thorough:
            found += await self._wrong_again(made, calls, left)
        return [f"{self.kinds} {calls}: {text}" for text in found]

    async def _wrong_again(self, made: Workflow | FunctionalWorkflow, calls: Calls, left: bytes) -> list[str]:
        """Answer a second time what was answered, and look at the run."""
        journal = Journal()
        checkpoint, resources = WorkflowCheckpoint.from_bytes(left), {"journal": journal}
        found: list[str] = []
        for name in {name for call in calls for name in call}:
            try:
                await made.run(checkpoint=checkpoint, responses={self.ids[name]: "again"}, resources=resources)
                found.append(f"{name} was answered a second time")
            except AlreadyAnsweredError:
                pass
            except RehydrateError as error:
                found.append(f"{name} a second time: {type(error).__name__}")
        looked = await made.run(checkpoint=checkpoint, resources=resources)
        told = [event.data.name for event in looked.events if isinstance(event, RequestOpened)]
        if told != open_after(calls):
            found.append(f"surfaced {told}")
        if journal.entries or looked.checkpoint.to_bytes() != left:
            found.append(f"a look ran {journal.entries}")
        return found


def wrong_after(kinds: str, calls: Calls, result: WorkflowRunResult, ids: dict[str, str]) -> list[str]:
    """Name what of a call's result is not as it should be."""
    still = open_after(calls)
    outputs = [] if still else [expected(kinds, calls)]
    status = Status.IDLE_WITH_PENDING_REQUESTS if still else Status.IDLE
    pending = [(request.data.name, request.request_id) for request in result.pending_requests]
    told = [event.data.name for event in result.events if isinstance(event, RequestOpened)]
    found = [] if pending == [(name, ids[name]) for name in still] else [f"open are {pending}"]
    found += [] if result.outputs == outputs else [f"outputs {result.outputs} instead of {outputs}"]
    found += [] if result.status is status else [f"status {result.status}"]
    return found + ([f"surfaced {told}"] if told else [])


def wrong_entries(given: Iterable[str], journal: Journal) -> list[str]:
    """Name what ran beside what takes the answers that were given, or did not."""
    took = [entry.removeprefix("took ") for entry in journal.entries]
    return [] if sorted(took) == sorted(given) else [f"{journal.entries} ran where {given} was answered"]


def answered_once(line: Line, told: dict[str, object]) -> None:
    """A process of a nursery: begin a run in a file, or answer in one, first again what was answered."""
    asyncio.run(_answered_once(line, told))


async def _answered_once(line: Line, told: dict[str, object]) -> None:
    journal = Journal()
    made, resources = build(str(told["kinds"])), {"journal": journal}
    async with SqliteCheckpointStorage(Path(str(told["file"]))) as store:
        if "responses" not in told:
            result = await made.run("go", run_id="r", checkpoint_storage=store, resources=resources)
        else:
            refused: list[str] = []
            for name in told["again"]:
                try:
                    await made.run(responses={name: "again"}, checkpoint_storage=store, resources=resources)
                except RehydrateError as error:
                    refused.append(type(error).__name__)
            line.send(refused)
            result = await made.run(responses=told["responses"], checkpoint_storage=store, resources=resources)
    pending = [[request.data.name, request.request_id] for request in result.pending_requests]
    line.send({"outputs": result.outputs, "pending": pending, "entries": journal.entries})
