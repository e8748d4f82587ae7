"""Plans: random functional programs as plain data, drawn from a seed, and what they call.

The same seed gives the same plan in every process. Nothing here knows the library.
"""

from __future__ import annotations

from random import Random
from typing import Literal

import msgspec

from tests.differential.plans import ScriptPlan

OpKind = Literal[
    "work", "threaded", "equal", "flaky", "broken", "raised", "slow", "stormy", "now", "random", "uuid", "ask",
    "guarded", "timed", "sleep", "get", "set", "delete", "log", "sum", "lane", "call", "parallel",
]  # fmt: skip
#: How branches are run side by side. Of `exceptions` a failure is one of the results.
ParallelMode = Literal["gather", "asyncio", "exceptions", "group"]

STEPS: tuple[OpKind, ...] = (
    "work", "work", "work", "equal", "flaky", "broken", "slow", "now", "random", "uuid", "threaded",
)  # fmt: skip
ASKS: tuple[OpKind, ...] = ("ask", "ask", "guarded", "timed")
STATE: tuple[OpKind, ...] = ("get", "set", "delete", "log", "sum", "lane")


class OpPlan(msgspec.Struct):
    """One thing that a program does. `label` is its own in the program; `target` is what it calls."""

    kind: OpKind
    label: str
    target: str = ""
    mode: ParallelMode = "gather"
    blocks: list[list[OpPlan]] = []


class ProgramPlan(msgspec.Struct):
    """A function; `again`: for every so-many-th mark it begins anew at its end."""

    name: str
    ops: list[OpPlan]
    again: int = 0


class HousePlan(msgspec.Struct):
    """A small graph: what comes in goes to all the workflows in it, side by side, and what they return is put out."""

    name: str
    children: list[str]


class ProgramsPlan(msgspec.Struct):
    """A root workflow with all below it, and the script of its run. `seeds` are random graphs that are called."""

    seed: int
    programs: dict[str, ProgramPlan]
    houses: dict[str, HousePlan]
    seeds: dict[str, int]
    script: ScriptPlan
    root: str
    max_concurrency: int | None = None


def draw_programs(seed: int, *, mixed: bool = False) -> ProgramsPlan:
    """Draw the programs of a seed: one to three levels of both kinds.

    `mixed`: some branches ask beside others that sleep, so that it is left to time what is asked when.
    """
    random = Random(f"programs {seed}")
    drawing = Drawing(random, mixed=mixed)
    depth = seed % 3
    below: list[str] = []
    if random.random() < 0.4:
        below.append(drawing.graph("graph", random.randrange(0, 1000, 5)))
    for level in range(depth, 0, -1):
        names = [drawing.program(f"level{level}", below, random.randint(1, 4))]
        if random.random() < 0.4:
            names.append(drawing.program(f"other{level}", [], random.randint(1, 3), quiet=random.random() < 0.5))
        if random.random() < 0.5:
            names.append(drawing.house(f"house{level}", names))
        below = names
    root = drawing.program("root", below, random.randint(3, 7))
    if random.random() < 0.25:
        root = drawing.house("house", [root])
    script = ScriptPlan(
        answers=random.choice(("all", "one")),
        messages=tuple(k for k in (1, 3) if random.random() < 0.3),
        pending="cancel" if random.random() < 0.2 else "keep",
        stormy=drawing.storms,
        stopped=Random(f"stopped {seed}").choice(("continue", "continue", "discard", "finish")),
        fuel=random.choice((10, 20, 40)),
    )
    bound = random.choice((None, None, 1, 2))
    return ProgramsPlan(seed, drawing.programs, drawing.houses, drawing.seeds, script, root, bound)


class Drawing:
    """Programs in the making."""

    def __init__(self, random: Random, *, mixed: bool) -> None:
        self.random = random
        self.mixed = mixed
        self.programs: dict[str, ProgramPlan] = {}
        self.houses: dict[str, HousePlan] = {}
        self.seeds: dict[str, int] = {}
        #: Which of what was drawn asks, and which sleeps.
        self.asks: set[str] = set()
        self.sleeps: set[str] = set()
        self.storms = False
        self._count = 0

    def graph(self, name: str, seed: int) -> str:
        self.seeds[name] = seed
        self.asks.add(name)
        return name

    def house(self, name: str, children: list[str]) -> str:
        self.houses[name] = HousePlan(name, list(children))
        for found in (self.asks, self.sleeps):
            if not found.isdisjoint(children):
                found.add(name)
        return name

    def program(self, name: str, below: list[str], length: int, *, quiet: bool = False) -> str:
        ops = self.block(name, below, length, 0, asks=not quiet, sleeps=True)
        if not quiet and self.random.random() < 0.5 and name not in self.asks:
            ops.insert(self.random.randrange(len(ops) + 1), self.op(name, "ask"))
        again = self.random.choice((0, 0, 0, 2))
        self.programs[name] = ProgramPlan(name, ops, again)
        return name

    def block(
        self, name: str, below: list[str], length: int, depth: int, *, asks: bool, sleeps: bool, raises: bool = False
    ) -> list[OpPlan]:
        """Draw what is done one after the other; `depth` counts the branches around it."""
        ops: list[OpPlan] = []
        for _ in range(length):
            chance = self.random.random()
            if chance < 0.2 and asks:
                ops.append(self.op(name, self.random.choice(ASKS)))
            elif chance < 0.25 and sleeps:
                ops.append(self.op(name, "sleep"))
            elif chance < 0.4:
                kinds = STATE if depth == 0 else ("sum", "lane")
                ops.append(self.op(name, self.random.choice(kinds)))
            elif chance < 0.55 and depth < 2:
                ops.append(self._parallel(name, below, depth, asks=asks, sleeps=sleeps))
            elif chance < 0.7 and (called := self._callable(below, asks=asks, sleeps=sleeps)):
                ops.append(self.op(name, "call", self.random.choice(called)))
            elif chance < 0.74 and depth == 0 and asks:
                self.storms = True
                ops.append(self.op(name, "stormy"))
            elif chance < 0.8 and raises:
                ops.append(self.op(name, "raised"))
            else:
                ops.append(self.op(name, self.random.choice(STEPS)))
        return ops

    def _parallel(self, name: str, below: list[str], depth: int, *, asks: bool, sleeps: bool) -> OpPlan:
        """Draw branches of which some ask or some sleep."""
        if asks and sleeps and not self.mixed:
            asks = self.random.random() < 0.7
            sleeps = not asks
        modes: tuple[ParallelMode, ...] = ("gather", "gather", "asyncio", "exceptions", "group")
        mode = self.random.choice(modes)
        raises = mode == "exceptions"
        blocks = [
            self.block(name, below, self.random.randint(1, 3), depth + 1, asks=asks, sleeps=sleeps, raises=raises)
            for _ in range(self.random.randint(2, 3))
        ]
        op = self.op(name, "parallel")
        op.mode, op.blocks = mode, blocks
        return op

    def _callable(self, below: list[str], *, asks: bool, sleeps: bool) -> list[str]:
        return [each for each in below if (asks or each not in self.asks) and (sleeps or each not in self.sleeps)]

    def op(self, name: str, kind: OpKind, target: str = "") -> OpPlan:
        """Draw one thing to do."""
        self._count += 1
        if kind in {*ASKS, "stormy"} or target in self.asks:  # what fails beside a timer fails before or after it
            self.asks.add(name)
        if kind == "sleep" or target in self.sleeps:
            self.sleeps.add(name)
        return OpPlan(kind, f"{name}.{self._count}", target)


def kinds_of(ops: list[OpPlan]) -> set[str]:
    """Name all that is done, and what of it in branches."""
    found: set[str] = set()
    for op in ops:
        found |= {op.kind, op.mode if op.blocks else op.kind}
        found |= {f"{kind} in a branch" for block in op.blocks for kind in kinds_of(block)}
    return found
