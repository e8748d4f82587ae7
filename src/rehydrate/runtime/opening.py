"""Opening a turn: from a call to a run in memory that is ready to be claimed.

The steps stand in the order of the contract. Up to the claim nothing anywhere changes; whatever is wrong raises here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec

from rehydrate.codecs.offers import decode_offer
from rehydrate.engine import reading
from rehydrate.engine.inputs import Answer, OfferArrived, TurnArrived
from rehydrate.engine.requests import renew_ids
from rehydrate.engine.run import Run, delta_of
from rehydrate.errors import (
    CallError,
    PendingRequestsError,
    RunExistsError,
    UnfinishedWorkError,
    WorkflowCheckpointException,
)
from rehydrate.model.checkpoint import RESTING, Cause, Head, Header, Latest, Status
from rehydrate.model.records import Key, Record, RunRecord

from .call import Call, Row, SealedCall, seal_call, seal_named
from .checkpoint import Migrated, WorkflowCheckpoint, restored
from .checks import check_message, check_resources
from .finding import Finder, Found, check_owner, load, turn_of
from .inbox import arrived_offer
from .migrating import fitting
from .program import Program
from .requests import check_answers


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
    #: What migrations have changed against the records that the store has.
    migrated: Migrated | None = None

    @property
    def cause(self) -> Cause:
        """Why the claim is made; what comes in from elsewhere comes before what the call brings."""
        arrived = self.arrived
        if self.imported:
            return Cause.FORK if self.header is None else Cause.IMPORT
        if arrived is None or arrived.continuation:
            return Cause.CONTINUATION
        return Cause.ANSWERS if arrived.message is None else Cause.MESSAGE


class Opening:
    """One call on its way to its claim."""

    def __init__(self, call: Call, program: Program) -> None:
        self.call = call
        self.program = program
        self.graph = program.graph
        self.codec = program.codec
        self.store = call.store
        self.row = call.check()
        self.sealed: SealedCall = seal_call(call, self.codec, self.graph)
        self.finder = Finder(call, self.row, self.sealed, program)

    async def open(self) -> Opened:
        """Return what to claim. Raises every error of the call and of restoring."""
        found = await self.finder.by_key()
        if found is not None:
            return await self._go(found)
        try:
            return await self._go(await self.finder.find())
        except (CallError, WorkflowCheckpointException):
            # The first delivery of this key may have been claimed after its key was looked up.
            found = await self.finder.by_key()
            if found is None:
                raise
        return await self._go(found)

    async def _go(self, found: Found | None) -> Opened:
        if found is None:
            self._check_message()
            check_resources(self.graph, self.call.resources)
            return self._new_run()
        if found.recorded:
            return self._recorded(found)
        if found.same:
            return await self._same_turn(found)
        if self.call.fork:
            return await self._fork(found)
        return await self._go_on(found)

    def _check_message(self) -> None:
        """Refuse a message that the start executor does not take, or that cannot be stored."""
        if self.call.message is not None:
            check_message(self.graph, self.call.message)
            seal_named(self.codec, self.call.message, "the message")

    def _recorded(self, found: Found) -> Opened:
        """Give back what an earlier call with the same key has recorded."""
        checkpoint = fitting(self.program, found.checkpoint)
        return Opened(checkpoint.run_id, checkpoint.records, checkpoint.header, found.head, None, replayed=True)

    async def _same_turn(self, found: Found) -> Opened:
        """Go on with the turn that this very call began; nothing of its input is applied again."""
        check_owner(self.call, found, same=True)
        return await self._continue(replace(found, checkpoint=fitting(self.program, found.checkpoint)))

    def _new_run(self) -> Opened:
        run_id = self.finder.new_run_id() or self.program.ids.new_id()
        return Opened(run_id, Run(), None, None, self._arrived(None, (), new_run=self._run_record()))

    def _run_record(self) -> RunRecord:
        graph = self.graph
        return RunRecord(self.program.ids.new_id(), graph.name, graph.version, self.program.signature_digest)

    async def _continue(self, found: Found) -> Opened:
        """Take the turn up that was found, and fits, without new input but what was offered to a run at rest."""
        checkpoint = found.checkpoint
        check_resources(self.graph, self.call.resources)
        freed = checkpoint.migrated is not None and checkpoint.migrated.freed
        due = reading.next_due(checkpoint.records)
        is_due = due is not None and due <= self.program.clock.time()
        if not freed and not is_due and not reading.unfinished_scopes(checkpoint.records):
            offer = await self._offered(found)
            if offer is None:
                return Opened(checkpoint.run_id, checkpoint.records, checkpoint.header, found.head, None)
            arrived = self._of_offer(found, offer)
        else:
            same = found.same and self.row is not Row.CONTINUE
            arrived = self._arrived(found, (), continuation=True, keeps=same)
        return Opened(
            checkpoint.run_id, checkpoint.records.copy(), checkpoint.header, found.head, arrived,
            imported=self.store is not None and found.head is None, digests=checkpoint.digests,
            migrated=checkpoint.migrated,
        )  # fmt: skip

    async def _offered(self, found: Found) -> OfferArrived | None:
        """Return what was first offered to a run at rest, if anything was."""
        if self.store is None or found.head is None or not found.head.offered:
            return None
        checkpoint = found.checkpoint
        offers = await self.store.offers(checkpoint.run_id, limit=1)
        if not offers:
            return None
        return arrived_offer(self.program, checkpoint.records, offers[0], decode_offer(offers[0]))

    def _of_offer(self, found: Found, offer: OfferArrived) -> TurnArrived:
        """Return an offer as the input of a turn of its own."""
        arrived = self._arrived(found, offer.answers, continuation=offer.refused is not None)
        return msgspec.structs.replace(arrived, message=offer.message, offer=offer)

    async def _go_on(self, found: Found) -> Opened:
        check_owner(self.call, found, same=False)
        checkpoint = fitting(self.program, found.checkpoint)
        found = replace(found, checkpoint=checkpoint)
        if self.row is Row.CONTINUE:
            return await self._continue(found)
        self._check_message()
        answers = await self._answers(checkpoint)
        check_resources(self.graph, self.call.resources)
        self._check_policies(checkpoint, answers)
        return Opened(
            checkpoint.run_id, checkpoint.records.copy(), checkpoint.header, found.head, self._arrived(found, answers),
            imported=self.store is not None and found.head is None, digests=checkpoint.digests,
            migrated=checkpoint.migrated,
        )  # fmt: skip

    async def _fork(self, found: Found) -> Opened:
        """Copy the records under a new run id; inner names stay, outer ids change with the new birth."""
        checkpoint = found.checkpoint
        run_id = self.finder.forked_run_id()
        head = await self.store.head(run_id) if self.store is not None else None
        if head is not None:
            return await self._forked_before(run_id, head)
        checkpoint = fitting(self.program, checkpoint)
        found = replace(found, checkpoint=checkpoint)
        self._check_message()
        answers = await self._answers(checkpoint)
        check_resources(self.graph, self.call.resources)
        self._check_policies(checkpoint, answers)
        base = self.call.base or checkpoint.checkpoint_id
        run = copied(self.program, checkpoint.records, base, self.sealed.digest, self.call.idempotency_key)
        arrived = self._arrived(found, answers, continuation=self.row is Row.CONTINUE)
        return Opened(run_id, run, None, None, arrived, imported=True)

    async def _forked_before(self, run_id: str, head: Head) -> Opened:
        assert self.store is not None  # noqa: S101  (it gave the head)
        stored = await load(self.store, Latest(run_id))
        checkpoint = restored(stored)
        if not self.finder.is_same(checkpoint, base_counts=True) or checkpoint.status in RESTING:
            raise RunExistsError(run_id, head.header.checkpoint_id)
        return await self._same_turn(Found(checkpoint, stored.head, same=True))

    async def _answers(self, checkpoint: WorkflowCheckpoint) -> tuple[Answer, ...]:
        return await check_answers(
            self.call.responses,
            checkpoint.records,
            checkpoint.run_id,
            self.graph,
            self.codec,
            self.store,
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
        migrated = found.checkpoint.migrated if found is not None else None
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
            handed_on=found is not None and found.handed_on,
            limit_anew=status is Status.LIMIT_REACHED,
            new_run=new_run,
            signature=self.graph.signature if new_run is not None else "",
            dropped=migrated.dropped if migrated is not None else (),
            freed=migrated.freed if migrated is not None else (),
        )


def copied(program: Program, records: Run, base: str, digest: str, key: str | None = None) -> Run:
    """Return records for a run of its own: inner names stay, outer ids change with its birth. Its turn begins at
    `base`."""
    run = records.copy()
    record: RunRecord = run.get("", "run", "")
    mine = RunRecord(program.ids.new_id(), record.workflow, record.version, record.signature, record.legacy)
    delta: dict[Key, Record | None] = {("", "run", ""): mine}
    turn = turn_of(run)
    if turn is not None:
        delta[("", "turn", "")] = msgspec.structs.replace(turn, key=key, base=base, digest=digest, resumed=None)
    run.apply(delta_of(delta))
    renew_ids(run)
    return run
