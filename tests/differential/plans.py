"""Plans: random workflow families as plain data, drawn from a seed.

A plan can be stored, shrunk and built again in another process; nothing here knows the library.
"""

from __future__ import annotations

from typing import Literal

import msgspec

#: Stands in front of the ids of an edition in which every executor has another one.
RENAMED = "renamed_"

NodeKind = Literal["worker", "keeper", "function", "workflow", "planner"]
GroupKind = Literal["edge", "fan_out", "switch", "select", "fan_in", "map"]


class NestingPlan(msgspec.Struct):
    """How a sub-workflow is nested, where not in the plain way."""

    intercept: bool = False
    shared: bool = False
    mapped: bool = False
    timed: bool = False


class NodePlan(msgspec.Struct):
    """One executor. `sends` and `yields` are the numbers it draws from; `asks` and `fails` of 0 are never.

    `flaky`: so many attempts at some messages fail before one succeeds. `threaded`: its handlers are plain functions. A
    planner sends one list, and `sends` are its lengths.
    """

    id: str
    kind: NodeKind = "worker"
    child: str = ""
    sends: tuple[int, ...] = (1,)
    yields: tuple[int, ...] = (0,)
    asks: int = 0
    fails: int = 0
    flaky: int = 0
    threaded: bool = False
    state: tuple[tuple[str, str], ...] = ()
    nesting: NestingPlan = msgspec.field(default_factory=NestingPlan)


class GroupPlan(msgspec.Struct):
    """Edges that belong together: one end on the side of `one`, the `others` on the other. `modulus` of 0: always.

    The others of a map are its worker and its end.
    """

    kind: GroupKind
    one: str
    others: tuple[str, ...]
    modulus: int = 0
    fuel: int = 0


class GraphPlan(msgspec.Struct):
    """One workflow; the first node is its start."""

    name: str
    nodes: list[NodePlan]
    groups: list[GroupPlan]
    max_supersteps: int = 100

    def leaving(self, node: str) -> list[str]:
        """The targets of a node's edges."""
        found: list[str] = []
        for group in self.groups:
            if group.kind == "fan_in":
                found += [group.one] if node in group.others else []
            elif group.one == node:
                found += group.others[:1] if group.kind == "map" else group.others
        return found or self.implied(node)

    def implied(self, node: str) -> list[str]:
        """The end of the map whose worker a node is, where no edge of its own leaves it."""
        explicit = any(node in group.others if group.kind == "fan_in" else group.one == node for group in self.groups)
        ends = [group.others[1] for group in self.groups if group.kind == "map" and group.others[0] == node]
        return [] if explicit else ends[:1]

    def width(self, node: str) -> int:
        """How many messages can come of one that a node sends; of a switch only one can."""
        found = 0
        for group in self.groups:
            if group.kind == "fan_in":
                found += node in group.others
            elif group.one == node:
                found += 1 if group.kind in ("switch", "map") else len(group.others)
        return found or len(self.leaving(node))


class ScriptPlan(msgspec.Struct):
    """How the run is called: which questions each call answers, and what else it brings."""

    answers: Literal["all", "one"] = "all"
    messages: tuple[int, ...] = ()
    pending: Literal["keep", "cancel"] = "keep"
    stormy: bool = False
    stopped: Literal["continue", "discard", "finish"] = "continue"
    fuel: int = 60


class FamilyPlan(msgspec.Struct):
    """A root workflow with all below it, and the script of its run."""

    seed: int
    graphs: dict[str, GraphPlan]
    script: ScriptPlan
    root: str = "root"
    max_concurrency: int | None = None
    #: Seconds between attempts, by a clock that stands still: a run found in between then waits anew.
    delay: float = 0.0
