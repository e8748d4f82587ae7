"""Fixtures of this folder: processes that cost a fork."""

import pytest

from tests.processes.nursery import Nursery


@pytest.fixture(scope="session")
def template():
    """The template of all processes."""
    found = Nursery()
    yield found
    found.close()


@pytest.fixture
def nursery(template):
    """Makes processes, which are gone at the end of the test."""
    yield template
    template.clear()
