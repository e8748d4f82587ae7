"""What a run is doing right now, as its events tell it: active executors, their steps, and the scopes around them.

No event tells that one invocation of a superstep is done before its others are; all of them end with the superstep.
It draws nothing, and the time comes from outside.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from rehydrate.model.events import (
    AttemptFailed,
    Emitted,
    Event,
    InvocationFailed,
    InvocationStarted,
    OutputYielded,
    RequestOpened,
    ScopeEnded,
    ScopeStarted,
    StatusChanged,
    StepFinished,
    StepStarted,
    SuperstepCompleted,
    TurnStarted,
)
from rehydrate.runtime.causes import safe_text

#: Letters of what an executor tells of itself.
_LONGEST: Final = 500


class Line(NamedTuple):
    """One thing that is active: how deep it stands, its name, since when, how many of it, and a word on it."""

    depth: int
    name: str
    since: float
    times: int = 1
    note: str = ""

    @property
    def label(self) -> str:
        """Its name, with the number where it is active more than once."""
        return f"{self.name} x{self.times}" if self.times > 1 else self.name


@dataclass
class _Active:
    """Invocations of one executor of one scope, or attempts at one of its steps."""

    since: float
    count: int = 0
    #: How many of them wait for their next attempt, which begins as an invocation does.
    backing_off: int = 0
    note: str = ""
    steps: dict[str, _Active] = field(default_factory=dict[str, "_Active"])


@dataclass
class Activity:
    """Takes events one by one; `lines()` is what is active."""

    began: float
    turn: int = 0
    outputs: int = 0
    requests: int = 0
    _scopes: dict[str, float] = field(default_factory=dict[str, float])
    _executors: dict[tuple[str, str], _Active] = field(default_factory=dict[tuple[str, str], _Active])

    def take(self, event: Event, now: float) -> None:
        """Take an event that came now."""
        place = (event.path, event.executor_id)
        match event:
            case TurnStarted(turn=turn):
                self.turn = turn
            case ScopeStarted():
                self._scopes[event.path] = now
            case ScopeEnded():
                self._end(event.path, with_scope=True)
            case SuperstepCompleted():
                self._end(event.path, with_scope=False)
            case StatusChanged():
                self._end("", with_scope=True)
            case InvocationStarted():
                self._begin(self._executors.setdefault(place, _Active(now)))
            case InvocationFailed():
                self._executors.pop(place, None)
            case OutputYielded():
                self.outputs += 1
            case RequestOpened():
                self.requests += 1
            case _:
                self._note(event, self._executors.setdefault(place, _Active(now, 1)) if event.live else None, now)

    def _begin(self, active: _Active) -> None:
        if active.backing_off:
            active.backing_off -= 1
        else:
            active.count += 1
        active.note = ""

    def _note(self, event: Event, active: _Active | None, now: float) -> None:
        """Take what is told of an executor while it is active."""
        if active is None:
            return
        match event:
            case StepStarted(step=step):
                active.steps.setdefault(step, _Active(now)).count += 1
            case StepFinished(step=step):
                _less(active.steps, step)
            case AttemptFailed(again=again, step=step, attempt=attempt):
                if step:
                    _less(active.steps, step)
                elif again is not None:
                    active.backing_off += 1
                active.note = f"attempt {attempt} failed" + ("" if again is None else f", again in {again:.0f} s")
            case Emitted(data=data):
                active.note = safe_text(lambda: str(data)[:_LONGEST], _LONGEST)
            case _:
                pass

    def _end(self, path: str, *, with_scope: bool) -> None:
        below = f"{path}/" if path else ""
        for place in list(self._executors):
            if place[0] == path or (with_scope and place[0].startswith(below)):
                del self._executors[place]
        for scope in list(self._scopes) if with_scope else ():
            if scope == path or scope.startswith(below):
                del self._scopes[scope]

    def lines(self) -> Iterator[Line]:
        """Give what is active, each scope followed by what is in it."""
        paths = {above for path, _ in self._executors for above in _and_above(path)}
        for path in sorted(paths):
            depth = len(path.split("/")) if path else 0
            executors = [(name, active) for (at, name), active in self._executors.items() if at == path]
            if path:
                since = self._scopes.get(path) or min((active.since for _, active in executors), default=self.began)
                yield Line(depth - 1, path.rpartition("/")[2], since)
            for name, active in executors:
                yield Line(depth, name, active.since, active.count, active.note)
                for step, running in active.steps.items():
                    yield Line(depth + 1, step, running.since, running.count)


def _less(steps: dict[str, _Active], step: str) -> None:
    running = steps.get(step)
    if running is None:
        return
    running.count -= 1
    if running.count <= 0:
        del steps[step]


def _and_above(path: str) -> Iterator[str]:
    """Give a path and all above it, but for the root's where it is not the path itself."""
    yield path
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path
