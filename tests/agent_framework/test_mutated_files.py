"""Files of theirs with damage in them: each is taken in or refused, and does nothing else."""

import contextlib
import json
import random
import sys
from pathlib import Path

import pytest

from rehydrate.errors import RehydrateError
from rehydrate.service.agent_framework.child import READING_ERRORS
from rehydrate.service.agent_framework.importing import Placer
from rehydrate.service.agent_framework.inert import Refused
from rehydrate.service.agent_framework.listed import Listed
from rehydrate.service.agent_framework.nodes import read_file
from rehydrate.service.agent_framework.reading import FileReader
from rehydrate.service.agent_framework.saved import saved_file
from tests.agent_framework.here import BUILDERS, FILES, OF_BETAS
from tests.agent_framework.mutations import mutated

NAMES = (":Claim", ":Question", ":Everything", ":Level", ":Place", ":Review", ":Ask", ":Draft", ":Box.Lid")
#: What the reading of a file may not do.
FORBIDDEN = ("import", "open", "exec", "compile", "os.", "subprocess.", "socket.", "ctypes.", "marshal.", "pickle.")
seen: list[str] = []
watching = [False]


def watch(event: str, _arguments: tuple[object, ...]) -> None:
    if watching[0] and event.startswith(FORBIDDEN):
        seen.append(event)


sys.addaudithook(watch)


def originals() -> list[Path]:
    """Return all files, in one order."""
    return sorted(FILES.rglob("*.json"))


def trees(count: int, chance: random.Random):
    """Yield scenario and tree of those damaged files that are read; nothing happens while they are."""
    files = originals()
    listed = Listed(NAMES)
    for _ in range(count):
        path = chance.choice(files)
        data = mutated(path.read_bytes(), chance)
        watching[0] = True
        try:
            tree = read_file(data, listed)
        except (Refused, *READING_ERRORS):
            continue
        finally:
            watching[0] = False
        yield path.parent.name, json.loads(tree)


def test_damaged_files_are_taken_in_or_refused() -> None:
    """No error but those that become a sentence, and nothing opened, loaded or run."""
    seen.clear()
    ends = try_many(120, random.Random(1))
    assert seen == []
    assert min(ends) > 0


@pytest.mark.proof
def test_many_damaged_files_are_taken_in_or_refused() -> None:
    """The same, thousands of times."""
    seen.clear()
    ends = try_many(20_000, random.Random())
    assert seen == []
    assert min(ends) > 100


def try_many(count: int, chance: random.Random) -> tuple[int, int]:
    """Return how many damaged files were taken in, and how many that could be read were refused."""
    placers = {scenario: Placer(build(), {}, OF_BETAS) for scenario, build in BUILDERS.items()}
    taken = refused = 0
    for scenario, tree in trees(count, chance):
        try:
            placers[scenario].placed("file", saved_file(tree))
            taken += 1
        except (Refused, RehydrateError):
            refused += 1
    return taken, refused


@pytest.mark.proof
def test_the_reading_process_survives_damaged_files() -> None:
    """One process, thousands of files: it ends over none of them."""
    chance = random.Random()
    files = originals()
    with FileReader(NAMES) as reader:
        reader.read(files[0])
        first = reader._process
        for _ in range(5000):
            with contextlib.suppress(Refused):
                reader.tree(mutated(chance.choice(files).read_bytes(), chance))
        assert reader._process is first
