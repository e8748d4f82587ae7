"""Shell completion of run ids, from the store that the command line names so far.

It must be quick and may never fail: what cannot be completed has no suggestions.
"""

from __future__ import annotations

import asyncio
from typing import cast

import click
from click.shell_completion import CompletionItem

from rehydrate.errors import RehydrateError
from rehydrate.ports import CheckpointStorage

from .session import Wired

_MOST = 50


def complete_run(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return ids of runs that begin like this. Without `--store` none: an app would have to be loaded."""
    del parameter
    wired, name = cast("Wired | None", context.find_root().obj), cast("str | None", context.params.get("store_name"))
    if wired is None or name is None:
        return []
    try:
        store = wired.open_store(name, create=False)
        return asyncio.run(_suggestions(store, incomplete))
    except (RehydrateError, OSError):
        return []


async def _suggestions(store: CheckpointStorage, incomplete: str) -> list[CompletionItem]:
    # Ids are ordered, so that those with this beginning stand together behind it.
    try:
        whole = await store.head(incomplete) if incomplete else None
        headers = await store.runs(after=incomplete or None, limit=_MOST)
    finally:
        await store.close()
    found = [] if whole is None else [whole.header]
    found += [header for header in headers if header.run_id.startswith(incomplete)]
    return [CompletionItem(header.run_id, help=f"{header.workflow}, {header.status.value}") for header in found]
