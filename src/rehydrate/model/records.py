"""Records: the small stored pieces that are a run, keyed by (scope path, kind, name).

All are frozen and flat. Whatever is needed to resume is in one of them; a record must not be derivable from others.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from .effects import Effect, Failure, Route
from .passes import CallRecord, CallsRecord, PassRecord, ReadRecord
from .request_packs import ClosedRecord, RequestsRecord
from .sealed import Items, Payload, Sealed
from .signatures import SignatureRecord

Trail: TypeAlias = tuple[int, ...]
DeliveryKind: TypeAlias = Literal["message", "answer", "list", "request", "pass"]

#: (scope path, kind, name); run-level records stand at the root, scopes and steps under their parent's path.
Key: TypeAlias = tuple[str, str, str]


class RunRecord(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """What never changes in a run. `birth` is random and makes outer ids and checkpoint ids unique."""

    birth: str
    workflow: str
    version: int
    signature: str
    legacy: bool = False


class TurnRecord(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """The newest turn: its input's identity, its run arguments, and how it stands.

    `base` is the checkpoint it started from (`None`: a new run), `digest` that of its request. `resumed` are base and
    digest of its newest continuation, if there was one. `allowance` numbers what the superstep limit is counted in: it
    grows with each turn and each continuation of a reached limit. `trace` is what the newest observed call on the run
    wants kept, so that a later one can be linked to it; nothing reads it to resume.
    """

    number: int
    base: str | None
    digest: str
    allowance: int
    key: str | None = None
    run_args: Sealed | None = None
    resumed: tuple[str | None, str] | None = None
    trace: str = ""


class OutputRecord(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """One output of the run in this turn, and the invocation of the root that gave it out."""

    value: Sealed
    executor_id: str
    superstep: int = 0
    activation: int = 0


class ReceiptRecord(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """What is left of a request that was answered or cancelled; named by the request's name."""

    state: Literal["answered", "cancelled"]
    turn: int


class ReceiptsRecord(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """Many receipts in one record, so that a long conversation does not load a record per question."""

    receipts: dict[str, ReceiptRecord]


class ScopeRecord(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """One running workflow. `trail` is that of the message that started it, in the parent, and empty for one that is
    shared; `inputs` numbers its inputs; `used` counts its supersteps in `allowance`; `outbox`, `joined` and `maps`
    number what it yielded, what joins and maps took, and the lists that map edges took apart. `call` is the call of a
    functional workflow that waits for it."""

    trail: Trail
    inputs: int = 0
    superstep: int = 0
    allowance: int = 0
    used: int = 0
    outbox: int = 0
    joined: int = 0
    maps: int = 0
    call: str = ""


class InputRecord(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """One input of a shared scope, by its number in it: `trail` is that of the message, in the parent."""

    trail: Trail


class Delivery(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """One message that stands at an executor in a superstep; `payload` is an index into the step's payloads.

    For an answer `name` is the request's name and `handler` the response handler; its payloads are the answer and, at
    the next index, the request's data. For an intercepted request they are the same, the name with its path, and the
    payload is the request's data. Of a pass of a functional workflow that goes on, `name` is its number.
    """

    executor: str
    activation: int
    payload: int
    trail: Trail
    kind: DeliveryKind = "message"
    name: str = ""
    handler: str = ""


class StepRecord(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """An unfinished superstep, as of its start; the numbers in it name invocations and child scopes."""

    superstep: int
    payloads: tuple[Payload, ...] = ()
    deliveries: tuple[Delivery, ...] = ()


class LimitRecord(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """The superstep listed in this scope has not started, because the limit was reached; `used` is what it allowed."""

    used: int


class RestRecord(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """A scope that came to rest and was not yet collected at a barrier of its parent."""


class TimerRecord(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """What is left of a scope's time, in seconds, as of its newest barrier.

    While it is busy `deadline` says when it is up, in seconds since the epoch; it counts only for the process that set
    it.
    """

    left: float
    deadline: float | None = None


class CounterRecord(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """The newest activation number of an executor in a scope; it never goes back."""

    value: int


class DoneRecord(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """A finished invocation whose effects wait for the barrier (or, as `unrouted`, for a condition that raised)."""

    effects: tuple[Effect, ...]
    instance: Sealed | None = None


class FailureRecord(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """An invocation (or a barrier, under the name of its executor or key) that failed for good."""

    failure: Failure
    executor: str
    activation: int = 0


class AttemptRecord(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """Attempts of an unfinished invocation that failed, or that were found unfinished at a restore.

    `started` counts them all; `lost` those in a row that ended with their process while nothing in the run finished,
    for which `progress` tells how far the run was; `failed` those that used its retry budget. `due` is when the next
    one may start, in seconds since the epoch, after one that failed.
    """

    started: int
    lost: int = 0
    progress: str = ""
    failed: int = 0
    due: float | None = None


class RequestRecord(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """An open request, listed in the scope that asked; `intercepted`: a level above is to answer it."""

    executor: str
    activation: int
    count: int
    data: Sealed
    response_type: str
    handler: str
    trail: Trail
    superstep: int = 0
    intercepted: bool = False


class JoinRecord(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """One message held by a join; `number` orders the messages of one source."""

    join: str
    source: str
    trail: Trail
    number: int
    payload: Sealed


class MapRecord(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """A list that a map edge took apart and whose items are not all done; named by its number in the scope.

    `trail` is that of the list; its items carry it with the map's number and their index behind it.
    """

    into: str
    trail: Trail


class GatherRecord(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """One message that came to the end of a map on behalf of an item; `number` orders what one item sent."""

    map: int
    trail: Trail
    number: int
    payload: Sealed


class OutboxRecord(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """Something a scope yielded that its parent's barrier has not taken, or not on all its edges.

    `input` is the number of the scope's input that it descends from. With `request`, the name of an intercepted request
    with its path, it is that request on its way up: `value` is its data and `handler` the response handler that waits.
    """

    value: Payload
    routes: tuple[Route, ...]
    executor: str
    input: int = 1
    request: str = ""
    handler: str = ""


class InboxRecord(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """Something from the outside that waits for a scope's next superstep."""

    kind: DeliveryKind
    executor: str
    payload: Payload
    trail: Trail
    name: str = ""
    handler: str = ""
    data: Sealed | None = None


class InstanceRecord(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """What an executor's save hook gave after its newest merged invocation in this scope."""

    value: Sealed


#: A piece of a value: inline bytes; whole parts, from one number to another; or part, start and end of a range.
Piece: TypeAlias = bytes | tuple[int, ...]


class Spliced(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True, tag=1, tag_field="_"):
    """A value whose bytes are pieces of part records, one after the other.

    Without a type they are `count` elements of a list; then parts from the number `until` on hold further ones. So far
    `merged` parts were made of small ones; their numbers are -1 and below, so that they follow each other too.
    """

    type: str
    pieces: tuple[Piece, ...]
    count: int = 0
    until: int = 0
    merged: int = 0


class StateRecord(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """One key of a scope's state: a value, or (`value` is `None` or has no type) a list of `count` elements in parts.

    Parts are numbered; those below `merged` are not merged again, `next` is the next number.
    """

    value: Sealed | Spliced | None
    count: int = 0
    merged: int = 0
    next: int = 0


class PartRecord(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """Some elements of a list in state, or some of the bytes of a value (`count` is 0)."""

    items: Items


class AliasRecord(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """Under what name the outside knows a request or an unfinished invocation that a migration gave another one."""

    known: str


Record: TypeAlias = (
    RunRecord | SignatureRecord | TurnRecord | OutputRecord | ReceiptRecord | ReceiptsRecord | ScopeRecord
    | InputRecord | StepRecord | LimitRecord | RestRecord | TimerRecord | CounterRecord | DoneRecord | FailureRecord
    | AttemptRecord | RequestRecord | RequestsRecord | ClosedRecord | JoinRecord | MapRecord | GatherRecord
    | OutboxRecord | InboxRecord | InstanceRecord | StateRecord | PartRecord | AliasRecord
    | PassRecord | ReadRecord | CallRecord | CallsRecord
)  # fmt: skip

#: The class of each kind; what is stored under a kind decodes to exactly this.
RECORD_TYPES: dict[str, type[Record]] = {
    "run": RunRecord,
    "signature": SignatureRecord,
    "turn": TurnRecord,
    "output": OutputRecord,
    "receipt": ReceiptRecord,
    "receipts": ReceiptsRecord,
    "scope": ScopeRecord,
    "input": InputRecord,
    "step": StepRecord,
    "limit": LimitRecord,
    "rest": RestRecord,
    "timer": TimerRecord,
    "counter": CounterRecord,
    "done": DoneRecord,
    "unrouted": DoneRecord,
    "failure": FailureRecord,
    "attempt": AttemptRecord,
    "request": RequestRecord,
    "requests": RequestsRecord,
    "closed": ClosedRecord,
    "join": JoinRecord,
    "map": MapRecord,
    "gather": GatherRecord,
    "outbox": OutboxRecord,
    "inbox": InboxRecord,
    "instance": InstanceRecord,
    "state": StateRecord,
    "part": PartRecord,
    "alias": AliasRecord,
    "pass": PassRecord,
    "read": ReadRecord,
    "call": CallRecord,
    "calls": CallsRecord,
}
