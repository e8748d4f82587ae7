"""Deliberately broken stores, handles, runtimes and engines, of which the simulation must find each.

Broken in a test only: each is a function that changes the world's class, or something of the product for a while.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from rehydrate.errors import CommitConflictError
from rehydrate.model.checkpoint import Commit, Head
from rehydrate.runtime import checkpoint, finding
from rehydrate.runtime.actor import Actor
from rehydrate.runtime.claim import Claim
from rehydrate.runtime.finding import Finder
from rehydrate.runtime.saver import Ledger, Saver
from rehydrate.stores import memory
from rehydrate.stores.memory_tables import MemoryTables
from rehydrate.stores.standing import Standing, check_commit

from .simulated_store import Database, Handle
from .simulated_world import World

Breakage = Callable[[], Any]


@contextmanager
def patched(owner: Any, name: str, value: object) -> Iterator[None]:
    """Put something else in the place of an attribute."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def _world(handle: type[Handle] = Handle, database: type[Database] = Database) -> type[World]:
    class Broken(World):
        handle_class = handle
        database_class = database

    return Broken


class _FreeHead(MemoryTables):
    """Lets a checkpoint be written twice."""

    __slots__ = ()

    def check(self, commit: Commit) -> None:
        self.checkpoints.pop(commit.header.checkpoint_id, None)
        super().check(commit)


class _Unchecked(Database):
    """Compares heads no more; `_check` says what is still compared."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.tables = self._tables = _FreeHead()


@contextmanager
def any_head() -> Iterator[type[World]]:
    """A commit moves the head wherever it is; only its epoch is compared."""

    def check(commit: Commit, standing: Standing | None) -> None:
        lease = commit.lease
        epoch = standing.epoch if standing else 0
        if lease.epoch != epoch + lease.claim:
            raise CommitConflictError(commit.header.run_id, f"epoch {lease.epoch}", f"epoch {epoch}")

    with patched(memory, "check_commit", check):
        yield _world(database=_Unchecked)


@contextmanager
def any_epoch() -> Iterator[type[World]]:
    """A commit is taken from whoever it comes, also from one that was taken over."""
    with patched(memory, "check_commit", lambda commit, standing: None):
        yield _world(database=_Unchecked)


@contextmanager
def done_twice() -> Iterator[type[World]]:
    """A message that comes twice is obeyed twice, and of a commit only the number is compared."""

    class Twice(_Unchecked):
        def answer(self, number: int, what: str, work: Callable[[], Any]) -> tuple[bool, Any]:
            self._answered.pop(number, None)
            return super().answer(number, what, work)

    def check(commit: Commit, standing: Standing | None) -> None:
        if standing is None or commit.header.seq != standing.seq:
            check_commit(commit, standing)

    with patched(memory, "check_commit", check):
        yield _world(database=Twice)


@contextmanager
def silence_is_success() -> Iterator[type[World]]:
    """A commit whose reply did not come is taken for done."""

    class Hopeful(Handle):
        def without_reply(self, what: str) -> object:
            return None if what.startswith("commit") else super().without_reply(what)

    yield _world(Hopeful)


@contextmanager
def asked_blindly() -> Iterator[type[World]]:
    """A commit whose reply did not come is sent again, without a look whether it is there."""

    class Blind(Handle):
        looks_again = False

    yield _world(Blind)


@contextmanager
def own_clock() -> Iterator[type[World]]:
    """Whether a lease has run out is told by the clock of the process that looks."""

    class Own(Handle):
        def seen(self, head: Head) -> Head:
            standing = self.database.tables.runs[head.header.run_id].standing
            alive = standing.owner is not None and standing.lease_end > self.process.clock.time()
            return msgspec.structs.replace(head, alive=alive)

    yield _world(Own)


def forgets(*kinds: str) -> Callable[[], Any]:
    """Return a breakage: a restore without the records of some kinds."""

    @contextmanager
    def breakage() -> Iterator[type[World]]:
        decode = checkpoint.decode_records

        def without(records: dict[str, bytes]) -> list[Any]:
            return [(key, record) for key, record in decode(records) if key[1] not in kinds]

        with patched(checkpoint, "decode_records", without):
            yield World

    return breakage


def unsaved(*kinds: str) -> Callable[[], Any]:
    """Return a breakage: records of some kinds are never written."""

    @contextmanager
    def breakage() -> Iterator[type[World]]:
        encode = Ledger.encode

        def without(self: Ledger, delta: Any) -> Any:
            return encode(self, {place: changed for place, changed in delta.items() if place[1] not in kinds})

        with patched(Ledger, "encode", without):
            yield World

    return breakage


@contextmanager
def late_keys() -> Iterator[type[World]]:
    """A key is remembered with the end of its turn, not with its claim."""
    made = Saver.next_commit

    def late(self: Saver, *given: Any, ends: bool) -> Commit:
        commit = made(self, *given, ends=ends)
        return commit if ends else msgspec.structs.replace(commit, turn=None)

    with patched(Saver, "next_commit", late):
        yield World


@contextmanager
def told_early() -> Iterator[type[World]]:
    """Events are told before the commit that holds them."""
    save = Actor._save

    async def early(
        self: Actor, saver: Saver, delta: Any, events: list[Any], taken: tuple[int, ...], *, ends: bool
    ) -> Any:
        self.channel.publish(events)
        header = await save(self, saver, delta, events, taken, ends=ends)
        events.clear()
        return header

    with patched(Actor, "_save", early):
        yield World


@contextmanager
def no_lease() -> Iterator[type[World]]:
    """A call goes on with a run, whoever is at it."""
    with patched(finding, "check_owner", lambda *given, **named: None):
        from rehydrate.runtime import opening  # noqa: PLC0415

        with patched(opening, "check_owner", lambda *given, **named: None):
            yield World


@contextmanager
def conflicts_ignored() -> Iterator[type[World]]:
    """A run goes on although its commit was refused."""
    save = Actor._save

    async def on(self: Actor, saver: Saver, *given: Any, ends: bool) -> Any:
        try:
            return await save(self, saver, *given, ends=ends)
        except CommitConflictError:
            if saver.lease.claim:
                raise
            return self.ledger.header

    with patched(Actor, "_save", on):
        yield World


@contextmanager
def no_keys() -> Iterator[type[World]]:
    """A turn that comes again is not found by its key."""

    async def by_key(self: Finder) -> None:
        return None

    with patched(Finder, "by_key", by_key):
        yield World


@contextmanager
def never_the_same() -> Iterator[type[World]]:
    """A call that is made again is not known as the turn that it is."""
    with patched(Finder, "is_same", lambda self, checkpoint, base_counts: False):
        yield World


@contextmanager
def claims_hang() -> Iterator[type[World]]:
    """Who waits for a claim that failed is not told."""
    with patched(Claim, "fail", lambda self, error: None):
        yield World


BREAKAGES: Final[dict[str, Breakage]] = {
    "heads are not compared": any_head,
    "neither heads nor epochs are compared": any_epoch,
    "a commit that comes twice is applied twice": done_twice,
    "a lost reply is taken for success": silence_is_success,
    "a lost reply is answered by asking blindly": asked_blindly,
    "leases by the clock of the process": own_clock,
    "leases are not looked at": no_lease,
    "receipts are forgotten": forgets("receipt", "receipts"),
    "receipts are not saved": unsaved("receipt", "receipts"),
    "the inbox is forgotten": forgets("inbox"),
    "joins are forgotten": forgets("join"),
    "gathered items are forgotten": forgets("gather"),
    "instances are forgotten": forgets("instance"),
    "finished invocations are forgotten": forgets("done"),
    "calls are forgotten": forgets("call", "calls"),
    "counters are not saved": unsaved("counter"),
    "state is not saved": unsaved("state"),
    "keys are remembered too late": late_keys,
    "keys are not looked for": no_keys,
    "the same call is not known again": never_the_same,
    "events are told before the commit": told_early,
    "conflicts are ignored": conflicts_ignored,
    "a failed claim tells nobody": claims_hang,
}
