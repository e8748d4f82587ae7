"""Calls that are broken as real ones could be: what is one transaction is two, or is not known when it comes again."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from rehydrate import WorkflowRunResult
from rehydrate.engine.commands import Commit
from rehydrate.errors import IdempotencyKeyError
from rehydrate.model.checkpoint import Offer
from rehydrate.runtime import actor, opening
from rehydrate.runtime.finding import Finder, Found
from rehydrate.runtime.opening import Opened, Opening

Break = Callable[[pytest.MonkeyPatch], None]


async def in_two(
    call: Callable[..., Awaitable[WorkflowRunResult]],
    message: object,
    *,
    responses: object = None,
    on_pending: object = None,
    **given: Any,
) -> WorkflowRunResult:
    """Answer, and then bring the message, each in a call of its own."""
    if message is None or responses is None:
        return await call(message, responses=responses, on_pending=on_pending, **given)
    first = await call(None, responses=responses, on_pending=on_pending, **given)
    return await call(message, on_pending=on_pending, **{**given, "checkpoint": first})


def starts_first(patch: pytest.MonkeyPatch) -> None:
    """Handlers are started before the claim is saved."""
    transition = actor.transition

    def broken(*given: Any) -> Any:
        step = transition(*given)
        commands = sorted(step.commands, key=lambda command: isinstance(command, Commit))
        return msgspec.structs.replace(step, commands=tuple(commands))

    patch.setattr(actor, "transition", broken)


def stores_first(patch: pytest.MonkeyPatch) -> None:
    """The input is put down in the store before it is claimed."""
    opens = Opening.open

    async def broken(self: Opening) -> Opened:
        opened = await opens(self)
        if self.store is not None and opened.head is not None:
            await self.store.offer(Offer(opened.run_id, secrets.token_hex(8), b"input"))
        return opened

    patch.setattr(Opening, "open", broken)


def knows_nothing(patch: pytest.MonkeyPatch) -> None:
    """The same call again is not known."""
    seal = opening.seal_call
    patch.setattr(opening, "seal_call", lambda *given: replace(seal(*given), digest=secrets.token_hex(32)))


def takes_all_for_new(patch: pytest.MonkeyPatch) -> None:
    """The same call again is a new turn where that is possible."""
    patch.setattr(Finder, "is_same", lambda self, checkpoint, *, base_counts: False)


def compares_nothing(patch: pytest.MonkeyPatch) -> None:
    """A key with another request is a key without one."""
    by_key = Finder.by_key

    async def broken(self: Finder) -> Found | None:
        try:
            return await by_key(self)
        except IdempotencyKeyError:
            return None

    patch.setattr(Finder, "by_key", broken)
