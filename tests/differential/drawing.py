"""Drawing a plan from a seed: blocks of every kind of edge in a row, sub-workflows in them, loops around them.

Must use nothing but the seed, so that every process draws the same.
"""

from __future__ import annotations

from random import Random

from tests.differential.nesting import draw_nesting
from tests.differential.plans import FamilyPlan, GraphPlan, GroupPlan, NodePlan, ScriptPlan

DEEPEST = 4
SENDS = ((1,), (1,), (1, 2), (1, 1, 2), (1,), (0, 1, 1), (0, 1, 2))
STATE = ("count", "peek", "log", "bag", "sum", "fold", "facts", "tail", "own", "flag", "drop")


def draw(seed: int) -> FamilyPlan:
    """Draw the family of a seed; its depth is the seed's remainder, so that any five in a row show every depth."""
    random = Random(seed)
    depth = seed % (DEEPEST + 1)
    graphs: dict[str, GraphPlan] = {}
    for level in range(depth, 0, -1):
        for name in [f"level{level}"] + ([f"other{level}"] if random.random() < 0.3 else []):
            graphs[name] = Drawing(random, name, level, _children(graphs, level + 1)).graph()
    graphs["root"] = Drawing(random, "root", 0, _children(graphs, 1)).graph()
    draw_nesting(seed, graphs)
    make_flaky(seed, graphs)
    make_threaded(seed, graphs)
    return FamilyPlan(
        seed=seed,
        graphs=graphs,
        script=ScriptPlan(
            answers=random.choice(("all", "one")),
            messages=tuple(k for k in (1, 2, 4) if random.random() < 0.3),
            pending="cancel" if random.random() < 0.4 else "keep",
            stormy=random.random() < 0.35,
            stopped=random.choice(("continue", "discard", "finish", "finish")),
            fuel=random.choice((40, 80, 160)),
        ),
        max_concurrency=random.choice((None, None, 1, 2)),
        delay=0.001 * (seed % 2),
    )


def make_flaky(seed: int, graphs: dict[str, GraphPlan]) -> None:
    """Let some nodes fail a few times, by chance of their own, so that the graphs of a seed stay what they are."""
    for graph in graphs.values():
        for node in graph.nodes:
            if node.kind != "workflow":
                node.flaky = Random(f"{seed} {graph.name} {node.id}").choice((0,) * 12 + (1, 2))


def make_threaded(seed: int, graphs: dict[str, GraphPlan]) -> None:
    """Let some functions, and some classes with instance state, be plain functions, by chance of their own."""
    for graph in graphs.values():
        for node in graph.nodes:
            if node.kind in {"function", "keeper"}:
                node.threaded = Random(f"threads {seed} {graph.name} {node.id}").random() < 0.2


def _children(graphs: dict[str, GraphPlan], level: int) -> list[str]:
    return [name for name in (f"level{level}", f"other{level}") if name in graphs]


class Drawing:
    """One workflow in the making. `tail` is the node that the next block begins at."""

    def __init__(self, random: Random, name: str, level: int, children: list[str]) -> None:
        self.random = random
        self.name = name
        self.level = level
        self.children = children
        self.wanted = list(children)
        self.nodes: list[NodePlan] = []
        self.groups: list[GroupPlan] = []
        #: True while nodes are drawn that work for the items of a map, and all of these.
        self.mapped = False
        self.inside: set[str] = set()
        self.tail = self._node(plain=True)

    def graph(self) -> GraphPlan:
        blocks = [self._chain, self._diamond, self._switch, self._maybe, self._ladder, self._map]
        count = self.random.choice((2, 3) if self.level == 0 else (1, 2, 2))
        if self.wanted and self.random.random() < 0.6:
            self._chain(self.random.choice(self.wanted))
        for _ in range(count):
            first = len(self.nodes) - 1
            self.random.choice(blocks)()
            if self.random.random() < 0.35:
                self._loop(first)
        while self.wanted:
            self._chain(self.wanted.pop())
        if self.random.random() < 0.6:
            self._chain()
        if all(node.kind in ("function", "workflow") for node in self.nodes):
            self._end()  # else nothing in it may yield, and a parent with edges behind it could not be built
        limit = self.random.choice((100, 100, 100, 4, 7))
        return GraphPlan(self.name, self.nodes, self.groups, limit)

    def _end(self) -> None:
        node = NodePlan(f"n{len(self.nodes)}")
        node.kind, node.yields = "worker", (0,)
        self.nodes.append(node)
        self._edge(self.tail, node.id)
        self.tail = node.id

    def _node(self, *, plain: bool = False, child: str = "") -> str:
        """Add a node; a plain one takes a list too, so it can be a start or the target of a join."""
        random = self.random
        if not child and self.children and random.random() < (0.4 if self.wanted else 0.2):
            child = random.choice(self.wanted or self.children)
        node = NodePlan(f"n{len(self.nodes)}")
        if child and (not plain or random.random() < 0.3):
            node.kind, node.child = "workflow", child
            self.wanted = [name for name in self.wanted if name != child]
        else:
            kinds = ("worker", "worker", "keeper") if plain else ("worker", "keeper", "function")
            node.kind = random.choice(tuple(kind for kind in kinds if kind != "keeper" or not self.mapped))
            node.sends = random.choice(SENDS if self.nodes else SENDS[:4])
            node.yields = random.choice(((0,), (0,), (0, 1), (1,)))
            node.asks = random.choice((0, 0, 2, 3)) if node.kind != "function" else 0
            node.fails = random.choice((0, 0, 0, 3, 5))
            node.state = tuple(self._state(node.id) for _ in range(random.randrange(4)))
        self.nodes.append(node)
        if self.mapped:
            self.inside.add(node.id)
        return node.id

    def _state(self, node: str) -> tuple[str, str]:
        # Items that write different values to one key are a conflict, so they leave that to others.
        what = self.random.choice([w for w in STATE if not self.mapped or w not in ("own", "drop")])
        other = self.random.choice([known.id for known in self.nodes] or [node])
        key = {"peek": self.random.choice((f"count_{other}", "sum", "fold", "facts", "log")), "count": f"count_{node}"}
        return what, key.get(what, f"own_{node}" if what in ("own", "drop") else what)

    def _group(self, kind: str, one: str, others: list[str], *, modulus: int = 0, fuel: int = 0) -> None:
        self.groups.append(GroupPlan(kind, one, tuple(others), modulus, fuel))

    def _edge(self, source: str, target: str) -> None:
        modulus = self.random.choice((0, 0, 0, 0, 3))
        self._group("edge", source, [target], modulus=modulus)

    def _run_of(self, source: str, length: int) -> str:
        """Hang some nodes in a row on a source."""
        for _ in range(length):
            node = self._node()
            self._edge(source, node)
            source = node
        return source

    def _heads(self, count: int) -> list[str]:
        """Hang several nodes side by side on the tail, by one of the ways to go apart."""
        heads = [self._node() for _ in range(count)]
        way = self.random.choice(("fan_out", "select", "edge"))
        if way == "edge":
            for head in heads:
                self._edge(self.tail, head)
        else:
            self._group(way, self.tail, heads, modulus=3 if way == "select" else 0)
        return heads

    def _chain(self, child: str = "") -> None:
        node = self._node(child=child)
        self._edge(self.tail, node)
        self.tail = node

    def _diamond(self) -> None:
        """Branches of unequal length that a join waits for."""
        ends = [
            self._run_of(head, self.random.choice((0, 0, 1, 2))) for head in self._heads(self.random.choice((2, 3)))
        ]
        self._join(ends)

    def _join(self, ends: list[str]) -> None:
        target = self._node(plain=True)
        self.random.shuffle(ends)
        self._group("fan_in", target, ends)
        self.tail = target

    def _ladder(self) -> None:
        """A join whose list goes into another join, beside a branch and sometimes the node where it all began."""
        begin = self.tail
        heads = self._heads(3)
        self._join(heads[:2])
        ends = [self.tail, self._run_of(heads[2], self.random.choice((0, 1)))]
        if self.random.random() < 0.3:
            ends.append(begin)
        self._join(ends)

    def _switch(self) -> None:
        cases = [self._node() for _ in range(self.random.choice((2, 3)))]
        self._group("switch", self.tail, cases, modulus=3)
        self._meet(cases)

    def _maybe(self) -> None:
        """Two edges with a condition each: both, one or none is taken."""
        ways = [self._node(), self._node()]
        for way in ways:
            self._group("edge", self.tail, [way], modulus=2)
        self._meet(ways)

    def _meet(self, ends: list[str]) -> None:
        target = self._node()
        for end in ends:
            if self.random.random() < 0.85:
                self._edge(end, target)
        if not any(target in group.others for group in self.groups):
            self._group("edge", ends[0], [target])
        self.tail = target

    def _map(self) -> None:
        """A list that is taken apart; its items ask, loop, go through scopes, and are taken apart themselves."""
        planner = NodePlan(f"n{len(self.nodes)}", "planner", sends=self.random.choice(((3,), (0, 2, 5), (1, 4))))
        self.nodes.append(planner)
        if self.mapped:
            self.inside.add(planner.id)
        self._edge(self.tail, planner.id)
        was, self.mapped = self.mapped, True
        worker = self.tail = self._node()
        self.tail = self._run_of(worker, self.random.choice((0, 0, 1, 2)))
        if not was and self.random.random() < 0.25:
            self._map()
        if self.tail != worker and self.random.random() < 0.3:
            self._group("edge", self.tail, [worker], modulus=2, fuel=6)
        self.mapped = was
        end = self._node(plain=True)
        if self.tail != worker or self.random.random() < 0.5:
            self._edge(self.tail, end)
        self._group("map", planner.id, [worker, end])
        self.tail = end

    def _loop(self, first: int) -> None:
        """Lead back to an earlier node, for messages that have fuel left."""
        known = [node for node in self.nodes[max(0, first) : -1] if node.id not in self.inside]
        back = self.random.choice(known or self.nodes[:1]).id
        if back != self.tail and back not in self._targets(self.tail):
            self._group("edge", self.tail, [back], modulus=2, fuel=6)

    def _targets(self, node: str) -> list[str]:
        return GraphPlan("", [], self.groups).leaving(node)
