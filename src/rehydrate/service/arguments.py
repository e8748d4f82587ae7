"""Checks of what a caller hands to the service, before anything is read."""

from __future__ import annotations

from rehydrate.errors import WrongCallError
from rehydrate.runtime.call import check_storage


def check_store(storage: object) -> None:
    """Raise `WrongCallError` for what is no store, and where there is none."""
    if storage is None:
        raise WrongCallError("no store was given.", "Pass the store that the runs are in.")
    check_storage(storage)
