"""Orders: what the engine asks of the runtime beside saving and publishing, carried out.

It starts invocations, calls conditions and reducers where a barrier needs them, and runs timers. It decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias, assert_never

from rehydrate.engine.commands import (
    LookAgain,
    MergeState,
    RouteAgain,
    StartInvocation,
    StartTimer,
    StopScope,
    StopTimer,
    TellPass,
)
from rehydrate.engine.inputs import InvocationFinished
from rehydrate.model.records import DoneRecord

from .causes import failure_of
from .context import Surroundings
from .crew import Crew
from .invocation import route_again
from .merging import merge_state
from .remembering import Tell
from .timers import Timers
from .watch import CommandKind

Order: TypeAlias = StartInvocation | TellPass | LookAgain | RouteAgain | MergeState | StartTimer | StopTimer | StopScope
#: What may be left undone when a process hands the run on: whoever goes on finds it in the records.
LEAVABLE: Final = (StartInvocation, TellPass, LookAgain, StartTimer, StopTimer, StopScope)
#: What each is called by who watches.
KINDS: Final[Mapping[type[Order], CommandKind]] = {
    StartInvocation: "start",
    TellPass: "tell",
    LookAgain: "look",
    RouteAgain: "route",
    MergeState: "merge",
    StartTimer: "start timer",
    StopTimer: "stop timer",
    StopScope: "stop scope",
}


class Orders:
    """Carries out orders for one run. It keeps nobody to tell, so that it and the actor do not hold each other."""

    __slots__ = ("_around", "_crew", "_timers")

    def __init__(self, around: Surroundings, crew: Crew) -> None:
        self._around = around
        self._crew = crew
        self._timers = Timers()

    def obey(self, order: Order, tell: Tell) -> None:
        """Carry one out and tell what came of it."""
        match order:
            case StartInvocation():
                self._crew.begin(order)
            case TellPass():
                self._crew.passes.tell(order)
            case LookAgain():
                self._crew.passes.look_again()
            case RouteAgain():
                self._route(order, tell)
            case MergeState():
                tell(*merge_state(self._around.codec, self._around.outlets.graph_at(order.path), order))
            case StartTimer():
                self._timers.start(order, tell)
            case StopTimer():
                self._timers.stop(order.path)
            case StopScope():
                self._timers.stop_below(order.path)
                self._crew.stop_scope(order.path, "was stopped: its sub-workflow took too long")
            case _:
                assert_never(order)

    @property
    def limits_time(self) -> bool:
        """Whether a busy scope has a time limit, which runs only while somebody drives the run."""
        return self._timers.are_running

    def stop(self) -> None:
        """Let no timer tell anything any more."""
        self._timers.stop_all()

    def _route(self, order: RouteAgain, tell: Tell) -> None:
        delivery = order.delivery
        done = self._around.run.get(order.path, "unrouted", f"{delivery.executor}#{delivery.activation}")
        assert isinstance(done, DoneRecord)  # noqa: S101  (the engine found it there)
        effects, error = route_again(self._around, order.path, delivery, done)
        failure = failure_of(error, "routing") if error is not None else None
        tell(
            InvocationFinished(order.path, delivery.executor, delivery.activation, effects, done.instance, failure),
            error,
        )
