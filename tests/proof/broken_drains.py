"""Drains that are broken as real ones could be: a process is told to break its own, and must be found out."""

from __future__ import annotations

from collections.abc import Callable

from rehydrate.api.sigterm import SigtermHook
from rehydrate.runtime.actor import Actor
from rehydrate.runtime.crew import Crew
from rehydrate.runtime.invocation import Invocation
from rehydrate.runtime.saver import Saver


def break_drain(name: str) -> None:
    """Break the drain of this process in a way; the empty name is none."""
    if name:
        BROKEN_DRAINS[name]()


def _keeps_the_lease() -> None:
    next_commit = Saver.next_commit

    def broken(self: Saver, *args: object, ends: bool) -> object:
        return next_commit(self, *args, ends=ends and args[0].get("", "turn", "") is None)

    Saver.next_commit = broken


def _forgets_what_has_finished() -> None:
    """Handlers may finish in time, and nobody hears of it."""
    hold = Crew.hold

    def broken(self: Crew, at_rest: Callable[[], None]) -> None:
        hold(self, at_rest)
        self._tell = lambda item, cause: None

    Crew.hold = broken


def _forgets_what_is_below() -> None:
    """What runs below the root is not waited for."""
    hold = Crew.hold

    def broken(self: Crew, at_rest: Callable[[], None]) -> None:
        for task, invocation in list(self._tasks.items()):
            if isinstance(invocation, Invocation) and invocation.start.path:
                del self._tasks[task]
        hold(self, at_rest)

    Crew.hold = broken


def _commits_nothing() -> None:
    """Runs are left where they were saved last."""
    Actor._hands_on = lambda self: False


def _cuts_off_nothing() -> None:
    """Handlers that never end are waited for."""
    Actor.cut_off = lambda self: None


def _stays() -> None:
    """The process is drained and does not leave."""
    SigtermHook._nudge = lambda self: False


BROKEN_DRAINS: dict[str, Callable[[], None]] = {
    "keeps the lease": _keeps_the_lease,
    "forgets what has finished in time": _forgets_what_has_finished,
    "forgets what runs below the root": _forgets_what_is_below,
    "commits nothing at the end": _commits_nothing,
    "cuts off nothing": _cuts_off_nothing,
    "does not leave": _stays,
}
