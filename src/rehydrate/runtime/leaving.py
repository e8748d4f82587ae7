"""Whether this process is about to leave, once it is drained.

Who waits for a run that was handed on is not told then: the exit of the process stops it, and a program shows no error
where there is none. Must not decide when the process leaves.
"""

from __future__ import annotations

import asyncio
import contextlib
import os


class _Leaving:
    """Of one process; the child of a fork leaves for reasons of its own."""

    def __init__(self) -> None:
        self.begin(pending=False)

    def begin(self, *, pending: bool) -> None:
        """Stand at the beginning."""
        self.pending = pending
        self.waiting: dict[asyncio.Future[None], None] = {}


_LEAVING = _Leaving()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _LEAVING.begin(pending=False))


def expect_exit() -> None:
    """Say that the process will leave."""
    _LEAVING.begin(pending=True)


def stop_expecting_exit() -> None:
    """Say that whoever still waits is to be told now, in whatever loop."""
    _LEAVING.pending = False
    for future in list(_LEAVING.waiting):
        with contextlib.suppress(RuntimeError):  # its loop is gone, and it with it
            future.get_loop().call_soon_threadsafe(_settle, future)


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def until_told() -> None:
    """Return at once, or wait until the process is about to leave."""
    if not _LEAVING.pending:
        return
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    _LEAVING.waiting[future] = None
    try:
        if _LEAVING.pending:
            await future
    finally:
        _LEAVING.waiting.pop(future, None)
