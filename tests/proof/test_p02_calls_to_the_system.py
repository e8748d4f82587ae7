"""P2: a process dies, or its disk fails, at each of its calls to the system that change what its store has.

Each trial is one process on a copy of one prepared place; what it has acknowledged is there afterwards, what it has
not is there as a whole or not at all, and the same call again gives what an undisturbed one gives.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.processes.nursery import Nursery
from tests.proof.ledger import Tried
from tests.proof.p02_acts import ACTS
from tests.proof.p02_calls import DOINGS
from tests.proof.p02_examined import examiner
from tests.proof.p02_trial import Fault, points, reads
from tests.stores.raw_files import quick_folder

EVERYTHING = [
    (store, doing)
    for store in ("sqlite3", "file")
    for doing in (*DOINGS, *ACTS)
    if (store, doing) != ("file", "an older file")
]
SHORT = [("sqlite3", "one-call resume"), ("sqlite3", "forgetting"), ("file", "nested superstep"), ("file", "a commit")]
SAMPLED = [("apsw", doing) for doing in ("first run", "one-call resume", "migration", "a commit", "forgetting")]


def try_all(nursery: Nursery, store: str, doing: str, kinds: Mapping[str, int]) -> int:
    """Try kinds of faults, each at every so many-th call where it can happen; return how often that was."""
    tried = 0
    with quick_folder() as root:
        place = examiner(nursery, root, store, doing)
        for kind, every in kinds.items():
            numbers = points(place.calls, kind, every)
            reached = 0
            for number in numbers:
                fault = Fault(kind, number)
                show = place.trial(fault)
                place.check(fault, show)
                reached += show.hit is not None
            # How many calls there are is not quite the same each time: ids are by chance, and so are their places.
            assert reached >= len(numbers) - 3
            tried += reached
        place.player.close()
    return tried


@pytest.mark.promise("P2", "kills at a call to the system (SQLite, files)")
@pytest.mark.parametrize(("store", "doing"), SHORT)
def test_a_process_that_dies_at_a_call_loses_nothing_acknowledged(
    nursery: Nursery, tried: Tried, store: str, doing: str
) -> None:
    """Killed before a call, or after half of a write; the short form, at some of the calls."""
    tried(try_all(nursery, store, doing, {"kill": 13, "torn": 29}))


@pytest.mark.promise("P2", "EIO, short writes, full disk at a call (SQLite, files)")
@pytest.mark.parametrize(("store", "doing"), [SHORT[0], SHORT[3]])
def test_a_disk_that_fails_at_a_call_is_told_and_loses_nothing_acknowledged(
    nursery: Nursery, tried: Tried, store: str, doing: str
) -> None:
    """The call is told, nothing runs after its failed save, and the same call again finishes; the short form."""
    tried(try_all(nursery, store, doing, {"EIO": 17, "ENOSPC": 11, "full disk": 29, "short": 41}))


@pytest.mark.proof
@pytest.mark.promise("P2", "kills at a call to the system (SQLite, files)")
@pytest.mark.parametrize(("store", "doing"), EVERYTHING)
def test_a_process_that_dies_at_any_call_loses_nothing_acknowledged(
    nursery: Nursery, tried: Tried, store: str, doing: str
) -> None:
    """Killed before each call, and after half of every third write."""
    tried(try_all(nursery, store, doing, {"kill": 1, "torn": 3}))


@pytest.mark.proof
@pytest.mark.promise("P2", "EIO, short writes, full disk at a call (SQLite, files)")
@pytest.mark.parametrize(("store", "doing"), EVERYTHING)
def test_a_disk_that_fails_at_any_call_is_told_and_loses_nothing_acknowledged(
    nursery: Nursery, tried: Tried, store: str, doing: str
) -> None:
    """Each call fails, each write is short, and from each call on there is no room, or no disk any more."""
    kinds = {"EIO": 1, "ENOSPC": 1, "full disk": 1, "short": 1, "dead disk": 5}
    tried(try_all(nursery, store, doing, kinds))


@pytest.mark.proof
@pytest.mark.promise("P2", "kills and faults at a call to the system (SQLite by apsw)")
@pytest.mark.parametrize(("store", "doing"), SAMPLED)
def test_another_sqlite_loses_nothing_acknowledged(nursery: Nursery, tried: Tried, store: str, doing: str) -> None:
    """The same with the SQLite that apsw brings, at every fourth call."""
    tried(try_all(nursery, store, doing, {"kill": 4, "EIO": 4, "full disk": 8, "ENOSPC": 8}))


@pytest.mark.proof
@pytest.mark.promise("P2", "EIO at a read (SQLite, files)")
@pytest.mark.parametrize("store", ["sqlite3", "file"])
@pytest.mark.parametrize("doing", ["one-call resume", "nested superstep", "a commit", "forgetting"])
def test_a_disk_that_cannot_be_read_is_told(nursery: Nursery, tried: Tried, store: str, doing: str) -> None:
    """Each second read fails: it is told as an error, and nothing is taken for something else than it is."""
    with quick_folder() as root:
        place = examiner(nursery, root, store, doing)
        place.told["reads"] = True
        numbers = reads(place.trial().calls, 2)
        for number in numbers:
            fault = Fault("EIO", number)
            place.check(fault, place.trial(fault))
        tried(len(numbers))


@pytest.mark.proof
@pytest.mark.promise("P2", "files that cannot grow beyond a size")
@pytest.mark.parametrize(("store", "step"), [("sqlite3", 4096 * 2 + 11), ("file", 97)])
def test_files_that_cannot_grow_lose_nothing_acknowledged(
    nursery: Nursery, tried: Tried, store: str, step: int
) -> None:
    """The system itself writes less than it was told at a limit, and then nothing, for each of many limits."""
    told = 0
    with quick_folder() as root:
        place = examiner(nursery, root, store, "one-call resume")
        for size in range(1, 25 * step, step):
            show = place.trial(limit=size)
            place.check(Fault("limit", size), show)
            told += "error" in (show.by("first") or {})
            tried(1)
    assert told >= 5
