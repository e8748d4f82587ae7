"""The stateful test of P8: a run and its model side by side, through messages, failures, cancellations and crashes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from rehydrate.testing import run_virtually
from tests.proof.modelled import CrashingStore, Seen, Weather, called
from tests.proof.superstep_model import EXECUTORS, Model, Op, Outcome, Work

KEYS = ("x", "y", "log", "sum")
VALUES = st.integers(0, 3)
OPS = st.one_of(
    st.builds(Op, st.just("get"), st.sampled_from(KEYS)),
    st.builds(Op, st.just("set"), st.sampled_from(KEYS), VALUES),
    st.builds(Op, st.just("update"), st.sampled_from(("log", "sum")), VALUES),
    st.builds(Op, st.just("delete"), st.sampled_from(KEYS)),
    st.builds(Op, st.just("yield"), st.just(""), VALUES),
)
MANY_OPS = st.lists(OPS, max_size=4).map(tuple)
TARGETS = st.sampled_from(EXECUTORS)
LEAVES = st.builds(Work, MANY_OPS)
BRANCHES = st.builds(Work, MANY_OPS, st.lists(st.tuples(TARGETS, LEAVES), max_size=5).map(tuple))
WORKS = st.builds(Work, MANY_OPS, st.lists(st.tuples(TARGETS, BRANCHES), max_size=3).map(tuple))
#: Faults by number, which is taken of the works that there are.
FAULTS = st.lists(
    st.tuples(st.integers(0, 30), st.sampled_from(("fail", "fail", "flaky", "slow", "cancel"))), max_size=4
)
#: The commit at which the store stops, and whether behind it; none for 0.
CRASHES = st.tuples(st.sampled_from((0, 0, 0, 1, 2, 3, 5)), st.booleans())


def labelled(work: Work, next_label: Callable[[], int]) -> Work:
    """Return work in which every part has a label of its own."""
    sends = tuple((target, labelled(each, next_label)) for target, each in work.sends)
    return Work(work.ops, sends, next_label())


def labels_of(work: Work) -> list[int]:
    """Return the labels of work and all its parts."""
    return [work.label, *(label for _, each in work.sends for label in labels_of(each))]


class Supersteps(RuleBasedStateMachine):
    """Each rule is one call; after it the run must stand as its model does."""

    def __init__(self) -> None:
        super().__init__()
        self.store = CrashingStore()
        self.model = Model()
        self.labels = 0
        self.begun = False
        self.interrupted = False
        self.seq = -1

    def _next_label(self) -> int:
        self.labels += 1
        return self.labels

    @precondition(lambda self: not self.begun)
    @rule(work=WORKS, faults=FAULTS, chance=st.integers(0, 99))
    def begin(self, work: Work, faults: list[tuple[int, str]], chance: int) -> None:
        """Start the run."""
        self.begun = True
        self._call(labelled(work, self._next_label), faults, chance, (0, False))

    @precondition(lambda self: self.begun)
    @rule(work=WORKS, discard=st.booleans(), faults=FAULTS, chance=st.integers(0, 99), crash=CRASHES)
    def say(
        self, work: Work, discard: bool, faults: list[tuple[int, str]], chance: int, crash: tuple[int, bool]
    ) -> None:
        """Bring a message: what is unfinished is finished first, or dropped."""
        given = {"checkpoint": "latest", "on_unfinished": "discard" if discard else "finish"}
        self._call(labelled(work, self._next_label), faults, chance, crash, **given)

    @precondition(lambda self: self.begun and self.model.flight)
    @rule(faults=FAULTS, chance=st.integers(0, 99), crash=CRASHES)
    def go_on(self, faults: list[tuple[int, str]], chance: int, crash: tuple[int, bool]) -> None:
        """Continue what is unfinished."""
        self._call(None, faults, chance, crash, checkpoint="latest")

    @precondition(lambda self: self.begun and not self.model.flight)
    @rule()
    def look(self) -> None:
        """Continue where nothing is left to do: nothing runs."""
        self._call(None, [], 0, (0, False), checkpoint="latest")

    def _call(
        self, work: Work | None, faults: list[tuple[int, str]], chance: int, crash: tuple[int, bool], **given: object
    ) -> None:
        flight = [] if given.get("on_unfinished") == "discard" else [each for _, each in self.model.flight]
        there = [label for each in [*flight, *([work] if work else [])] for label in labels_of(each)]
        struck = {there[at % len(there)]: mode for at, mode in faults} if there else {}
        # What may have finished before the run was stopped is left in peace: nobody knows whether it runs again.
        unsure = {each.label for each in flight} if self.model.unsure else set()
        self.call(work, {label: mode for label, mode in struck.items() if label not in unsure}, chance, crash, **given)

    def call(
        self, work: Work | None, struck: dict[int, str], chance: int = 0, crash: tuple[int, bool] = (0, False),
        **given: object,
    ) -> None:  # fmt: skip
        """Make a call with these faults, by label, and compare."""
        model, before = self.model, copy.deepcopy(self.model)
        if work is not None:
            model.bring(work, discard=given.get("on_unfinished") == "discard", interrupted=self.interrupted)
        wanted = model.run(struck)
        seen = self._made(work, Weather(struck, Random(chance)), crash, given)
        if self.store.crashed:
            wanted = self._crashed(before, wanted, seen)
        compare(self.model, wanted, seen)
        self.seq = seen.checkpoint.header.seq
        self.interrupted = seen.checkpoint.status.value == "RUNNING"

    def _made(self, work: Work | None, weather: Weather, crash: tuple[int, bool], given: dict[str, Any]) -> Seen:
        self.store.left, self.store.late = crash
        self.store.crashed = False
        call: Coroutine[Any, Any, Seen] = called(self.store, weather, work, **given)
        return run_virtually(call)

    def _crashed(self, before: Model, wanted: Outcome, seen: Seen) -> Outcome:
        """Let the model be where the store has stopped."""
        header = seen.checkpoint.header
        if header.seq == self.seq:  # not even the claim is there
            self.model = before
            return Outcome("crashed", {}, set())
        if seen.checkpoint.status.value == "RUNNING":
            self.model.go_back(header.superstep)
        return wanted._replace(status="crashed", maybe=set(wanted.reads))


def compare(model: Model, wanted: Outcome, seen: Seen) -> None:
    """Compare a call and the run after it with the model."""
    assert wanted.status in {"crashed", seen.status}, f"ended {seen.status}"
    for label, reads in seen.reads.items():
        assert label in wanted.reads, f"work {label} ran"
        for each in reads:
            assert each == wanted.reads[label], f"work {label} read {each} instead of {wanted.reads[label]}"
    assert wanted.reads.keys() - wanted.maybe <= seen.reads.keys(), "not all have run"
    assert dict(seen.checkpoint.state) == model.state, f"state {seen.checkpoint.state} instead of {model.state}"
    if wanted.status in {"IDLE", "FAILED"}:
        assert seen.outputs == model.outputs, f"outputs {seen.outputs} instead of {model.outputs}"
