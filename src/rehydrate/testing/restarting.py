"""Restarts: a run is taken up at one of its checkpoints, as a new process does, and driven to its end.

Nothing goes from the process that ended into the new one but the bytes of the checkpoint. Must not know what the whole
run was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

import msgspec

from rehydrate.engine import reading
from rehydrate.errors import CommitConflictError, RehydrateError
from rehydrate.model.checkpoint import Archive, RequestRow, Status, Stored
from rehydrate.ports import CheckpointStorage, Clock
from rehydrate.ports.clock import wall_time
from rehydrate.runtime.checkpoint import restored
from rehydrate.runtime.options import CallOptions
from rehydrate.runtime.program import Program
from rehydrate.runtime.result import WorkflowRunResult
from rehydrate.runtime.runner import Runner
from rehydrate.stores.archives import archived

from .driving import MadeCall, Stage, StoreMaker, Workflows, built, fresh_store
from .facts import Facts, compared, facts, told


@dataclass(frozen=True)
class Restart:
    """A checkpoint to go on from, and what is to come of it.

    `number` is that of the first call, from 1; with `continues` that is one which was interrupted. `calls` are those
    to make after it, `expected` the facts of all of them.
    """

    stored: Stored
    number: int
    continues: bool
    calls: tuple[MadeCall, ...]
    expected: tuple[Facts, ...]


@dataclass(frozen=True)
class Setting:
    """What a new process has: the program, and what the world gives it."""

    workflow: Workflows
    make_store: StoreMaker | None = None
    run_args: object = None
    resources: Mapping[str, object] | None = None

    async def differences(self, restart: Restart) -> list[str]:
        """Go on from a checkpoint and name what comes out otherwise."""
        program = built(self.workflow).program
        async with fresh_store(self.make_store) as store:
            await take_in(store, restart.stored)
            going = _Going(
                staged_then(program, store, restart.stored),
                {"resources": self.resources},
                restart.stored.header.checkpoint_id,
            )
            wrong: list[str] = []
            calls = ([MadeCall()] if restart.continues else []) + [*restart.calls]
            known = restored(restart.stored).pending_request_ids
            for index, (call, expected) in enumerate(zip(calls, restart.expected, strict=True)):
                continues = restart.continues and not index
                given = {} if continues else {"run_args": self.run_args}
                try:
                    result = await going.call(call, given)
                except RehydrateError as error:  # a run that failed, or what was not there any more
                    return [*wrong, f"call {restart.number + index}: it raised {type(error).__name__}: {error}"]
                rested = continues and restart.stored.header.status is not Status.RUNNING
                found = facts(result) if rested else facts_of_call(result, program, known if continues else ())
                wrong += [f"call {restart.number + index}: {text}" for text in compared(expected, found)]
            return wrong


@dataclass
class _Going:
    """A run that goes on call by call."""

    stage: Stage
    options: dict[str, object]
    checkpoint_id: str

    async def call(self, call: MadeCall, given: Mapping[str, object]) -> WorkflowRunResult:
        options = {**self.options, **given, "responses": call.responses, "checkpoint": self.checkpoint_id}
        result = await Runner(self.stage).run(call.message, stream=False, **cast("CallOptions", options))
        self.checkpoint_id = result.checkpoint_id
        return result


def facts_of_call(result: WorkflowRunResult, program: Program, known: tuple[str, ...] = (), *, after: int = 0) -> Facts:
    """Return what a call left, and what it told behind event number `after`."""
    events = [event for event in result.events if event.sequence > after]
    return {**facts(result), **told(events, program.codec, known)}


async def take_in(store: CheckpointStorage, stored: Stored) -> None:
    """Write a checkpoint into a store that does not know its run, as its head that nobody drives."""
    header = msgspec.structs.replace(stored.header, previous_checkpoint_id=None)
    opened = reading.open_requests(restored(stored).records)
    rows = tuple(RequestRow(each.request_id, header.run_id, each.path, "open") for each in opened)
    try:
        await store.adopt(Archive((archived(header, stored.records),), requests=rows))
    except CommitConflictError as error:
        raise ValueError("make_store gave a store that has runs; it is to open a new place each time") from error


def staged_then(program: Program, store: CheckpointStorage, stored: Stored) -> Stage:
    """Return what a run goes on with from a checkpoint at that checkpoint's time, so that no timer is up too soon."""
    return Stage(replace(program, clock=_Then(stored.header.created)), store)


class _Then(Clock):
    """The time of a checkpoint, which goes on from there."""

    def __init__(self, time: float) -> None:
        self._behind = wall_time() - time

    def time(self) -> float:
        """Return the time, in seconds since the epoch."""
        return wall_time() - self._behind
