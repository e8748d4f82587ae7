"""The script of a run: what each call brings, as a function of the plan, the call's number and how the run stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rehydrate import PendingRequest, Status
from tests.differential.messages import Item, Question, answer_to, mix
from tests.differential.plans import FamilyPlan

#: A run that is not at its end after so many calls is left there.
MOST_CALLS = 14
STOPPED = (Status.FAILED, Status.LIMIT_REACHED)


@dataclass(frozen=True)
class Step:
    """One call: its message and the arguments that say something about the run."""

    message: Item | None = None
    options: dict[str, object] = field(default_factory=dict)


def first_step(family: FamilyPlan) -> Step:
    """The call that starts the run."""
    return Step(_message(family, 0), {"run_args": {"salt": 0}})


def next_step(family: FamilyPlan, number: int, status: Status, requests: Sequence[PendingRequest]) -> Step | None:
    """The call with this number, for a run that stands like this; `None` where there is nothing left to do."""
    script = family.script
    if number >= MOST_CALLS:
        return None
    if status in STOPPED:
        if script.stopped == "continue" or number % 2:
            return Step()
        options: dict[str, object] = {"on_unfinished": script.stopped, "on_pending": "keep"}
        return Step(_message(family, number), options | {"run_args": {"salt": number}})
    message = _message(family, number) if number in script.messages else None
    if message is None and not requests:
        return None
    options = {}
    if requests:
        options["responses"] = [request.answer(_answer(request)) for request in _chosen(family, number, requests)]
    if message is not None:
        options |= {"on_pending": script.pending, "run_args": {"salt": number}}
    return Step(message, options)


def is_stormy(family: FamilyPlan, number: int) -> bool:
    """Whether handlers may fail in this call; after each such call come two in which they do not."""
    return family.script.stormy and number % 3 == 0


def _message(family: FamilyPlan, number: int) -> Item:
    return Item(mix(family.seed, number), family.script.fuel, (number,))


def _chosen(family: FamilyPlan, number: int, requests: Sequence[PendingRequest]) -> list[PendingRequest]:
    if family.script.answers == "all":
        return list(requests)
    return [requests[mix(family.seed, number, "which") % len(requests)]]


def _answer(request: PendingRequest) -> int:
    assert isinstance(request.data, Question)
    return answer_to(request.data)
