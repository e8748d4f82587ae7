"""Commands of the engine: orders to the runtime, obeyed in the order in which they come.

What stands behind a `Commit` waits until that commit is safe; what stands before it does not.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from rehydrate.model.checkpoint import Status
from rehydrate.model.events import Event
from rehydrate.model.passes import CallRecord
from rehydrate.model.records import Delivery
from rehydrate.model.sealed import Payload, Sealed


class Commit(msgspec.Struct, frozen=True, gc=False):
    """Save everything up to here now; a delta without this order may wait for the next one, 50 ms at most."""


class Publish(msgspec.Struct, frozen=True, gc=False):
    """Tell the reader; the events get the run's next numbers."""

    events: tuple[Event, ...]


class StartInvocation(msgspec.Struct, frozen=True, gc=False):
    """Let an executor handle a message: `payloads` are the message, or an answer and the request's data.

    `alone`: it is the only one of its chain in this superstep. `before`: the activation that was handled before it in
    its chain, 0 for none. `due`: not before this time, in seconds since the epoch.
    """

    path: str
    superstep: int
    delivery: Delivery
    payloads: tuple[Payload, ...]
    alone: bool = False
    before: int = 0
    due: float | None = None


class TellPass(msgspec.Struct, frozen=True, gc=False):
    """Let a running pass of a functional workflow know that a call of it is saved, as it stands in the record."""

    path: str
    pass_number: int
    name: str
    record: CallRecord


class LookAgain(msgspec.Struct, frozen=True, gc=False):
    """Let all running passes look whether what they wait for can go on without the outside."""


class RouteAgain(msgspec.Struct, frozen=True, gc=False):
    """Ask the conditions again for a finished invocation whose sends are not routed."""

    path: str
    superstep: int
    delivery: Delivery


class Contribution(msgspec.Struct, frozen=True, gc=False):
    """What a reducer is to merge into one key: the value before, and the contributions in order."""

    key: str
    base: Sealed | None
    values: tuple[Sealed, ...]


class MergeState(msgspec.Struct, frozen=True, gc=False):
    """Call the reducers of a barrier."""

    path: str
    contributions: tuple[Contribution, ...]


class StartTimer(msgspec.Struct, frozen=True, gc=False):
    """Tell when a scope has been busy for so many seconds from now on."""

    path: str
    seconds: float
    deadline: float


class StopTimer(msgspec.Struct, frozen=True, gc=False):
    """A scope is at rest: its time stands still."""

    path: str


class StopScope(msgspec.Struct, frozen=True, gc=False):
    """Stop all that runs in a scope and below it. Nothing of it is told and nothing is started in it any more; a resume
    starts it again."""

    path: str


class EndRun(msgspec.Struct, frozen=True, gc=False):
    """The run rests with this status; `paths` are where a failure or a limit stopped it."""

    status: Status
    paths: tuple[str, ...] = ()


Command: TypeAlias = (
    Commit
    | Publish
    | StartInvocation
    | TellPass
    | LookAgain
    | RouteAgain
    | MergeState
    | StartTimer
    | StopTimer
    | StopScope
    | EndRun
)
