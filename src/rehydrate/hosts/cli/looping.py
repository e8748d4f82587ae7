"""The event loop of one command, which ends although a task in it does not: no handler can keep the process.

`asyncio.run` waits at its end for every task, also for one that swallows its cancellation. It must not know what runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Final

#: What tasks are given to end once they are cancelled, in seconds. Runs are stopped and saved before that.
_END_SECONDS: Final = 1.0


def run_in_loop(work: Coroutine[None, None, int]) -> int:
    """Do work in a loop of its own, where Ctrl-C cancels it and a second one raises `KeyboardInterrupt` at once."""
    runner = asyncio.Runner()
    try:
        return runner.run(work)
    finally:
        _close(runner)


def _close(runner: asyncio.Runner) -> None:
    loop = runner.get_loop()
    ended = False
    try:
        ended = loop.run_until_complete(_all_ended())
    finally:
        if not ended:  # that a task is thrown away is no news: its context is closed, and it leaves no trace
            loop.set_exception_handler(lambda _loop, _context: None)
    if ended:
        runner.close()
        return
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


async def _all_ended() -> bool:
    """Cancel what is left over, and tell whether all of it has ended."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if not left:
        return True
    _, pending = await asyncio.wait(left, timeout=_END_SECONDS)
    return not pending
