"""The proofs of P3 notice stores and runtimes that let two processes run, or one that has lost its run."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from rehydrate.model.checkpoint import Commit
from rehydrate.stores import memory, standing
from rehydrate.stores.memory import InMemoryCheckpointStorage
from rehydrate.stores.standing import Standing
from rehydrate.testing.contract_runs import a_lost_commit_changes_nothing, an_epoch_ends_with_the_next_claim
from tests.processes.nursery import Nursery
from tests.processes.races import RACES, Course, rounds
from tests.proof import racing
from tests.proof.racing import Where, course_of_owners, race
from tests.proof.test_p03_stopped_owners import taken_over, taken_over_a_moment_ago

where = racing.where
pytestmark = pytest.mark.notices("P3")


def in_a_race(nursery: Nursery, folder: Path, where: Where) -> None:
    """Look for it in every kind of race with three processes."""
    race(nursery, folder, 3, rounds(RACES, 28), where)


def of_stopped_owners(look: Callable[[Course], None]) -> Callable[[Nursery, Path, Where], None]:
    """Look for it with a process that is stopped."""

    def way(nursery: Nursery, folder: Path, where: Where) -> None:
        course = course_of_owners(nursery, folder, where)
        try:
            look(course)
        finally:
            course.leave()

    return way


WAYS = {
    "race": in_a_race,
    "stopped": of_stopped_owners(lambda course: taken_over(course, "one new run", "b", {"takeover": True})),
    "late": of_stopped_owners(lambda course: taken_over(course, "one new run", "late", {})),
    "begun": of_stopped_owners(lambda course: taken_over_a_moment_ago(course, "one new run")),
}
#: What each way must notice: in the short form, and in the long one on both stores.
SHORT = [
    ("last one wins", "race"),
    ("claims at the second commit", "race"),
    ("owners are not looked at", "race"),
    ("last one wins", "stopped"),
    ("leases never end", "late"),
    ("takeovers claim nothing", "begun"),
]
LONG = [
    ("acknowledges before it writes", "race"),
    ("swallows conflicts", "race"),
    ("leases end at once", "race"),
    ("swallows conflicts", "stopped"),
    ("leases end at once", "stopped"),
    ("acknowledges before it writes", "stopped"),
]


def notices(nursery: Nursery, folder: Path, where: Where, unsafe: str, way: str) -> None:
    """Fail unless a way of looking finds something wrong."""
    with pytest.raises(AssertionError):
        WAYS[way](nursery, folder, {**where, "unsafe": unsafe})


@pytest.mark.parametrize(("unsafe", "way"), SHORT)
@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
def test_what_lets_two_run_is_noticed(nursery, tmp_path, where, unsafe, way) -> None:
    """Each way of looking finds the slips that it is there for."""
    notices(nursery, tmp_path, where, unsafe, way)


@pytest.mark.proof
@pytest.mark.parametrize(("unsafe", "way"), LONG)
def test_more_of_it_is_noticed_on_both_stores(nursery, tmp_path, where, unsafe, way) -> None:
    """The long form."""
    notices(nursery, tmp_path, where, unsafe, way)


@pytest.mark.proof
@pytest.mark.parametrize(("unsafe", "way"), SHORT)
@pytest.mark.parametrize("where", ["postgres"], indirect=True)
def test_it_is_noticed_in_postgres(nursery, tmp_path, where, unsafe, way) -> None:
    """What is noticed on a file is noticed on a server."""
    notices(nursery, tmp_path, where, unsafe, way)


def without_head(commit: Commit, found: Standing | None) -> None:
    """Check all but the head."""
    known = msgspec.structs.replace(found, checkpoint_id=commit.expected or "") if found else None
    standing.check_commit(commit, known)


def without_epoch(commit: Commit, found: Standing | None) -> None:
    """Check all but the epoch."""
    epoch = commit.lease.epoch - (1 if commit.lease.claim else 0)
    standing.check_commit(commit, msgspec.structs.replace(found, epoch=epoch) if found else None)


@pytest.mark.parametrize(
    ("check", "contract"),
    [(without_head, a_lost_commit_changes_nothing), (without_epoch, an_epoch_ends_with_the_next_claim)],
)
def test_a_store_that_checks_half_is_noticed(monkeypatch: pytest.MonkeyPatch, check, contract) -> None:
    """Head and epoch each keep a lost owner out, so that the loss of one shows in the store's contract only."""
    monkeypatch.setattr(memory, "check_commit", check)
    with pytest.raises(AssertionError):
        asyncio.run(contract(InMemoryCheckpointStorage))
