"""One turn from its claim to its result.

Opens and claims, lets the actor drive, and reads the end. What a run is stands in its records; nothing here is needed
to resume one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Final

from rehydrate.engine import reading
from rehydrate.engine.inputs import TurnArrived
from rehydrate.engine.run import birth_of, delta_of
from rehydrate.errors import (
    CommitConflictError,
    DrainingError,
    JoinDeadlockError,
    RehydrateError,
    RunDrainedError,
    RunFailedError,
    SaveFailedError,
    StateConflictError,
    SubWorkflowTimeoutError,
)
from rehydrate.model.checkpoint import Cause, Lease, Status
from rehydrate.model.events import Event, StatusChanged, TurnStarted
from rehydrate.model.records import RunRecord

from .actor import Actor
from .call import Call
from .checkpoint import WorkflowCheckpoint
from .claim import CANCEL_SECONDS
from .context import Surroundings
from .events import Channel
from .inbox import Inbox
from .leaving import until_told
from .opening import Opened, Opening
from .owner import is_draining, process_owner, register
from .program import Program
from .resources import Resources
from .result import WorkflowRunResult
from .saver import LEASE_SECONDS, Ledger, Saver
from .sub_requests import response_failure

logger = logging.getLogger("rehydrate")
#: How often a claim is tried that another call got in between of.
CLAIM_TRIES: Final = 8


class Turn:
    """One claimed turn: its actor, its events, and how it ends."""

    def __init__(self, program: Program, opened: Opened, actor: Actor | None, channel: Channel) -> None:
        self.program = program
        self.opened = opened
        self.actor = actor
        self.channel = channel
        self.abandoned = False

    @property
    def _task(self) -> asyncio.Task[None] | None:
        """What drives the turn; `None` for a call that needs no turn."""
        return self.actor.task if self.actor is not None else None

    def has_ended(self) -> bool:
        """Tell whether the turn has come to an end that was saved."""
        return self._task is None or (self._task.done() and not self._task.cancelled() and not self._task.exception())

    async def gone(self) -> None:
        """Wait for a turn that was cancelled or dropped to be over, in whatever way."""
        task = self._task
        if task is None or task.done() or task.get_loop() is not asyncio.get_running_loop():
            return
        if self.abandoned or (self.actor is not None and self.actor.cancelled):
            await asyncio.wait([task], timeout=CANCEL_SECONDS)

    def is_running(self) -> bool:
        """Tell whether the turn has tasks that run."""
        return self._task is not None and not self._task.done()

    async def over(self) -> None:
        """Wait until the turn has ended in whatever way; raises where the run could not be saved."""
        task = self._task
        if task is None:
            return
        await asyncio.wait([task])
        if task.cancelled():
            why = f"its store did not take what was to be saved last within {CANCEL_SECONDS:.0f} seconds"
            raise SaveFailedError(self.opened.run_id, why)
        task.result()

    async def check_handed_on(self) -> None:
        """Raise `RunDrainedError` where the process was drained before the turn ended."""
        actor = self.actor
        if actor is None or not actor.handed_on:
            return
        await until_told()
        result = self.result()
        raise RunDrainedError(result.run_id, result.checkpoint_id, actor.saver is not None, result)

    def abandon(self) -> None:
        """Cancel a turn that nobody reads any more, from whatever thread the collector runs in."""
        task, actor = self._task, self.actor
        if task is None or actor is None or task.done():
            return
        loop = task.get_loop()
        self.abandoned = True
        with contextlib.suppress(RuntimeError):  # the loop may be closed, or close just now: then nothing runs any more
            self.channel.ignore_later()
            loop.call_soon_threadsafe(actor.cancel)

    async def finish(self) -> WorkflowRunResult:
        """Wait for the end. Raises `RunFailedError`, a store's error, or `CancelledError` once `CANCELLED` is saved."""
        if self._task is None or self.actor is None:
            return self.outcome()
        try:
            await self.over()
            await self.check_handed_on()
        except asyncio.CancelledError:
            await self.stop()
            raise
        return self.outcome()

    async def stop(self) -> None:
        """Cancel the run and wait until that is saved, for some seconds at most."""
        self.channel.ignore()
        await self._cancel()

    async def cancel(self) -> None:
        """Do the same for a reader who reads on. Raises a store's error where `CANCELLED` could not be saved."""
        self.channel.wait_no_more()
        await self._cancel()
        await self.over()

    async def _cancel(self) -> None:
        if self._task is None or self.actor is None:
            return
        self.actor.cancel()
        await asyncio.wait([self._task], timeout=CANCEL_SECONDS)
        self._task.cancel()

    def outcome(self) -> WorkflowRunResult:
        """Return the result of a turn that has ended; raises `RunFailedError` where it failed."""
        result = self.result()
        if result.status is not Status.FAILED:
            return result
        run = result.checkpoint.records
        places = reading.failures(run, self.program.graph, reading.scopes(run))
        causes = self.actor.causes if self.actor is not None else {}
        first = places[0]
        where = f"{first.path}/{first.executor}".strip("/") or "the root"
        reason = f"{first.failure.type}: {first.failure.text}"
        if len(places) > 1:
            others = ", ".join(f"{p.path}/{p.name}".strip("/") for p in places[1:4])
            reason += f" (and {len(places) - 1} more: {others})"
        cause = causes.get((first.path, first.name)) or engine_error(first)
        raise RunFailedError(result.run_id, where, reason, result) from cause

    def result(self) -> WorkflowRunResult:
        """Return how the run stands now."""
        opened, actor = self.opened, self.actor
        header = actor.ledger.header if actor is not None else opened.header
        assert header is not None  # noqa: S101  (a claim makes one)
        run = actor.run if actor is not None else opened.run
        status = None
        if actor is None and not opened.replayed:
            status = Status.IDLE_WITH_PENDING_REQUESTS if run.totals["request"] else Status.IDLE
        return WorkflowRunResult(
            WorkflowCheckpoint(header, run),
            self.program.graph,
            self.program.codec,
            self.channel,
            status=status,
            replayed=opened.replayed,
        )


async def begin(program: Program, call: Call, *, streaming: bool) -> Turn:
    """Open and claim a turn. Raises every error that comes before the claim; then nothing has changed.

    Where another call claims the run in between, the head is looked at again, which tells what that means for this one.
    """
    opening = Opening(call, program)
    for _ in range(CLAIM_TRIES - 1):
        try:
            return await _claim(program, call, await opening.open(), streaming=streaming)
        except CommitConflictError:
            continue
    return await _claim(program, call, await opening.open(), streaming=streaming)


async def _claim(program: Program, call: Call, opened: Opened, *, streaming: bool) -> Turn:
    channel = Channel(opened.run_id, program.codec, streaming=streaming)
    if opened.arrived is None:
        turn = Turn(program, opened, None, channel)
        _surface(turn)
        _warn(opened, [])
        return turn
    if is_draining():
        raise DrainingError(opened.run_id)
    actor = make_actor(program, call, opened, channel)
    kept = _kept_requests(opened)
    turn = Turn(program, opened, actor, channel)
    try:
        await actor.claim(opened.arrived)
    except asyncio.CancelledError:
        if actor.claimed:
            await turn.stop()
        raise
    _warn(opened, kept)
    return turn


def make_actor(program: Program, call: Call, opened: Opened, channel: Channel) -> Actor:
    """Return the actor of a turn, not yet claimed."""
    arrived = opened.arrived
    assert arrived is not None  # noqa: S101  (asked by the caller)
    birth = arrived.new_run.birth if arrived.new_run is not None else birth_of(opened.run)
    ledger, saver = ledger_and_saver(program, call, opened, birth)
    ledger.cause = _cause(opened, arrived)
    around = Surroundings(
        opened.run,
        opened.run_id,
        birth,
        program.codec,
        program.outlets,
        Resources(call.resources),
        channel,
    )
    actor = Actor(around, ledger, saver, channel, call.durability, program.graph.max_concurrency)
    actor.watch = program.watch
    if opened.imported:
        actor.add_changes(opened.run.tables)
    elif opened.migrated is not None:
        actor.add_changes(delta_of(opened.migrated.delta))
    head = opened.head
    if saver is not None:
        register(birth, saver.lease.epoch, actor)
        actor.inbox = Inbox(actor, program, saver.store, opened.run_id, offered=head is not None and head.offered)
    channel.sequence = ledger.events
    return actor


def ledger_and_saver(program: Program, call: Call, opened: Opened, birth: str) -> tuple[Ledger, Saver | None]:
    """Return what numbers the checkpoints of an opened run, and what commits them, first by a claim."""
    store = call.store if call.durability != "off" else None
    nonce = program.ids.new_id() if store is None or opened.imported else ""
    ledger = Ledger(opened.run_id, program.graph.name, birth, program.clock, nonce)
    if opened.header is not None:
        ledger.resume(opened.header, opened.digests, imported=opened.imported)
    if store is None:
        return ledger, None
    head = opened.head
    lease = Lease(process_owner(), (head.epoch if head else 0) + 1, LEASE_SECONDS, claim=True)
    return ledger, Saver(store, ledger, lease, head.header.checkpoint_id if head else None)


def _cause(opened: Opened, arrived: TurnArrived) -> Cause:
    """Return why a turn's claim is made; what comes in from elsewhere comes before what the call brings."""
    if opened.imported:
        return Cause.FORK if opened.header is None else Cause.IMPORT
    if arrived.continuation:
        return Cause.CONTINUATION
    return Cause.ANSWERS if arrived.message is None else Cause.MESSAGE


def _kept_requests(opened: Opened) -> list[str]:
    """Return the requests that a new message leaves open without having been told to."""
    arrived = opened.arrived
    if arrived is None or arrived.message is None or arrived.pending_given or arrived.continuation:
        return []
    answered = {(answer.path, answer.name) for answer in arrived.answers}
    return [o.request_id for o in reading.open_requests(opened.run) if (o.path, o.name) not in answered]


def _warn(opened: Opened, kept: list[str]) -> None:
    """Log what is to be said once: requests that stay open, and that a checkpoint is a legacy one."""
    record = opened.run.get("", "run", "")
    if isinstance(record, RunRecord) and record.legacy:
        logger.warning(
            "run %r goes on from a legacy checkpoint: inner state of its sub-workflows may be missing", opened.run_id
        )
    if opened.migrated is not None and opened.migrated.dropped:
        logger.warning(
            "run %r was brought up to another version, which dropped: %s",
            opened.run_id,
            "; ".join(opened.migrated.dropped),
        )
    if kept:
        logger.warning(
            "run %r was given a new message while %d request(s) are open; they stay open: %s",
            opened.run_id,
            len(kept),
            ", ".join(kept),
        )


def _surface(turn: Turn) -> None:
    """Tell the reader of a call that needs no turn how the run stands."""
    result = turn.result()
    run = turn.opened.run
    turn.channel.sequence = result.checkpoint.header.events
    replayed = turn.opened.replayed
    events: list[Event] = [TurnStarted(turn=result.turn, continuation=not replayed, replayed=replayed)]
    if replayed:
        events += [reading.yielded(item) for item in reading.outputs(run)]
    events += [reading.surfaced(o.request_id, o.path, o.record) for o in reading.open_requests(run)]
    events.append(StatusChanged(status=result.status))
    turn.channel.publish(events, again=True)
    turn.channel.close()


def engine_error(place: reading.FailedPlace) -> RehydrateError | None:
    """Return the error of a failure that the engine found in the records."""
    failure = place.failure
    if failure.kind == "conflict":
        return StateConflictError(place.path, *failure.facts)
    if failure.kind == "deadlock":
        return JoinDeadlockError(place.path, failure.facts)
    if failure.kind == "timeout" and not place.executor:
        return SubWorkflowTimeoutError(place.path, float(failure.facts[0]))
    if failure.kind == "response":
        return response_failure(place)
    return None
