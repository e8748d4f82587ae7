"""The builder: collects executors and edges and makes a workflow of them.

Building calls never raise; `build()` reports every problem at once. Nothing here runs a workflow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias, cast

from rehydrate.api.workflow import Workflow
from rehydrate.codecs import TypeRegistry, ValueCodec, type_name
from rehydrate.errors import DefinitionError, WorkflowBuildError
from rehydrate.errors.definition import BuildProblem
from rehydrate.graph.assembly import assemble, stored_hints
from rehydrate.graph.definition import Reducer
from rehydrate.graph.edges import (
    DirectGroup,
    EdgeGroup,
    FanInGroup,
    FanOutGroup,
    ForwardWhen,
    MapGroup,
    MultiSelectionGroup,
    SwitchGroup,
)
from rehydrate.graph.executor import Executor
from rehydrate.graph.graph_spec import GraphSpec, unnumbered
from rehydrate.graph.maps import with_ends
from rehydrate.graph.migration import Migration
from rehydrate.graph.problems import problem_at, problem_of_error
from rehydrate.graph.reducers import reducer_of
from rehydrate.graph.validation import notes, problems
from rehydrate.ports.observer import Observer
from rehydrate.ports.store import CheckpointStorage
from rehydrate.runtime.call import check_storage
from rehydrate.runtime.log import BUILD_LOG, fields
from rehydrate.runtime.observed_opening import checked_observers

#: An executor, or the id of one that is added elsewhere.
Node: TypeAlias = Executor | str
#: A function of one message. `Any`: only the user knows of what type messages on an edge are.
Predicate: TypeAlias = Callable[[Any], bool]
#: A function of a message and the target ids that returns those to take.
Selector: TypeAlias = Callable[[Any, list[str]], Sequence[str]]
#: A reducer of the library, or a function of (current value or `None`, contribution).
ReducerLike: TypeAlias = Reducer | Callable[[Any, Any], object]


@dataclass(frozen=True)
class Case:
    """A branch of a switch: the first case whose predicate holds takes the message."""

    predicate: Predicate
    target: Node
    name: str | None = None


@dataclass(frozen=True)
class Default:
    """The branch of a switch that is taken when no case holds."""

    target: Node


class WorkflowBuilder:
    """Describes a graph step by step; executors are named by object, or by id once added."""

    def __init__(
        self,
        name: str,
        start_executor: Executor,
        version: int = 1,
        checkpoint_storage: CheckpointStorage | None = None,
        reducers: Mapping[str, ReducerLike] | None = None,
        resources: Mapping[str, type] | None = None,
        max_supersteps: int = 100,
        max_concurrency: int | None = None,
        migrate: Mapping[int, Migration] | None = None,
        observers: Sequence[Observer] = (),
    ) -> None:
        self._problems: list[BuildProblem] = []
        self._name = name
        self._version = version
        check_storage(checkpoint_storage)
        self._checkpoint_storage = checkpoint_storage
        self._observers = checked_observers(observers)
        self._resources = cast("dict[str, type]", self._mapping(resources, "resources"))
        self._max_supersteps = max_supersteps
        self._max_concurrency = max_concurrency
        self._migrations = cast("dict[int, Migration]", self._mapping(migrate, "migrate"))
        #: By identity, because an id may come twice and an executor need not be hashable.
        self._executors: dict[int, Executor] = {}
        self._groups: list[EdgeGroup] = []
        self._reducers = self._named_reducers(self._mapping(reducers, "reducers"))
        self._start = self._added(start_executor, "start_executor")

    def add_edge(
        self,
        source: Node,
        target: Node,
        condition: Predicate | None = None,
        *,
        name: str | None = None,
        forward_when: ForwardWhen | None = None,
    ) -> Self:
        """Send on from `source` to `target` what `condition` holds for; `name` names the condition in the signature.

        `forward_when` is for a sub-workflow as the source: what one of its scopes yields goes on whenever that is at
        rest ("rest", also where it is not given), or once it has ended ("finished").
        """
        ends = self._ends([source, target], "add_edge")
        if ends:
            edge = unnumbered(*ends)
            if forward_when is not None:
                edge = replace(edge, forward_when=forward_when)
            self._groups.append(DirectGroup(edge, condition, name))
        return self

    def add_chain(self, executors: Sequence[Node]) -> Self:
        """Add an edge from each executor to the next."""
        ends = self._ends(executors, "add_chain")
        if ends is not None and len(ends) < 2:
            self._refuse("few-executors", "add_chain", "was given fewer than two executors", "name at least two")
        for source, target in zip(ends or (), (ends or ())[1:], strict=False):
            self._groups.append(DirectGroup(unnumbered(source, target)))
        return self

    def add_fan_out_edges(self, source: Node, targets: Sequence[Node]) -> Self:
        """Send each message of `source` to every target that takes it."""
        ends = self._targets(source, targets, "add_fan_out_edges")
        if ends:
            self._groups.append(FanOutGroup(tuple(unnumbered(ends[0], target) for target in ends[1:])))
        return self

    def add_fan_in_edges(self, sources: Sequence[Node], target: Node) -> Self:
        """Join: `target` gets one list, in the order of `sources`, when each of them has sent or can no more."""
        ends = self._targets(target, sources, "add_fan_in_edges")
        if ends:
            self._groups.append(FanInGroup(tuple(unnumbered(source, ends[0], fan_in=True) for source in ends[1:])))
        return self

    def add_switch_case_edge_group(self, source: Node, cases: Sequence[Case | Default]) -> Self:
        """Send each message to the first `Case` that holds, else to the one `Default`."""
        where = "add_switch_case_edge_group"
        several = self._several(cases, where)
        if several is None:
            return self
        cases = [case for case in several if isinstance(case, Case | Default)]
        if len(cases) < len(several):
            what = "was given something that is neither Case nor Default"
            self._refuse("no-case-or-default", where, what, "use only these")
            return self
        chosen = [case for case in cases if isinstance(case, Case)]
        defaults = [case for case in cases if isinstance(case, Default)]
        ends = self._targets(source, [case.target for case in (*chosen, *defaults)], where)
        if ends:
            edges = tuple(unnumbered(ends[0], target) for target in ends[1:])
            conditions = tuple(case.predicate for case in chosen)
            self._groups.append(SwitchGroup(conditions, edges, tuple(case.name for case in chosen)))
        return self

    def add_multi_selection_edge_group(
        self, source: Node, targets: Sequence[Node], selection_func: Selector, name: str | None = None
    ) -> Self:
        """Send each message to the targets whose ids `selection_func` returns."""
        ends = self._targets(source, targets, "add_multi_selection_edge_group")
        if ends:
            edges = tuple(unnumbered(ends[0], target) for target in ends[1:])
            self._groups.append(MultiSelectionGroup(edges, selection_func, name))
        return self

    def add_map_edge(self, source: Node, worker: Node, *, into: Node) -> Self:
        """Take each list that `source` sends apart: `worker` gets every item, side by side, and `into` one list, in the
        order of the items, of all that comes to it on their behalf.

        A worker without an edge of its own leads to `into`.
        """
        ends = self._ends([source, worker, into], "add_map_edge")
        if ends:
            self._groups.append(MapGroup(replace(unnumbered(ends[0], ends[1]), into=ends[2])))
        return self

    def build(self) -> Workflow:
        """Return the workflow and freeze its executors. Raises `WorkflowBuildError` with every problem."""
        spec = self._spec()
        found = problems(spec)
        hints = stored_hints(spec, list(spec.by_id))
        try:
            registry = TypeRegistry(hints)
        except DefinitionError as error:
            raise WorkflowBuildError(str(self._name), (*found, *storage_problems(hints))) from error
        if found:
            raise WorkflowBuildError(str(self._name), tuple(found))
        definition = assemble(spec, type_name)
        for executor in spec.executors:
            executor.freeze()
        for note in notes(spec):
            BUILD_LOG.info("%s", note, extra=fields(workflow=self._name))
        return Workflow(
            definition=definition,
            codec=ValueCodec(registry),
            checkpoint_storage=self._checkpoint_storage,
            observers=self._observers,
        )

    def _spec(self) -> GraphSpec:
        """Return what was described so far, right or wrong."""
        return GraphSpec(
            name=self._name,
            start=self._start or "",
            executors=tuple(self._executors.values()),
            groups=with_ends(self._groups),
            version=self._version,
            reducers=self._reducers,
            resources=self._resources,
            max_supersteps=self._max_supersteps,
            max_concurrency=self._max_concurrency,
            problems=tuple(self._problems),
            migrations=self._migrations,
        )

    def _refuse(self, code: str, where: str, what: str, action: str) -> None:
        self._problems.append(problem_at(code, where, what, action))

    def _mapping(self, given: object, where: str) -> dict[str, object]:
        if isinstance(given, Mapping):
            return dict(cast("Mapping[str, object]", given))
        if given is not None:
            self._refuse("no-mapping", where, f"was given {given!r:.100}, which is no mapping", "pass a dict by names")
        return {}

    def _named_reducers(self, given: Mapping[str, object]) -> dict[str, Reducer]:
        found: dict[str, Reducer] = {}
        for key, value in given.items():
            place = f"the reducer of state key {key!r}"
            if not isinstance(value, Reducer) and not callable(value):
                action = "use one of the library, a named function or Reducer(name, function)"
                self._refuse("reducer", place, f"is {value!r:.100}, which is no function", action)
            elif (reducer := reducer_of(value)) is None:
                self._refuse("reducer-name", place, "has no name", "use a named function or Reducer(name, function)")
            else:
                found[key] = reducer
        return found

    def _added(self, node: object, where: str) -> str | None:
        """Return the id of an executor after taking it up, or of one named by id; `None` for anything else."""
        if isinstance(node, str):
            return node
        if isinstance(node, Executor):
            self._executors[id(node)] = node
            return node.id
        if hasattr(node, "definition"):
            hint = "wrap the workflow in WorkflowExecutor(workflow, id=...)"
        else:
            hint = "put @executor on a function, or pass an object of an Executor class"
        self._refuse("no-executor", where, f"was given {node!r:.100}, which is no executor", hint)
        return None

    def _several(self, given: object, where: str) -> list[object] | None:
        """Return what should be several things as a list; `None` where it is a lone one."""
        if isinstance(given, Iterable) and not isinstance(given, str):
            return list(cast("Iterable[object]", given))
        what = f"was given {'the text ' if isinstance(given, str) else ''}{given!r:.100} for several executors"
        self._refuse("no-list", where, what, "pass a list")
        return None

    def _ends(self, nodes: object, where: str) -> list[str] | None:
        """Return the ids of all nodes; `None` where one is wrong."""
        several = self._several(nodes, where)
        if several is None:
            return None
        ids = [self._added(node, where) for node in several]
        return [name for name in ids if name is not None] if None not in ids else None

    def _targets(self, one: object, several: object, where: str) -> list[str] | None:
        """Return the id of `one` and those of the several on its other side; `None` where there are none."""
        ends = self._ends(several, where)
        first = self._added(one, where)
        if ends == []:
            place = f"{where} of {first!r}"
            self._refuse("few-executors", place, "names no executor on its other side", "name at least one")
        return [first, *ends] if first is not None and ends else None


def storage_problems(hints: Sequence[object]) -> list[BuildProblem]:
    """Return what keeps types from being stored, each once: what is without a problem goes on to be compared."""
    sound: list[object] = []
    found: dict[BuildProblem, None] = {}
    for hint in hints:
        try:
            TypeRegistry([*sound, hint])
        except DefinitionError as error:
            found[problem_of_error(error, "types")] = None
        else:
            sound.append(hint)
    return list(found)
