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
from rehydrate.service.agent_framework.reading import FileReader, bytes_of
from rehydrate.service.agent_framework.saved import saved_file
from tests.agent_framework.here import BUILDERS, FILES, OF_BETAS
from tests.agent_framework.mutations import changed, mutated

NAMES = (":Claim", ":Question", ":Everything", ":Level", ":Place", ":Review", ":Ask", ":Draft", ":Box.Lid", ":Right")
LISTED = Listed(NAMES)
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


def read(data: bytes) -> object:
    """Return the tree of a file; nothing may happen while it is read."""
    watching[0] = True
    try:
        return json.loads(read_file(data, LISTED))
    finally:
        watching[0] = False


def damaged_trees(count: int, chance: random.Random):
    """Yield scenario and tree of those damaged files that are read."""
    files = originals()
    for _ in range(count):
        path = chance.choice(files)
        with contextlib.suppress(Refused, *READING_ERRORS):
            yield path.parent.name, read(mutated(path.read_bytes(), chance))


def changed_trees(count: int, chance: random.Random):
    """Yield scenario and tree of files in which whole values stand for others."""
    files = originals()
    for _ in range(count):
        path = chance.choice(files)
        yield path.parent.name, changed(read(path.read_bytes()), chance)


def ends(trees) -> tuple[int, int]:
    """Return how many of some files were taken in, and how many were refused."""
    placers = {scenario: Placer(build(), {}, OF_BETAS) for scenario, build in BUILDERS.items()}
    taken = refused = 0
    for scenario, tree in trees:
        try:
            file, run = saved_file(tree)
            placers[scenario].placed("file", file.checkpoint_id, run)
            taken += 1
        except (Refused, RehydrateError):
            refused += 1
    return taken, refused


@pytest.mark.parametrize("trees", [damaged_trees, changed_trees])
def test_damaged_files_are_taken_in_or_refused(trees) -> None:
    """No error but those that become a sentence, and nothing opened, loaded or run."""
    seen.clear()
    assert min(ends(trees(100, random.Random(4)))) > 0
    assert seen == []


@pytest.mark.proof
@pytest.mark.parametrize("trees", [damaged_trees, changed_trees])
def test_many_damaged_files_are_taken_in_or_refused(trees) -> None:
    """The same, thousands of times."""
    seen.clear()
    assert min(ends(trees(10_000, random.Random(7)))) > 50
    assert seen == []


@pytest.mark.proof
def test_the_reading_process_survives_damaged_files() -> None:
    """One process, thousands of files: it ends over none of them."""
    chance = random.Random(7)
    files = originals()
    with FileReader(NAMES) as reader:
        reader.tree(bytes_of(files[0]))
        first = reader._process
        for _ in range(5000):
            with contextlib.suppress(Refused):
                reader.tree(mutated(chance.choice(files).read_bytes(), chance))
        assert reader._process is first
