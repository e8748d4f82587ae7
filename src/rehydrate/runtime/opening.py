"""Opening a turn: from a call to a run in memory that is ready to be claimed.

The steps stand in the order of the contract. Up to the claim nothing anywhere changes; whatever is wrong raises here.
"""

from __future__ import annotations

from dataclasses import dataclass

from rehydrate.engine import reading
from rehydrate.engine.inputs import Answer, TurnArrived
from rehydrate.engine.run import Run
from rehydrate.errors import (
    CheckpointNotFoundError,
    ForeignCheckpointError,
    IdempotencyKeyError,
    PendingRequestsError,
    RunBusyError,
    RunExistsError,
    StaleCheckpointError,
    TurnInProgressError,
    UnfinishedWorkError,
    UnknownRequestError,
    WrongCallError,
)
from rehydrate.model.checkpoint import RESTING, Head, Header, Latest, Status, Stored, TurnRow
from rehydrate.model.records import RunRecord, TurnRecord
from rehydrate.ports import CheckpointStorage

from .call import Call, Row, SealedCall, seal_call
from .checkpoint import WorkflowCheckpoint, restored
from .checks import check_definition, check_message, check_resources
from .owner import is_driven_here, process_owner
from .program import Program
from .requests import check_answers, receipt_error
from .saver import birth_of


@dataclass(frozen=True)
class Found:
    """A run that a call goes on from. `head` is `None` where no store knows it; `same`: the call is its newest turn."""

    checkpoint: WorkflowCheckpoint
    head: Head | None
    same: bool = False


@dataclass(frozen=True)
class Opened:
    """What the claim will save: the run in memory, whose it is, and the turn's input.

    Without `arrived` the call needs no turn: its result is there already.
    """

    run_id: str
    run: Run
    header: Header | None
    head: Head | None
    arrived: TurnArrived | None
    imported: bool = False
    replayed: bool = False
    #: Digests of the records as the store has them.
    digests: dict[str, int] | None = None


class Opening:
    """One call on its way to its claim."""

    def __init__(self, call: Call, program: Program) -> None:
        self.call = call
        self.program = program
        self.graph = program.graph
        self.codec = program.codec
        self.store = call.store
        self.row = call.check()
        if call.message is not None:
            check_message(self.graph, call.message)
        self.sealed: SealedCall = seal_call(call, self.codec, self.graph)

    async def open(self) -> Opened:
        """Return what to claim. Raises every error of the call and of restoring."""
        recorded = await self._by_key()
        if recorded is not None:
            return recorded
        found = await self._find()
        if found is None:
            check_resources(self.graph, self.call.resources)
            return self._new_run()
        if found.same:
            return await self._same_turn(found)
        if self.call.fork:
            return await self._fork(found)
        return await self._go_on(found)

    # The same call again -------------------------------------------------------------------------------------------

    async def _by_key(self) -> Opened | None:
        """Return the recorded result of a call made before with the same key, or the interrupted turn it began."""
        key, store = self.call.idempotency_key, self.store
        if key is None or store is None:
            return None
        row = await store.find_turn(self.graph.name, key)
        if row is None:
            return None
        base = self.call.base
        if row.digest != self.sealed.digest or (base is not None and row.base != base):
            raise IdempotencyKeyError(key, row.run_id)
        if row.status in RESTING:
            return await self._recorded(store, row)
        stored = await self._load(store, Latest(row.run_id))
        found = Found(restored(stored.header, stored.records), stored.head, same=True)
        turn = _turn_of(found.checkpoint.records)
        if turn is None or turn.number != row.number or stored.header.status in RESTING:
            return await self._recorded(store, row)
        return await self._same_turn(found)

    async def _recorded(self, store: CheckpointStorage, row: TurnRow) -> Opened:
        stored = await self._load(store, row.checkpoint_id)
        checkpoint = restored(stored.header, stored.records)
        check_definition(self.graph, checkpoint)
        return Opened(checkpoint.run_id, checkpoint.records, checkpoint.header, stored.head, None, replayed=True)

    async def _same_turn(self, found: Found) -> Opened:
        """Go on with the turn that this very call began; nothing of its input is applied again."""
        self._check_owner(found, same=True)
        return await self._continue(found)

    def _is_same(self, checkpoint: WorkflowCheckpoint, *, base_counts: bool) -> bool:
        """Tell whether the call is the newest turn (or its newest continuation) of a run."""
        turn = _turn_of(checkpoint.records)
        if turn is None:
            return False
        if turn.resumed is not None and base_counts and turn.resumed == (self.call.base, self.sealed.digest):
            return True
        if turn.digest != self.sealed.digest:
            return False
        if base_counts:
            return turn.base == self.call.base
        return checkpoint.status not in RESTING

    # Finding the run -----------------------------------------------------------------------------------------------

    async def _find(self) -> Found | None:
        """Return the run that the call goes on from; `None` for a new one."""
        call, store = self.call, self.store
        if self.row is Row.NEW_RUN:
            return await self._find_new()
        if self.row is Row.FIND_AND_ANSWER:
            return await self._find_latest(await self._run_of_answers())
        given = call.checkpoint_object
        if store is None:
            assert given is not None  # noqa: S101  (an id without a store was refused)
            self._check_run_id(given)
            return Found(given, None)
        if call.is_latest:
            return await self._find_latest(call.run_id or "")
        found = await self._find_id(store, given, str(call.base))
        self._check_run_id(found.checkpoint)
        return found

    async def _find_new(self) -> Found | None:
        store = self.store
        run_id = self._new_run_id()
        if store is None or run_id is None:
            return None
        head = await store.head(run_id)
        if head is None:
            return None
        if head.header.workflow != self.graph.name:
            raise RunExistsError(run_id, head.header.checkpoint_id)
        stored = await self._load(store, Latest(run_id))
        checkpoint = restored(stored.header, stored.records)
        turn = _turn_of(checkpoint.records)
        if turn is not None and turn.base is None and self._is_same(checkpoint, base_counts=False):
            return Found(checkpoint, stored.head, same=True)
        raise RunExistsError(run_id, head.header.checkpoint_id)

    def _new_run_id(self) -> str | None:
        return self.call.run_id or self.program.run_id_of_key(self.call.idempotency_key)

    async def _find_latest(self, run_id: str) -> Found:
        assert self.store is not None  # noqa: S101  (checked with the call)
        stored = await self._load(self.store, Latest(run_id))
        checkpoint = restored(stored.header, stored.records)
        same = not self.call.fork and self._is_same(checkpoint, base_counts=False)
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
                raise CheckpointNotFoundError(base)
            head = await store.head(given.run_id)
            if head is not None and not self.call.fork:
                raise ForeignCheckpointError(base, "another store", f"run {given.run_id!r} of this one")
            return Found(given, None)
        checkpoint = restored(stored.header, stored.records)
        if self.call.fork:
            return Found(checkpoint, stored.head)
        if stored.head.header.checkpoint_id == base:
            return Found(checkpoint, stored.head)
        return await self._find_behind(store, checkpoint, stored)

    async def _find_behind(self, store: CheckpointStorage, checkpoint: WorkflowCheckpoint, stored: Stored) -> Found:
        """A checkpoint that is not the head: the base of the newest turn, if this is the same call, else stale."""
        run_id = checkpoint.run_id
        newest = await self._load(store, Latest(run_id))
        head = restored(newest.header, newest.records)
        if self._is_same(head, base_counts=True) and head.status not in RESTING:
            return Found(head, newest.head, same=True)
        if newest.head.header.workflow == self.graph.name:
            birth = birth_of(head.records)
            for request_id in self.call.responses:
                error = receipt_error(request_id, head.records, run_id, [birth])
                if error is not None:
                    raise error
            self._check_owner(Found(head, newest.head), same=False)
        raise StaleCheckpointError(run_id, checkpoint.checkpoint_id, newest.header.checkpoint_id)

    async def _load(self, store: CheckpointStorage, ref: str | Latest) -> Stored:
        stored = await store.load(ref)
        if stored is None:
            raise CheckpointNotFoundError(ref.run_id if isinstance(ref, Latest) else ref)
        return stored

    def _check_run_id(self, checkpoint: WorkflowCheckpoint) -> None:
        run_id = self.call.run_id
        if run_id is not None and not self.call.fork and run_id != checkpoint.run_id:
            raise ForeignCheckpointError(checkpoint.checkpoint_id, f"run {checkpoint.run_id!r}", f"run {run_id!r}")

    def _check_owner(self, found: Found, *, same: bool) -> None:
        """Raise where the run's owner is alive, unless the call takes the run over."""
        head = found.head
        if head is None or head.owner is None or self.call.takeover:
            return
        if head.owner == process_owner():
            alive = is_driven_here(birth_of(found.checkpoint.records), head.epoch)
        else:
            alive = head.alive
        if alive:
            error = TurnInProgressError if same else RunBusyError
            raise error(found.checkpoint.run_id, head.owner)

    # What is claimed -----------------------------------------------------------------------------------------------

    def _new_run(self) -> Opened:
        run_id = self._new_run_id() or self.program.ids.new_id()
        return Opened(run_id, Run(), None, None, self._arrived(None, (), new_run=self._run_record()))

    def _run_record(self) -> RunRecord:
        graph = self.graph
        return RunRecord(self.program.ids.new_id(), graph.name, graph.version, self.program.signature_digest)

    async def _continue(self, found: Found) -> Opened:
        """Take the turn up that was found, without new input."""
        checkpoint = found.checkpoint
        check_definition(self.graph, checkpoint)
        check_resources(self.graph, self.call.resources)
        if not reading.unfinished_scopes(checkpoint.records):
            return Opened(checkpoint.run_id, checkpoint.records, checkpoint.header, found.head, None)
        same = found.same and self.row is not Row.CONTINUE
        arrived = self._arrived(found, (), continuation=True, keeps=same)
        return Opened(
            checkpoint.run_id, checkpoint.records.copy(), checkpoint.header, found.head, arrived,
            imported=self.store is not None and found.head is None, digests=checkpoint.digests,
        )  # fmt: skip

    async def _go_on(self, found: Found) -> Opened:
        self._check_owner(found, same=False)
        checkpoint = found.checkpoint
        check_definition(self.graph, checkpoint)
        if self.row is Row.CONTINUE:
            return await self._continue(found)
        answers = await self._answers(checkpoint, (birth_of(checkpoint.records),))
        check_resources(self.graph, self.call.resources)
        self._check_policies(checkpoint, answers)
        return Opened(
            checkpoint.run_id, checkpoint.records.copy(), checkpoint.header, found.head, self._arrived(found, answers),
            imported=self.store is not None and found.head is None, digests=checkpoint.digests,
        )  # fmt: skip

    async def _fork(self, found: Found) -> Opened:
        """Copy the records under a new run id; inner names stay, outer ids change with the new birth."""
        checkpoint = found.checkpoint
        source = birth_of(checkpoint.records)
        run_id = (None if self.call.is_latest else self.call.run_id) or self.program.run_id_of_key(
            self.call.idempotency_key
        )
        run_id = run_id or self.program.ids.new_id()
        head = await self.store.head(run_id) if self.store is not None else None
        if head is not None:
            return await self._forked_before(run_id, head)
        check_definition(self.graph, checkpoint)
        answers = await self._answers(checkpoint, (source,))
        check_resources(self.graph, self.call.resources)
        self._check_policies(checkpoint, answers)
        run = checkpoint.records.copy()
        record = run.get("", "run", "")
        assert isinstance(record, RunRecord)  # noqa: S101  (every run has one)
        copied = RunRecord(self.program.ids.new_id(), record.workflow, record.version, record.signature, record.legacy)
        run.apply({("", "run", ""): copied})
        arrived = self._arrived(found, answers, continuation=self.row is Row.CONTINUE)
        return Opened(run_id, run, None, None, arrived, imported=True)

    async def _forked_before(self, run_id: str, head: Head) -> Opened:
        assert self.store is not None  # noqa: S101  (it gave the head)
        stored = await self._load(self.store, Latest(run_id))
        checkpoint = restored(stored.header, stored.records)
        if not self._is_same(checkpoint, base_counts=True) or checkpoint.status in RESTING:
            raise RunExistsError(run_id, head.header.checkpoint_id)
        return await self._same_turn(Found(checkpoint, stored.head, same=True))

    async def _answers(self, checkpoint: WorkflowCheckpoint, births: tuple[str, ...]) -> tuple[Answer, ...]:
        return await check_answers(
            self.call.responses,
            checkpoint.records,
            checkpoint.run_id,
            self.graph,
            self.codec,
            self.store,
            births,
        )

    def _check_policies(self, checkpoint: WorkflowCheckpoint, answers: tuple[Answer, ...]) -> None:
        """Refuse what `reject` refuses."""
        run = checkpoint.records
        if self.call.on_unfinished == "reject":
            where = reading.unfinished_scopes(run)
            if where:
                raise UnfinishedWorkError(checkpoint.run_id, tuple(where))
        if self.call.on_pending == "reject":
            answered = {(answer.path, answer.name) for answer in answers}
            left = [o.request_id for o in reading.open_requests(run) if (o.path, o.name) not in answered]
            if left:
                raise PendingRequestsError(checkpoint.run_id, tuple(left))

    def _arrived(
        self,
        found: Found | None,
        answers: tuple[Answer, ...],
        *,
        new_run: RunRecord | None = None,
        continuation: bool = False,
        keeps: bool = False,
    ) -> TurnArrived:
        status = found.checkpoint.status if found is not None else None
        call = self.call
        base = None if found is None else call.base or found.checkpoint.checkpoint_id
        return TurnArrived(
            message=None if continuation else self.sealed.message,
            answers=answers,
            base=base,
            digest=self.sealed.digest,
            key=call.idempotency_key,
            run_args=None if keeps else self.sealed.run_args,
            on_pending=call.on_pending or "keep",
            pending_given=call.on_pending is not None,
            on_unfinished="finish" if continuation else call.on_unfinished,
            continuation=continuation,
            same=keeps,
            interrupted=status is Status.RUNNING,
            limit_anew=status is Status.LIMIT_REACHED,
            new_run=new_run,
            signature=self.graph.signature if new_run is not None else "",
        )


def _turn_of(run: Run) -> TurnRecord | None:
    record = run.get("", "turn", "")
    return record if isinstance(record, TurnRecord) else None
