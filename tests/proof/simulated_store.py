"""A simulated database behind a simulated network, and the handle by which a process uses it.

Each call is a message out and a reply back: either may come late, behind others, twice, or never. The handle does what
that of a real store does: it asks again for some time, and of a commit first whether it is there. Must not draw on
anything but what it is given.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextvars import Context, ContextVar
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from rehydrate.errors import CommitConflictError, RehydrateError, StoreUnavailableError
from rehydrate.model.checkpoint import Commit, Head, Header, Stored
from rehydrate.stores.memory import InMemoryCheckpointStorage

from .simulated_checks import Checks
from .simulated_loop import SimClock, SimProcess, settle

#: How long a handle waits for a reply, and before each further attempt, in seconds.
_REPLY_SECONDS: Final = 4.0
_WAITS: Final = (0.1, 0.5, 2.0)
_LOST: Final = object()


@dataclass
class CallFacts:
    """What is known of the call whose commits and reads come by."""

    takeover: bool = False
    durability: str = "superstep"
    #: By run: the owner that was alive whenever the call looked at the head; none once it was seen without one.
    alive: dict[str, str | None] = field(default_factory=dict)


CALL: ContextVar[CallFacts | None] = ContextVar("call", default=None)


class Network:
    """What becomes of messages between processes and the database."""

    def __init__(self, random: Random, note: Callable[[str], None], tried: Counter[str]) -> None:
        self._random = random
        self._note = note
        self._tried = tried
        #: How likely a message is lost, comes twice, comes late; all 0 in a quiet network.
        self.loses = self.doubles = self.delays = 0.0
        self.cut: set[str] = set()

    def fates(self, process: SimProcess, what: str) -> list[float]:
        """Return after how many seconds each copy of a message arrives: none where it is lost."""
        random = self._random
        if process.name in self.cut or random.random() < self.loses:
            self._note(f"lost {what}")
            self._tried["lose"] += 1
            return []
        times = [self._delay()]
        if random.random() < self.doubles:
            self._note(f"doubled {what}")
            self._tried["double"] += 1
            times.append(self._delay())
        return times

    def _delay(self) -> float:
        random = self._random
        if random.random() < self.delays:
            self._tried["delay"] += 1
            return random.choice((0.3, 1.0, 5.0, 12.0, 40.0)) * random.random()
        return 0.001 + random.random() * 0.01


class Database(InMemoryCheckpointStorage):
    """What really is stored. A commit that is asked for again is looked for first."""

    def __init__(self, clock: SimClock, checks: Checks, note: Callable[[str], None]) -> None:
        super().__init__(clock=clock, keep_events=True)
        self.checks = checks
        self.note = note
        self.tables = self._tables
        self.clock = clock
        #: Requests that were answered, by number: a message that comes twice is one request.
        self._answered: dict[int, tuple[bool, Any]] = {}
        self._taken: dict[int, Commit] = {}

    def answer(self, number: int, what: str, work: Callable[[], Any]) -> tuple[bool, Any]:
        """Do what a message asks for, once, and return whether it went well, and the reply."""
        known = self._answered.get(number)
        if known is None:
            try:
                known = True, work()
            except RehydrateError as error:
                known = False, error
            self._answered[number] = known
            self.note(f"{what}: {'done' if known[0] else type(known[1]).__name__}")
        return known

    def take(self, commit: Commit, process: SimProcess, facts: CallFacts | None, again: bool) -> None:
        """Write a commit. Raises `CommitConflictError`."""
        if again and self.has(commit):
            return
        before = self.tables.runs.get(commit.header.run_id)
        standing = before.standing if before else None
        events = before.headers[before.standing.seq].events if before else 0
        now(super().commit(commit))
        self._taken[id(commit)] = commit
        self.checks.accepted(commit, standing, events, str(process))
        if commit.lease.claim and facts is not None:
            self.checks.claimed(commit, str(process), facts.takeover, facts.alive)

    def header(self, checkpoint_id: str) -> Header | None:
        """Return the header of a checkpoint."""
        place = self.tables.checkpoints.get(checkpoint_id)
        return None if place is None else self.tables.runs[place[0]].headers[place[1]]

    def has(self, commit: Commit) -> bool:
        """Tell whether just this commit was taken."""
        return id(commit) in self._taken  # two calls at one instant may make commits that are equal


def now(coroutine: Any) -> Any:
    """Return what a coroutine gives that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("the database does not wait")


class Handle(InMemoryCheckpointStorage):
    """The store as one process has it. Only what a run needs is there."""

    #: Whether a commit that is asked for again is looked for first.
    looks_again = True

    def __init__(self, process: SimProcess, database: Database, network: Network) -> None:
        super().__init__(keep_events=True)
        self.process = process
        self.database = database
        self._network = network

    async def commit(self, commit: Commit) -> None:
        """Write a commit."""
        facts = CALL.get()
        header = commit.header
        what = f"commit {header.run_id}.{header.seq} {header.status.value}{' claim' if commit.lease.claim else ''}"
        what += f" {header.digest.hex()[:6]}"

        def work(again: bool) -> None:
            self.database.take(commit, self.process, facts, again and self.looks_again)

        try:
            await self.ask(what, work)
        except CommitConflictError as error:
            self.database.checks.refused(commit, str(error), was_taken=self.database.has(commit))
            raise
        self.database.checks.acknowledged(commit, is_there=self.database.has(commit))

    async def ask(self, what: str, work: Callable[[bool], Any]) -> Any:
        """Ask the database for something until it replies. Raises what it replies, or `StoreUnavailableError`."""
        loop = asyncio.get_running_loop()
        again = False
        for wait in (*_WAITS, None):
            reply: asyncio.Future[Any] = loop.create_future()
            self._send(what, work, again, reply)
            timer = loop.call_later(_REPLY_SECONDS, settle, reply, _LOST)
            try:
                found = await reply
            finally:
                timer.cancel()
            if found is not _LOST:
                went_well, value = found
                if went_well:
                    return value
                raise value
            if (given := self.without_reply(what)) is not _LOST:
                return given
            again = True
            if wait is not None:
                waited: asyncio.Future[None] = loop.create_future()
                loop.call_later(wait, settle, waited, None)
                await waited
        raise StoreUnavailableError("simulated", f"no reply to {what}", "Call again.")

    def without_reply(self, what: str) -> object:
        """Return what a missing reply is taken for."""
        return _LOST

    def _send(self, what: str, work: Callable[[bool], Any], again: bool, reply: asyncio.Future[Any]) -> None:
        process, database, network = self.process, self.database, self._network
        number = self.database.checks.next_number()
        told = f"{process} {what}"

        def arrive() -> None:
            outcome = database.answer(number, told, lambda: work(again))
            deliver(f"reply to {told}", lambda: settle(reply, outcome))

        def deliver(text: str, callback: Callable[[], None]) -> None:
            for seconds in network.fates(process, text):
                outside(seconds, callback)

        deliver(told, arrive)

    async def head(self, run_id: str) -> Head | None:
        """Return a run's head."""
        facts = CALL.get()

        def work(again: bool) -> Head | None:
            found = now(self.database.head(run_id))
            if found is not None:
                found = self.seen(found)
                look(facts, run_id, self.database)
            return found

        return await self.ask(f"head {run_id}", work)

    async def load(self, ref: Any) -> Stored | None:
        """Return a checkpoint."""
        facts = CALL.get()

        def work(again: bool) -> Stored | None:
            found: Stored | None = now(self.database.load(ref))
            if found is not None:
                head = self.seen(found.head)
                found = Stored(header=found.header, records=found.records, digests=found.digests, head=head)
                look(facts, found.header.run_id, self.database)
            return found

        return await self.ask(f"load {getattr(ref, 'run_id', ref)}", work)

    def seen(self, head: Head) -> Head:
        """Return a head as this handle tells it."""
        return head


def _remote(name: str) -> Any:
    async def method(self: Handle, *args: Any, **given: Any) -> Any:
        shown = f"{name} {args[0] if args else ''}"
        return await self.ask(shown, lambda again: now(getattr(self.database, name)(*args, **given)))

    method.__name__ = name
    return method


for _name in ("read", "find_request", "find_turn", "requests", "renew", "history", "events"):
    setattr(Handle, _name, _remote(_name))


def look(facts: CallFacts | None, run_id: str, database: Database) -> None:
    """Note for a call whether its run's owner was alive when it looked, by the clock of the database."""
    if facts is not None:
        standing = database.tables.runs[run_id].standing
        alive = standing.owner if standing.lease_end > database.clock.time() else None
        facts.alive[run_id] = alive if facts.alive.get(run_id, "") is not None else None


def outside(seconds: float, callback: Callable[[], None]) -> None:
    """Let something happen that is no process' doing."""
    asyncio.get_running_loop().call_later(seconds, callback, context=Context())
