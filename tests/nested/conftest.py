"""What the tests of nesting share: a place for checkpoints, of each kind."""

import pytest

from tests.nested.places import KINDS, Place


@pytest.fixture(params=KINDS)
def place(request, tmp_path) -> Place:
    """A place whose stores hold nothing yet."""
    return Place(request.param, tmp_path / "runs.db")
