"""Trees: random families of graphs and functions in one another, eight scopes deep, drawn from a seed.

A level is narrow, so that a run stays small: it leads to what is below it. One or two levels in a tree, in a flat one
perhaps all, are wide, with blocks of every kind of edge. The same seed gives the same tree in every process; nothing
here knows the library.
"""

from __future__ import annotations

from random import Random
from typing import Final

import msgspec

from tests.differential.drawing import Drawing, make_flaky, make_threaded
from tests.differential.nesting import draw_nesting
from tests.differential.plans import GraphPlan, ScriptPlan
from tests.functional.random_plans import Drawing as Programs
from tests.functional.random_plans import ProgramPlan

DEEPEST: Final = 8
#: Half of the trees of so many levels or fewer are wide on all of them.
ALL_WIDE: Final = 3
#: From here on a level that is wide has one block, of those in which messages meet again, so that enough comes so far.
DEEP: Final = 5


class TreePlan(msgspec.Struct):
    """A root workflow with all below it, each a graph or a function, and the script of its run."""

    seed: int
    graphs: dict[str, GraphPlan]
    programs: dict[str, ProgramPlan]
    script: ScriptPlan
    root: str = "root"
    max_concurrency: int | None = None
    delay: float = 0.0


def draw_tree(seed: int) -> TreePlan:
    """Draw the tree of a seed; its depth is the seed's remainder, so that any nine in a row show every depth."""
    random = Random(f"tree {seed}")
    depth = seed % (DEEPEST + 1)
    # What is asked beside a timer is left to time, so every sixth tree sleeps and asks nothing.
    drawing = _Tree(random, sleeps=random.random() < 1 / 6)
    wide = {random.choice((depth, depth, depth - 1)), random.choice((0, depth // 2) if depth < DEEP else (depth, 2))}
    if depth <= ALL_WIDE and random.random() < 0.5:
        wide = set(range(depth + 1))
    for level in range(depth, -1, -1):
        drawing.level(level, wide=level in wide)
    draw_nesting(seed, drawing.graphs, intercept=0.2)
    make_flaky(seed, drawing.graphs)
    make_threaded(seed, drawing.graphs)
    return TreePlan(
        seed=seed,
        graphs=drawing.graphs,
        programs=drawing.programs.programs,
        script=ScriptPlan(
            answers=random.choice(("all", "one")),
            messages=tuple(k for k in (1, 2) if random.random() < 0.2),
            pending="cancel" if random.random() < 0.3 else "keep",
            stormy=not drawing.sleeps and random.random() < 0.3,
            stopped=random.choice(("continue", "continue", "discard", "finish")),
            fuel=random.choice((15, 20, 30)) + 4 * depth,
        ),
        max_concurrency=random.choice((None, None, 1, 2)),
        delay=0.001 * (seed % 2),
    )


class _Tree:
    """A tree in the making, from its deepest level up."""

    def __init__(self, random: Random, *, sleeps: bool) -> None:
        self.random = random
        self.sleeps = sleeps
        self.graphs: dict[str, GraphPlan] = {}
        self.programs = Programs(random, mixed=False)
        #: The workflows of the level below.
        self.below: list[str] = []

    def level(self, level: int, *, wide: bool) -> None:
        """Draw a level: mostly one workflow, where it is wide perhaps a second one beside it."""
        names = [f"level{level}" if level else "root"]
        if level and wide and self.random.random() < 0.5:
            names.append(f"other{level}")
        for name in names:
            chance = 0.12 if level == 0 else 0.25 if self.below else 0.45
            if self.random.random() < chance:
                self._program(name)
            else:
                self._graph(name, level, wide=wide)
        self.below = names

    def _graph(self, name: str, level: int, *, wide: bool) -> None:
        plan = _Level(self.random, name, level, self.below, wide=wide).graph()
        if self.sleeps:
            for node in plan.nodes:
                node.asks = node.fails = 0
        else:
            self.programs.asks.add(name)
        if not self.programs.sleeps.isdisjoint(self.below):
            self.programs.sleeps.add(name)
        self.graphs[name] = plan

    def _program(self, name: str) -> None:
        """Draw a function that calls what is below it, at least once."""
        programs, random = self.programs, self.random
        ops = programs.block(name, self.below, random.randint(1, 2), 0, asks=not self.sleeps, sleeps=self.sleeps)
        if not self.sleeps and random.random() < 0.5:
            ops.insert(random.randrange(len(ops) + 1), programs.op(name, "ask"))
        for called in self.below:
            ops.insert(random.randrange(len(ops) + 1), programs.op(name, "call", called))
        programs.programs[name] = ProgramPlan(name, ops, again=random.choice((0, 0, 0, 3)))


class _Level(Drawing):
    """One graph of a tree."""

    def __init__(self, random: Random, name: str, level: int, children: list[str], *, wide: bool) -> None:
        self.wide = wide
        super().__init__(random, name, level, children)

    def graph(self) -> GraphPlan:
        if self.wide and self.level < DEEP:
            return super().graph()
        if self.wide:
            self.random.choice((self._diamond, self._ladder, self._map, self._map))()
        while self.wanted:
            self._chain(self.wanted[-1])
        if self.random.random() < 0.3:
            self._chain()
        if self.random.random() < 0.2:
            self._loop(0)
        if all(node.kind in ("function", "workflow") for node in self.nodes):
            self._end()
        if not self.wide:
            self._lead_on()
        return GraphPlan(self.name, self.nodes, self.groups, self.random.choice((100, 100, 100, 100, 7)))

    def _lead_on(self) -> None:
        """Let each message lead to one below."""
        for node in self.nodes:
            node.sends = (1,)
        for group in self.groups:
            if not group.fuel:
                group.modulus = 0
