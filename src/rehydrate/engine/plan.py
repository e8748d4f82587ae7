"""What a superstep consists of, read from its record: chains of invocations, and messages to sub-workflows.

A plan is derived and may be thrown away at any time; nothing here changes a record.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rehydrate.graph.definition import Definition
from rehydrate.ids import slot
from rehydrate.model.records import Delivery, Payload, StepRecord

if TYPE_CHECKING:
    from .change import Change


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
