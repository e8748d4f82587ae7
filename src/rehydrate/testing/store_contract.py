"""The store contract: what every store promises, as a suite that anybody can run over a store of their own.

With pytest, derive a class from `StoreContract` (or one of the two below it) and give it a fixture `make_store`, a
callable that takes `clock=` and returns a store on a place that is empty at the start of each test. Without pytest,
await the functions of `CHECKS`. Nothing here may know a store.
"""

from __future__ import annotations

import asyncio

from .contract_events import EVENT_CHECKS
from .contract_history import HISTORY_CHECKS
from .contract_inbox import INBOX_CHECKS
from .contract_names import NAME_CHECKS
from .contract_processes import OWNER_CHECKS, PROCESS_CHECKS
from .contract_races import RACE_CHECKS
from .contract_runs import RUN_CHECKS
from .contract_tools import Check, CommitMaker, MakeStore, ManualClock

__all__ = [
    "CHECKS",
    "EVENT_CHECKS",
    "OWNER_CHECKS",
    "PROCESS_CHECKS",
    "Check",
    "CommitMaker",
    "LocalStoreContract",
    "MakeStore",
    "ManualClock",
    "SharedStoreContract",
    "StoreContract",
]

#: What every store promises.
CHECKS: tuple[Check, ...] = RUN_CHECKS + NAME_CHECKS + EVENT_CHECKS + HISTORY_CHECKS + INBOX_CHECKS + RACE_CHECKS


class StoreContract:
    """The suite for any store: one test per check in `CHECKS`."""


class SharedStoreContract(StoreContract):
    """The suite for a store that other processes can open: `make_store` can be pickled, and opens the same place."""


class LocalStoreContract(SharedStoreContract):
    """The suite for a store that sees at once when the process of an owner is gone."""


def _add_tests(contract: type[StoreContract], checks: tuple[Check, ...]) -> None:
    for check in checks:
        setattr(contract, f"test_{check.__name__}", _as_test(check))


def _as_test(check: Check) -> object:
    def test(_: StoreContract, make_store: MakeStore) -> None:
        asyncio.run(check(make_store))

    test.__doc__ = check.__doc__
    return test


_add_tests(StoreContract, CHECKS)
_add_tests(SharedStoreContract, PROCESS_CHECKS)
_add_tests(LocalStoreContract, OWNER_CHECKS)
