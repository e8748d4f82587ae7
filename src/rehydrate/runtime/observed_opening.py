"""The opening of a call that is observed: who is told of it, and what they hear and leave before the claim.

It opens as any call does. Nothing here is needed to resume a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import cast

import msgspec

from rehydrate.engine.run import Run
from rehydrate.errors import WrongCallError
from rehydrate.ports.observer import Found, Observed, Observer, Restored

from .call import Row, with_article
from .call_log import LogObserver, is_read
from .finding import turn_of
from .invocation import open_payload
from .observing import Observing
from .opening import Opened, Opening
from .program import Program

_LOG = LogObserver()


def observing(program: Program) -> Observing | None:
    """Return what tells the observers of a call that begins; `None` where there are none and no log is read."""
    observers: tuple[Observer, ...] = (*program.observers, _LOG) if is_read() else program.observers
    if not observers:
        return None
    graph = program.graph
    return Observing(observers, Observed(graph.name, graph.version, partial(open_payload, program.codec)))


def checked_observers(given: object) -> tuple[Observer, ...]:
    """Return observers as they were given. Raises `WrongCallError` for anything else."""
    fix = "Pass a list of them: observers=[OpenTelemetryObserver()]."
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise WrongCallError(f"observers is {with_article(given)}.", fix)
    observers = tuple(cast("Sequence[Observer]", given))
    for observer in observers:
        if isinstance(observer, type):
            raise WrongCallError(f"observers has the class {observer.__name__}.", "Pass an object of it.")
        if not callable(getattr(observer, "begin", None)):
            raise WrongCallError(f"observers has {with_article(observer)}.", fix)
    return observers


async def open_observed(opening: Opening, observed: Observing) -> Opened:
    """Open a call, tell of what was restored, and let the claim keep what links a later call to this one."""
    opened = await observed.open(opening.open(), partial(_restored, opening))
    header = opened.header
    pending = 0 if header is None or opened.imported else header.pending
    observed.found(Found(opened.run_id, _trace(opened.run), pending, opened.cause))
    if opened.arrived is None:
        return opened
    return replace(opened, arrived=msgspec.structs.replace(opened.arrived, trace=observed.trace))


def _restored(
    opening: Opening, seconds: float, opened: Opened | None, error: BaseException | None = None
) -> Restored | None:
    """Return what there is to tell of a restore; `None` where a new run has begun."""
    call = opening.call
    if opened is None:
        is_new = opening.row is Row.NEW_RUN
        return None if is_new else Restored(call.run_id or "", call.base or "", 0, seconds, error)
    header = opened.header
    if header is None and not opened.imported:
        return None
    checkpoint_id = call.base or "" if header is None else header.checkpoint_id
    return Restored(opened.run_id, checkpoint_id, _live_records(opened), seconds)


def _live_records(opened: Opened) -> int:
    return sum(len(table) for table in opened.run.tables.values())


def _trace(run: Run) -> str:
    turn = turn_of(run)
    return "" if turn is None else turn.trace
