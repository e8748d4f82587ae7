"""P2: stores that are broken on purpose are noticed by what is looked at after kills and faults."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.processes.nursery import Nursery
from tests.proof.p02_examined import examiner
from tests.proof.p02_trial import Fault, points
from tests.stores.raw_files import quick_folder


@dataclass(frozen=True)
class Breakage:
    """A broken store, what it does when a fault comes, and what is said of it then."""

    name: str
    store: str
    doing: str
    kind: str
    says: str


BREAKAGES = [
    Breakage("acknowledges_before_it_writes", "sqlite3", "superstep", "kill", "the head is number"),
    Breakage("acknowledges_before_it_writes", "file", "superstep", "kill", "the head is number"),
    Breakage("acknowledges_before_commit", "sqlite3", "superstep", "kill", "the head is number"),
    Breakage("acknowledges_before_commit", "sqlite3", "a commit", "kill", "what was acknowledged is not there"),
    Breakage("writes_in_two_transactions", "sqlite3", "a commit", "kill", "CheckpointCorruptError"),
    Breakage("writes_in_two_transactions", "apsw", "superstep", "kill", "CheckpointCorruptError"),
    Breakage("forgets_in_two_transactions", "sqlite3", "forgetting", "kill", "half of it is there"),
    Breakage("deletes_in_two_transactions", "sqlite3", "deleting", "kill", "CheckpointCorruptError"),
    Breakage("swallows_errors_of_sqlite", "sqlite3", "a commit", "EIO", "what was acknowledged is not there"),
    Breakage("swallows_errors_of_sqlite", "sqlite3", "a claim", "full disk", "what was acknowledged is not there"),
    Breakage("goes_on_after_a_failed_sync", "sqlite3", "a claim", "EIO", "'by': 'same object'"),
    Breakage("file_goes_on_after_a_failed_sync", "file", "a claim", "EIO", "'by': 'same object'"),
    Breakage("swallows_failed_syncs", "file", "superstep", "EIO", "although a sync of it had failed"),
    Breakage("writes_in_place", "file", "a claim", "kill", "CheckpointCorruptError"),
    Breakage("renames_before_it_writes", "file", "superstep", "kill", "CheckpointCorruptError"),
    Breakage("names_a_commit_before_it_is_there", "file", "a claim", "kill", "CheckpointCorruptError"),
    Breakage("deletes_piece_by_piece", "file", "deleting", "kill", "CheckpointCorruptError"),
    Breakage("takes_no_notice_of_short_writes", "file", "a claim", "short", "CheckpointCorruptError"),
    Breakage("fails_after_it_has_written", "file", "a commit", "ENOSPC", "says that nothing of it is there"),
]
#: Those that `make test` tries.
SHORT = ("acknowledges_before_it_writes", "forgets_in_two_transactions")


def noticed(nursery: Nursery, root: Path, breakage: Breakage) -> list[str]:
    """Return what is said of a broken store, until it is what was expected."""
    told: list[str] = []
    place = examiner(nursery, root, breakage.store, breakage.doing, breakage.name)
    for number in points(place.calls, breakage.kind):
        fault = Fault(breakage.kind, number)
        show = place.trial(fault)
        try:
            place.check(fault, show)
        except AssertionError as error:
            told.append(str(error))
            if breakage.says in told[-1]:
                break
    return told


@pytest.mark.notices("P2")
@pytest.mark.parametrize(
    "breakage",
    [
        pytest.param(each, id=f"{each.name}-{each.store}", marks=() if each.name in SHORT else pytest.mark.proof)
        for each in BREAKAGES
    ],
)
def test_a_broken_store_is_noticed(nursery: Nursery, breakage: Breakage) -> None:
    """What is looked at after a kill or a fault shows what is wrong with each of these stores."""
    with quick_folder() as root:
        told = noticed(nursery, root, breakage)
    assert told
    assert breakage.says in told[-1], told
