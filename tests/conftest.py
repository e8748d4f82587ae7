"""What holds for all tests."""

import gc

import pytest


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let the cyclic collector pass over what collecting thousands of tests has left: tests call it hundreds of times,
    and each time it would look at all of that."""
    del session
    gc.collect()
    gc.freeze()
