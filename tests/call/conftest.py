"""Fixtures for calls: a world to write a diary in, and the stores that a call may have."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from rehydrate import CheckpointStorage
from tests.call.desk import World
from tests.call.stores import BreakableMemory, BreakableSqlite


def _stores(kind: str, folder: Path) -> Iterator[CheckpointStorage | None]:
    if kind == "none":
        yield None
        return
    store = BreakableMemory() if kind == "memory" else BreakableSqlite(folder / "runs.db")
    store.folder = folder
    yield store
    asyncio.run(store.close())


@pytest.fixture
def world() -> World:
    """What is outside of every run."""
    return World()


#: The short form takes the store that has more ways to go wrong; `make proof` runs all of it in memory, too.
IN_PROOFS = pytest.param("memory", marks=pytest.mark.proof)


@pytest.fixture(params=[IN_PROOFS, "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BreakableMemory | BreakableSqlite]:
    """Both stores that hold bytes."""
    yield from _stores(request.param, tmp_path)


@pytest.fixture(params=["none", IN_PROOFS, "sqlite"])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CheckpointStorage | None]:
    """No store, or one of both."""
    yield from _stores(request.param, tmp_path)
