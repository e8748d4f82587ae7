"""Everything that `build()` must find in a graph, all of it at once.

Each problem names the executor or edge and says what to do. Nothing here changes the graph or raises.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from itertools import combinations
from typing import cast

from rehydrate.errors import IdError
from rehydrate.graph.assembly import canonical_order, group_key
from rehydrate.graph.compatibility import type_problems
from rehydrate.graph.definition import Definition
from rehydrate.graph.edges import (
    DirectGroup,
    EdgeGroup,
    FanInGroup,
    FanOutGroup,
    MapGroup,
    MultiSelectionGroup,
    SwitchGroup,
)
from rehydrate.graph.exactness import ambiguous
from rehydrate.graph.executor import Executor, overridden_hooks
from rehydrate.graph.graph_spec import GraphSpec, edges_of
from rehydrate.graph.handlers import HandlerSpec, ResponseHandlerSpec
from rehydrate.graph.hints import describe
from rehydrate.graph.maps import map_problems
from rehydrate.graph.sub_workflow import WorkflowExecutor
from rehydrate.ids import MAX_DEPTH, check_id, check_key


def problems(spec: GraphSpec) -> list[str]:
    """Return all problems of a graph, each once; none means that it can be assembled."""
    found = [*spec.problems, *_settings(spec), *_ids(spec)]
    for executor in spec.executors:
        found += _executor(executor)
    unknown = list(_unknown_ends(spec))
    found += [*unknown, *_edges(spec)]
    if not unknown and spec.start in spec.by_id:
        found += [*_unreachable(spec), *map_problems(spec), *type_problems(spec)]
    return list(dict.fromkeys(found))


def notes(spec: GraphSpec) -> list[str]:
    """Return what is no mistake but may surprise."""
    return [
        f"the sub-workflow of executor {executor.id!r} has a store of its own, which is not used inside of workflow"
        f" {spec.name!r}: the parent's checkpoint holds the whole tree"
        for executor in spec.executors
        if isinstance(executor, WorkflowExecutor) and getattr(executor.workflow, "checkpoint_storage", None) is not None
    ]


def _settings(spec: GraphSpec) -> Iterator[str]:
    try:
        check_id(spec.name, "workflow name")
    except IdError as error:
        yield str(error)
    if type(spec.version) is not int or spec.version < 1:
        yield f"version is {spec.version!r}; use a whole number from 1 on"
    if type(spec.max_supersteps) is not int or spec.max_supersteps < 1:
        yield f"max_supersteps is {spec.max_supersteps!r}; use a whole number from 1 on"
    if spec.max_concurrency is not None and (type(spec.max_concurrency) is not int or spec.max_concurrency < 1):
        yield f"max_concurrency is {spec.max_concurrency!r}; use a whole number from 1 on, or None for no bound"
    for key in spec.reducers:
        try:
            check_key(key, "state key of a reducer")
        except IdError as error:
            yield str(error)
    for key, kind in cast("Mapping[str, object]", spec.resources).items():
        if not isinstance(kind, type):
            yield f"resource {key!r} is declared as {kind!r}; declare it by its class, as in {{'client': Client}}"


def _ids(spec: GraphSpec) -> Iterator[str]:
    for executor in spec.executors:
        try:
            check_id(executor.id, "executor id")
        except IdError as error:
            yield str(error)
    for name, number in Counter(executor.id for executor in spec.executors).items():
        if number > 1:
            yield f"{number} different executors have the id {name!r}; give each an id of its own"
    if spec.start not in spec.by_id:
        yield f"start executor {spec.start!r} is not in the graph; pass the executor itself as start_executor"


def _executor(executor: Executor) -> Iterator[str]:
    specs = executor.handler_table.specs
    yield from map(str, specs.errors)
    is_workflow = isinstance(executor, WorkflowExecutor)
    if is_workflow and specs.handlers:
        yield f"executor {executor.id!r} runs a workflow and cannot have handlers; put them into an executor beside it"
    if not is_workflow and not specs.handlers and not specs.errors:
        yield f"executor {executor.id!r} has no handler; mark a method with @handler"
    for one, other in combinations(specs.handlers, 2):
        if ambiguous(one.message, other.message):
            yield _ambiguity(executor, one, other)
    for first, second in combinations(specs.response_handlers, 2):
        if _same_pair(first, second):
            yield (
                f"executor {executor.id!r}: response handlers {first.name!r} and {second.name!r} both take the pair"
                f" ({describe(first.request)}, {describe(first.response)}); change a type of one"
            )
    if isinstance(executor, WorkflowExecutor) and (depth := 1 + _depth(executor.definition)) > MAX_DEPTH:
        yield (
            f"executor {executor.id!r} would nest workflows {depth} levels deep; {MAX_DEPTH} are possible: use a loop"
            " inside of one workflow"
        )
    hooks = () if is_workflow else overridden_hooks(executor)
    if len(hooks) == 1:
        yield f"executor {executor.id!r} overrides only {hooks[0]}; override both checkpoint hooks or neither"


def _depth(definition: Definition) -> int:
    return max((1 + _depth(child) for child in definition.children.values()), default=0)


def _ambiguity(executor: Executor, one: HandlerSpec, other: HandlerSpec) -> str:
    return (
        f"executor {executor.id!r}: handlers {one.name!r} ({describe(one.message)}) and {other.name!r}"
        f" ({describe(other.message)}) can be equally exact for one message; change a type of one"
    )


def _same_pair(one: ResponseHandlerSpec, other: ResponseHandlerSpec) -> bool:
    return ambiguous(one.request, other.request) and ambiguous(one.response, other.response)


def _unknown_ends(spec: GraphSpec) -> Iterator[str]:
    for group in spec.groups:
        for edge in edges_of(group):
            for name in filter(None, (edge.source, edge.target, edge.into)):
                if name not in spec.by_id:
                    yield f"edge {edge.source!r} -> {edge.target!r}: there is no executor {name!r}; add it by object"


def _edges(spec: GraphSpec) -> Iterator[str]:
    for group in spec.groups:
        yield from _group(group)
    yield from _duplicates(spec)
    joins = Counter(group.edges[0].target for group in spec.groups if isinstance(group, FanInGroup) and group.edges)
    for target, number in joins.items():
        if number > 1:
            yield f"{number} fan-ins lead to {target!r}; an executor can be the target of one only: join in steps"


def _group(group: EdgeGroup) -> Iterator[str]:
    match group:
        case DirectGroup() | FanOutGroup() | MapGroup():
            return
        case SwitchGroup():
            yield from _switch(group)
        case MultiSelectionGroup():
            yield from _repeated("selection", group.edges[0].source, [edge.target for edge in group.edges])
        case FanInGroup():
            target = group.edges[0].target
            sources = [edge.source for edge in group.edges]
            yield from _repeated("fan-in", target, sources)
            if target in sources:
                yield f"fan-in into {target!r} has {target!r} among its sources; a join cannot wait for itself"


def _switch(group: SwitchGroup) -> Iterator[str]:
    where = f"switch of {group.edges[0].source!r}"
    if not group.cases:
        yield f"{where} has no case; add a Case, or use add_edge"
    defaults = len(group.edges) - len(group.cases)
    if defaults != 1:
        yield f"{where} has {defaults or 'no'} default{'s' if defaults > 1 else ''}; end it with one Default(target)"


def _repeated(kind: str, where: str, names: list[str]) -> Iterator[str]:
    for name, number in Counter(names).items():
        if number > 1:
            yield f"{kind} of {where!r} names {name!r} {number} times; name each executor once"


def _duplicates(spec: GraphSpec) -> Iterator[str]:
    always: Counter[tuple[str, str]] = Counter()
    sometimes: set[tuple[str, str]] = set()
    seen: Counter[Hashable] = Counter()
    for group in spec.groups:
        if isinstance(group, DirectGroup) and group.condition is not None:
            sometimes.add((group.edge.source, group.edge.target))
        elif isinstance(group, DirectGroup | FanOutGroup):
            always.update((edge.source, edge.target) for edge in edges_of(group))
            continue
        key = group_key(group)
        seen[key] += 1
        if seen[key] == 2 and not isinstance(group, FanInGroup):
            kind, source, targets, _ = key
            ends = ", ".join(map(repr, targets))
            yield f"there are two of {kind} {source!r} -> {ends} with the same names; name their conditions differently"
    for pair, number in always.items():
        if number > 1 or pair in sometimes:
            yield (
                f"there is more than one edge {pair[0]!r} -> {pair[1]!r} and one has no condition, so a message would"
                " arrive twice; remove one"
            )


def _unreachable(spec: GraphSpec) -> Iterator[str]:
    for name in sorted(spec.by_id.keys() - set(canonical_order(spec))):
        yield f"executor {name!r} cannot be reached from the start {spec.start!r}; add an edge to it or leave it out"
