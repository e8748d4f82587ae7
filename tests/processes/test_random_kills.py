"""P2 and P4: a process is killed at any instant, and nothing that it has acknowledged is lost (sections 5 and 10)."""

import asyncio
import contextlib
import random
import secrets
import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.processes.kills import Client, Talk, at_rest, comparable, filed, uninterrupted
from tests.processes.nursery import Nursery
from tests.processes.races import Course, outcome


def talk(nursery: Nursery, folder: Path, seed: int, kills: int, run_id: str = "talk") -> None:
    """Talk until so many processes were killed, and to the end; compare with the same talk without kills."""
    sys.stdout.write(f"seed {seed}\n")
    chance = random.Random(seed)
    plan = Talk(chance)
    client = Client(nursery, folder, run_id, chance)
    questions: list[str] = []
    while client.kills < kills or questions:
        step = plan.next(questions, last=client.kills >= kills)
        result = client.say(step, kills=kills - client.kills)
        questions = [text for _, _, text in result["requests"]]
    assert at_rest(client) == filed(plan.orders)
    client.close()
    assert client.kills == kills
    assert comparable(client.results) == comparable(asyncio.run(uninterrupted(plan.steps)))
    with sqlite3.connect(folder / "runs.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def test_thirty_random_kills_lose_nothing_acknowledged(nursery, tmp_path):
    """Each turn is finished by the same call or a continuation, and the talk goes on as if nothing had happened."""
    talk(nursery, tmp_path, seed=1, kills=30)


@pytest.mark.proof
@pytest.mark.parametrize("_number", range(5))
def test_200_random_kills_lose_nothing_acknowledged(nursery, tmp_path, _number):
    """The long form, from a new seed each time."""
    talk(nursery, tmp_path, seed=secrets.randbits(32), kills=200)


@pytest.mark.proof
def test_random_kills_of_three_processes_that_use_one_file_lose_nothing_acknowledged(tmp_path):
    """Three talks at once over one file, so that a process dies while others read and write."""
    nurseries = [Nursery() for _ in range(3)]
    with ThreadPoolExecutor(3) as threads:
        talks = [
            threads.submit(talk, nursery, tmp_path, secrets.randbits(32), 100, f"talk {number}")
            for number, nursery in enumerate(nurseries)
        ]
        assert [each.result() for each in talks] == [None] * 3
    for nursery in nurseries:
        nursery.close()


def test_a_kill_while_the_file_is_made_leaves_one_that_can_be_used(nursery, tmp_path):
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
