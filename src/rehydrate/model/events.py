"""Events: what a run tells its reader, one frozen class a kind, in a closed union.

Committed events are numbered without gap by the commit that holds what they report; live ones carry the last committed
number. Inside the engine `data` is sealed; a reader gets it opened.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from .checkpoint import Status
from .effects import Failure


class EventBase(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What all events carry. `path` is the scope's; `activation` is 0 where none is meant."""

    run_id: str = ""
    path: str = ""
    executor_id: str = ""
    superstep: int = 0
    activation: int = 0
    sequence: int = 0
    live: bool = False


class TurnStarted(EventBase, frozen=True, kw_only=True, gc=False):
    """A call took the run up. `continuation`: without new input; `replayed`: what follows was recorded before."""

    turn: int
    continuation: bool = False
    replayed: bool = False


class SuperstepStarted(EventBase, frozen=True, kw_only=True, gc=False):
    """A superstep begins in a scope."""


class SuperstepCompleted(EventBase, frozen=True, kw_only=True, gc=False):
    """A scope passed its barrier."""


class ScopeStarted(EventBase, frozen=True, kw_only=True, gc=False):
    """A sub-workflow began; `path` is its own."""


class ScopeEnded(EventBase, frozen=True, kw_only=True, gc=False):
    """A sub-workflow ended; `path` is its own."""


class OutputYielded(EventBase, frozen=True, kw_only=True, gc=False):
    """The run yielded an output."""

    data: object


class RequestOpened(EventBase, frozen=True, kw_only=True, gc=False):
    """A request waits for an answer; `intercepted`: an executor of the parent is to give it."""

    request_id: str
    data: object
    response_type: str
    intercepted: bool = False


class RequestsKept(EventBase, frozen=True, kw_only=True, gc=False):
    """A new message found open requests and left them open."""

    request_ids: tuple[str, ...]


class RequestsCancelled(EventBase, frozen=True, kw_only=True, gc=False):
    """Open requests were withdrawn by `on_pending="cancel"`."""

    request_ids: tuple[str, ...]


class OfferTaken(EventBase, frozen=True, kw_only=True, gc=False):
    """What was offered to the run under a key is taken out of its inbox, and is an input of this turn."""

    number: int
    key: str


class OfferRefused(EventBase, frozen=True, kw_only=True, gc=False):
    """What was offered to the run cannot be taken and is dropped: its answer came too late, or its type does not fit.

    `code` and `text` are those of the error that a call with this input raises.
    """

    number: int
    key: str
    code: str
    text: str


class WorkDiscarded(EventBase, frozen=True, kw_only=True, gc=False):
    """Work was dropped by `on_unfinished="discard"`, or by a migration; `what` names each piece by path."""

    what: tuple[str, ...]


class MessageDropped(EventBase, frozen=True, kw_only=True, gc=False):
    """Every condition declined a message of this type."""

    type: str


class InvocationFailed(EventBase, frozen=True, kw_only=True, gc=False):
    """An invocation, a barrier, or a sub-workflow whose time was up failed for good."""

    failure: Failure


class StatusChanged(EventBase, frozen=True, kw_only=True, gc=False):
    """The run's status; the last event of a turn."""

    status: Status
    paths: tuple[str, ...] = ()


class InvocationStarted(EventBase, frozen=True, kw_only=True, gc=False):
    """An executor begins to handle a message (live)."""


class AttemptFailed(EventBase, frozen=True, kw_only=True, gc=False):
    """An attempt failed (live). `again` is in how many seconds the next one may start; `None`: there is none.

    `step` is the name of a functional workflow's step whose attempt it was.
    """

    attempt: int
    failure: Failure
    again: float | None
    step: str = ""


class StepStarted(EventBase, frozen=True, kw_only=True, gc=False):
    """An attempt at a step of a functional workflow begins (live)."""

    step: str
    attempt: int


class StepFinished(EventBase, frozen=True, kw_only=True, gc=False):
    """A step of a functional workflow has its result, saved where the durability saves steps (live)."""

    step: str


class Emitted(EventBase, frozen=True, kw_only=True, gc=False):
    """Progress that a handler told with `ctx.emit` (live)."""

    data: object


class EventsDropped(EventBase, frozen=True, kw_only=True, gc=False):
    """So many live events of this stream were dropped here, as its reader was too far behind (live)."""

    count: int


#: Numbered, and kept by a store that keeps events.
CommittedEvent: TypeAlias = (
    TurnStarted | SuperstepStarted | SuperstepCompleted | ScopeStarted | ScopeEnded | OutputYielded | RequestOpened
    | RequestsKept | RequestsCancelled | OfferTaken | OfferRefused | WorkDiscarded | MessageDropped
    | InvocationFailed | StatusChanged
)  # fmt: skip
#: Told at once, and never kept.
LiveEvent: TypeAlias = InvocationStarted | AttemptFailed | StepStarted | StepFinished | Emitted | EventsDropped

#: Whatever a run can tell.
Event: TypeAlias = CommittedEvent | LiveEvent
