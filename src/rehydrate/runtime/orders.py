"""Orders: what the engine asks of the runtime beside saving and publishing, carried out.

It starts invocations, and calls conditions and reducers where a barrier needs them. It decides nothing.
"""

from __future__ import annotations

from typing import TypeAlias, assert_never

from rehydrate.engine.commands import MergeState, RouteAgain, StartInvocation
from rehydrate.engine.inputs import InvocationFinished
from rehydrate.model.records import DoneRecord

from .causes import failure_of
from .context import Surroundings
from .crew import Crew, Tell
from .invocation import route_again
from .merging import merge_state

Order: TypeAlias = StartInvocation | RouteAgain | MergeState


class Orders:
    """Carries out orders for one run. It keeps nobody to tell, so that it and the actor do not hold each other."""

    __slots__ = ("_around", "_crew")

    def __init__(self, around: Surroundings, crew: Crew) -> None:
        self._around = around
        self._crew = crew

    def obey(self, order: Order, tell: Tell) -> None:
        """Carry one out and tell what came of it."""
        match order:
            case StartInvocation():
                self._crew.begin(order)
            case RouteAgain():
                self._route(order, tell)
            case MergeState():
                tell(*merge_state(self._around.codec, self._around.outlets.graph_at(order.path), order))
            case _:
                assert_never(order)

    def _route(self, order: RouteAgain, tell: Tell) -> None:
        delivery = order.delivery
        done = self._around.run.get(order.path, "unrouted", f"{delivery.executor}#{delivery.activation}")
        assert isinstance(done, DoneRecord)  # noqa: S101  (the engine found it there)
        effects, error = route_again(self._around, order.path, delivery.executor, done)
        failure = failure_of(error, "routing") if error is not None else None
        tell(
            InvocationFinished(order.path, delivery.executor, delivery.activation, effects, done.instance, failure),
            error,
        )
