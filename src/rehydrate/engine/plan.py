"""What a superstep consists of, read from its record: chains of invocations, and messages to sub-workflows.

A plan is derived and may be thrown away at any time; nothing here changes a record.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from rehydrate.graph.definition import Definition
from rehydrate.ids import slot
from rehydrate.model.records import Delivery, StepRecord, Trail
from rehydrate.model.sealed import Payload

if TYPE_CHECKING:
    from .change import Change

#: What is handled one after the other: an executor, and of a map the item as well (else the trail is empty).
ChainKey: TypeAlias = tuple[str, Trail]


def chain_key(delivery: Delivery) -> ChainKey:
    """Return the chain that a delivery is part of. Within a scope only items of maps have trails of several numbers."""
    return delivery.executor, delivery.trail if len(delivery.trail) > 1 else ()


class Plan:
    """The deliveries of one superstep by chain, in the order in which each executor handles them."""

    __slots__ = ("_by_activation", "chains", "invocations", "scopes", "step")

    def __init__(self, step: StepRecord, children: Mapping[str, Definition]) -> None:
        self.step = step
        self.chains: dict[ChainKey, list[Delivery]] = {}
        self.scopes: list[Delivery] = []
        #: The chains of items of maps; an activation says nothing of them.
        self._by_activation: dict[tuple[str, int], list[Delivery]] = {}
        for delivery in step.deliveries:
            if delivery.executor in children:
                self.scopes.append(delivery)
                continue
            trail = delivery.trail
            key = (delivery.executor, trail if len(trail) > 1 else ())  # as in `chain_key`, without a call for each
            chain = self.chains.get(key)
            if chain is None:
                chain = self.chains[key] = [delivery]
            else:
                chain.append(delivery)
            if key[1]:
                self._by_activation[delivery.executor, delivery.activation] = chain
        self.invocations = len(step.deliveries) - len(self.scopes)

    def from_here(self, executor: str, activation: int) -> list[Delivery]:
        """Return an invocation and what follows it in its chain; nothing where it is not part of this superstep."""
        chain = self.chains.get((executor, ()), [])
        index = activation - chain[0].activation if chain else -1
        if 0 <= index < len(chain):
            return chain[index:]
        chain = self._by_activation.get((executor, activation), [])
        return [delivery for delivery in chain if delivery.activation >= activation]

    def after(self, executor: str, activation: int) -> Delivery | None:
        """Return what follows an invocation in its chain."""
        chain = self.chains.get((executor, ()))
        if chain:
            index = activation + 1 - chain[0].activation
            if 0 < index <= len(chain):
                return chain[index] if index < len(chain) else None
        chain = self._by_activation.get((executor, activation))
        if chain is None or len(chain) == 1:
            return None
        return next((delivery for delivery in chain if delivery.activation > activation), None)

    def payloads(self, delivery: Delivery) -> tuple[Payload, ...]:
        """Return what the handler gets: the message, or an answer and the request's data."""
        first = self.step.payloads[delivery.payload]
        return (first, self.step.payloads[delivery.payload + 1]) if delivery.kind == "answer" else (first,)


def plan_of(change: Change, path: str) -> Plan | None:
    """Return the plan of a scope's unfinished superstep, `None` without one.

    It is remembered beside the run by the record's identity, because wide supersteps are asked for it often.
    """
    known = change.plans.get(path)
    if known is not None:
        return known
    place = slot(path)
    step: StepRecord | None = change.draft.get(place[0], "step", place[1])
    if step is None:
        return None
    memo = change.draft.run.memo
    plan = memo.get(place)
    if not isinstance(plan, Plan) or plan.step is not step:
        plan = memo[place] = Plan(step, change.graph_at(path).children)
    change.plans[path] = plan
    return plan


def invocation_name(executor: str, activation: int) -> str:
    """Return the name of an invocation's records in its scope."""
    return f"{executor}#{activation}"


def step_key(path: str) -> tuple[str, str, str]:
    """Return the key of a scope's unfinished superstep."""
    parent, segment = slot(path)
    return parent, "step", segment
