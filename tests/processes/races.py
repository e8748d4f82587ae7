"""Races: what several processes are told to do with one run at one moment, and what must come of it.

A race is run in rounds by callers that stay alive, so that a round costs no start of a process.
"""

import asyncio
import itertools
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rehydrate import PostgresCheckpointStorage, SqliteCheckpointStorage, Status, WorkflowContext, WorkflowRunResult
from rehydrate.errors import RunFailedError
from rehydrate.testing.store_contract import ManualClock
from tests.processes.nursery import Child, Nursery
from tests.processes.shop import Order, shop

BUSY = frozenset({"RunBusyError"})
SAME = frozenset({"TurnInProgressError"})
STALE = frozenset({"StaleCheckpointError"})
ANSWERED = frozenset({"AlreadyAnsweredError"})
EXISTS = frozenset({"RunExistsError"})


@dataclass(frozen=True)
class Race:
    """One kind of race, on a run that was left `rested`, `asked` or `failed`, or on none.

    `call` is what all call; `{run}`, `{checkpoint}`, `{request}` and, where each brings something of its own, `{name}`
    are filled in. `ran` and `outputs` are the winner's. `busy` and `late` are the errors of those that come while it
    runs, and after; where somebody late would rightly do a turn of its own (`None`) the winner waits for all others.
    """

    left: str
    call: dict[str, object]
    ran: str
    outputs: list[str]
    busy: frozenset[str]
    late: frozenset[str] | None

    @property
    def begins(self) -> list[str]:
        """The executors that run first, side by side."""
        return ["answer", "take"] if "take" in self.ran and "answer" in self.ran else self.ran.split()[:1]


#: A run that is left `asked` was asked about `a?`, the others had an order `a`, which did not get beyond `ship` in a
#: `failed` one.
RACES = {
    "one message": Race(
        "rested", {"message": "b", "checkpoint": "{checkpoint}"}, "take clerk ship", ["2 of 2: b"], SAME, STALE
    ),
    "two messages": Race(
        "rested", {"message": "{name}", "checkpoint": "{checkpoint}"}, "take clerk ship", ["2 of 2: {name}"],
        BUSY, STALE,
    ),
    "an answer": Race(
        "asked", {"responses": {"{request}": "yes"}, "checkpoint": "{checkpoint}"}, "answer ship", ["1 of 1: a? yes"],
        SAME, ANSWERED,
    ),
    "two answers": Race(
        "asked", {"responses": {"{request}": "{name}"}, "checkpoint": "{checkpoint}"}, "answer ship",
        ["1 of 1: a? {name}"], BUSY | ANSWERED, ANSWERED,
    ),
    "an answer alone": Race(
        "asked", {"responses": {"{request}": "yes"}}, "answer ship", ["1 of 1: a? yes"], SAME, ANSWERED
    ),
    "an answer and a message": Race(
        "asked", {"message": "b", "responses": {"{request}": "yes"}, "checkpoint": "{checkpoint}"},
        "answer take clerk ship ship", ["1 of 2: a? yes", "2 of 2: b"], SAME, ANSWERED,
    ),
    "no input": Race("failed", {"checkpoint": "{checkpoint}"}, "ship", ["1 of 1: a"], SAME, STALE),
    "latest, one message": Race(
        "rested", {"message": "b", "checkpoint": "latest", "run_id": "{run}"}, "take clerk ship", ["2 of 2: b"],
        SAME, None,
    ),
    "latest, two messages": Race(
        "rested", {"message": "{name}", "checkpoint": "latest", "run_id": "{run}"}, "take clerk ship",
        ["2 of 2: {name}"], BUSY, None,
    ),
    "latest, an answer": Race(
        "asked", {"responses": {"{request}": "yes"}, "checkpoint": "latest", "run_id": "{run}"}, "answer ship",
        ["1 of 1: a? yes"], SAME, ANSWERED,
    ),
    "latest, no input": Race(
        "failed", {"checkpoint": "latest", "run_id": "{run}"}, "ship", ["1 of 1: a"], SAME | BUSY, None
    ),
    "one new run": Race("", {"message": "a", "run_id": "{run}"}, "take clerk ship", ["1 of 1: a"], SAME, EXISTS),
    "two new runs": Race(
        "", {"message": "{name}", "run_id": "{run}"}, "take clerk ship", ["1 of 1: {name}"], EXISTS, EXISTS
    ),
    "one key": Race(
        "", {"message": "a", "run_id": "{run}", "idempotency_key": "{run}"}, "take clerk ship", ["1 of 1: a"], SAME,
        frozenset({"replayed"}),
    ),
}  # fmt: skip


#: Where all meet, and whether the winner waits for the others.
WAYS = [("claim", False), ("claim", True), ("call", False), ("call", True)]


class FailingOnce:
    """Tools that let the shipping of an order `f` fail."""

    def __init__(self, fails: bool) -> None:
        self.fails = fails

    async def at(self, ctx: WorkflowContext, entry: str) -> None:
        if self.fails and entry == "ship":
            raise ValueError("no carrier")


def filled(value: object, **words: str) -> object:
    """Fill words in, at any depth."""
    match value:
        case str():
            return value.format(**words)
        case bool():
            return value
        case list():
            return [filled(item, **words) for item in value]
        case dict():
            return {filled(key, **words): filled(item, **words) for key, item in value.items()}
    raise TypeError(value)


async def left_run(workflow, left: str, run_id: str) -> dict[str, str]:
    """Make a run that was left in a way, and return the words for its race."""
    words = {"run": run_id}
    if not left:
        return words
    call = workflow.run(
        Order("a?" if left == "asked" else "a"), run_id=run_id, resources={"tools": FailingOnce(left == "failed")}
    )
    result: WorkflowRunResult
    try:
        result = await call
    except RunFailedError as error:
        result = error.result
    if result.pending_requests:
        words["request"] = result.pending_requests[0].request_id
    return {**words, "checkpoint": result.checkpoint_id}


class Course:
    """Runs in a file or a place in PostgreSQL, and the callers that race for them; several may be here at once."""

    def __init__(self, nursery: Nursery, folder: Path, names: Iterable[str], **told: object) -> None:
        self._nursery = nursery
        self.file = folder / "runs.db"
        self.journal = folder / "journal"
        self.journal.touch()
        self._read = 0
        self._ready, self._go = os.pipe()
        self._told = {"file": str(self.file), "journal": str(self.journal), **told}
        self.callers: dict[str, Child] = {}
        for name in names:
            self.add(name)

    def add(self, name: str, *descriptors: int, **told: object) -> None:
        """Start a caller, also in the place of one that is gone."""
        told = {**self._told, "name": name, **told}
        self.callers[name] = self._nursery.child("caller", told, self._ready, *descriptors)

    def close(self) -> None:
        """Let all callers end by themselves."""
        for caller in self.callers.values():
            caller.end()
        self.leave()

    def leave(self) -> None:
        os.close(self._ready)
        os.close(self._go)

    def ask(self, name: str, told: dict[str, object]) -> object:
        """Let a caller do what it is told and return what it says."""
        self.callers[name].send(told)
        return self.callers[name].receive()

    def dies(self, name: str, told: dict[str, object]) -> bool:
        """Let a caller do what it is told, and tell whether it dies of it; then another process has its place."""
        self.callers[name].send(told)
        try:
            self.callers[name].receive()
        except EOFError:
            assert self.callers[name].wait() == -9
            self.add(name)
            return True
        return False

    def prepare(self, races: dict[str, Race]) -> dict[str, dict[str, str]]:
        """Make the runs that are raced for, by run id."""

        async def all_at_once() -> list[dict[str, str]]:
            async with self.store() as store:
                workflow = shop(store)
                return await asyncio.gather(*(left_run(workflow, race.left, run_id) for run_id, race in races.items()))

        return dict(zip(races, asyncio.run(all_at_once()), strict=True))

    def store(self, clock: ManualClock | None = None) -> SqliteCheckpointStorage | PostgresCheckpointStorage:
        """Return a store object on the callers' store."""
        if "postgres" in self._told:
            url, schema = self._told["postgres"]
            return PostgresCheckpointStorage(url, schema=schema, clock=clock)
        return SqliteCheckpointStorage(self.file, clock=clock)

    def go(self, number: int) -> None:
        """Let as many go on that have met or stand still."""
        os.write(self._go, b"!" * number)

    def entries(self) -> list[str]:
        """Return what executors of any process have noted since the last time."""
        with self.journal.open() as file:
            file.seek(self._read)
            found = file.read().splitlines()
            self._read = file.tell()
        return found

    def replies(self, race: Race, words: dict[str, str], **told: object) -> dict[str, dict[str, object]]:
        """Let all call at one moment; return what each says first."""
        for name, caller in self.callers.items():
            caller.send({"call": filled(race.call, name=name, **words), **told})
        for caller in self.callers.values():
            assert caller.receive() == "here"
        self.go(len(self.callers))
        return {name: caller.receive() for name, caller in self.callers.items()}

    def round(self, race: Race, words: dict[str, str], *, meet: str, held: bool) -> str:
        """Let all race for one run; return the winner's checkpoint."""
        holds = race.ran.split()[:1] if held else []
        replies = self.replies(race, words, meets_at=meet, holds=holds)
        winners = [name for name, reply in replies.items() if "holds" in reply or outcome(reply) == "ran"]
        assert len(winners) == 1, replies
        (winner,) = winners
        others = {outcome(reply) for name, reply in replies.items() if name != winner}
        assert others <= (race.busy if held else race.busy | race.late), replies
        result = released(self.callers[winner]) if held else replies[winner]
        assert result["outputs"] == filled(race.outputs, name=winner, **words)
        run_id = words["run"]
        assert sorted(self.entries()) == sorted(f"{run_id} {winner} {entry}" for entry in race.ran.split())
        return result["checkpoint"]


def heads(course: Course, now: float) -> dict[str, tuple[str, Status, bool]]:
    """Return each run's head: its id, its status, and whether its owner is alive at a time."""

    async def read() -> dict[str, tuple[str, Status, bool]]:
        async with SqliteCheckpointStorage(course.file, clock=ManualClock(now)) as store:
            found = [await store.head(header.run_id) for header in await store.runs(limit=1000)]
        return {head.header.run_id: (head.header.checkpoint_id, head.header.status, head.alive) for head in found}

    return asyncio.run(read())


def outcome(reply: dict[str, object]) -> str:
    """Return `ran`, `replayed` or the name of the error of a call."""
    return reply.get("error") or ("replayed" if reply["replayed"] else "ran")


def released(caller: Child) -> dict[str, object]:
    """Let a caller go on and return the result of its call."""
    caller.send("go on")
    return caller.receive()


def rounds(kinds: Iterable[str], number: int) -> dict[str, tuple[Race, str, bool]]:
    """Spread a number of rounds over kinds of races: by run id, the race, where all meet, and whether the winner waits.

    All meet before they call, or after each has passed every check and is about to commit its claim.
    """
    found = {}
    for index, kind in enumerate(itertools.islice(itertools.cycle(kinds), number)):
        meet, held = WAYS[(index + index // len(RACES)) % len(WAYS)]
        race = RACES[kind]
        found[f"{kind} {index}"] = race, meet, held or race.late is None
    return found
