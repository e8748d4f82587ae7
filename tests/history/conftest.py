"""Fixtures for what is done with the history of runs: both stores that hold bytes."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from rehydrate import CheckpointStorage, InMemoryCheckpointStorage, SqliteCheckpointStorage

#: The short form takes the store that has more ways to go wrong; `make proof` runs all of it in memory, too.
IN_PROOFS = pytest.param("memory", marks=pytest.mark.proof)


@pytest.fixture(params=[IN_PROOFS, "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CheckpointStorage]:
    """Both stores."""
    made = InMemoryCheckpointStorage() if request.param == "memory" else SqliteCheckpointStorage(tmp_path / "runs.db")
    yield made
    asyncio.run(made.close())


@pytest.fixture(params=["none", IN_PROOFS, "sqlite"])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CheckpointStorage | None]:
    """No store, or one of both."""
    if request.param == "none":
        yield None
        return
    made = InMemoryCheckpointStorage() if request.param == "memory" else SqliteCheckpointStorage(tmp_path / "runs.db")
    yield made
    asyncio.run(made.close())
