"""What supersteps are, in plain words and without any engine: reads, writes, merges, conflicts, failures.

An invocation is known by the label of its work. Nothing here may come from the engine.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

#: Executors in their order; messages from outside go to the first.
EXECUTORS = ("a", "b", "c")
#: Keys whose writes of several executors are put together; others conflict.
REDUCED = ("log", "sum")


@dataclass(frozen=True)
class Op:
    """One thing that a handler does: `get`, `set`, `delete`, `update` or `yield`."""

    kind: str
    key: str = ""
    value: int = 0


@dataclass(frozen=True)
class Work:
    """A message: what its handler does, and what it sends to whom."""

    ops: tuple[Op, ...] = ()
    sends: tuple[tuple[str, Work], ...] = ()
    label: int = 0


class Write(NamedTuple):
    executor: str
    label: int
    op: Op


class Outcome(NamedTuple):
    """How a call ends, and what handlers read in it by label; those of `maybe` may have run or not."""

    status: str
    reads: dict[int, list[object]]
    maybe: set[int]


@dataclass
class Snapshot:
    """A run at the beginning of a superstep."""

    state: dict[str, object]
    flight: list[tuple[str, Work]]
    outputs: list[int]
    inbox: list[Work]


def fate(executor: str, mode: str) -> str:
    """What becomes of an invocation: `b` has a timeout, `c` a second attempt."""
    if mode == "fail" or (mode == "flaky" and executor != "c") or (mode == "slow" and executor == "b"):
        return "fails"
    return "cancelled" if mode == "cancel" else "finishes"


@dataclass
class Model:
    """A run. `flight` is what the current superstep delivers, `done` what of it is finished and recorded.

    `unsure`: the call was stopped in the middle, so that more may be recorded.
    """

    state: dict[str, object] = field(default_factory=dict)
    flight: list[tuple[str, Work]] = field(default_factory=list)
    done: set[int] = field(default_factory=set)
    unsure: bool = False
    inbox: list[Work] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    superstep: int = 0
    #: By superstep: the run where it began.
    began: dict[int, Snapshot] = field(default_factory=dict)

    def bring(self, work: Work, *, discard: bool, interrupted: bool) -> None:
        """Take a message in."""
        if not interrupted:
            self.outputs = []
        if discard:
            self.flight, self.inbox = [], []
        if self.flight:
            self.inbox.append(work)
            self.note()
        else:
            self.open([(EXECUTORS[0], work)])

    def open(self, flight: list[tuple[str, Work]]) -> None:
        """Begin a superstep."""
        self.flight, self.done, self.unsure = flight, set(), False
        if flight:
            self.superstep += 1
            self.note()

    def note(self) -> None:
        """Remember the run as it is."""
        here = Snapshot(self.state, self.flight, self.outputs, self.inbox)
        self.began[self.superstep] = copy.deepcopy(here)

    def go_back(self, superstep: int) -> None:
        """Be the run where a superstep began; what of it is recorded is not known."""
        there = copy.deepcopy(self.began[superstep])
        self.state, self.flight, self.outputs, self.inbox = there.state, there.flight, there.outputs, there.inbox
        self.superstep, self.done, self.unsure = superstep, set(), True

    def run(self, faults: Mapping[int, str]) -> Outcome:
        """Go on until nothing is left, or something stops it."""
        reads: dict[int, list[object]] = {}
        maybe: set[int] = set()
        while self.flight:
            status = self._superstep(faults, reads, maybe)
            if status:
                return Outcome(status, reads, maybe)
        return Outcome("IDLE", reads, maybe)

    def _superstep(self, faults: Mapping[int, str], reads: dict[int, list[object]], maybe: set[int]) -> str:
        made: list[Write] = []
        finished: set[int] = set()
        fates: set[str] = set()
        for executor in EXECUTORS:
            chain: list[Write] = []
            for work in self._of(executor):
                seen = self._performed(executor, work, chain)
                if work.label in self.done:
                    continue
                reads[work.label] = seen
                if self.unsure:
                    maybe.add(work.label)
                what = fate(executor, faults.get(work.label, ""))
                fates.add(what)
                if what != "finishes":
                    break
                finished.add(work.label)
            made += chain
        if "cancelled" in fates:
            maybe.update(work.label for _, work in self.flight)
            self.unsure = True
            return "CANCELLED"
        self.done |= finished
        if "fails" in fates:
            return "FAILED"
        return self._barrier(made)

    def _of(self, executor: str) -> list[Work]:
        return [work for each, work in self.flight if each == executor]

    def _performed(self, executor: str, work: Work, chain: list[Write]) -> list[object]:
        """Add what an invocation writes to its executor's chain; return what it reads."""
        seen: list[object] = []
        for op in work.ops:
            if op.kind == "get":
                value = dict(self.state)
                for write in chain:
                    apply(value, write.op)
                seen.append(copy.deepcopy(value.get(op.key)))
            elif op.kind != "yield":
                chain.append(Write(executor, work.label, op))
        return seen

    def _barrier(self, made: list[Write]) -> str:
        conflict = first_conflict(made)
        if conflict is not None:
            self.unsure = False
            self.done = {work.label for _, work in self.flight}
            for write in conflict:
                labels = [work.label for work in self._of(write.executor)]
                self.done -= set(labels[labels.index(write.label) :])
            return "FAILED"
        for write in made:
            apply(self.state, write.op)
        in_order = [work for executor in EXECUTORS for work in self._of(executor)]
        self.outputs = self.outputs + [op.value for work in in_order for op in work.ops if op.kind == "yield"]
        messages = [(EXECUTORS[0], work) for work in self.inbox]
        self.inbox = []
        self.open(messages + [send for work in in_order for send in work.sends])
        return ""


def apply(state: dict[str, object], op: Op) -> None:
    """Do one write to a state."""
    if op.kind == "delete":
        state.pop(op.key, None)
    elif op.kind == "set":
        state[op.key] = [op.value] if op.key == "log" else op.value
    elif op.key == "log":
        state["log"] = [*state.get("log", []), op.value]
    else:
        state["sum"] = state.get("sum", 0) + op.value


def first_conflict(made: list[Write]) -> tuple[Write, Write] | None:
    """Two writes that do not go together, if there are any, of the key that was written first."""
    for key in dict.fromkeys(write.op.key for write in made):
        writes = [write for write in made if write.op.key == key]
        if key in REDUCED:
            setter = next((write for write in writes if write.op.kind != "update"), None)
            other = next((write for write in writes if setter and write.executor != setter.executor), None)
            if setter and other:
                return setter, other
            continue
        last = list({write.executor: write for write in writes}.values())
        other = next((write for write in last[1:] if write.op != last[0].op), None)
        if other:
            return last[0], other
    return None
