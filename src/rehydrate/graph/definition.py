"""The definition of a workflow: frozen data that can be run any number of times at once.

It holds no run state and cannot run itself. What the engine needs of it is structure only (`order`, `edges`, `joins`,
`children`, limits); handlers and predicates are for the runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

from rehydrate.graph.edges import Edge, EdgeGroup
from rehydrate.graph.migration import Migration
from rehydrate.graph.nesting import Nesting

if TYPE_CHECKING:
    from rehydrate.graph.executor import Executor


@dataclass(frozen=True)
class Reducer:
    """How a state key takes a contribution; `function` takes (current or None, contribution) and returns the new value.

    `append` and `extend` have no function: a list grows by parts without being read.
    """

    name: str
    function: Callable[[object, object], object] | None = None


#: Reducers under which a state key is a list that grows by parts.
LIST_REDUCERS: Final = frozenset({"append", "extend"})


@dataclass(frozen=True)
class Join:
    """A fan-in target: its sources in their order and, for each, the executors from which it can be reached without
    passing the join (the source itself included)."""

    target: str
    sources: tuple[str, ...]
    upstream: Mapping[str, frozenset[str]]


@dataclass(frozen=True, eq=False)
class Definition:
    """A validated graph.

    `order` is canonical: by distance from the start, then by id; `edges[i].index == i`; `outgoing` lists the groups of
    a source (a fan-in group under each of its sources); `children` are the definitions behind `WorkflowExecutor`s.
    """

    name: str
    version: int
    start: str
    executors: Mapping[str, Executor]
    order: tuple[str, ...]
    edges: tuple[Edge, ...]
    outgoing: Mapping[str, tuple[EdgeGroup, ...]]
    joins: Mapping[str, Join]
    children: Mapping[str, Definition]
    reducers: Mapping[str, Reducer]
    resources: Mapping[str, type]
    max_supersteps: int
    max_concurrency: int | None
    signature: str
    #: Type hints of everything storable in the whole tree: messages, outputs, requests, responses.
    hints: tuple[object, ...] = field(default=())
    #: How each of the `children` is nested.
    nesting: Mapping[str, Nesting] = field(default_factory=dict[str, Nesting])
    #: Functions that bring a stored run up by one, by the version that they start from.
    migrations: Mapping[int, Migration] = field(default_factory=dict[int, Migration])
    #: So many small open requests of a scope share records; fewer have one each.
    requests_apart: int = 32

    @cached_property
    def position(self) -> Mapping[str, int]:
        """Place of each executor in `order`."""
        return {executor_id: index for index, executor_id in enumerate(self.order)}

    @cached_property
    def forwards_messages(self) -> frozenset[str]:
        """Executors with outgoing edges: what a sub-workflow there yields becomes messages, elsewhere outputs; one
        that says `forward_outputs="output"` is not among them."""
        outputs = {name for name, nesting in self.nesting.items() if nesting.forwards == "output"}
        return frozenset(source for source, groups in self.outgoing.items() if groups and source not in outputs)

    @cached_property
    def body(self) -> str | None:
        """The executor that is the function of a functional workflow; `None` for a graph."""
        return self.start if self.executors[self.start].is_body else None

    @cached_property
    def has_functions(self) -> bool:
        """Whether this is a functional workflow, or has one at any depth."""
        return self.body is not None or any(child.has_functions for child in self.children.values())

    @cached_property
    def is_timed(self) -> bool:
        """Whether a sub-workflow at any depth has a time limit."""
        return any(n.timeout is not None for n in self.nesting.values()) or any(
            child.is_timed for child in self.children.values()
        )

    @cached_property
    def fan_in(self) -> Mapping[tuple[str, str], Edge]:
        """The edge of each (source, join)."""
        return {(edge.source, edge.target): edge for edge in self.edges if edge.fan_in}
