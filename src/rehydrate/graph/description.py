"""A workflow as plain data: the whole tree of executors, edges, joins and settings, with types by name.

Made from a definition; `dataclasses.asdict` of it can be written as JSON. It holds no handler, predicate or class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never

from rehydrate.graph.definition import Definition
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
from rehydrate.graph.graph_spec import EdgeKind, edges_of, kind_of, names_in
from rehydrate.graph.hints import Hint, describe
from rehydrate.graph.signature import ExecutorKind, executor_kind
from rehydrate.graph.specs import each_spec
from rehydrate.graph.sub_workflow import WorkflowExecutor
from rehydrate.graph.traffic import sends, takes, yields

TypeName: TypeAlias = Callable[[type], str]

#: What stands for the name of a condition or selection that has none, as a lambda.
UNNAMED: Final = "(unnamed)"


@dataclass(frozen=True)
class RequestDescription:
    """A question that an executor has a response handler for."""

    request: str
    response: str


@dataclass(frozen=True)
class PoliciesDescription:
    """How an executor is run: with an instance for each scope, which of its handlers are run in threads, how often an
    attempt is tried, and how many seconds one may last."""

    instance_per_scope: bool
    in_threads: tuple[str, ...]
    attempts: int = 1
    timeout: float | None = None


@dataclass(frozen=True)
class NestingDescription:
    """How a workflow is nested as a node: the arguments of its `WorkflowExecutor`; `inputs` and `outputs` are pairs of
    state keys, `timeout` is in seconds. Where a function calls it, `forward_outputs` is `caller`."""

    isolation: str
    requests: str
    forward_outputs: str
    inputs: tuple[tuple[str, str], ...]
    outputs: tuple[tuple[str, str], ...]
    timeout: float | None


@dataclass(frozen=True)
class ExecutorDescription:
    """One executor. `takes`, `sends` and `yields` are types, members of unions one by one; `workflow` is what a
    `WorkflowExecutor` runs, described as a whole; `calls` are the ids of the workflows that a function may call."""

    id: str
    kind: ExecutorKind
    takes: tuple[str, ...]
    sends: tuple[str, ...]
    yields: tuple[str, ...]
    asks: tuple[RequestDescription, ...]
    policies: PoliciesDescription
    workflow: WorkflowDescription | None = None
    nesting: NestingDescription | None = None
    calls: tuple[str, ...] = ()


@dataclass(frozen=True)
class EdgeDescription:
    """One edge.

    `group` numbers the groups of this kind that leave the source, `place` the edge in its group, both from 1: of a
    switch its cases in their order, of a join its sources. `condition` names what decides; it is `None` where nothing
    does and for the default of a switch. `forward_when` is of sub-workflows, else `None`; `into` is of maps: what gets
    the list. An edge that `gathers` leads there from what works for the items.
    """

    source: str
    target: str
    kind: EdgeKind
    group: int = 1
    place: int = 1
    condition: str | None = None
    forward_when: ForwardWhen | None = None
    into: str | None = None
    gathers: bool = False


@dataclass(frozen=True)
class JoinDescription:
    """The target of a fan-in, and its sources in the order of the list that it gets."""

    target: str
    sources: tuple[str, ...]


@dataclass(frozen=True)
class StateKeyDescription:
    """A state key that has a reducer; other keys are not declared."""

    key: str
    reducer: str


@dataclass(frozen=True)
class ResourceDescription:
    """A resource that every call must bring."""

    key: str
    type: str


@dataclass(frozen=True)
class LimitsDescription:
    """The limits of a scope; `max_concurrency` counts at the root only, `None` is no bound."""

    max_supersteps: int
    max_concurrency: int | None


@dataclass(frozen=True)
class WorkflowDescription:
    """A workflow. Executors, and edges by their source, stand in canonical order: by distance from the start, then by
    id."""

    name: str
    version: int
    start: str
    executors: tuple[ExecutorDescription, ...]
    edges: tuple[EdgeDescription, ...]
    joins: tuple[JoinDescription, ...]
    state: tuple[StateKeyDescription, ...]
    resources: tuple[ResourceDescription, ...]
    limits: LimitsDescription


def describe_workflow(definition: Definition, type_name: TypeName) -> WorkflowDescription:
    """Return a definition, with all below it, as plain data; `type_name` names the classes."""
    return WorkflowDescription(
        name=definition.name,
        version=definition.version,
        start=definition.start,
        executors=tuple(_executor(definition, name, type_name) for name in definition.order),
        edges=tuple(_edges(definition)),
        joins=tuple(
            JoinDescription(join.target, join.sources)
            for join in sorted(definition.joins.values(), key=lambda join: definition.position[join.target])
        ),
        state=tuple(StateKeyDescription(key, reducer.name) for key, reducer in sorted(definition.reducers.items())),
        resources=tuple(ResourceDescription(key, type_name(cls)) for key, cls in sorted(definition.resources.items())),
        limits=LimitsDescription(definition.max_supersteps, definition.max_concurrency),
    )


def _executor(definition: Definition, name: str, type_name: TypeName) -> ExecutorDescription:
    def named(hints: Iterable[Hint]) -> tuple[str, ...]:
        return tuple(describe(hint, type_name) for hint in hints)

    executor = definition.executors[name]
    onward = name in definition.forwards_messages
    called = name in called_of(definition)
    specs = executor.handler_table.specs
    return ExecutorDescription(
        id=name,
        kind=executor_kind(executor),
        takes=named(takes(executor)),
        sends=() if called else named(sends(executor, onward)),
        yields=() if called else named(yields(executor, onward)),
        asks=tuple(RequestDescription(*named([spec.request, spec.response])) for spec in specs.response_handlers),
        policies=_policies(executor),
        workflow=describe_workflow(executor.definition, type_name) if isinstance(executor, WorkflowExecutor) else None,
        nesting=_nesting(executor, onward=onward, called=called) if isinstance(executor, WorkflowExecutor) else None,
        calls=called_of(definition) if name == definition.body else (),
    )


def called_of(definition: Definition) -> tuple[str, ...]:
    """Return the ids of the workflows that the function of a functional workflow may call."""
    return definition.order[1:] if definition.body is not None else ()


def _policies(executor: Executor) -> PoliciesDescription:
    in_threads = tuple(spec.name for spec in each_spec(executor.handler_table.specs) if not spec.is_async)
    policy = executor.attempt_policy
    if policy is None:
        return PoliciesDescription(executor.has_instance_state, in_threads)
    attempts = policy.retry.attempts if policy.retry is not None else 1
    return PoliciesDescription(executor.has_instance_state, in_threads, attempts, policy.timeout)


def _nesting(executor: WorkflowExecutor, *, onward: bool, called: bool) -> NestingDescription:
    nesting = executor.nesting
    forwards = "caller" if called else nesting.forwards
    return NestingDescription(
        isolation="shared" if nesting.shared else "isolated",
        requests="intercept" if nesting.intercepts else "propagate",
        forward_outputs=forwards or ("message" if onward else "output"),
        inputs=tuple(sorted(nesting.inputs.items())),
        outputs=tuple(sorted(nesting.outputs.items())),
        timeout=nesting.timeout,
    )


def _edges(definition: Definition) -> Iterator[EdgeDescription]:
    for source in definition.order:
        numbers: dict[EdgeKind, int] = {}
        is_workflow = source in definition.children
        for group in definition.outgoing[source]:
            kind = kind_of(group)
            numbers[kind] = numbers.get(kind, 0) + 1
            names = _conditions(group)
            for place, edge in enumerate(edges_of(group), 1):
                if edge.source == source:
                    condition = names[place - 1] if place <= len(names) else None
                    forward_when = edge.forward_when if is_workflow else None
                    ends = source, edge.target
                    at = numbers[kind], place
                    yield EdgeDescription(*ends, kind, *at, condition, forward_when, edge.into, edge.gathers)


def _conditions(group: EdgeGroup) -> list[str | None]:
    """Return what decides for each edge of a group, as far as something does."""
    match group:
        case DirectGroup():
            return [None if group.condition is None else _name(group.condition, group.name)]
        case SwitchGroup():
            return [_name(case, name) for case, name in zip(group.cases, names_in(group), strict=True)]
        case MultiSelectionGroup():
            return [_name(group.selection, group.name)] * len(group.edges)
        case FanOutGroup() | FanInGroup() | MapGroup():
            return []
        case _:
            assert_never(group)


def _name(function: Callable[..., object], given: str | None) -> str:
    """Return the name that was given, else that of the function."""
    if given is not None:
        return given
    name: str = getattr(function, "__name__", type(function).__name__)
    return UNNAMED if name == "<lambda>" else name
