"""Waiting for a coroutine in code that is not async, the one place where that happens."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

Value = TypeVar("Value")


def wait_for(work: Coroutine[None, None, Value]) -> Value:
    """Run a coroutine to its end on an event loop of its own; inside a running loop, in a thread."""
    if not _loop_is_running():
        return asyncio.run(work)
    with ThreadPoolExecutor(1, "rehydrate run_sync") as pool:
        return pool.submit(copy_context().run, asyncio.run, work).result()


def _loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
