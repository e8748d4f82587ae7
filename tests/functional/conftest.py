"""Fixtures of this folder: a log of what ran, and a store that holds bytes."""

import asyncio

import pytest

from rehydrate import InMemoryCheckpointStorage, SqliteCheckpointStorage
from tests.functional.book import Book

#: The short form takes the store that has more ways to go wrong; `make proof` runs all of it in memory, too.
IN_PROOFS = pytest.param("memory", marks=pytest.mark.proof)


@pytest.fixture
def book():
    """A log of what ran."""
    return Book()


@pytest.fixture(params=[IN_PROOFS, "sqlite"])
def store(request, tmp_path):
    """Both stores that hold bytes."""
    found = InMemoryCheckpointStorage() if request.param == "memory" else SqliteCheckpointStorage(tmp_path / "runs.db")
    yield found
    asyncio.run(found.close())
