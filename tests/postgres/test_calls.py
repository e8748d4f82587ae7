"""Calls on a PostgreSQL store: the tests of one call, as over the other stores."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from rehydrate.stores.postgres import PostgresCheckpointStorage
from tests.call.conftest import world  # noqa: F401  (a fixture)
from tests.call.stores import Breakable
from tests.call.test_one_call import *  # noqa: F403
from tests.postgres.server import Place


class BreakablePostgres(Breakable, PostgresCheckpointStorage):
    """A PostgreSQL store that can break."""


@pytest.fixture
def store(postgres: Place, tmp_path: Path) -> Iterator[BreakablePostgres]:
    """The store of these tests."""
    found = BreakablePostgres(postgres.url, schema=postgres.schema)
    found.folder = tmp_path
    yield found
    asyncio.run(found.close())


@pytest.fixture
def anywhere(store: BreakablePostgres) -> BreakablePostgres:
    """The same where others have none, too."""
    return store
