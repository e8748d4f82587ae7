"""What a superstep consists of, read from its record: chains of invocations, and messages to sub-workflows.

A plan is derived and may be thrown away at any time; nothing here changes a record.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from rehydrate.graph.definition import Definition
from rehydrate.model.records import Delivery, Payload, StepRecord


class Plan:
    """The deliveries of one superstep by executor, in the order in which each executor handles them."""

    __slots__ = ("chains", "invocations", "scopes", "step")

    def __init__(self, step: StepRecord, children: Mapping[str, Definition]) -> None:
        self.step = step
        self.chains: dict[str, list[Delivery]] = {}
        self.scopes: list[Delivery] = []
        for delivery in step.deliveries:
            if delivery.executor in children:
                self.scopes.append(delivery)
                continue
            chain = self.chains.get(delivery.executor)
            if chain is None:
                self.chains[delivery.executor] = [delivery]
            else:
                chain.append(delivery)
        self.invocations = len(step.deliveries) - len(self.scopes)

    def find(self, executor: str, activation: int) -> Delivery | None:
        """Return a delivery to an executor that is not a sub-workflow; its activations follow each other."""
        chain = self.chains.get(executor)
        if not chain:
            return None
        index = activation - chain[0].activation
        return chain[index] if 0 <= index < len(chain) else None

    def payloads(self, delivery: Delivery) -> tuple[Payload, ...]:
        """Return what the handler gets: the message, or an answer and the request's data."""
        first = self.step.payloads[delivery.payload]
        return (first, self.step.payloads[delivery.payload + 1]) if delivery.kind == "answer" else (first,)


class _Held:
    """A step by identity: two steps that are equal may belong to different scopes and still share a plan."""

    __slots__ = ("children", "step")

    def __init__(self, step: StepRecord, children: Mapping[str, Definition]) -> None:
        self.step, self.children = step, children

    def __hash__(self) -> int:
        return id(self.step)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and other.step is self.step and other.children is self.children


@lru_cache(maxsize=4096)
def _plan(held: _Held) -> Plan:
    return Plan(held.step, held.children)


def plan_of(step: StepRecord, graph: Definition) -> Plan:
    """Return the plan of a step; remembered by the record's identity, because wide steps are asked for it often."""
    if len(step.deliveries) <= 1:
        return Plan(step, graph.children)
    return _plan(_Held(step, graph.children))


def invocation_name(executor: str, activation: int) -> str:
    """Return the name of an invocation's records in its scope."""
    return f"{executor}#{activation}"
