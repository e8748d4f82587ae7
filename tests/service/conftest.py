"""Fixtures of this folder: the two stores that hold bytes."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from rehydrate import CheckpointStorage, InMemoryCheckpointStorage, SqliteCheckpointStorage
from tests.call.desk import World


@pytest.fixture
def world() -> World:
    """What is outside of every run."""
    return World()


@pytest.fixture(params=[pytest.param("memory", marks=pytest.mark.proof), "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CheckpointStorage]:
    """A store that keeps events."""
    path = tmp_path / "runs.db"
    found = InMemoryCheckpointStorage if request.param == "memory" else lambda **k: SqliteCheckpointStorage(path, **k)
    made = found(keep_events=True)
    yield made
    asyncio.run(made.close())
