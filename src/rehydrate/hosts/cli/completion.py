"""Shell completion of ids of runs and requests, from the store that the command line names so far.

It must be quick and may never fail: what cannot be completed has no suggestions.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Final, cast

import click
from click.shell_completion import CompletionItem

from rehydrate.errors import RehydrateError
from rehydrate.ports import CheckpointStorage

from .session import Wired

#: Suggestions at a time.
_MOST: Final = 50
#: A store that has not answered by then has no suggestions, since the shell waits for them.
_SECONDS: Final = 1.0


def complete_run(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return ids of runs that begin like this. Without `--store` none: an app would have to be loaded."""
    del parameter
    return _complete(context, lambda store: _runs(store, incomplete))


def complete_answer(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return ids of open requests that begin like this, up to the `=`."""
    del parameter
    return _complete(context, lambda store: _requests(store, incomplete))


def _complete(
    context: click.Context, suggest: Callable[[CheckpointStorage], Awaitable[list[CompletionItem]]]
) -> list[CompletionItem]:
    wired, name = cast("Wired | None", context.find_root().obj), cast("str | None", context.params.get("store_name"))
    if wired is None or name is None:
        return []

    async def main() -> list[CompletionItem]:
        store = wired.open_store(name, create=False)
        try:
            return await asyncio.wait_for(suggest(store), _SECONDS)
        except TimeoutError:
            os._exit(0)  # there is nothing to say; the end of the process would wait for what was asked
        finally:
            await store.close()

    try:
        return asyncio.run(main())
    except (RehydrateError, OSError):
        return []


async def _runs(store: CheckpointStorage, incomplete: str) -> list[CompletionItem]:
    # Ids are ordered, so that those with this beginning stand together behind it.
    whole = await store.head(incomplete) if incomplete else None
    headers = await store.runs(after=incomplete or None, limit=_MOST)
    found = [] if whole is None else [whole.header]
    found += [header for header in headers if header.run_id.startswith(incomplete)]
    return [CompletionItem(header.run_id, help=f"{header.workflow}, {header.status.value}") for header in found]


async def _requests(store: CheckpointStorage, incomplete: str) -> list[CompletionItem]:
    rows = await store.requests(after=incomplete or None, limit=_MOST)
    found = [row for row in rows if row.request_id.startswith(incomplete)]
    return [CompletionItem(f"{row.request_id}=", help=f"asked by run {row.run_id}") for row in found]
