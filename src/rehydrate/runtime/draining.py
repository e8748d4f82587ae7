"""Draining: this process claims no turn any more, and its live turns are handed on to others.

A turn stops at its next safe place and is saved as it stands, without an owner. Works over all event loops of the
process. What a run is stands in its records; nothing here is needed to go on with one.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from rehydrate.errors import WrongCallError

from .actor import Actor
from .claim import CANCEL_SECONDS
from .owner import claim_turns, live_actors

#: How the turn of a run ended: `finished` by itself; `handed on` with all handlers that ran finished; `cut off` while
#: handlers ran, which leave no trace and run again; `not saved`: what was saved before stands.
DrainEnd: TypeAlias = Literal["finished", "handed on", "cut off", "not saved"]
#: How long a task is waited for that was cancelled because its last commit took too long, in seconds.
_LAST_SECONDS: Final = 1.0


@dataclass(frozen=True)
class DrainedRun:
    """One run whose turn was live; `checkpoint_id` is its newest checkpoint that was saved, or kept without a store."""

    run_id: str
    workflow: str
    checkpoint_id: str | None
    ended: DrainEnd


@dataclass(frozen=True)
class DrainSummary:
    """What became of the turns that were live, by run id."""

    runs: tuple[DrainedRun, ...]

    def of(self, ended: DrainEnd) -> tuple[str, ...]:
        """Return the ids of the runs that ended like this."""
        return tuple(run.run_id for run in self.runs if run.ended == ended)


class _Watch:
    """One live turn, driven by whatever loop, and the future here that tells of its end."""

    def __init__(self, actor: Actor, task: asyncio.Task[None]) -> None:
        self.actor = actor
        self.task = task
        self.was_cut_off = False
        self._here = asyncio.get_running_loop()
        self.over: asyncio.Future[None] = self._here.create_future()
        self._there(self._begin)

    def _there(self, call: Callable[[], object]) -> None:
        """Call something on the turn's own loop; one that does not run any more drives nothing."""
        loop = self.task.get_loop()
        if not loop.is_running():
            self._end()
            return
        with contextlib.suppress(RuntimeError):  # closed since
            loop.call_soon_threadsafe(call)

    def _begin(self) -> None:
        self.actor.drain()
        self.task.add_done_callback(self._told)

    def _told(self, task: asyncio.Task[None]) -> None:
        del task
        with contextlib.suppress(RuntimeError):  # nobody waits any more
            self._here.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        if not self.over.done():
            self.over.set_result(None)

    def cut_off(self) -> None:
        """Stop the handlers that still run."""

        def stop() -> None:
            self.was_cut_off = not self.task.done() and self.actor.crew.is_working()
            self.actor.cut_off()

        self._there(stop)

    def give_up(self) -> None:
        """Stop a turn that cannot be saved."""
        self._there(self.task.cancel)

    def told(self) -> DrainedRun:
        """Return how the turn ended."""
        actor, ledger = self.actor, self.actor.ledger
        saved = actor.saver.expected if actor.saver is not None else None
        if actor.saver is None and ledger.header is not None:
            saved = ledger.header.checkpoint_id
        return DrainedRun(ledger.run_id, ledger.workflow, saved, self._ended())

    def _ended(self) -> DrainEnd:
        task = self.task
        if not task.done() or task.cancelled() or task.exception() is not None:
            return "not saved"
        if not self.actor.handed_on:
            return "finished"
        return "cut off" if self.was_cut_off else "handed on"


async def drain(grace: float = 10.0) -> DrainSummary:
    """Stop claiming turns in this process, for good, and hand on those that are live; another process goes on at once.

    Handlers that run may finish within `grace` seconds; then they are stopped, and the last commits are waited for as
    after a cancellation, for five seconds at most. Calls that wait raise `RunDrainedError`, later ones `DrainingError`.
    """
    if not math.isfinite(grace) or grace < 0:
        raise WrongCallError(f"grace is {grace!r}.", "Pass a number of seconds from 0.")
    claim_turns(allowed=False)
    now = asyncio.get_running_loop().time
    watches: dict[Actor, _Watch] = {}
    if not await _are_over(watches, now() + grace):
        for watch in _still(watches):
            watch.cut_off()
        if not await _are_over(watches, now() + CANCEL_SECONDS):
            for watch in _still(watches):
                watch.give_up()
            await _are_over(watches, now() + _LAST_SECONDS)
    told = [watch.told() for actor, watch in watches.items() if actor.claimed]
    return DrainSummary(tuple(sorted(told, key=lambda run: run.run_id)))


async def _are_over(watches: dict[Actor, _Watch], until: float) -> bool:
    """Wait until a time of this loop for all live turns; tell whether all are over."""
    now = asyncio.get_running_loop().time
    while True:
        for actor in live_actors():
            if isinstance(actor, Actor) and actor.task is not None and actor not in watches:
                watches[actor] = _Watch(actor, actor.task)
        waiting = [watch.over for watch in _still(watches)]
        if not waiting:
            return True
        if now() >= until:
            return False
        await asyncio.wait(waiting, timeout=max(0.0, until - now()))


def _still(watches: dict[Actor, _Watch]) -> list[_Watch]:
    return [watch for watch in watches.values() if not watch.over.done()]
