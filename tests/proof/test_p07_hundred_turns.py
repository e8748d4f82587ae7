"""P7: a turn with new input replays nothing of earlier ones, and has fresh counters and run arguments."""

import asyncio
from pathlib import Path

import pytest

from rehydrate import InMemoryCheckpointStorage, SqliteCheckpointStorage
from tests.proof.conversing import wrong_in_talk
from tests.proof.talking import MAKES

LONG = [pytest.param(kind, 100, marks=pytest.mark.proof) for kind in ("memory", "sqlite")]


def talked(make: str, kind: str, folder: Path, turns: int) -> list[str]:
    """Have a conversation over a store of this kind; name what is wrong."""

    async def talk() -> list[str]:
        store = InMemoryCheckpointStorage() if kind == "memory" else SqliteCheckpointStorage(folder / "talk.db")
        found = await wrong_in_talk(make, store, turns)
        await store.close()
        return found

    return asyncio.run(talk())


@pytest.mark.promise("P7", "turns of one conversation, each restored anew, and their cost")
@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize(("kind", "turns"), [("memory", 24), *LONG])
def test_every_turn_computes_anew_with_fresh_counters_and_arguments(make, kind, turns, tmp_path, tried):
    """Outputs, effects, limits, attempts and arguments are those of the turn; the last costs what an early one did."""
    assert talked(make, kind, tmp_path, turns) == []
    tried(turns)


@pytest.mark.proof
@pytest.mark.promise("P7", "turns of one conversation, a new process every few")
@pytest.mark.parametrize("make", MAKES)
def test_a_conversation_goes_from_process_to_process(make, nursery, tmp_path, tried):
    """A hundred turns over one file, of which no process makes more than four."""
    told = {"make": make, "file": str(tmp_path / "talk.db")}
    for first in range(1, 101, 4):
        child = nursery.child("talked", {**told, "turns": list(range(first, first + 4))})
        assert child.receive() == []
        child.end()
    tried(100)
