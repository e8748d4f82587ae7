"""The observer protocol: who is told what the calls of a workflow do, so that it can be traced and measured.

An observer takes no part in a run: nothing that it does or raises changes one. Values come to it sealed; it opens one
only where its user has asked for contents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol, TypeAlias

import msgspec

from rehydrate.model.checkpoint import Cause, Commit, Status
from rehydrate.model.effects import Effect, Failure
from rehydrate.model.events import Event
from rehydrate.model.sealed import Payload

#: Opens a sealed value, as a copy of its own.
Opener: TypeAlias = Callable[[Payload], object]


class Observed(msgspec.Struct, frozen=True):
    """The workflow whose run a call is about."""

    workflow: str
    version: int
    opener: Opener


class Restored(msgspec.Struct, frozen=True):
    """A checkpoint was loaded, checked and made a run in memory, or `error` came of it. `seconds` is how long it took.

    `records` counts the live records of its run.
    """

    run_id: str
    checkpoint_id: str
    records: int
    seconds: float
    error: BaseException | None = None


class Found(msgspec.Struct, frozen=True):
    """What a call goes on from, before it is claimed. `trace` is what the newest observed call on the run left there.

    `pending` counts the open requests that the store knows of the run.
    """

    run_id: str
    trace: str
    pending: int
    cause: Cause


class Saved(msgspec.Struct, frozen=True):
    """A store was given a commit, and took it unless there is an error. `seconds` is how long that took."""

    commit: Commit
    seconds: float
    error: BaseException | None = None


class Attempt(msgspec.Struct, frozen=True):
    """An executor that begins to handle a message, or with `step` a step of a function that begins."""

    run_id: str
    path: str
    executor_id: str
    superstep: int
    activation: int
    number: int
    message: Payload | None = None
    step: str = ""


class Outcome(msgspec.Struct, frozen=True):
    """What became of an attempt. `paused`: a function waits; `left`: it was cancelled, and nothing of it counts.

    `effects` are those of one that finished. `error` is what was raised in this process.
    """

    kind: Literal["finished", "paused", "failed", "left"]
    effects: Sequence[Effect] = ()
    failure: Failure | None = None
    error: BaseException | None = None


class Ending(msgspec.Struct, frozen=True):
    """How a call has ended: with the run's status, or with an error that is no failure of the run.

    `failure` is the run's first, and `where` its scope and executor.
    """

    seconds: float
    status: Status | None = None
    pending: int = 0
    failure: Failure | None = None
    where: str = ""
    error: BaseException | None = None


class Activity(Protocol):
    """Something that has begun, in the context in which its code runs."""

    def end(self, outcome: Outcome) -> None:
        """Learn what became of it; called in the same context."""
        ...


class CallObserver(Protocol):
    """Is told of one call, in the order in which things happen, on the thread of its event loop."""

    @property
    def trace(self) -> str:
        """What is to be kept in the run, so that a later call, in whatever process, can be linked to this one: at most
        1024 characters of ASCII. Anything else is not kept, as if it had been raised."""
        ...

    def restored(self, restored: Restored) -> None:
        """Learn that a checkpoint was restored."""
        ...

    def found(self, found: Found) -> None:
        """Learn which run the call is about; once more where another call came in between."""
        ...

    def saved(self, saved: Saved) -> None:
        """Learn of a commit."""
        ...

    def told(self, events: Sequence[Event]) -> None:
        """Learn of committed events; their data is sealed."""
        ...

    def began(self, attempt: Attempt) -> Activity:
        """Learn that an executor or a step begins."""
        ...

    def ended(self, ending: Ending) -> None:
        """Learn how the call has ended; the last that it is told."""
        ...


class Observer(Protocol):
    """Is told of all calls of a workflow; one object for any number of them, in any thread."""

    def begin(self, observed: Observed) -> CallObserver:
        """Return who is told of a call that begins; called in the caller's context."""
        ...
