"""Who drives which run: the id of this process as an owner, and the actors that are alive in it.

The id is made anew at each process start and in the child of a fork. Nothing here is needed to resume a run.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from typing import Protocol
from weakref import WeakSet


class Alive(Protocol):
    """Something that drives a run for as long as it says so."""

    def is_driving(self) -> bool:
        """Tell whether it still drives its run."""
        ...


class _Process:
    """The owner id and the live actors of one process."""

    def __init__(self) -> None:
        self.owner = secrets.token_hex(12)
        #: Several may try for one epoch of a run; the store lets one of them have it.
        self.actors: dict[tuple[str, int], WeakSet[Alive]] = {}
        #: Running tasks, and who drives a turn by them: an event loop alone would let the collector take them.
        self.tasks: dict[asyncio.Task[object], Alive | None] = {}
        #: True once this process claims no turn any more.
        self.draining = False

    def renew(self) -> None:
        """Become another owner: the child of a fork drives none of its parent's runs."""
        self.owner = secrets.token_hex(12)
        self.actors = {}
        self.tasks = {}
        self.draining = False


_PROCESS = _Process()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_PROCESS.renew)


def process_owner() -> str:
    """Return the owner id of this process."""
    return _PROCESS.owner


def register(birth: str, epoch: int, actor: Alive) -> None:
    """Note that `actor` drives the run of this birth in this epoch, or tries to."""
    _PROCESS.actors.setdefault((birth, epoch), WeakSet()).add(actor)


def unregister(birth: str, epoch: int, actor: Alive) -> None:
    """Forget an actor that has ended."""
    actors = _PROCESS.actors.get((birth, epoch))
    if actors is None:
        return
    actors.discard(actor)
    if not actors:
        _PROCESS.actors.pop((birth, epoch), None)


def is_driven_here(birth: str, epoch: int) -> bool:
    """Tell whether an actor of this process drives the run."""
    return bool(drivers(birth, epoch))


def drivers(birth: str, epoch: int) -> list[Alive]:
    """Return the actors of this process that drive the run, or try to."""
    return [actor for actor in list(_PROCESS.actors.get((birth, epoch), ())) if actor.is_driving()]


def hold(task: asyncio.Task[object], actor: Alive | None = None) -> None:
    """Keep a running task alive until it is done; `actor` drives a turn by it."""
    _PROCESS.tasks[task] = actor
    task.add_done_callback(let_go)


def let_go(task: asyncio.Task[object]) -> None:
    """Keep a task alive no more."""
    _PROCESS.tasks.pop(task, None)


def live_actors() -> list[Alive]:
    """Return who drives a turn in this process, in whatever event loop."""
    return [actor for actor in list(_PROCESS.tasks.values()) if actor is not None and actor.is_driving()]


def is_draining() -> bool:
    """Tell whether this process claims no turn any more."""
    return _PROCESS.draining


def claim_turns(allowed: bool) -> None:
    """Say whether this process may claim turns."""
    _PROCESS.draining = not allowed
