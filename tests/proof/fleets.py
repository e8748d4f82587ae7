"""Draining a fleet again and again: each process is told by SIGTERM to end, and the next one goes on with all its runs.

Says what is wrong of how a process ended, of what it left, and of what has become of the runs in the end.
"""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections import Counter
from pathlib import Path

from rehydrate import InMemoryCheckpointStorage, SqliteCheckpointStorage, Status, WorkflowRunResult
from rehydrate.errors import RehydrateError
from rehydrate.model.checkpoint import Header
from rehydrate.testing.store_contract import ManualClock
from tests.processes.nursery import Child, Nursery
from tests.proof.fleet import Journal, Leg, tours

#: Seconds that the exit may take beyond the grace time: that of the last commits, which is five, and of a busy machine.
ALLOWANCE = 6.0
#: A grace time in which all that can end does.
GENTLE = 15.0


class Fleet:
    """So many tours in flight; those that have ended are followed by others."""

    def __init__(
        self, nursery: Nursery, folder: Path, seed: int, size: int, *, legs: int = 4, broken: str = ""
    ) -> None:
        """After its first round a tour has so many more `legs`; `broken` names how the processes break their drain."""
        self.nursery, self.folder, self.legs, self.broken = nursery, folder, legs, broken
        self.chance = random.Random(seed)
        self.names = [f"tour-{number}" for number in range(size)]
        #: Those in flight.
        self.active = list(self.names)
        #: Those of which anything is stored.
        self.begun: set[str] = set()
        self.signals = 0
        #: How often a signal has come while a station worked, by station.
        self.caught: Counter[str] = Counter()

    def send(self) -> list[str]:
        """Start a process, send it SIGTERM at some moment, and return what is wrong of how it ended."""
        ways = {name: self.chance.choice(["latest", "same"]) if name in self.begun else "same" for name in self.active}
        grace = self.chance.choice([0.0, 0.05, 0.3, GENTLE]) if not self.broken else 0.3
        told = {
            "file": str(self.folder / "runs.db"), "journal": str(self.folder / "journal"), "tours": ways,
            "legs": self.legs, "grace": grace, "gentle": grace == GENTLE, "broken": self.broken,
        }  # fmt: skip
        child = self.nursery.child("fleet", told)
        ended = self._until_signal(child)
        child.signal(signal.SIGTERM)
        began = time.monotonic()
        code = self._wait(child, grace + ALLOWANCE)
        took = time.monotonic() - began
        self.signals += 1
        self._count()
        before = list(self.active)
        wrong = self._left(ended)
        if took > grace + ALLOWANCE:
            wrong.append(f"the process took {took} seconds to leave, with a grace time of {grace}")
        elif code != 128 + signal.SIGTERM and (code != 0 or not set(self.active).isdisjoint(before)):
            wrong.append(f"the process ended with {code}")  # with 0 where all its runs had come to their end
        return wrong

    def _until_signal(self, child: Child) -> set[str]:
        """Wait until all runs of a process wait, or some; return which have ended."""
        waits = len(self.active) if self.chance.random() < 0.6 else self.chance.randint(1, len(self.active))
        seen: set[str] = set()
        ended: set[str] = set()
        while len(seen) < waits:
            name, _, what = str(child.receive()).partition(" ")
            seen.add(name)
            if what:
                ended.add(name)
        return ended

    def _wait(self, child: Child, seconds: float) -> int:
        """Return the exit code of a process; one that stays for longer is killed."""
        until = time.monotonic() + seconds
        try:
            while True:
                child.receive(max(until - time.monotonic(), 0.0))
        except TimeoutError:
            child.kill()
            return -signal.SIGKILL
        except EOFError:
            return child.wait()

    def _left(self, ended: set[str]) -> list[str]:
        """Return what is wrong of the runs that the process has left, and let others follow those that have ended."""

        async def heads() -> dict[str, tuple[Header, str | None]]:
            async with SqliteCheckpointStorage(self.folder / "runs.db", clock=ManualClock(1_000_000.0)) as store:
                found = {name: await store.head(name) for name in self.active}
            return {name: (head.header, head.owner) for name, head in found.items() if head is not None}

        wrong: list[str] = []
        found = asyncio.run(heads())
        for name, (header, owner) in found.items():
            if owner is not None:
                wrong.append(f"{name} was not released")
            if header.status not in {Status.RUNNING, Status.IDLE}:
                wrong.append(f"{name} is {header.status}")
        over = {name for name, (header, _) in found.items() if header.status is Status.IDLE}
        if not ended <= over:
            wrong.append(f"{ended - over} had ended")
        self.begun |= found.keys()
        for name in over:
            self.active.remove(name)
            self.active.append(f"tour-{len(self.names)}")
            self.names.append(self.active[-1])
        return wrong

    def _count(self) -> None:
        """Count the stations that had begun and not ended, now and whenever this was counted before."""
        working: set[str] = set()
        for text in (self.folder / "journal").read_text().splitlines():
            what, _, place = text.removeprefix("may ").partition(" ")
            (working.add if what == "begin" else working.discard)(place)
        self.caught.update(" ".join(place.split()[2:]) for place in working)

    def finish(self) -> list[str]:
        """Go on with all runs here until they have ended; return what is otherwise than in undrained ones."""
        return asyncio.run(self._finish())

    async def _finish(self) -> list[str]:
        wrong: list[str] = []
        quiet = self.folder / "quiet"
        reference = tours(Journal(quiet), InMemoryCheckpointStorage())
        async with SqliteCheckpointStorage(self.folder / "runs.db", clock=ManualClock(1_000_000.0)) as store:
            workflow = tours(Journal(self.folder / "journal"), store)
            for name in self.names:
                try:
                    found = await workflow.run(Leg(name, 1, self.legs), run_id=name)
                except RehydrateError as error:
                    if error.code != "run-exists":
                        wrong.append(f"{name}: {error}")
                        continue
                    found = await workflow.run(checkpoint="latest", run_id=name)
                expected = await reference.run(Leg(name, 1, self.legs), run_id=name)
                if facts(found) != facts(expected):
                    wrong.append(f"{name}: {facts(found)} instead of {facts(expected)}")
        return wrong + self._repeated(quiet)

    def _repeated(self, quiet: Path) -> list[str]:
        """Compare what stations have done with what those of undrained runs have."""
        expected = {text.removeprefix("end ") for text in quiet.read_text().splitlines() if text.startswith("end ")}
        ended: set[str] = set()
        may_have_ended: set[str] = set()
        wrong: list[str] = []
        for text in (self.folder / "journal").read_text().splitlines():
            if text.startswith("may end "):
                may_have_ended.add(text.removeprefix("may end "))
                continue
            what, _, place = text.partition(" ")
            if place in ended:
                wrong.append(f"{text} once more")
            if what == "end":
                ended.add(place)
        wrong += [f"{place} was never done" for place in sorted(expected - ended - may_have_ended)]
        return wrong + [f"{place} was done" for place in sorted((ended | may_have_ended) - expected)]


def facts(result: WorkflowRunResult) -> object:
    state = result.checkpoint.state
    return result.status, result.outputs, result.turn, dict(state), len(result.checkpoint.records.tables)
