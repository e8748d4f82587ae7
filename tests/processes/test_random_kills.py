"""P2 and P4: a process is killed at any instant, and nothing that it has acknowledged is lost (sections 5 and 10)."""

import asyncio
import random
import secrets
import sqlite3
import sys
from pathlib import Path

import pytest

from tests.processes.kills import Client, Talk, at_rest, comparable, filed, uninterrupted
from tests.processes.nursery import Nursery


def talk(nursery: Nursery, folder: Path, seed: int, kills: int) -> None:
    """Talk until so many processes were killed, and to the end; compare with the same talk without kills."""
    sys.stdout.write(f"seed {seed}\n")
    chance = random.Random(seed)
    plan = Talk(chance)
    client = Client(nursery, folder, chance)
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
