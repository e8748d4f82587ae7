"""What the clients of a simulated world want of one run: its turns, and how each must end.

A plan is made by running its turns without any fault; the results, the effects and the records that this gives are what
every world must come to.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any

import msgspec

from rehydrate import InMemoryCheckpointStorage, Status, Workflow, WorkflowRunResult
from rehydrate.codecs.records import decode_record
from rehydrate.model.checkpoint import key_of
from rehydrate.model.passes import CallRecord, CallsRecord
from rehydrate.model.records import Record, TimerRecord
from rehydrate.runtime.runner import Runner
from rehydrate.testing import run_virtually

from .simulated_workflows import LEAF_SECONDS, TALLY, WORKFLOWS, Order, tally

#: So many plans there are of each workflow.
SHAPES = 12
#: Kinds of records that are each run's own: births, seeds and digests of requests are in them.
_OWN = frozenset({"run", "turn", "pass", "signature"})

_built: dict[str, list[Workflow]] = {}


def built(name: str, number: int) -> Workflow:
    """Return the workflow as the process of this number has it; no two processes of a world share one."""
    have = _built.setdefault(name, [])
    while len(have) <= number:
        have.append(tally() if name == TALLY else WORKFLOWS[name]())
    return have[number]


@dataclass(frozen=True)
class TurnPlan:
    """One turn: `number` is that of its message, `answers` tells which requests are answered."""

    number: int | None
    answers: str = "none"
    pending: str | None = None

    def answered(self, result: WorkflowRunResult | None) -> dict[str, object] | None:
        """Return what the turn answers of what the one before it left open."""
        if result is None or self.answers == "none":
            return None
        requests: list[Any] = list(result.pending_requests)
        if self.answers == "first":
            requests = requests[:1]
        return {request.request_id: f"yes {len(request.data.text)}" for request in requests}

    @property
    def message(self) -> Order | None:
        """The message."""
        return None if self.number is None else Order(self.number)


@dataclass
class Plan:
    """A run, and how it ends: `ends` by turn, `effects` by place and what was done, `records` at the end."""

    workflow: str
    turns: list[TurnPlan] = field(default_factory=list)
    ends: list[object] = field(default_factory=list)
    effects: Counter[tuple[str, str]] = field(default_factory=Counter)
    records: dict[str, object] = field(default_factory=dict)


def end_of(result: WorkflowRunResult) -> object:
    """Return what is compared of a turn's end."""
    requests = [(r.path, r.executor_id, r.data.text) for r in result.pending_requests]  # type: ignore[attr-defined]
    return result.turn, result.status.value, result.outputs, requests


def effect(ctx: Any, what: object) -> tuple[str, str]:
    """Return what is compared of an effect."""
    return f"{getattr(ctx, 'path', '')}/{getattr(ctx, 'executor_id', 'step')}", repr(what)


def comparable(records: dict[str, bytes]) -> dict[str, object]:
    """Return what is compared of the records of a run that has ended."""
    found: dict[str, object] = {}
    for text, data in records.items():
        key = key_of(text)
        assert key is not None
        if key[1] not in _OWN:
            found["/".join(key)] = _plain(decode_record(key[1], data))
    return found


def _plain(record: Record) -> object:
    """Return a record as plain values, without what is up to time: of calls their order and failures, and times."""
    if isinstance(record, CallRecord):
        return record.kind, record.name, record.digest, _plain_value(record.value)
    if isinstance(record, CallsRecord):
        return {name: _plain(call) for name, call in record.calls.items()}
    if isinstance(record, TimerRecord):
        return record.deadline, 0 <= record.left <= LEAF_SECONDS
    return _plain_value(record)


def _plain_value(value: object) -> object:
    return msgspec.to_builtins(value, builtin_types=(bytes,))


class _Quiet:
    """A world without faults."""

    def __init__(self, effects: Counter[tuple[str, str]]) -> None:
        self._effects = effects

    async def at(self, ctx: Any, what: object) -> None:
        self._effects[effect(ctx, what)] += 1


@cache
def plan(workflow: str, shape: int) -> Plan:
    """Draw a plan and run it."""
    random = Random(f"{workflow} {shape}")
    made = Plan(workflow)
    run_virtually(_run(made, random))
    return made


async def _run(made: Plan, random: Random) -> None:
    store = InMemoryCheckpointStorage()
    stage = built(made.workflow, 0)
    result: WorkflowRunResult | None = None
    for _ in range(random.randint(2, 4)):
        turn = _draw(random, result)
        runner = Runner(stage, store)
        resources = {"tools": _Quiet(made.effects)}
        result = await runner.run(
            turn.message,
            checkpoint=result,
            responses=turn.answered(result),
            on_pending=turn.pending,  # type: ignore[arg-type]
            resources=resources,
        )
        assert result.status in {Status.IDLE, Status.IDLE_WITH_PENDING_REQUESTS}
        made.turns.append(turn)
        made.ends.append(end_of(result))
    assert result is not None
    stored = await store.load(result.checkpoint_id)
    assert stored is not None
    made.records = comparable(stored.records)


def _draw(random: Random, before: WorkflowRunResult | None) -> TurnPlan:
    number = random.randint(1, 60)
    if before is None:
        return TurnPlan(number)
    if before.pending_requests and random.random() < 0.7:
        answers = random.choice(("all", "all", "first"))
        if random.random() < 0.5:
            return TurnPlan(None, answers)
        return TurnPlan(number, answers, "keep")
    return TurnPlan(number, "none", random.choice(("keep", "keep", "cancel")))
