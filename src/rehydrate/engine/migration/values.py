"""The sealed values in records: every place where one stands, in one function, so that none is left out.

Opens nothing; what is done with a value is the caller's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

import msgspec

from rehydrate.model.effects import Again, Ask, Effect, Output, Pause, Respond, Send, SetState, UpdateState
from rehydrate.model.passes import CallRecord, CallsRecord, PassRecord, ReadRecord
from rehydrate.model.records import (
    AliasRecord,
    AttemptRecord,
    CounterRecord,
    DoneRecord,
    FailureRecord,
    GatherRecord,
    InboxRecord,
    InputRecord,
    InstanceRecord,
    JoinRecord,
    LimitRecord,
    MapRecord,
    OutboxRecord,
    OutputRecord,
    PartRecord,
    ReceiptRecord,
    ReceiptsRecord,
    Record,
    RequestRecord,
    RestRecord,
    RunRecord,
    ScopeRecord,
    SignatureRecord,
    Spliced,
    StateRecord,
    StepRecord,
    TimerRecord,
    TurnRecord,
)
from rehydrate.model.request_packs import ClosedRecord, RequestsRecord
from rehydrate.model.sealed import Items, Listed, Payload, Sealed


@dataclass(frozen=True)
class Values:
    """What becomes of values: of one, and of elements of a list in state."""

    one: Callable[[Sealed], Sealed]
    items: Callable[[Items], Items]

    def of(self, record: Record) -> Record:
        """Return a record with other values in it."""
        replace = msgspec.structs.replace
        match record:
            case OutputRecord() | InstanceRecord() | StateRecord():
                return replace(record, value=self._maybe(record.value))
            case OutboxRecord():
                return replace(record, value=self._payload(record.value))
            case StepRecord() | DoneRecord():
                return self._of_step(record)
            case RequestRecord():
                return replace(record, data=self.one(record.data))
            case JoinRecord() | GatherRecord():
                return replace(record, payload=self.one(record.payload))
            case InboxRecord():
                return replace(record, payload=self._payload(record.payload), data=self._maybe(record.data))
            case PartRecord():
                return PartRecord(self.items(record.items))
            case PassRecord() | ReadRecord() | CallRecord() | CallsRecord():
                return self._of_pass(record)
            case TurnRecord():
                return replace(record, run_args=self._maybe(record.run_args))
            case (
                RunRecord() | SignatureRecord() | ReceiptRecord() | ReceiptsRecord() | ScopeRecord() | LimitRecord()
                | RestRecord() | MapRecord() | CounterRecord() | FailureRecord() | AttemptRecord() | AliasRecord()
                | InputRecord() | TimerRecord()
                | RequestsRecord() | ClosedRecord()
            ):  # fmt: skip
                return record
            case _:
                assert_never(record)

    def _of_step(self, record: StepRecord | DoneRecord) -> Record:
        if isinstance(record, StepRecord):
            return msgspec.structs.replace(record, payloads=tuple(map(self._payload, record.payloads)))
        effects = tuple(map(self._effect, record.effects))
        return msgspec.structs.replace(record, effects=effects, instance=self._maybe(record.instance))

    def _of_pass(self, record: PassRecord | ReadRecord | CallRecord | CallsRecord) -> Record:
        if isinstance(record, PassRecord):
            payload = None if record.payload is None else self._payload(record.payload)
            return msgspec.structs.replace(record, payload=payload, run_args=self._maybe(record.run_args))
        if isinstance(record, ReadRecord):
            return ReadRecord(None if record.value is None else self._either(record.value))
        if isinstance(record, CallRecord):
            return self._call(record)
        return CallsRecord({name: self._call(call) for name, call in record.calls.items()})

    def _call(self, call: CallRecord) -> CallRecord:
        return call if call.value is None else msgspec.structs.replace(call, value=self._payload(call.value))

    def _maybe(self, value: Sealed | Spliced | None) -> Sealed | Spliced | None:
        # Values in pieces are joined while a run is migrated.
        return self.one(value) if isinstance(value, Sealed) else value

    def _payload(self, payload: Payload) -> Payload:
        return Listed(tuple(map(self.one, payload.items))) if isinstance(payload, Listed) else self.one(payload)

    def _either(self, value: Sealed | Items) -> Sealed | Items:
        return self.items(value) if isinstance(value, Items) else self.one(value)

    def _effect(self, effect: Effect) -> Effect:
        replace = msgspec.structs.replace
        match effect:
            case Send() | Output():
                return replace(effect, value=self._payload(effect.value))
            case Ask():
                return replace(effect, data=self.one(effect.data))
            case Respond():
                return replace(effect, value=self.one(effect.value))
            case SetState():
                return effect if effect.value is None else replace(effect, value=self._either(effect.value))
            case UpdateState():
                return replace(effect, value=self._either(effect.value))
            case Pause():
                reads = {key: None if value is None else self._either(value) for key, value in effect.reads.items()}
                return replace(effect, reads=reads)
            case Again():
                return replace(effect, value=self.one(effect.value))
            case _:
                assert_never(effect)
