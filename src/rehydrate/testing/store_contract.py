"""The store contract: what every store promises, as a suite that anybody can run over a store of their own.

With pytest, derive a class from `StoreContract` (or one of the two below it) and give it a fixture `make_store`, a
callable that takes `clock=` and returns a store on a place that is empty at the start of each test. Without pytest,
await the functions of `CHECKS`. `DamageContract` is for a store whose bytes can be reached, and takes a fixture
`stored` too. Nothing here may know a store.
"""

from __future__ import annotations

import asyncio

from .contract_damage import DAMAGE_CHECKS, DamageCheck, StoredBytes
from .contract_events import EVENT_CHECKS
from .contract_history import HISTORY_CHECKS
from .contract_inbox import INBOX_CHECKS
from .contract_isolation import ISOLATION_CHECKS
from .contract_merging import MERGING_CHECKS
from .contract_names import NAME_CHECKS
from .contract_processes import OWNER_CHECKS, PROCESS_CHECKS
from .contract_races import RACE_CHECKS
from .contract_runs import RUN_CHECKS
from .contract_tools import Check, CommitMaker, MakeStore, ManualClock

__all__ = [
    "CHECKS",
    "DAMAGE_CHECKS",
    "EVENT_CHECKS",
    "OWNER_CHECKS",
    "PROCESS_CHECKS",
    "Check",
    "CommitMaker",
    "DamageContract",
    "LocalStoreContract",
    "MakeStore",
    "ManualClock",
    "SharedStoreContract",
    "StoreContract",
    "StoredBytes",
]

#: What every store promises.
CHECKS: tuple[Check, ...] = (
    RUN_CHECKS
    + ISOLATION_CHECKS
    + NAME_CHECKS
    + EVENT_CHECKS
    + HISTORY_CHECKS
    + MERGING_CHECKS
    + INBOX_CHECKS
    + RACE_CHECKS
)


class StoreContract:
    """The suite for any store: one test per check in `CHECKS`."""


class SharedStoreContract(StoreContract):
    """The suite for a store that other processes can open: `make_store` can be pickled, and opens the same place."""


class LocalStoreContract(SharedStoreContract):
    """The suite for a store that sees at once when the process of an owner is gone."""


class DamageContract:
    """The suite for a store whose bytes can be reached: one test per check in `DAMAGE_CHECKS`.

    The fixture `stored` is a `StoredBytes` on the place of `make_store`.
    """


def _add_damage_tests(contract: type[DamageContract], checks: tuple[DamageCheck, ...]) -> None:
    for check in checks:
        setattr(contract, f"test_{check.__name__}", _as_damage_test(check))


def _as_damage_test(check: DamageCheck) -> object:
    def test(_: DamageContract, make_store: MakeStore, stored: StoredBytes) -> None:
        asyncio.run(check(make_store, stored))

    test.__doc__ = check.__doc__
    return test


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
_add_damage_tests(DamageContract, DAMAGE_CHECKS)
