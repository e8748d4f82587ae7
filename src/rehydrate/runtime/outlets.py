"""Where what an executor sends or yields can go: checked at the handler's line, decided after the handler.

One `Outlet` per executor and place in the tree. Conditions are called here and nowhere else, once per message and edge.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias, TypeVar, assert_never, cast

from rehydrate.codecs import ValueCodec
from rehydrate.errors import PredicateError, SendTypeError
from rehydrate.graph.compatibility import listed_for_certain
from rehydrate.graph.definition import Definition
from rehydrate.graph.edges import (
    DirectGroup,
    Edge,
    EdgeGroup,
    FanInGroup,
    FanOutGroup,
    MapGroup,
    MultiSelectionGroup,
    SwitchGroup,
)
from rehydrate.graph.sub_requests import SubWorkflowRequestMessage
from rehydrate.ids import scope_of, slot
from rehydrate.model.effects import Route, Routes
from rehydrate.model.sealed import Sealed

from .causes import told

Given = TypeVar("Given")
#: Edges that take a message as it is (`None`: a condition has a say), and map edges, which take it apart.
Ways: TypeAlias = tuple[Routes, tuple[Route, ...]]
_NO_WAY: Final[Ways] = ((), ())


class Outlet:
    """The edges that leave one executor of one definition."""

    def __init__(self, graph: Definition, executor_id: str, codec: ValueCodec) -> None:
        self.graph = graph
        self.executor_id = executor_id
        self.codec = codec
        self.groups: tuple[EdgeGroup, ...] = graph.outgoing.get(executor_id, ())
        self._edges = [edge for group in self.groups for edge in self._group_edges(group)]
        self._known: dict[tuple[type, str | None], Ways] = {}
        #: Edges to joins and ends of maps that take whatever this executor may send.
        self._listed = {edge.index for edge in self._edges if listed_for_certain(graph, edge)}
        self._maps = [edge for edge in self._edges if edge.into is not None]
        self._conditional = any(_has_condition(group) for group in self.groups)
        nesting = graph.nesting.get(executor_id)
        self._intercepts = nesting is not None and nesting.intercepts
        self._routes = {edge.index: Route(edge.index, edge.target) for edge in self._edges}

    def check_send(self, message: object, target_id: str | None, where: str, detour: str = "") -> Ways:
        """Return the edges that take this message as it is (`None` where conditions have a say in it), and those that
        take it apart.

        Raises `SendTypeError` where no edge leads on, or nothing behind the edges takes this message.
        """
        key = (type(message), target_id)
        found = self._known.get(key)
        if found is None:
            found = self._ways(message, target_id)
            if found == _NO_WAY:
                raise self._refusal(message, target_id, where + detour)
            by_type = all(self._decided_by_type(edge, message) for edge in self._edges)
            if by_type and not (self._maps and isinstance(message, list)):
                self._known[key] = found
        return found

    def _ways(self, message: object, target_id: str | None) -> Ways:
        fitting = [edge for edge in self._edges if self._fits(edge, message, target_id)]
        whole = tuple(self._routes[edge.index] for edge in fitting if edge.into is None)
        apart = tuple(self._routes[edge.index] for edge in fitting if edge.into is not None)
        return (None if whole and self._conditional else whole), apart

    def _decided_by_type(self, edge: Edge, message: object) -> bool:
        if edge.fan_in or edge.gathers:
            return edge.index in self._listed
        return _decided_by_type(self.graph, edge.target, message)

    def _refusal(self, message: object, target_id: str | None, where: str) -> SendTypeError:
        if not self.groups:
            return SendTypeError(
                where, "it sends a message but has no outgoing edge", "Add an edge, or use yield_output."
            )
        targets = sorted({edge.target for edge in self._edges})
        if target_id is not None and target_id not in targets:
            leads = f"Its edges lead to {', '.join(map(repr, targets))}."
            return SendTypeError(where, f"no edge leads to {target_id!r}", leads)
        if self._maps and isinstance(message, list):
            workers = ", ".join(repr(edge.target) for edge in self._maps)
            strange = next(
                (type(item).__name__ for item in cast("list[object]", message) if not self._works_for(item)), "list"
            )
            return SendTypeError(
                where,
                f"it sends a list with a {strange} in it, which no worker of its maps takes ({workers})",
                "Send a list of items that a worker has a handler for.",
            )
        return SendTypeError(
            where,
            f"no executor behind its edges takes a {type(message).__name__}",
            "Send a type that a successor has a handler for, or add such a handler.",
        )

    def _works_for(self, item: object) -> bool:
        return any(takes(self.graph, edge.target, item) for edge in self._maps)

    def _group_edges(self, group: EdgeGroup) -> tuple[Edge, ...]:
        match group:
            case DirectGroup():
                return (group.edge,)
            case FanInGroup():
                return (self.graph.fan_in[(self.executor_id, group.edges[0].target)],)
            case MapGroup():
                return (group.edge,)
            case FanOutGroup() | SwitchGroup() | MultiSelectionGroup():
                return group.edges
            case _:
                assert_never(group)

    def _fits(self, edge: Edge, message: object, target_id: str | None) -> bool:
        if target_id is not None and edge.target != target_id:
            return False
        if edge.into is not None:
            return isinstance(message, list) and all(
                takes(self.graph, edge.target, item) for item in cast("list[object]", message)
            )
        if edge.fan_in or edge.gathers:
            if self._intercepts and isinstance(message, SubWorkflowRequestMessage):
                return False  # joins and maps wait for results, and a request is none
            # They hand over a list of such messages.
            return edge.index in self._listed or takes(self.graph, edge.target, [message])
        return takes(self.graph, edge.target, message)

    def route(self, message: object, sealed: Sealed, target_id: str | None) -> tuple[Route, ...]:
        """Return the edges that take this message as it is. Raises `PredicateError` where a condition raises."""
        found: list[Route] = []
        for group in self.groups:
            if isinstance(group, MapGroup):
                continue
            fitting = [edge for edge in self._group_edges(group) if self._fits(edge, message, target_id)]
            if fitting:  # a condition is asked only where its edge could carry the message
                found += [self._routes[edge.index] for edge in self._choose(group, sealed, fitting)]
        return tuple(found)

    def _choose(self, group: EdgeGroup, sealed: Sealed, fitting: list[Edge]) -> list[Edge]:
        """Return those of the fitting edges of a group that conditions choose."""
        match group:
            case DirectGroup():
                if group.condition is None:
                    return fitting
                return fitting if self._ask(group.condition, sealed, group.edge.target, group.name) else []
            case FanOutGroup() | FanInGroup() | MapGroup():
                return fitting
            case SwitchGroup():
                return self._switch(group, sealed, fitting)
            case MultiSelectionGroup():
                return [edge for edge in self._select(group, sealed) if edge in fitting]
            case _:
                assert_never(group)

    def _switch(self, group: SwitchGroup, sealed: Sealed, fitting: list[Edge]) -> list[Edge]:
        for index, case in enumerate(group.cases):
            edge = group.edges[index]
            name = group.names[index] if index < len(group.names) else None
            if edge in fitting and self._ask(case, sealed, edge.target, name):
                return [edge]
        return [edge for edge in group.edges[-1:] if edge in fitting]

    def _select(self, group: MultiSelectionGroup, sealed: Sealed) -> tuple[Edge, ...]:
        ids = [edge.target for edge in group.edges]
        label = group.name or "selection"
        chosen = self._call(lambda message: _choice(group.selection(message, ids)), sealed, label)
        unknown = [item for item in chosen if item not in ids]
        if unknown:
            raise PredicateError(self._edge(label), sealed.type, f"it chose {unknown!r}, which are not among {ids!r}")
        return tuple(edge for edge in group.edges if edge.target in chosen)

    def _ask(self, condition: Callable[[object], bool], sealed: Sealed, target: str, name: str | None) -> bool:
        return self._call(lambda message: _truth(condition(message)), sealed, name or target)

    def _call(self, function: Callable[[object], Given], sealed: Sealed, label: str) -> Given:
        """Call user code with a copy of the message, so that it can change nothing."""
        try:
            return function(self.codec.open(sealed))
        except Exception as error:  # user code
            raise PredicateError(self._edge(label), sealed.type, told(error)) from error

    def _edge(self, label: str) -> str:
        return f"{self.executor_id} -> {label}"


def _truth(given: object) -> bool:
    """Return whether a condition holds; of an async one that is not known, and it is told apart by its coroutine."""
    if inspect.iscoroutine(given):
        given.close()
    if inspect.isawaitable(given):
        raise TypeError("it is async; conditions are plain functions")
    return bool(given)


def _choice(given: Iterable[str]) -> list[str]:
    """Return what a selection chose."""
    if inspect.iscoroutine(given):
        given.close()
        raise TypeError("it is async; selections are plain functions")
    return list(given)


def _has_condition(group: EdgeGroup) -> bool:
    if isinstance(group, DirectGroup):
        return group.condition is not None
    return isinstance(group, SwitchGroup | MultiSelectionGroup)


def _decided_by_type(graph: Definition, executor_id: str, message: object) -> bool:
    """Tell whether an executor takes all messages of this one's class or none."""
    child = graph.children.get(executor_id)
    if child is not None:
        return _decided_by_type(child, child.start, message)
    return graph.executors[executor_id].decides_by_type(message)


def takes(graph: Definition, executor_id: str, message: object) -> bool:
    """Tell whether an executor handles this message; a sub-workflow takes what its start executor takes."""
    return graph.executors[executor_id].can_take(message)


class Outlets:
    """All outlets of a tree of definitions, made when first asked for."""

    def __init__(self, graph: Definition, codec: ValueCodec) -> None:
        self.codec = codec
        self._graph = graph
        self._graphs: dict[str, Definition] = {}
        self._outlets: dict[tuple[int, str], Outlet] = {}

    def graph_at(self, path: str) -> Definition:
        """Return the definition that the scope at `path` runs."""
        if not path:
            return self._graph
        found = self._graphs.get(path)
        if found is None:
            parent, segment = slot(path)
            found = self.graph_at(parent).children[scope_of(segment)[0]]
            if len(self._graphs) > _REMEMBERED:
                self._graphs = {}
            self._graphs[path] = found
        return found

    def at(self, graph: Definition, executor_id: str) -> Outlet:
        """Return the outlet of an executor."""
        key = (id(graph), executor_id)
        outlet = self._outlets.get(key)
        if outlet is None:
            outlet = self._outlets[key] = Outlet(graph, executor_id, self.codec)
        return outlet

    def beyond(self, path: str) -> Outlet | None:
        """Return the outlet at which what a scope yields becomes a message; `None` where it becomes an output."""
        while path:
            parent, segment = slot(path)
            graph = self.graph_at(parent)
            if graph.body is not None:
                return None  # what a called workflow yields is what the call gives
            executor_id = scope_of(segment)[0]
            if executor_id in graph.forwards_messages:
                return self.at(graph, executor_id)
            path = parent
        return None


_REMEMBERED: Final = 4096
