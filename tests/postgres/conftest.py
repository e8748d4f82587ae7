"""Fixtures of the PostgreSQL tests: what can stand between a store and its server."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.postgres.relays import Proxy, TransactionPooler
from tests.postgres.server import Place


@pytest.fixture
def proxy(postgres: Place) -> Iterator[Proxy]:
    """A proxy to the server that can cut its lines."""
    found = Proxy(postgres.url)
    yield found
    found.close()


@pytest.fixture
def far(postgres: Place, proxy: Proxy) -> Place:
    """The empty place, by way of the proxy."""
    return replace(postgres, url=proxy.url)


@pytest.fixture
def pooler(postgres: Place) -> Iterator[TransactionPooler]:
    """A pooler that gives each transaction another connection."""
    found = TransactionPooler(postgres.url)
    yield found
    found.close()


@pytest.fixture
def pooled(postgres: Place, pooler: TransactionPooler) -> Place:
    """The empty place, by way of the pooler."""
    return replace(postgres, url=pooler.url)
