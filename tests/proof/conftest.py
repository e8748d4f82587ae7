"""Fixtures of the proofs: processes that cost a fork."""

from collections.abc import Iterator

import pytest

from tests.processes.nursery import Nursery


@pytest.fixture(scope="session")
def template() -> Iterator[Nursery]:
    """The template of all processes."""
    found = Nursery()
    yield found
    found.close()


@pytest.fixture
def nursery(template: Nursery) -> Iterator[Nursery]:
    """Makes processes, which are gone at the end of the test."""
    yield template
    template.clear()
