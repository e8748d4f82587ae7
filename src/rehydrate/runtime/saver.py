"""The saver: turns deltas of one run into commits, one at a time, each moving the head once.

It knows the stored digest of every live record, so that a commit costs what changed. It must not decide when to save.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Final

import msgspec

from rehydrate.codecs.checkpoints import record_digest
from rehydrate.codecs.events import encode_events
from rehydrate.codecs.records import encode_record
from rehydrate.engine.reading import next_due
from rehydrate.engine.requests import names_in
from rehydrate.engine.run import Delta, Run, known_name
from rehydrate.ids import ABOVE_ROOT, outer_id
from rehydrate.model.checkpoint import (
    RESTING,
    Cause,
    Commit,
    Header,
    Lease,
    Put,
    RequestRow,
    Status,
    TurnRow,
    key_text,
)
from rehydrate.model.events import Event
from rehydrate.model.records import ReceiptRecord, ReceiptsRecord, RequestRecord, ScopeRecord, TurnRecord
from rehydrate.model.request_packs import RequestsRecord
from rehydrate.model.status_table import is_legal
from rehydrate.ports import CheckpointStorage, Clock, compresses

from .observing import Observing

_MODULUS: Final = 1 << 256
_OF_REQUESTS: Final = frozenset({"request", "requests", "receipt", "receipts"})
_OF_SUPERSTEPS: Final = frozenset({"step", "scope"})
#: How long a lease lasts, in seconds; a heartbeat renews it at a third of it.
LEASE_SECONDS: Final = 30.0
#: So many scopes are named in a header.
SCOPES_NAMED: Final = 16


class Changes(msgspec.Struct, frozen=True, gc=False):
    """What a delta writes and removes, in how many scopes it does, and the paths of the first of these."""

    puts: tuple[Put, ...] = ()
    removes: tuple[str, ...] = ()
    scopes: int = 0
    named: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of the records written."""
        return sum([len(put.data) for put in self.puts])


def checkpoint_id(birth: str, seq: int, nonce: str = "") -> str:
    """Return the id of a run's checkpoint: made from the birth, so that a run id used again repeats none.

    Without a store two calls may go on from one checkpoint; a nonce tells what they make apart.
    """
    return outer_id(birth, f"checkpoint {seq} {nonce}")


_NOTHING: Final = Changes()


def _cause(delta: Delta) -> Cause:
    """Return why a checkpoint within a turn is made."""
    kinds = {kind for _, kind in delta}
    if "receipt" in kinds and _is_answered(delta):
        return Cause.ANSWERS
    return Cause.INVOCATION if kinds.isdisjoint(_OF_SUPERSTEPS) else Cause.SUPERSTEP


def _is_answered(delta: Delta) -> bool:
    """Whether a request was answered, and not just closed by who had asked."""
    for (_, kind), records in delta.items():
        for record in records.values() if kind in {"receipt", "receipts"} else ():
            receipts = record.receipts.values() if isinstance(record, ReceiptsRecord) else (record,)
            if any(isinstance(receipt, ReceiptRecord) and receipt.state == "answered" for receipt in receipts):
                return True
    return False


class Ledger:
    """Headers of one run: numbers its checkpoints and events, and keeps the record sum.

    Without a store it still gives every turn its header; only then no digests are kept.
    """

    def __init__(self, run_id: str, workflow: str, birth: str, clock: Clock, nonce: str = "") -> None:
        self.nonce = nonce
        self.run_id = run_id
        self.workflow = workflow
        self.birth = birth
        self.clock = clock
        self.header: Header | None = None
        self.digests: dict[str, int] = {}
        self.total = 0
        self.events = 0
        self.imported = False
        self.status: Status | None = None
        #: Why the next checkpoint is made, where that is not told by what it changes: a claim's input.
        self.cause: Cause | None = None
        self.reason = ""
        #: The time that a run which is handed on waited for, where it did nothing else.
        self.sleeps_until: float | None = None
        #: Whether the store wants big records compressed.
        self.compress = False

    def turn_to(self, status: Status) -> None:
        """Change the run's status, as the status table allows."""
        assert is_legal(self.status, status), f"{self.status} -> {status}"  # noqa: S101  (the engine ends a turn once)
        self.status = status

    def resume(self, header: Header, digests: dict[str, int] | None, *, imported: bool) -> None:
        """Go on from a checkpoint; one that the store does not know (`imported`) has no digests or lineage there."""
        self.header = header
        self.status = header.status
        self.events = header.events
        self.imported = imported
        if digests is not None and not imported:
            self.digests = dict(digests)
            self.total = sum(digests.values()) % _MODULUS

    def encode(self, delta: Delta) -> Changes:
        """Return what a delta writes and removes; keeps the record sum up at the cost of the change."""
        puts: list[Put] = []
        removes: list[str] = []
        paths: set[str] = set()
        digests = self.digests
        total = self.total
        for (path, kind), changed in delta.items():
            changes = False
            for name, record in changed.items():
                text = key_text(path, kind, name)
                if record is None:
                    known = digests.pop(text, None)
                    if known is not None:
                        total -= known
                        removes.append(text)
                        changes = True
                    continue
                data = encode_record(record, compress=self.compress)
                digest = record_digest(text, data)
                known = digests.get(text)
                if known == digest:
                    continue
                digests[text] = digest
                total += digest - (known or 0)
                puts.append(Put(text, data))
                changes = True
            if changes:
                paths.add("" if path == ABOVE_ROOT else path)
        self.total = total % _MODULUS
        return Changes(tuple(puts), tuple(removes), len(paths), tuple(sorted(paths)[:SCOPES_NAMED]))

    def next_header(self, run: Run, delta: Delta, changes: Changes = _NOTHING) -> Header:
        """Return the header of the next checkpoint, and go on from it."""
        assert self.status is not None  # noqa: S101  (the claim has turned it)
        cause = self.cause or _cause(delta)
        self.header = self.header_of(run, self.status, self.nonce, cause, changes)
        self.imported, self.cause, self.reason = False, None, ""
        return self.header

    def header_of(
        self, run: Run, status: Status, nonce: str, cause: Cause = Cause.SUPERSTEP, changes: Changes = _NOTHING
    ) -> Header:
        """Return the header that the next checkpoint would have."""
        before = self.header
        seq = before.seq + 1 if before else 0
        turn = run.get("", "turn", "")
        root = run.get(ABOVE_ROOT, "scope", "")
        return Header(
            run_id=self.run_id,
            workflow=self.workflow,
            checkpoint_id=checkpoint_id(self.birth, seq, nonce),
            seq=seq,
            previous_checkpoint_id=before.checkpoint_id if before and not self.imported else None,
            status=status,
            turn=turn.number if isinstance(turn, TurnRecord) else 0,
            superstep=root.superstep if isinstance(root, ScopeRecord) else 0,
            created=self.clock.time(),
            pending=run.totals["request"],
            events=self.events,
            records=len(self.digests),
            digest=self.total.to_bytes(32, "big"),
            cause=cause,
            size=changes.size,
            changed=changes.scopes,
            scopes=changes.named,
            reason=self.reason,
            keyed=isinstance(turn, TurnRecord) and turn.key is not None,
            due=next_due(run) if status in RESTING else self.sleeps_until,
        )


class Saver:
    """Commits of one run to one store, for one owner in one epoch."""

    def __init__(self, store: CheckpointStorage, ledger: Ledger, lease: Lease, expected: str | None) -> None:
        self.store = store
        self.ledger = ledger
        ledger.compress = compresses(store)
        self.lease = lease
        self.expected = expected
        #: How long the lease lasts after the last commit, in seconds; 0 clears the owner.
        self.left = 0.0
        #: Tells the observers of the call what is saved.
        self.observed: Observing | None = None

    async def save(self, run: Run, delta: Delta, events: Sequence[Event], *, ends: bool) -> Header:
        """Write what changed, and the events that report it, as one commit; `run` already has the delta.

        Raises what the store raises.
        """
        commit = self.next_commit(run, delta, events, ends=ends)
        await self.commit(commit)
        return self.committed(commit)

    def commit(self, commit: Commit) -> Awaitable[None]:
        """Give the store a commit."""
        return self.store.commit(commit) if self.observed is None else self.observed.commit(self.store, commit)

    def next_commit(
        self, run: Run, delta: Delta, events: Sequence[Event], taken: tuple[int, ...] = (), *, ends: bool
    ) -> Commit:
        """Return what `save` writes, taking offers of these numbers out of the run's inbox."""
        ledger = self.ledger
        changes = ledger.encode(delta)
        kept = encode_events(ledger.run_id, ledger.events + 1, events) if self.store.keeps_events else ()
        ledger.events += len(events)
        header = ledger.next_header(run, delta, changes)
        lease = msgspec.structs.replace(self.lease, seconds=self.left if ends else LEASE_SECONDS)
        return Commit(
            header=header,
            expected=self.expected,
            lease=lease,
            puts=changes.puts,
            removes=changes.removes,
            requests=self._requests(run, delta),
            turn=self._turn(run, header) if header.cause is not Cause.EDIT and (ends or self.lease.claim) else None,
            events=kept,
            taken=taken,
        )

    def committed(self, commit: Commit) -> Header:
        """Go on from what the store has taken."""
        self.expected = commit.header.checkpoint_id
        if self.lease.claim:
            self.lease = msgspec.structs.replace(self.lease, claim=False)
        return commit.header

    async def renew(self) -> None:
        """Lengthen the lease."""
        await self.store.renew(self.ledger.run_id, self.lease.owner, self.lease.epoch, LEASE_SECONDS)

    def _requests(self, run: Run, delta: Delta) -> tuple[RequestRow, ...]:
        """Return the rows by which a store finds requests: opened ones, and those that left a receipt."""
        rows: list[RequestRow] = []
        birth, run_id = self.ledger.birth, self.ledger.run_id
        for (path, kind), changed in delta.items():
            if kind not in _OF_REQUESTS:
                continue
            for name, record in changed.items():
                if isinstance(record, RequestRecord):
                    rows.append(RequestRow(outer_id(birth, known_name(run, path, name)), run_id, path, "open"))
                elif isinstance(record, RequestsRecord):
                    names = [known_name(run, path, inner) for inner in names_in(run, path, name, record)]
                    rows += [RequestRow(outer_id(birth, known), run_id, path, "open") for known in names]
                elif isinstance(record, ReceiptRecord):
                    rows.append(self._closed(name, record))
                elif isinstance(record, ReceiptsRecord):
                    rows += [self._closed(inner, receipt) for inner, receipt in record.receipts.items()]
        return tuple(rows)

    def _closed(self, name: str, receipt: ReceiptRecord) -> RequestRow:
        ledger = self.ledger
        return RequestRow(outer_id(ledger.birth, name), ledger.run_id, name.rpartition("/")[0], receipt.state)

    def _turn(self, run: Run, header: Header) -> TurnRow | None:
        turn = run.get("", "turn", "")
        if not isinstance(turn, TurnRecord) or turn.key is None:
            return None
        return TurnRow(
            workflow=header.workflow,
            key=turn.key,
            run_id=header.run_id,
            number=turn.number,
            base=turn.base,
            digest=turn.digest,
            checkpoint_id=header.checkpoint_id,
            status=header.status,
        )
