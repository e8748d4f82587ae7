"""Talks with a shop over a store that fails: what is said, what was acknowledged, and what must be found afterwards.

A talk makes the same call again until it has its result, as the docs tell. Everything goes to a journal that all
processes append to: each executor that runs, each commit that was acknowledged. Must not know what makes a store fail.
"""

import asyncio
import json
import os
import random
from dataclasses import dataclass, field
from pathlib import Path

from rehydrate import CheckpointStorage, InMemoryCheckpointStorage, PostgresCheckpointStorage, WorkflowContext
from rehydrate.errors import (
    AlreadyAnsweredError,
    RehydrateError,
    RunExistsError,
    RunFailedError,
    SaveFailedError,
    StaleCheckpointError,
    StoreUnavailableError,
)
from rehydrate.model.checkpoint import RESTING, Commit, Header
from tests.processes.line import Line
from tests.processes.shop import Order, shop

#: What a call may end with while its store fails: it is made again.
AGAIN = (StoreUnavailableError, SaveFailedError)
#: What a call without a key ends with that is made again after all had been done.
REFUSALS = (StaleCheckpointError, RunExistsError, AlreadyAnsweredError)
#: What is said of an invocation that was lost so often that it failed, as it should; a continuation tries it again.
LOST = "attempts in a row was lost"
#: After so many calls in one turn something else is wrong.
IN_VAIN = 1000


class Journal:
    """A file of notes, each a JSON list; several processes append to it."""

    def __init__(self, path: Path) -> None:
        self._end = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(self, *words: object) -> None:
        os.write(self._end, json.dumps(words).encode() + b"\n")

    def close(self) -> None:
        os.close(self._end)

    async def at(self, ctx: WorkflowContext, entry: str) -> None:
        """Note that an executor runs: its side effect."""
        self.note("ran", ctx.run_id, ctx.effect_key, entry)


class NotedPostgres(PostgresCheckpointStorage):
    """A store that notes what it has acknowledged."""

    journal: Journal

    async def commit(self, commit: Commit) -> None:
        await super().commit(commit)
        header = commit.header
        self.journal.note("saved", header.run_id, header.seq, header.created, commit.lease.claim)


@dataclass
class Talk:
    """One run: a number of turns that `seed` chooses, the same over any store.

    In a `chain` one thing runs at a time, so that each commit that is no claim has all that has run since the claim.
    """

    store: CheckpointStorage
    tools: Journal | None
    run_id: str
    turns: int
    seed: int
    chain: bool
    results: list[dict[str, object]] = field(default_factory=list)
    #: How many calls were made again.
    repeated: int = 0
    _in_vain: int = 0

    def __post_init__(self) -> None:
        self._workflow = shop(self.store)
        self._chance = random.Random(self.seed)
        # How something is said does not change what is said.
        self._manner = random.Random(~self.seed)
        self._asked: dict[str, str] = {}
        self._checkpoint = ""
        self._continuation: dict[str, object] = {"run_id": self.run_id, "checkpoint": "latest"}

    async def turn(self) -> dict[str, object]:
        """Take the next turn, whatever happens in between."""
        number = len(self.results) + 1
        call = given = self._call(number)
        self._in_vain = 0
        while True:
            try:
                result = await self._made(given)
                break
            except AGAIN as error:
                self._again(error)
                given = await self._made_again(call, number)
            except RunFailedError as error:
                # Five ends of the server in a row, each in the middle of one invocation: that is told, and goes on.
                if LOST not in str(error):
                    raise
                self._again(error)
                given = self._continuation
            except REFUSALS as error:
                # What was on its way when a line was lost has come after all.
                if given is not call or not self._in_vain:
                    raise
                self._again(error)
                given = self._continuation
        self._asked = {request.data.text: request.request_id for request in result.pending_requests}
        self._checkpoint = result.checkpoint_id
        said = {"turn": result.turn, "outputs": result.outputs, "asked": sorted(self._asked)}
        self.results.append({**said, "status": result.status.value})
        return said

    def _call(self, number: int) -> dict[str, object]:
        """Return the arguments of a turn, chosen by chance from what is open."""
        answers = [text for text in sorted(self._asked) if self._chance.random() < 0.6]
        new = self._chance.random() < 0.5
        if self.chain:
            answers, new = sorted(self._asked)[:1], not self._asked
        call: dict[str, object] = {}
        if self._manner.random() < 0.4:
            call["idempotency_key"] = f"turn {number} of {self.run_id}"
        if new or not answers:
            call |= {"message": Order(f"{number}{self._chance.choice(['', '?'])}"), "run_id": self.run_id}
            if number > 1:
                # Without a key `"latest"` would be another turn, where what is made again has been done by then.
                keyed = "idempotency_key" in call and self._manner.random() < 0.5
                call |= {"checkpoint": "latest" if keyed else self._checkpoint, "on_pending": "keep"}
        if answers:
            call["responses"] = {self._asked[text]: f"yes to {text}" for text in answers}
        return call

    async def _made(self, call: dict[str, object]):
        call = dict(call)
        return await self._workflow.run(call.pop("message", None), resources={"tools": self.tools or self}, **call)

    async def at(self, ctx: WorkflowContext, entry: str) -> None:
        """Be the tools of an executor that leaves no trace."""

    async def _made_again(self, call: dict[str, object], number: int) -> dict[str, object]:
        """Return the call that goes on: the same again, or where it has begun already, a continuation."""
        header = await self._head()
        if header is None or header.turn < number:
            return call
        if "idempotency_key" in call or (header.status not in RESTING and self._manner.random() < 0.5):
            return call
        return self._continuation

    async def _head(self) -> Header | None:
        while True:
            try:
                head = await self.store.head(self.run_id)
                return None if head is None else head.header
            except StoreUnavailableError as error:
                self._again(error)

    def _again(self, error: RehydrateError) -> None:
        """Count a call that is made again, but not for ever."""
        self.repeated += 1
        self._in_vain += 1
        if self._in_vain > IN_VAIN:
            raise AssertionError(f"{self.run_id} got nowhere in {IN_VAIN} calls") from error


def talks(store: CheckpointStorage, journal: Journal | None, told: dict[str, object]) -> list[Talk]:
    """Return the talks that a process has at once; every other one is a chain."""
    name, turns = str(told["name"]), int(told["turns"])
    return [
        Talk(store, journal, f"{name} {number}", turns, int(told["seed"]) + number, chain=number % 2 == 0)
        for number in range(int(told["runs"]))
    ]


def expected(told: dict[str, object]) -> dict[str, list[dict[str, object]]]:
    """Return the results of the same talks over a store that does not fail, by run."""

    async def main() -> dict[str, list[dict[str, object]]]:
        all_of_them = talks(InMemoryCheckpointStorage(), None, told)
        for talk in all_of_them:
            for _ in range(talk.turns):
                await talk.turn()
        return {talk.run_id: talk.results for talk in all_of_them}

    return asyncio.run(main())


def lost_or_half(saved: list[list[object]], headers: list[Header]) -> list[str]:
    """Return what was acknowledged of a run and is not there as it was, and gaps between what is there."""
    there = {header.seq: header for header in headers}
    found = [
        f"{run_id}: checkpoint {seq} was acknowledged and is not there"
        for run_id, seq, created, _ in saved
        if seq not in there or there[seq].created != created
    ]
    if sorted(there) != list(range(len(there))):
        found.append(f"checkpoints {sorted(there)} are there")
    return found


def run_again(notes: list[list[object]]) -> list[str]:
    """Return the invocations of a chain that ran although their commit had been acknowledged."""
    found: list[str] = []
    since_claim: dict[str, set[str]] = {}
    done: set[str] = set()
    for kind, run_id, *words in notes:
        if kind == "ran":
            key, entry = words
            if key in done:
                found.append(f"{run_id}: {entry} ran again")
            since_claim.setdefault(run_id, set()).add(key)
        elif words[-1]:
            since_claim[run_id] = set()
        else:
            done |= since_claim.pop(run_id, set())
    return found


def notes_in(journal: Path) -> list[list[object]]:
    """Return what processes have noted."""
    return [json.loads(line) for line in journal.read_text().splitlines()]


async def findings(store: CheckpointStorage, journal: Path, told: list[dict[str, object]]) -> list[str]:
    """Return what is wrong after the talks that processes were told to have: in the store, or with what has run."""
    notes = notes_in(journal)
    found: list[str] = []
    for talk in (talk for each in told for talk in talks(store, None, each)):
        own = [note for note in notes if note[1] == talk.run_id]
        headers = await store.history(talk.run_id, limit=100_000)
        found += lost_or_half([note[1:] for note in own if note[0] == "saved"], headers)
        if talk.chain:
            found += run_again(own)
        waiting = await store.requests(run_id=talk.run_id)
        if headers and len(waiting) != headers[0].pending:
            found.append(f"{talk.run_id}: {len(waiting)} of {headers[0].pending} open requests can be found")
        for header in headers:
            try:
                await store.load(header.checkpoint_id)  # compares the record sum
            except RehydrateError as error:
                found.append(f"{talk.run_id}: {error}")
    return found


def talking(line: Line, told: dict[str, object]) -> None:
    """Be a process that has the talks it is told to have, and tells of each turn that was acknowledged."""

    async def have(talk: Talk) -> None:
        try:
            for _ in range(talk.turns):
                line.send([talk.run_id, await talk.turn()])
        except RehydrateError as error:
            line.send([talk.run_id, {"error": f"{type(error).__name__}: {error}"}])

    async def main() -> None:
        journal = Journal(Path(str(told["journal"])))
        url, schema = told["postgres"]
        async with NotedPostgres(url, schema=schema, retry_waits=tuple(told["waits"])) as store:
            store.journal = journal
            had = talks(store, journal, told)
            await asyncio.gather(*map(have, had))
        line.send({"repeated": sum(talk.repeated for talk in had)})

    asyncio.run(main())
