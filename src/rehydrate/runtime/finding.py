"""Finding the run that a call goes on from, and telling whether the call was made before.

Loads, verifies and compares; it raises for what is missing, foreign, stale or busy, and changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from rehydrate.engine.run import Run, birth_of
from rehydrate.errors import (
    CheckpointNotFoundError,
    ForeignCheckpointError,
    IdempotencyKeyError,
    RunBusyError,
    RunExistsError,
    RunNotFoundError,
    StaleCheckpointError,
    TurnInProgressError,
    UnknownRequestError,
    WrongCallError,
)
from rehydrate.graph.definition import Definition
from rehydrate.model.checkpoint import RESTING, Head, Latest, Status, Stored, TurnRow
from rehydrate.model.records import TurnRecord
from rehydrate.ports import CheckpointStorage

from .call import Call, Row, SealedCall
from .checkpoint import WorkflowCheckpoint, restored
from .owner import is_driven_here, process_owner
from .program import Program
from .requests import receipt_error


@dataclass(frozen=True)
class Found:
    """A run that a call goes on from. `head` is `None` where no store knows it.

    `same`: the call is the run's newest turn; `recorded`: it was made before and ended well.
    """

    checkpoint: WorkflowCheckpoint
    head: Head | None
    same: bool = False
    recorded: bool = False

    @property
    def handed_on(self) -> bool:
        """Tell whether it stands as its process left it; an unfinished one whose owner is known was lost."""
        head = self.head
        return head is not None and head.owner is None and head.header.checkpoint_id == self.checkpoint.checkpoint_id


class Finder:
    """Looks for the run of one call."""

    def __init__(self, call: Call, row: Row, sealed: SealedCall, program: Program) -> None:
        self.call = call
        self.row = row
        self.sealed = sealed
        self.program = program
        self.graph: Definition = program.graph
        self.store = call.store

    async def by_key(self) -> Found | None:
        """Return what a call made before with the same key left: its recorded result, or its interrupted turn."""
        key, store = self.call.idempotency_key, self.store
        if key is None or store is None:
            return None
        row = await store.find_turn(self.graph.name, key)
        if row is None:
            return None
        if row.digest != self.sealed.digest or not self._has_base(row):
            raise IdempotencyKeyError(key, row.run_id)
        if row.status in RESTING:
            return await self._recorded(store, row)
        stored = await load(store, Latest(row.run_id))
        found = Found(restored(stored), stored.head, same=True)
        turn = turn_of(found.checkpoint.records)
        if turn is None or turn.number != row.number or stored.header.status in RESTING:
            # The end of the turn wrote its row, too: after the head was seen at rest it is the final one.
            row = await store.find_turn(self.graph.name, key) or row
            if row.status is Status.RUNNING:
                # It was interrupted and a later turn went on with its work: there is no result of its own.
                raise StaleCheckpointError(row.run_id, row.checkpoint_id, stored.header.checkpoint_id)
            return await self._recorded(store, row)
        return found

    def _has_base(self, row: TurnRow) -> bool:
        """Tell whether a keyed turn began where this call begins.

        A handler that goes on "if the run exists" names no checkpoint the first time and `"latest"` when it repeats.
        """
        call = self.call
        if "checkpoint" in call.supplied or call.is_latest or self.row is Row.FIND_AND_ANSWER:
            return True
        return row.base == call.base

    async def _recorded(self, store: CheckpointStorage, row: TurnRow) -> Found:
        stored = await load(store, row.checkpoint_id)
        return Found(restored(stored), stored.head, recorded=True)

    def is_same(self, checkpoint: WorkflowCheckpoint, *, base_counts: bool) -> bool:
        """Tell whether the call is the newest turn (or its newest continuation) of a run."""
        turn = turn_of(checkpoint.records)
        if turn is None:
            return False
        if turn.resumed is not None and base_counts and turn.resumed == (self.call.base, self.sealed.digest):
            return True
        if turn.digest != self.sealed.digest:
            return False
        if base_counts:
            return turn.base == self.call.base
        return checkpoint.status not in RESTING

    async def find(self) -> Found | None:
        """Return the run that the call goes on from; `None` for a new one."""
        call, store = self.call, self.store
        if self.row is Row.NEW_RUN:
            return await self._find_new()
        if self.row is Row.FIND_AND_ANSWER:
            return await self._find_latest(await self._run_of_answers())
        given = call.checkpoint_object
        if store is None:
            assert given is not None  # noqa: S101  (an id without a store was refused)
            self._check_run(given)
            return Found(given, None)
        if call.is_latest:
            return await self._find_latest(call.run_id or "")
        return await self._find_id(store, given, str(call.base))

    async def _find_new(self) -> Found | None:
        store = self.store
        run_id = self.new_run_id()
        if store is None or run_id is None:
            return None
        head = await store.head(run_id)
        if head is None:
            return None
        if head.header.workflow != self.graph.name:
            raise RunExistsError(run_id, head.header.checkpoint_id, head.header.workflow)
        stored = await load(store, Latest(run_id))
        checkpoint = restored(stored)
        turn = turn_of(checkpoint.records)
        if turn is not None and turn.base is None and self.is_same(checkpoint, base_counts=False):
            return Found(checkpoint, stored.head, same=True)
        raise RunExistsError(run_id, head.header.checkpoint_id)

    def new_run_id(self) -> str | None:
        """Return the id that a new run gets from the call or its idempotency key."""
        return self.call.run_id or self.program.run_id_of_key(self.call.idempotency_key)

    def forked_run_id(self) -> str:
        """Return the id of the run that a fork makes: given, from the idempotency key, or random."""
        given = None if self.call.is_latest else self.call.run_id
        return given or self.program.run_id_of_key(self.call.idempotency_key) or self.program.ids.new_id()

    async def _find_latest(self, run_id: str) -> Found:
        assert self.store is not None  # noqa: S101  (checked with the call)
        stored = await load(self.store, Latest(run_id))
        checkpoint = restored(stored)
        same = not self.call.fork and self.is_same(checkpoint, base_counts=False)
        return Found(checkpoint, stored.head, same=same)

    async def _run_of_answers(self) -> str:
        """Return the run that all answers belong to, as the store knows it."""
        if self.call.run_id is not None:
            return self.call.run_id
        assert self.store is not None  # noqa: S101  (checked with the call)
        runs: dict[str, str] = {}
        for request_id in self.call.responses:
            row = await self.store.find_request(request_id)
            if row is None:
                raise UnknownRequestError(request_id)
            runs.setdefault(row.run_id, request_id)
        if len(runs) > 1:
            raise WrongCallError(
                f"the answers belong to {len(runs)} runs: {', '.join(map(repr, sorted(runs)))}.",
                "Answer one run with each call.",
            )
        return next(iter(runs))

    async def _find_id(self, store: CheckpointStorage, given: WorkflowCheckpoint | None, base: str) -> Found:
        """Return the run of a checkpoint id (or of an object that counts as its id), looking at its head too."""
        stored = await store.load(base)
        if stored is None:
            if given is None:
                raise CheckpointNotFoundError(base, is_run=await store.head(base) is not None)
            self._check_run(given)
            head = await store.head(given.run_id)
            if head is not None and not self.call.fork:
                newest = await load(store, Latest(given.run_id))
                imported = restored(newest)
                if self.is_same(imported, base_counts=True) and imported.status not in RESTING:
                    return Found(imported, newest.head, same=True)
                raise ForeignCheckpointError(
                    base, "another store or a turn that was not saved", f"run {given.run_id!r} of this store"
                )
            return Found(given, None)
        checkpoint = restored(stored)
        self._check_run(checkpoint)
        if self.call.fork:
            return Found(checkpoint, stored.head)
        if stored.head.header.checkpoint_id == base:
            return Found(checkpoint, stored.head)
        return await self._find_behind(store, checkpoint)

    async def _find_behind(self, store: CheckpointStorage, checkpoint: WorkflowCheckpoint) -> Found:
        """A checkpoint that is not the head: the base of the newest turn, if this is the same call, else stale."""
        run_id = checkpoint.run_id
        newest = await load(store, Latest(run_id))
        head = restored(newest)
        if self.is_same(head, base_counts=True) and head.status not in RESTING:
            return Found(head, newest.head, same=True)
        if newest.head.header.workflow == self.graph.name:
            for request_id in self.call.responses:
                error = receipt_error(request_id, head.records, run_id)
                if error is not None:
                    raise error
            check_owner(self.call, Found(head, newest.head), same=False)
        raise StaleCheckpointError(run_id, checkpoint.checkpoint_id, newest.header.checkpoint_id)

    def _check_run(self, checkpoint: WorkflowCheckpoint) -> None:
        """Refuse a checkpoint of another workflow, or of another run than the call names."""
        if checkpoint.workflow_name != self.graph.name:
            raise ForeignCheckpointError(
                checkpoint.checkpoint_id,
                f"workflow {checkpoint.workflow_name!r}",
                f"workflow {self.graph.name!r}",
            )
        run_id = self.call.run_id
        if run_id is not None and not self.call.fork and run_id != checkpoint.run_id:
            raise ForeignCheckpointError(checkpoint.checkpoint_id, f"run {checkpoint.run_id!r}", f"run {run_id!r}")


async def load(store: CheckpointStorage, ref: str | Latest) -> Stored:
    """Return a stored checkpoint. Raises `CheckpointNotFoundError`."""
    stored = await store.load(ref)
    if stored is None:
        if isinstance(ref, Latest):
            raise RunNotFoundError(ref.run_id)
        raise CheckpointNotFoundError(ref)
    return stored


def check_owner(call: Call, found: Found, *, same: bool) -> None:
    """Raise `RunBusyError` where the run's owner is alive, unless the call takes the run over."""
    head = found.head
    if head is None or head.owner is None or call.takeover:
        return
    if head.owner == process_owner():
        alive = is_driven_here(birth_of(found.checkpoint.records), head.epoch)
    else:
        alive = head.alive
    if alive:
        error = TurnInProgressError if same else RunBusyError
        raise error(found.checkpoint.run_id, head.owner)


def turn_of(run: Run) -> TurnRecord | None:
    """Return the newest turn of a run."""
    record = run.get("", "turn", "")
    return record if isinstance(record, TurnRecord) else None
