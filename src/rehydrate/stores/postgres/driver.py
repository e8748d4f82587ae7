"""What a store object needs of psycopg, in one import: without psycopg this module cannot be imported."""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from functools import partial

from rehydrate.errors import WrongCallError

from .archive import read_archive, write_archive
from .batches import Now, Save, Single
from .connections import Connector, OwnConnection, Pool, PooledConnection
from .health import examine_schema
from .inbox import read_offers, write_offer
from .listening import Listener
from .place import Place, settings_of
from .reading import (
    read_checkpoint,
    read_events,
    read_head,
    read_history,
    read_records,
    read_request,
    read_requests,
    read_runs,
    read_turn,
)
from .retention import delete_run, forget_checkpoints, read_tags, write_tag
from .session import Session
from .worker import Worker
from .writing import Renewal

__all__ = [
    "Listener",
    "Now",
    "Pool",
    "Renewal",
    "Save",
    "Session",
    "Single",
    "Worker",
    "connector",
    "delete_run",
    "examine_schema",
    "forget_checkpoints",
    "listener",
    "read_archive",
    "read_checkpoint",
    "read_events",
    "read_head",
    "read_history",
    "read_offers",
    "read_records",
    "read_request",
    "read_requests",
    "read_runs",
    "read_tags",
    "read_turn",
    "write_archive",
    "write_offer",
    "write_tag",
]


def connector(url_or_pool: str | Pool, schema: str, waits: Sequence[float]) -> Connector:
    """Return how a store reaches its server. Raises `WrongCallError` where this names none."""
    if isinstance(url_or_pool, Pool):
        if inspect.iscoroutinefunction(url_or_pool.getconn):
            raise WrongCallError(
                "a PostgreSQL store was given a pool of asyncio connections, which belong to one event loop.",
                "Pass a psycopg_pool.ConnectionPool.",
            )
        return Connector(Place(None, schema), partial(PooledConnection, url_or_pool, os.getpid()), waits)
    settings = settings_of(url_or_pool)
    return Connector(Place(settings, schema), partial(OwnConnection, settings), waits)


def listener(connector: Connector, listen_url: str, waits: Sequence[float]) -> Listener:
    """Return what hears of commits in a store's schema. Raises `WrongCallError` where the URL is none."""
    return Listener(connector.place, settings_of(listen_url), waits)
