"""Tools of the store contract: a clock that is moved by hand, and the commits of one run, one after the other.

Headers count their records right: no store checks that at a commit, the reader does. Nothing here may know a store.
"""

# ruff: noqa: S101  (a contract is made of asserts)

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Final, Protocol, TypeAlias, TypeVar

from rehydrate.codecs.checkpoints import digest_sum, record_digest
from rehydrate.errors import RehydrateError
from rehydrate.model.checkpoint import (
    Cause,
    CheckpointRef,
    Commit,
    Head,
    Header,
    Lease,
    Put,
    RequestRow,
    Status,
    Stored,
    TurnRow,
)
from rehydrate.ports import CheckpointStorage, Clock, listing_key

_CAUSES: Final = tuple(Cause)
_Error = TypeVar("_Error", bound=RehydrateError)


class MakeStore(Protocol):
    """Gives a store; a second call may give another one on the same place."""

    def __call__(self, *, clock: Clock) -> CheckpointStorage:
        """Return a store whose leases run on `clock`."""
        ...


#: One check: it makes the stores that it needs, and raises `AssertionError` where one of them breaks its promise.
Check: TypeAlias = Callable[[MakeStore], Coroutine[object, object, None]]


async def refused(kind: type[_Error], call: Awaitable[object]) -> _Error:
    """Return the error of `kind` that the call raises; fails where it raises none."""
    try:
        await call
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__} was raised")


async def head_of(store: CheckpointStorage, run_id: str = "run") -> Head:
    """Return the head of a run that must be there."""
    head = await store.head(run_id)
    assert head is not None, f"run {run_id!r} is not there"
    return head


async def loaded(store: CheckpointStorage, ref: CheckpointRef) -> Stored:
    """Return a checkpoint that must be there."""
    stored = await store.load(ref)
    assert stored is not None, f"{ref!r} is not there"
    return stored


def in_order(store: CheckpointStorage, *run_ids: str) -> list[str]:
    """Return run ids as a store lists them: by themselves, or by what it hides them under."""
    return sorted(run_ids, key=lambda run_id: listing_key(store, run_id))


class ManualClock:
    """A clock that stands still until it is moved; `now` is in seconds since the epoch."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def time(self) -> float:
        """Return the time."""
        return self.now


class CommitMaker:
    """Makes the commits of a run. `tag` keeps the checkpoint ids of makers that race for one run apart."""

    def __init__(self, run_id: str = "run", *, workflow: str = "flow", owner: str = "owner", tag: str = "") -> None:
        self.run_id = run_id
        self.workflow = workflow
        self.owner = owner
        self.tag = tag
        self.head: str | None = None
        self.seq = -1
        self.epoch = 0
        self.created = 1_000_000.0
        self.records: dict[str, bytes] = {}
        self._digests: dict[str, int] = {}

    def copy(self, *, owner: str, tag: str) -> CommitMaker:
        """Return a maker that stands where this one stands."""
        other = CommitMaker(self.run_id, workflow=self.workflow, owner=owner, tag=tag)
        other.head, other.seq, other.epoch, other.created = self.head, self.seq, self.epoch, self.created
        other.records, other._digests = dict(self.records), dict(self._digests)
        return other

    def know(self, key: str, data: bytes) -> None:
        """Take a record as one that the run has."""
        self.records[key] = data
        self._digests[key] = record_digest(key, data)

    def claim(self, puts: Mapping[str, bytes] | None = None, *, seconds: float = 30.0) -> Commit:
        """Return a claim; the first one starts the run."""
        self.epoch += 1
        return self._next(puts or {}, (), Lease(self.owner, self.epoch, seconds, claim=True))

    def step(
        self,
        puts: Mapping[str, bytes] | None = None,
        removes: Sequence[str] = (),
        *,
        seconds: float = 30.0,
        status: Status = Status.RUNNING,
        requests: Sequence[RequestRow] = (),
        turn: TurnRow | None = None,
    ) -> Commit:
        """Return a commit within a turn."""
        lease = Lease(self.owner, self.epoch, seconds)
        return self._next(puts or {}, removes, lease, status=status, requests=requests, turn=turn)

    def end(self, puts: Mapping[str, bytes] | None = None, *, status: Status = Status.IDLE) -> Commit:
        """Return the commit that ends a turn."""
        return self.step(puts, seconds=0.0, status=status)

    def turn(self, key: str, number: int = 1, *, status: Status = Status.RUNNING) -> TurnRow:
        """Return the row of a turn of this run with an idempotency key."""
        return TurnRow(self.workflow, key, self.run_id, number, self.head, "digest", f"{self.head}", status)

    def _next(
        self,
        puts: Mapping[str, bytes],
        removes: Sequence[str],
        lease: Lease,
        *,
        status: Status = Status.RUNNING,
        requests: Sequence[RequestRow] = (),
        turn: TurnRow | None = None,
    ) -> Commit:
        for key in removes:
            self.records.pop(key, None)
            self._digests.pop(key, None)
        for key, data in puts.items():
            self.know(key, data)
        self.seq += 1
        header = Header(
            run_id=self.run_id,
            workflow=self.workflow,
            checkpoint_id=f"{self.run_id}:{self.seq}{self.tag}",
            seq=self.seq,
            previous_checkpoint_id=self.head,
            status=status,
            turn=1,
            superstep=self.seq,
            created=self.created,
            pending=0,
            events=self.seq,
            records=len(self.records),
            digest=digest_sum(self._digests.values()),
            cause=_CAUSES[self.seq % len(_CAUSES)],
            size=sum(map(len, puts.values())),
            changed=1,
            scopes=("", "child#1")[: 1 + self.seq % 2],
            reason="" if self.seq % 2 else "a person's",
            keyed=self.seq % 3 == 1,
            due=self.seq * 0.5 if self.seq % 4 == 2 else None,
        )
        expected, self.head = self.head, header.checkpoint_id
        rows = tuple(Put(key, data) for key, data in puts.items())
        return Commit(header, expected, lease, rows, tuple(removes), tuple(requests), turn)
