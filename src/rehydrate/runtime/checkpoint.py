"""`WorkflowCheckpoint`: a run at one commit as an object in memory.

It shares the frozen records and can be read without the workflow. It never runs anything and never changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import cast

import msgspec

from rehydrate.codecs import plain
from rehydrate.codecs.checkpoints import (
    check_digests,
    decode_checkpoint,
    digest_sum,
    encode_checkpoint,
    record_digest,
)
from rehydrate.codecs.records import check_header, decode_records, encode_record
from rehydrate.engine import reading
from rehydrate.engine.invariants import check_run
from rehydrate.engine.run import Run
from rehydrate.engine.splicing import grows, sealed_value
from rehydrate.errors import CheckpointCorruptError, InconsistentRunError
from rehydrate.ids import check_id, child_path, join_slot, scope_of
from rehydrate.model.checkpoint import Cause, Header, Status, Stored, key_text
from rehydrate.model.plain import Plain
from rehydrate.model.records import InstanceRecord, Key, Record, RunRecord, ScopeRecord, StateRecord

from .legacy import ExecutionContext, legacy_run
from .legacy_messages import LegacyMessage, LegacyRequest
from .program import HasProgram
from .state_view import committed_parts
from .subtree import grafted, subtree, without


@dataclass(frozen=True)
class Migrated:
    """How migrations have changed a checkpoint's records, what they took away, and from which scopes."""

    delta: Mapping[Key, Record | None]
    dropped: tuple[str, ...] = ()
    freed: tuple[str, ...] = ()


class WorkflowCheckpoint:
    """A run at one commit, made by each commit. `records` are its live records; reading them changes nothing."""

    def __init__(
        self,
        header: Header,
        records: Run,
        digests: dict[str, int] | None = None,
        *,
        place: str = "",
        migrated: Migrated | None = None,
    ) -> None:
        self.header = header
        self._place = place
        self.records = records
        #: Each record's digest, where the checkpoint was read from bytes.
        self.digests: dict[str, int] | None = digests
        #: Set where the records are not yet those of a commit.
        self.migrated = migrated

    @property
    def checkpoint_id(self) -> str:
        """The checkpoint's id."""
        return self.header.checkpoint_id

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.header.run_id

    @property
    def workflow_name(self) -> str:
        """The workflow's name."""
        return self.header.workflow

    @property
    def previous_checkpoint_id(self) -> str | None:
        """The checkpoint before this one."""
        return self.header.previous_checkpoint_id

    @property
    def status(self) -> Status:
        """How the run stood."""
        return self.header.status

    @property
    def is_legacy(self) -> bool:
        """True for one that an importer made: its sub-workflows' inner state may be missing."""
        record = self.records.get("", "run", "")
        return isinstance(record, RunRecord) and record.legacy

    @cached_property
    def state(self) -> Mapping[str, Plain]:
        """The root's state in plain values."""
        found: dict[str, Plain] = {}
        for key, record in self.records.table("", "state").items():
            if isinstance(record, StateRecord) and not grows(record):
                found[key] = plain(sealed_value(self.records, "", key, record).data)
            else:
                found[key] = self._list(key)
        return MappingProxyType(found)

    def _list(self, key: str) -> Plain:
        parts = committed_parts(self.records, "", key)
        count = sum(part.count for part in parts)
        header = b"\xdd" + count.to_bytes(4, "big")
        return plain(header + b"".join(part.data for part in parts))

    @cached_property
    def pending_request_ids(self) -> tuple[str, ...]:
        """The ids of the open requests at every depth."""
        return tuple(opened.request_id for opened in reading.open_requests(self.records, self._place))

    @cached_property
    def executor_states(self) -> Mapping[str, Mapping[str, object]]:
        """What executors keep, by id: saved instance state in plain values; of a sub-workflow's executor
        `{"sub_workflow_checkpoint": {number: WorkflowCheckpoint}}`, or the checkpoint itself where its scope is shared,
        a view of the flat records."""
        found: dict[str, Mapping[str, object]] = {}
        for executor_id, record in self.records.table("", "instance").items():
            if isinstance(record, InstanceRecord):
                value = plain(record.value.data)
                found[executor_id] = value if isinstance(value, dict) else {"state": value}
        below: dict[str, dict[int, WorkflowCheckpoint]] = {}
        for segment, scope in self.records.table("", "scope").items():
            executor_id, number = scope_of(segment)
            if not cast("ScopeRecord", scope).trail:
                found[executor_id] = {"sub_workflow_checkpoint": self._below(segment)}
                continue
            below.setdefault(executor_id, {})[number] = self._below(segment)
        for executor_id, scopes in below.items():
            found[executor_id] = {"sub_workflow_checkpoint": dict(sorted(scopes.items()))}
        return MappingProxyType(found)

    def _below(self, segment: str) -> WorkflowCheckpoint:
        """Return a scope of the root as a checkpoint of its own."""
        records = subtree(self.records, join_slot("", segment))
        header = msgspec.structs.replace(self.header, pending=records.totals["request"], records=0, digest=bytes(32))
        return WorkflowCheckpoint(header, records, place=join_slot(self._place, segment))

    def encoded(self) -> tuple[Header, dict[str, bytes]]:
        """Return the header, with the record sum, and every record's bytes, as a store keeps them."""
        records = {key_text(*key): encode_record(record) for key, record in self.records.records()}
        digest = digest_sum(record_digest(key, data) for key, data in records.items())
        return msgspec.structs.replace(self.header, records=len(records), digest=digest), records

    def to_bytes(self) -> bytes:
        """Return the whole checkpoint as one piece of bytes, for `from_bytes`."""
        return encode_checkpoint(*self.encoded())

    @classmethod
    def from_bytes(cls, data: bytes) -> WorkflowCheckpoint:
        """Return the checkpoint of `to_bytes`. Raises `CheckpointCorruptError`, `CheckpointFormatError` or
        `InconsistentRunError`."""
        header, records = decode_checkpoint(data)
        digests = {key: record_digest(key, data) for key, data in records.items()}
        check_digests(header, digests)
        return _decoded(header, records, digests)

    @classmethod
    def legacy(
        cls,
        workflow: HasProgram,
        run_id: str,
        *,
        state: Mapping[str, object] | None = None,
        pending_requests: Sequence[LegacyRequest] = (),
        execution_contexts: Sequence[ExecutionContext] = (),
        executor_states: Mapping[str, Mapping[str, object]] | None = None,
        messages: Sequence[LegacyMessage] = (),
    ) -> WorkflowCheckpoint:
        """Return a checkpoint for a run that was made elsewhere: its state, its open questions, and messages on
        their way or held by joins, at any depth.

        Whatever else it had is not there, which a restore says with one logged warning. All that is in a scope counts
        as descended from one input. Raises `CaptureError` where something has no place in the workflow.
        """
        program = workflow.program
        root = ExecutionContext("", pending_requests, execution_contexts, state or {}, executor_states or {}, messages)
        run = legacy_run(program, root)
        pending = run.totals["request"]
        at_rest = Status.IDLE_WITH_PENDING_REQUESTS if pending else Status.IDLE
        header = Header(
            run_id=check_id(run_id, "run id"),
            workflow=program.graph.name,
            checkpoint_id=program.ids.new_id(),
            seq=0,
            previous_checkpoint_id=None,
            status=Status.RUNNING if reading.unfinished_scopes(run) else at_rest,
            turn=1,
            superstep=1,
            created=program.clock.time(),
            pending=pending,
            events=0,
            records=0,
            digest=bytes(32),
            cause=Cause.IMPORT,
        )
        return cls(header, run)

    def with_executor_state(self, executor_id: str, state: Mapping[str, object]) -> WorkflowCheckpoint:
        """Return a checkpoint in which the executions of a sub-workflow are those of `state`, in the form that
        `executor_states` gives. Raises `CheckpointCorruptError` where it has another form."""
        given = state.get("sub_workflow_checkpoint")
        if isinstance(given, WorkflowCheckpoint):
            given = {1: given}
        what = f"the state of sub-workflow {executor_id!r}"
        if not isinstance(given, Mapping):
            raise CheckpointCorruptError(what, "it has no 'sub_workflow_checkpoint'")
        run = self.records
        for segment in list(run.table("", "scope")):
            if scope_of(segment)[0] == executor_id:
                run = without(run, join_slot("", segment))
        for number, below in cast("Mapping[object, object]", given).items():
            if not isinstance(number, int) or not isinstance(below, WorkflowCheckpoint):
                raise CheckpointCorruptError(what, "it does not map numbers to checkpoints")
            run = grafted(run, child_path("", executor_id, number), below.records)
        violations = check_run(run)
        if violations:
            raise InconsistentRunError(tuple(violations))
        header = msgspec.structs.replace(self.header, pending=run.totals["request"])
        return WorkflowCheckpoint(header, run)

    def __repr__(self) -> str:
        return f"WorkflowCheckpoint({self.checkpoint_id!r}, run_id={self.run_id!r}, status={self.status.value})"


def restored(stored: Stored) -> WorkflowCheckpoint:
    """Return the checkpoint that a store gave, its record sum checked; here the records must fit together."""
    return _decoded(stored.header, stored.records, stored.digests)


def _decoded(header: Header, records: dict[str, bytes], digests: dict[str, int]) -> WorkflowCheckpoint:
    check_header(header, f"checkpoint {header.checkpoint_id!r} of run {header.run_id!r}")
    run = Run(decode_records(records))
    violations = check_run(run)
    if violations:
        raise InconsistentRunError(tuple(violations))
    return WorkflowCheckpoint(header, run, digests)
