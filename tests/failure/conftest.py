"""Fixtures of this folder: a world, a time that stands still, and the stores that a run may have."""

import asyncio

import pytest

from rehydrate import InMemoryCheckpointStorage, SqliteCheckpointStorage
from tests.failure.kit import MovedTime, World


def _stores(kind, folder):
    if kind == "none":
        yield None
        return
    store = InMemoryCheckpointStorage() if kind == "memory" else SqliteCheckpointStorage(folder / "runs.db")
    yield store
    asyncio.run(store.close())


@pytest.fixture
def world():
    """What is outside of every run."""
    return World()


@pytest.fixture
def time():
    """The time of runs and of their event loop."""
    return MovedTime()


#: The short form takes the store that has more ways to go wrong; `make proof` runs all of it in memory, too.
IN_PROOFS = pytest.param("memory", marks=pytest.mark.proof)


@pytest.fixture(params=[IN_PROOFS, "sqlite"])
def store(request, tmp_path):
    """Both stores that hold bytes."""
    yield from _stores(request.param, tmp_path)


@pytest.fixture(params=["none", IN_PROOFS, "sqlite"])
def anywhere(request, tmp_path):
    """No store, or one of both."""
    yield from _stores(request.param, tmp_path)
