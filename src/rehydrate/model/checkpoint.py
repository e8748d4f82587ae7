"""What a store sees of a run: headers, keys as text, and commits of sealed records.

No user type and no open value ever appears here; a store needs nothing else to keep every promise.
"""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from typing import Final, Literal, TypeAlias

import msgspec

from .records import Key

#: Version of everything written; a reader refuses a higher one.
FORMAT: Final = 1
_SEPARATOR: Final = "\x1f"


class Status(StrEnum):
    """How a run stands at a checkpoint."""

    RUNNING = "RUNNING"
    IDLE = "IDLE"
    IDLE_WITH_PENDING_REQUESTS = "IDLE_WITH_PENDING_REQUESTS"
    LIMIT_REACHED = "LIMIT_REACHED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class Cause(StrEnum):
    """Why a checkpoint was made: by a claim (its input), within a turn, or from outside of one."""

    MESSAGE = "message"
    ANSWERS = "answers"
    CONTINUATION = "continuation"
    FORK = "fork"
    IMPORT = "import"
    SUPERSTEP = "superstep"
    INVOCATION = "invocation"
    EDIT = "edit"


#: Statuses with which a call returns and the run rests.
RESTING: Final = frozenset({Status.IDLE, Status.IDLE_WITH_PENDING_REQUESTS})


class Header(msgspec.Struct, frozen=True, gc=False, array_like=True, kw_only=True):
    """What is known of a checkpoint without reading its records.

    `seq` numbers the run's checkpoints from 0 and orders them (times and ids never do). `records` and `digest` are the
    number of live records and the sum, modulo 2**256, of their SHA-256. `events` is the run's last event number.
    `created` is in seconds since the epoch. `size` counts the bytes of the records that its commit wrote, `changed` the
    scopes in which it wrote or removed any; `scopes` are the paths of the first of these. `reason` is a person's.
    `keyed` tells that its turn has an idempotency key. `due`: when the first timer of a run at rest is up, or the time
    that a run which was handed on waited for and did nothing else, in seconds since the epoch.
    """

    #: First, so that a reader of any version finds it.
    format: int = FORMAT
    run_id: str
    workflow: str
    checkpoint_id: str
    seq: int
    previous_checkpoint_id: str | None
    status: Status
    turn: int
    superstep: int
    created: float
    pending: int
    events: int
    records: int
    digest: bytes
    cause: Cause = Cause.SUPERSTEP
    size: int = 0
    changed: int = 0
    scopes: tuple[str, ...] = ()
    reason: str = ""
    keyed: bool = False
    due: float | None = None
    #: What a store around a store keeps for itself; the store inside gives it back as it was.
    sealed: bytes = b""


class Put(msgspec.Struct, frozen=True, gc=False):
    """One record to write: its key as text and its enveloped bytes."""

    key: str
    data: bytes


class RequestRow(msgspec.Struct, frozen=True, gc=False):
    """A request as the store knows it: outer id, run, scope path, and how it stands."""

    request_id: str
    run_id: str
    path: str
    state: Literal["open", "answered", "cancelled"]


class TurnRow(msgspec.Struct, frozen=True, gc=False):
    """A turn that has an idempotency key; `checkpoint_id` is the turn's newest checkpoint."""

    workflow: str
    key: str
    run_id: str
    number: int
    base: str | None
    digest: str
    checkpoint_id: str
    status: Status


class Lease(msgspec.Struct, frozen=True, gc=False):
    """The owner that a commit speaks for.

    `epoch` is what the run has (or gets, with `claim`, which needs the run to be at `epoch - 1`; a new run starts with
    1). `seconds` is how long the lease lasts from the commit on, on the store's clock; 0 clears the owner.
    """

    owner: str
    epoch: int
    seconds: float
    claim: bool = False


class Commit(msgspec.Struct, frozen=True, gc=False):
    """One transaction: all of it happens, or nothing.

    `expected` is the checkpoint id that must be the head; `None` means that the run must not exist.
    """

    header: Header
    expected: str | None
    lease: Lease
    puts: tuple[Put, ...] = ()
    removes: tuple[str, ...] = ()
    requests: tuple[RequestRow, ...] = ()
    turn: TurnRow | None = None
    #: The events that this commit reports, sealed, for a store that keeps them; the last one is the header's `events`.
    events: tuple[bytes, ...] = ()
    #: Numbers of the offers that it takes out of the run's inbox.
    taken: tuple[int, ...] = ()


class StoredEvent(msgspec.Struct, frozen=True, gc=False):
    """A committed event as it was stored, with its number in the run. Events stand outside of the record sum."""

    number: int
    data: bytes


class Offer(msgspec.Struct, frozen=True, gc=False):
    """Something for a run that others have the hand on: a sealed message or answers in the run's inbox.

    The store numbers a run's offers from 1 and keeps the SHA-256 of each body as its `digest`. One key is one offer,
    also when it is delivered again after it was taken; then it has no body any more.
    """

    run_id: str
    key: str
    body: bytes
    number: int = 0
    digest: bytes = b""
    taken: bool = False


class Archive(msgspec.Struct, frozen=True, gc=False):
    """A whole run: what its checkpoints changed, oldest first, and what stands beside them, as of the newest.

    `commits` hold records only; what else belongs to the run stands beside them.
    """

    commits: tuple[Commit, ...]
    events: tuple[StoredEvent, ...] = ()
    requests: tuple[RequestRow, ...] = ()
    turns: tuple[TurnRow, ...] = ()
    tags: dict[str, str] = {}
    offers: tuple[Offer, ...] = ()


class Head(msgspec.Struct, frozen=True, gc=False):
    """A run's newest checkpoint and its owner.

    `alive`: the lease holds and the owner's process is not seen to be gone. `offered`: something is in its inbox.
    """

    header: Header
    owner: str | None
    epoch: int
    alive: bool
    offered: bool = False


class Stored(msgspec.Struct, frozen=True, gc=False):
    """A checkpoint as it was stored, and the head of its run at the moment of reading.

    `digests` are the numbers that the store checked the record sum with: each record's SHA-256, key included.
    """

    header: Header
    records: dict[str, bytes]
    digests: dict[str, int]
    head: Head


class Latest(msgspec.Struct, frozen=True, gc=False):
    """The head of a run, as something to load."""

    run_id: str


class At(msgspec.Struct, frozen=True, gc=False):
    """A checkpoint of a run by its number, or by a name that was given to it."""

    run_id: str
    at: int | str


#: A checkpoint id, the head of a run, or a place in its history.
CheckpointRef: TypeAlias = str | Latest | At


@lru_cache(maxsize=8192)
def key_text(path: str, kind: str, name: str) -> str:
    """Return a record's key as one text; no part of a key holds the separator but the last."""
    return f"{path}{_SEPARATOR}{kind}{_SEPARATOR}{name}"


def key_of(text: str) -> Key | None:
    """Return the key of a text; `None` where it is none."""
    parts = text.split(_SEPARATOR, 2)
    return (parts[0], parts[1], parts[2]) if len(parts) == 3 else None
