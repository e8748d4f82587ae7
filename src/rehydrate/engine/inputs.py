"""Inputs of the engine: things that happened, told by the runtime. Frozen, in a closed union."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

from rehydrate.model.effects import Effect, Failure
from rehydrate.model.passes import CallRecord
from rehydrate.model.records import RunRecord
from rehydrate.model.sealed import Sealed

OnPending: TypeAlias = Literal["keep", "cancel", "reject"]
OnUnfinished: TypeAlias = Literal["finish", "discard", "reject"]


class Answer(msgspec.Struct, frozen=True, gc=False):
    """The answer to an open request, which is named by its scope and its name in it."""

    path: str
    name: str
    value: Sealed


class OfferArrived(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What was offered to the run is taken: a message and answers, part of the turn that runs.

    With `refused`, the code of an error and its text, nothing of it can be taken; it leaves the inbox all the same.
    """

    number: int
    key: str
    message: Sealed | None = None
    answers: tuple[Answer, ...] = ()
    refused: tuple[str, str] | None = None


class TurnArrived(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A call's input, checked: what the claim records.

    `new_run` and `signature` are given for a run that has no records yet. `continuation`: neither message nor answers;
    with `same` it is the turn's own call made again.
    `interrupted`: the turn that was found never gave its outputs to a call; `handed_on`: its process had stopped it so.
    `limit_anew`: the limit of the turn that was found had been reached. `pending_given`: `on_pending` stood in the
    call. `offer`: the offer whose input this is, or which a continuation refuses. `dropped` names what a migration took
    away, `freed` the scopes in which that may end a child or fill a join. `trace` is for the turn's record.
    """

    message: Sealed | None = None
    answers: tuple[Answer, ...] = ()
    base: str | None
    digest: str
    key: str | None = None
    run_args: Sealed | None = None
    on_pending: OnPending = "keep"
    pending_given: bool = False
    on_unfinished: OnUnfinished = "finish"
    continuation: bool = False
    same: bool = False
    interrupted: bool = False
    handed_on: bool = False
    limit_anew: bool = False
    new_run: RunRecord | None = None
    signature: str = ""
    dropped: tuple[str, ...] = ()
    freed: tuple[str, ...] = ()
    offer: OfferArrived | None = None
    trace: str = ""


class InvocationFinished(msgspec.Struct, frozen=True, gc=False):
    """A handler returned and its sends were routed; with `failure`, a condition raised and some were not."""

    path: str
    executor: str
    activation: int
    effects: tuple[Effect, ...]
    instance: Sealed | None = None
    failure: Failure | None = None


class AttemptBroken(msgspec.Struct, frozen=True, gc=False):
    """A handler failed and is to be tried again from `due` on, in seconds since the epoch."""

    path: str
    executor: str
    activation: int
    failure: Failure
    due: float


class InvocationBroken(msgspec.Struct, frozen=True, gc=False):
    """A handler failed for good. `calls` are those of a pass whose remembered failures led to it: a resume makes them
    again."""

    path: str
    executor: str
    activation: int
    failure: Failure
    calls: tuple[str, ...] = ()


class CallNoted(msgspec.Struct, frozen=True, gc=False):
    """A pass of a functional workflow has made a call, or it came back. `waits`: the pass goes on when that is saved.

    With a message, scope `number` of the workflow that is called is to begin with it.
    """

    path: str
    pass_number: int
    name: str
    record: CallRecord
    waits: bool = True
    number: int = 0
    message: Sealed | None = None


class StateMerged(msgspec.Struct, frozen=True, gc=False):
    """The reducers of a barrier gave these values."""

    path: str
    values: dict[str, Sealed]


class MergeBroken(msgspec.Struct, frozen=True, gc=False):
    """A reducer of a barrier raised."""

    path: str
    key: str
    failure: Failure


class AnswersArrived(msgspec.Struct, frozen=True, gc=False):
    """Answers that came while the turn runs; part of that turn."""

    answers: tuple[Answer, ...]


class TimeUp(msgspec.Struct, frozen=True, gc=False):
    """The time that was to be up at `deadline` is up for a scope."""

    path: str
    deadline: float


class CancelAsked(msgspec.Struct, frozen=True, gc=False):
    """The run is to stop at what it has; `offer` is the number of the offer that asked for it, if one did."""

    offer: int | None = None


def taken_by(inputs: Sequence[Input]) -> list[int]:
    """Return the numbers of the offers that a batch of inputs takes: nothing behind a cancellation is taken in."""
    taken: list[int] = []
    for item in inputs:
        if isinstance(item, OfferArrived):
            taken.append(item.number)
        elif isinstance(item, CancelAsked):
            return taken if item.offer is None else [*taken, item.offer]
    return taken


Input: TypeAlias = (
    TurnArrived
    | InvocationFinished
    | AttemptBroken
    | InvocationBroken
    | CallNoted
    | StateMerged
    | MergeBroken
    | AnswersArrived
    | OfferArrived
    | TimeUp
    | CancelAsked
)
