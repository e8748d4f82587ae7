"""Commands of the engine: orders to the runtime, obeyed in the order in which they come.

What stands behind a `Commit` waits until that commit is safe; what stands before it does not.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from rehydrate.model.checkpoint import Status
from rehydrate.model.events import Event
from rehydrate.model.records import Delivery, StateRecord
from rehydrate.model.sealed import Payload, Sealed


class Commit(msgspec.Struct, frozen=True, gc=False):
    """Save everything up to here now; a delta without this order may wait for the next one, 50 ms at most."""


class Publish(msgspec.Struct, frozen=True, gc=False):
    """Tell the reader; the events get the run's next numbers."""

    events: tuple[Event, ...]


class StartInvocation(msgspec.Struct, frozen=True, gc=False):
    """Let an executor handle a message: `payloads` are the message, or an answer and the request's data.

    `alone`: it is the only one of its chain in this superstep. `before`: the activation that was handled before it in
    its chain, 0 for none.
    """

    path: str
    superstep: int
    delivery: Delivery
    payloads: tuple[Payload, ...]
    alone: bool = False
    before: int = 0


class RouteAgain(msgspec.Struct, frozen=True, gc=False):
    """Ask the conditions again for a finished invocation whose sends are not routed."""

    path: str
    superstep: int
    delivery: Delivery


class Contribution(msgspec.Struct, frozen=True, gc=False):
    """What a reducer is to merge into one key: the value before, and the contributions in order."""

    key: str
    base: StateRecord | None
    values: tuple[Sealed, ...]


class MergeState(msgspec.Struct, frozen=True, gc=False):
    """Call the reducers of a barrier."""

    path: str
    contributions: tuple[Contribution, ...]


class EndRun(msgspec.Struct, frozen=True, gc=False):
    """The run rests with this status; `paths` are where a failure or a limit stopped it."""

    status: Status
    paths: tuple[str, ...] = ()


Command: TypeAlias = Commit | Publish | StartInvocation | RouteAgain | MergeState | EndRun
