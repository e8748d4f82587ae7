"""SIGTERM drains a process with many runs in flight, at every depth, and another goes on with each of them at once."""

from __future__ import annotations

import secrets
import sys
from pathlib import Path

import pytest

from tests.processes.nursery import Nursery
from tests.proof.broken_drains import BROKEN_DRAINS
from tests.proof.fleets import Fleet
from tests.proof.ledger import Tried

#: Where a station may be when the signal comes: the root, one, two and three levels below it, a function, threads.
STATIONS = {"set out", "look", "meet", "climb", "room", "go", "come back", "fetch"}


def drained(fleet: Fleet, signals: int) -> list[str]:
    """Drain one process after the other until so many signals were sent, finish, and return all that is wrong."""
    wrong: list[str] = []
    while fleet.signals < signals and not wrong:
        wrong += fleet.send()
    return wrong or fleet.finish()


@pytest.mark.promise("drain", "signals, to processes with 6 runs in flight")
def test_runs_in_flight_are_handed_on(nursery: Nursery, tmp_path: Path, tried: Tried) -> None:
    """Each process is gone in time, with the status of the signal; the next one goes on with every run at once; what
    had finished does not run again, and all comes out as if nobody had been drained."""
    assert drained(Fleet(nursery, tmp_path, 1, 6, legs=1), 2) == []
    tried(2)


@pytest.mark.proof
@pytest.mark.promise("drain", "signals, to processes with 50 runs in flight")
def test_50_runs_in_flight_are_handed_on_a_hundred_times(nursery: Nursery, tmp_path: Path, tried: Tried) -> None:
    """The long form, from a new seed each time; signals find every station at work."""
    seed = secrets.randbits(32)
    sys.stdout.write(f"seed {seed}\n")
    fleet = Fleet(nursery, tmp_path, seed, 50)
    assert drained(fleet, 100) == []
    assert fleet.caught.keys() == STATIONS
    tried(100)


#: The others are noticed in the long form.
QUICK = "keeps the lease"


@pytest.mark.notices("drain")
@pytest.mark.parametrize(
    "broken", [name if name == QUICK else pytest.param(name, marks=pytest.mark.proof) for name in BROKEN_DRAINS]
)
def test_a_broken_drain_is_noticed(nursery: Nursery, tmp_path: Path, broken: str) -> None:
    """A process that drains its runs in a wrong way, or not at all, is found out; which signal finds it where it shows
    is a matter of the machine's moment, and the first that does is the last."""
    found = drained(Fleet(nursery, tmp_path, 2, 8, broken=broken), 1 if broken == QUICK else 10)
    sys.stdout.write("\n".join(found))
    assert found != []
