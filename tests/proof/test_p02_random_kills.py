"""P2 and P4: a process is killed at any instant, and nothing that it has acknowledged is lost (sections 5 and 10)."""

import contextlib
import random
import secrets
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.processes.nursery import Nursery
from tests.processes.races import Course, outcome
from tests.proof.kills import Client, Talk, comparable, filed
from tests.proof.ledger import Tried

#: A folder in memory, where there is one: a kill loses nothing that a process has written, so that a disk would only
#: be waited for.
IN_MEMORY = Path("/dev/shm")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A folder where nobody waits for a disk."""
    if not IN_MEMORY.is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="rehydrate-", dir=IN_MEMORY) as folder:
        yield Path(folder)


def talk(nursery: Nursery, place: Path, seed: int, kills: int, run_id: str = "talk", **told: object) -> None:
    """Talk until so many processes were killed, and to the end; compare with the same talk without kills."""
    sys.stdout.write(f"seed {seed}\n")
    chance = random.Random(seed)
    plan = Talk(chance)
    client = Client(nursery, place, run_id, chance, told)
    try:
        questions: list[str] = []
        while client.kills < kills or questions:
            step = plan.next(questions, last=client.kills >= kills)
            result = client.say(step, kills=kills - client.kills)
            questions = [text for _, _, text in result["requests"]]
        assert client.kills == kills
        client.check_all()
        assert comparable(client.results) == comparable(client.uninterrupted(plan.steps))
        if client.workflow.name == "conversation":
            assert client.at_rest() == filed(plan.orders)
    finally:
        client.close()
    if place.suffix == ".db":
        with contextlib.closing(sqlite3.connect(place)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


#: What is talked to, and where its runs are kept.
KINDS = {
    "a graph, SQLite": {"place": "runs.db"},
    "a function, SQLite": {"place": "runs.db", "workflow": "interview"},
    "a graph, files": {"place": "runs"},
    "a function, files": {"place": "runs", "workflow": "interview"},
}


@pytest.mark.promise("P2", "random kills, one after the other")
@pytest.mark.parametrize(("kind", "kills"), [*zip(KINDS, (12, 6, 3, 3), strict=True)])
def test_random_kills_lose_nothing_acknowledged(
    nursery: Nursery, tmp_path: Path, tried: Tried, kind: str, kills: int
) -> None:
    """Each turn is finished by the same call or a continuation, and the talk goes on as if nothing had happened."""
    told = dict(KINDS[kind])
    talk(nursery, tmp_path / told.pop("place"), seed=1, kills=kills, **told)
    tried(kills)


#: Talks of each kind, in parts that workers can share.
PARTS = [
    *[("a graph, SQLite", 11)] * 10, *[("a function, SQLite", 10)] * 5, ("a graph, files", 12),
    ("a function, files", 10),
]  # fmt: skip


@pytest.mark.proof
@pytest.mark.promise("P2", "random kills, one after the other")
@pytest.mark.parametrize(("kind", "talks"), PARTS)
def test_thousands_of_random_kills_lose_nothing_acknowledged(
    nursery: Nursery, place: Path, tmp_path: Path, tried: Tried, kind: str, talks: int
) -> None:
    """The long form, of talks of 50 kills from new seeds each time; every tenth is on a disk."""
    told = dict(KINDS[kind])
    name = told.pop("place")
    for number in range(talks):
        folder = (place if number % 10 else tmp_path) / str(number)
        folder.mkdir()
        talk(nursery, folder / name, secrets.randbits(32), 50, **told)
    tried(50 * talks)


@pytest.mark.proof
@pytest.mark.promise("P2", "random kills, while others use the file")
def test_random_kills_of_three_processes_that_use_one_file_lose_nothing_acknowledged(place: Path, tried: Tried) -> None:
    """Three talks at once over one file, so that a process dies while others read and write."""
    nurseries = [Nursery() for _ in range(3)]
    with ThreadPoolExecutor(3) as threads:
        talks = [
            threads.submit(talk, nursery, place / "runs.db", secrets.randbits(32), 300, f"talk {number}")
            for number, nursery in enumerate(nurseries)
        ]
        assert [each.result() for each in talks] == [None] * 3
    for nursery in nurseries:
        nursery.close()
    tried(900)


@pytest.mark.notices("P2")
@pytest.mark.parametrize("broken", ["acknowledges a commit before it writes it", "keeps no events of the last commit"])
def test_a_broken_store_is_noticed_by_random_kills(nursery: Nursery, place: Path, broken: str) -> None:
    """A talk with processes whose store breaks a promise does not come to its end as it should."""
    with pytest.raises(AssertionError):
        talk(nursery, place / "runs.db", seed=2, kills=20, broken=broken)


@pytest.mark.promise("P2", "kills while the file is made")
def test_a_kill_while_the_file_is_made_leaves_one_that_can_be_used(
    nursery: Nursery, tmp_path: Path, tried: Tried
) -> None:
    """A process dies at some moment between finding no file and its first commits; the next one makes its call."""
    chance = random.Random(1)
    for number in range(12):
        (tmp_path / str(number)).mkdir()
        course = Course(nursery, tmp_path / str(number), ["a", "b"])
        call = {"call": {"message": "a", "run_id": "run"}}
        assert course.ask("a", {**call, "meets_at": "call"}) == "here"
        course.go(1)
        with contextlib.suppress(TimeoutError):
            course.callers["a"].receive(chance.random() * 0.02)
        course.callers["a"].kill()
        result = course.ask("b", {"call": {"message": "b", "run_id": "other"}})
        assert result["outputs"] == ["1 of 1: b"]
        assert outcome(course.ask("b", call)) in {"ran", "RunExistsError"}
        result = course.ask("b", {"call": {"run_id": "run", "checkpoint": "latest"}})
        assert result["outputs"] == ["1 of 1: a"]
        course.leave()
    tried(12)
