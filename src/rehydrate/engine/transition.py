"""`transition(graph, run, inputs) -> Step`: all that the engine does.

Pure: it reads records, and gives the records put and removed, and orders to the runtime. No I/O, no clock, no event
loop, no user code. A batch of inputs equals the same inputs one by one but for the number of commits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

import msgspec

from rehydrate.graph.definition import Definition
from rehydrate.ids import depth_of
from rehydrate.model.checkpoint import Status
from rehydrate.model.events import InvocationFailed, StatusChanged
from rehydrate.model.records import DoneRecord, FailureRecord
from rehydrate.model.sealed import Sealed

from .change import Change
from .commands import Command, EndRun, LookAgain, StartInvocation
from .inputs import (
    Answer,
    AnswersArrived,
    AttemptBroken,
    CallNoted,
    CancelAsked,
    Input,
    InvocationBroken,
    InvocationFinished,
    MergeBroken,
    OfferArrived,
    StateMerged,
    TimeUp,
    TurnArrived,
)
from .passes import forget_calls, note_call, pass_number
from .passing import pass_barriers
from .plan import invocation_name, plan_of
from .reading import busy, failures, resting_status
from .restart import try_again
from .run import OwnDelta, Run
from .steps import Arrival, all_scopes
from .timing import expire
from .turn import begin_turn, seeded, told_offer
from .waking import in_order, take_answer, wake


class Step(msgspec.Struct, frozen=True, gc=False):
    """What a transition gives: records put (or removed, `None`) and commands, in the order of obeying."""

    delta: OwnDelta
    commands: tuple[Command, ...]


def transition(graph: Definition, run: Run, inputs: Sequence[Input], time: float = 0.0) -> Step:
    """Take in what happened and say what follows; `run` is only read.

    `time` is in seconds since the epoch. It is asked for at a claim, and where `graph.is_timed`.
    """
    change = Change(graph, run, time)
    touched: set[str] = set()
    merged: dict[str, dict[str, Sealed]] = {}
    for item in inputs:
        if isinstance(item, CancelAsked):
            return _cancelled(change)
        if touched and isinstance(item, AnswersArrived | OfferArrived | TimeUp):
            _pass(change, touched, merged)
        _take(change, item, touched, merged)
    _pass(change, touched, merged)
    _end(change)
    return Step(*change.finish())


def _pass(change: Change, touched: set[str], merged: dict[str, dict[str, Sealed]]) -> None:
    """Pass the barriers that what came so far leads to; an answer behind it comes after them."""
    for path in sorted(touched, key=depth_of, reverse=True) if len(touched) > 1 else tuple(touched):
        pass_barriers(change, path, merged.get(path))
    touched.clear()
    merged.clear()


def _take(change: Change, item: Input, touched: set[str], merged: dict[str, dict[str, Sealed]]) -> None:
    match item:
        case InvocationFinished():
            _finished(change, item)
            touched.add(item.path)
        case AttemptBroken():
            try_again(change, item)
        case InvocationBroken():
            _broken(change, item)
        case CallNoted():
            note_call(change, item)
        case TurnArrived():
            begin_turn(change, item)
        case AnswersArrived():
            _brought(change, item.answers, None, touched)
        case OfferArrived():
            _offered(change, item, touched)
        case StateMerged():
            merged[item.path] = item.values
            touched.add(item.path)
        case MergeBroken():
            _fail(change, item.path, item.key, FailureRecord(item.failure, ""))
        case TimeUp():
            expire(change, item)
        case CancelAsked():
            pass
        case _:
            assert_never(item)


def _finished(change: Change, item: InvocationFinished) -> None:
    """Record a finished invocation and start the next one of its chain."""
    draft = change.draft
    plan = plan_of(change, item.path)
    if plan is None:
        return
    name = invocation_name(item.executor, item.activation)
    record = DoneRecord(item.effects, item.instance)
    again = draft.totals["unrouted"] > 0 and draft.get(item.path, "unrouted", name) is not None
    if item.failure is not None:
        draft.put(item.path, "unrouted", name, record)
        _fail(change, item.path, name, FailureRecord(item.failure, item.executor, item.activation))
    else:
        if again:
            draft.remove(item.path, "unrouted", name)
        draft.put(item.path, "done", name, record)
    if draft.totals["attempt"]:
        draft.remove(item.path, "attempt", name)
    following = None if again else plan.after(item.executor, item.activation)
    if following is not None:
        payloads = plan.payloads(following)
        change.now.append(StartInvocation(item.path, plan.step.superstep, following, payloads, before=item.activation))


def _broken(change: Change, item: InvocationBroken) -> None:
    """Record a failed invocation; it ends its chain, the others go on."""
    name = invocation_name(item.executor, item.activation)
    if item.calls:
        plan = plan_of(change, item.path)
        left = plan.from_here(item.executor, item.activation) if plan is not None else []
        if left:
            forget_calls(change.draft, item.path, pass_number(left[0]), item.calls)
    _fail(change, item.path, name, FailureRecord(item.failure, item.executor, item.activation))


def _fail(change: Change, path: str, name: str, record: FailureRecord) -> None:
    if change.draft.step(path) is not None:
        change.draft.put(path, "failure", name, record)


def _offered(change: Change, item: OfferArrived, touched: set[str]) -> None:
    change.events.append(told_offer(item))
    change.barriers = True
    if item.refused is None:
        _brought(change, item.answers, item.message, touched)


def _brought(change: Change, answers: Sequence[Answer], message: Sealed | None, touched: set[str]) -> None:
    """Take in what comes from outside while the turn runs."""
    arrivals: dict[str, list[Arrival]] = {}
    for answer in in_order(answers):
        arrivals.setdefault(answer.path, []).append(take_answer(change, answer))
    if message is not None:
        arrivals.setdefault("", []).append(seeded(change, message))
    wake(change, arrivals, [])
    touched.update(arrivals)
    change.barriers = True


def _cancelled(change: Change) -> Step:
    change.barriers = True
    _tell_failures(change)
    change.events.append(StatusChanged(status=Status.CANCELLED))
    change.then.append(EndRun(Status.CANCELLED))
    return Step(*change.finish())


def _end(change: Change) -> None:
    """End the turn where nothing in the run can go on without the outside."""
    draft = change.draft
    if "" not in change.plans and draft.step("") is None:
        _rest(change, resting_status(draft), ())
        return
    stopped = draft.totals["failure"] or draft.totals["limit"]
    if not stopped:
        return
    if busy(change):
        if change.graph.has_functions:  # one that waits for what is stopped is to wait as for the outside
            change.then.append(LookAgain())
        return
    failed = draft.totals["failure"] > 0
    kind = "failure" if failed else "limit"
    paths = tuple(path for path in all_scopes(change) if draft.count(path, kind))
    _tell_failures(change)
    _rest(change, Status.FAILED if failed else Status.LIMIT_REACHED, paths)


def _tell_failures(change: Change) -> None:
    """Tell of all failures in executor order, outer scopes first, whichever came first."""
    draft = change.draft
    if not draft.totals["failure"]:
        return
    for place in failures(draft, change.graph, all_scopes(change)):
        step = draft.step(place.path)
        change.events.append(
            InvocationFailed(
                path=place.path,
                executor_id=place.executor,
                superstep=step.superstep if step is not None else 0,
                activation=place.activation,
                failure=place.failure,
            )
        )


def _rest(change: Change, status: Status, paths: tuple[str, ...]) -> None:
    change.barriers = True
    change.events.append(StatusChanged(status=status, paths=paths))
    change.then.append(EndRun(status, paths))
