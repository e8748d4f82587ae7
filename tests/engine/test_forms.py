"""Forms: records whose keys, trails and numbers nobody ever wrote are refused, before anything follows them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rehydrate.engine.invariants import check_run
from rehydrate.engine.run import Run
from rehydrate.model.records import (
    CounterRecord,
    Delivery,
    InputRecord,
    Key,
    PartRecord,
    Record,
    RestRecord,
    RunRecord,
    ScopeRecord,
    StateRecord,
    StepRecord,
    TurnRecord,
)
from rehydrate.model.sealed import Items, Sealed

VALUE = Sealed("str", b"\xa1a")
SOUND: Mapping[Key, Record] = {
    ("", "run", ""): RunRecord("birth", "flow", 1, "signature"),
    ("", "turn", ""): TurnRecord(1, None, "digest", 1),
    ("/", "scope", ""): ScopeRecord((), superstep=1),
    ("/", "step", ""): StepRecord(1, (VALUE,), (Delivery("a", 1, 0, (1,)), Delivery("a", 2, 0, (1,)))),
    ("", "counter", "a"): CounterRecord(2),
    ("", "scope", "child#1"): ScopeRecord((1,)),
    ("", "state", "list"): StateRecord(None, 1, 0, 64),
    ("", "part", "list\x1f0"): PartRecord(Items(b"\x01", 1)),
}


def told(records: Mapping[Key, Record]) -> set[str]:
    """Return the numbers of what is broken, with these records in place of the sound ones."""
    return {text.partition(":")[0] for text in check_run(Run({**SOUND, **records}.items()))}


def step(*deliveries: Delivery) -> Mapping[Key, Record]:
    return {("/", "step", ""): StepRecord(1, (VALUE,), deliveries)}


def test_what_the_engine_writes_is_sound() -> None:
    """The same without a change."""
    assert told({}) == set()


@pytest.mark.parametrize(
    ("records", "broken"),
    [
        pytest.param({("", "scope", ""): ScopeRecord((1,))}, "I33", id="a scope in itself, which would be endless"),
        pytest.param({("", "scope", "child#01"): ScopeRecord((1,))}, "I33", id="a number that is written otherwise"),
        pytest.param({("", "scope", "child#\u0661"): ScopeRecord((1,))}, "I33", id="digits of another script"),
        pytest.param({("", "input", "x"): InputRecord((1,))}, "I33", id="an input without a number"),
        pytest.param({("/", "rest", ""): RestRecord()}, "I32", id="a record above the root"),
        pytest.param({("a//b#1", "counter", "a"): CounterRecord(1)}, "I32", id="a path with a hole"),
        pytest.param({("/".join(["a#1"] * 300), "counter", "a"): CounterRecord(1)}, "I32", id="a path without end"),
        pytest.param({("", "scope", "child#1"): ScopeRecord((1, 2))}, "I34", id="half a trail"),
        pytest.param({("", "scope", "child#1"): ScopeRecord((-1,))}, "I34", id="a trail of nothing"),
        pytest.param(step(Delivery("a", 1, 0, ())), "I34", id="a message without a trail"),
        pytest.param({("", "counter", "a"): CounterRecord(1 << 63)}, "I34", id="a counter at its end"),
        pytest.param({("", "counter", "b"): CounterRecord(-1)}, "I34", id="a counter below nothing"),
        pytest.param({("", "rest", "child#2"): RestRecord()}, "I36", id="a rest of no scope"),
        pytest.param({("", "state", "list"): StateRecord(None, 1, 0, 1 << 60)}, "I14", id="parts that are far to seek"),
        pytest.param(step(Delivery("a", 1, 0, (1,), "answer")), "I13", id="an answer without its question"),
        pytest.param(step(*[Delivery("a", 1, 0, (1,))] * 2), "I37", id="one invocation twice"),
        pytest.param(step(Delivery("a", 0, 0, (1,))), "I38", id="an activation that is none"),
        pytest.param(step(Delivery("a", 3, 0, (1,))), "I38", id="an activation before its time"),
        pytest.param(step(Delivery("a", 2, 0, (1,)), Delivery("a", 1, 0, (1,))), "I38", id="activations backwards"),
    ],
)
def test_what_nobody_wrote_is_told(records: Mapping[Key, Record], broken: str) -> None:
    """Each is refused by a number of its own; some of them once made a restore endless, or raised what is no error of
    ours."""
    assert broken in told(records)
