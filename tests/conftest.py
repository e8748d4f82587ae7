"""What holds for all tests."""

import gc
import os
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest

from tests.proof.ledger import Ledger, Tried

if TYPE_CHECKING:
    from tests.postgres.server import Place


def pytest_configure(config: pytest.Config) -> None:
    """Keep the ledger of the proofs."""
    config.pluginmanager.register(Ledger(prints="not proof" not in config.option.markexpr), "ledger")


@pytest.fixture
def tried(request: pytest.FixtureRequest) -> Tried:
    """Say how often the test has tried what its mark `promise` names."""
    return lambda times: request.node.user_properties.append(("tried", times))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the cyclic collector from what collecting thousands of tests makes: none of it goes before the end.

    Tests call the collector hundreds of times, and each time it would look at all of that.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a PostgreSQL server, which all workers of a test run share."""
    # Loaded here, so that only tests with a server pay for it.
    from tests.postgres.server import server  # noqa: PLC0415

    folder = tmp_path_factory.getbasetemp()
    with server(folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) as url:
        yield url


@pytest.fixture
def postgres_database(postgres_url: str) -> Iterator[str]:
    """The URL of a database of its own on the server."""
    from tests.postgres.server import new_database  # noqa: PLC0415

    with new_database(postgres_url) as url:
        yield url


@pytest.fixture
def postgres(postgres_url: str) -> Iterator["Place"]:
    """An empty place on the server."""
    from tests.postgres.server import empty_place  # noqa: PLC0415

    with empty_place(postgres_url) as place:
        yield place
