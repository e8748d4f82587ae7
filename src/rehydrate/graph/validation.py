"""Everything that `build()` must find in a graph, all of it at once.

Each problem names the executor or edge and says what to do. Nothing here changes the graph or raises.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from itertools import combinations
from typing import Final, cast, get_args

from rehydrate.errors import IdError
from rehydrate.errors.definition import BuildProblem
from rehydrate.graph.assembly import canonical_order, group_key
from rehydrate.graph.compatibility import type_problems
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
from rehydrate.graph.exactness import ambiguous
from rehydrate.graph.executor import Executor, overridden_hooks
from rehydrate.graph.graph_spec import GraphSpec, deciding_in, edges_of, names_in
from rehydrate.graph.handlers import HandlerSpec, ResponseHandlerSpec
from rehydrate.graph.hints import describe
from rehydrate.graph.maps import map_problems
from rehydrate.graph.migration_problems import migration_problems
from rehydrate.graph.nesting_rules import nesting_problems
from rehydrate.graph.problems import edge_place, group_place, problem, problem_at, problem_of_error
from rehydrate.graph.sub_workflow import WorkflowExecutor
from rehydrate.ids import MAX_DEPTH, check_id, check_key

_LOOP: Final = "use a loop inside of one workflow"
_IN_STEPS: Final = "join in steps"


def problems(spec: GraphSpec) -> list[BuildProblem]:
    """Return all problems of a graph, each once; none means that it can be assembled."""
    found = [*spec.problems, *_settings(spec), *_ids(spec)]
    for executor in spec.executors:
        found += _executor(executor)
    unknown = list(_unknown_ends(spec))
    found += [*unknown, *_edges(spec)]
    is_connected = not unknown and spec.start in spec.by_id  # else what cannot be reached is no news
    if is_connected:
        found += [*_unreachable(spec), *map_problems(spec), *nesting_problems(spec)]
    found += type_problems(spec)
    return list(dict.fromkeys(found))


def notes(spec: GraphSpec) -> list[str]:
    """Return what is no mistake but may surprise."""
    inner = [(executor, executor.workflow) for executor in spec.executors if isinstance(executor, WorkflowExecutor)]
    stores = [
        f"the sub-workflow of executor {executor.id!r} has a store of its own, which is not used inside of workflow"
        f" {spec.name!r}: the parent's checkpoint holds the whole tree"
        for executor, workflow in inner
        if getattr(workflow, "checkpoint_storage", None) is not None
    ]
    observers = [
        f"the sub-workflow of executor {executor.id!r} has observers of its own, which are told nothing inside of"
        f" workflow {spec.name!r}: the parent's are told of the whole tree"
        for executor, workflow in inner
        if getattr(workflow, "observers", ())
    ]
    return stores + observers


def _settings(spec: GraphSpec) -> Iterator[BuildProblem]:
    yield from _name(spec.name, "workflow name")
    if type(spec.version) is not int or spec.version < 1:
        yield problem("version", "version", f"version is {spec.version!r}", "use a whole number from 1 on")
    if type(spec.max_supersteps) is not int or spec.max_supersteps < 1:
        sentence = f"max_supersteps is {spec.max_supersteps!r}"
        yield problem("max-supersteps", "max_supersteps", sentence, "use a whole number from 1 on")
    if spec.max_concurrency is not None and (type(spec.max_concurrency) is not int or spec.max_concurrency < 1):
        sentence = f"max_concurrency is {spec.max_concurrency!r}"
        action = "use a whole number from 1 on, or None for no bound"
        yield problem("max-concurrency", "max_concurrency", sentence, action)
    yield from migration_problems(spec.version, cast("Mapping[object, object]", spec.migrations))
    for key, reducer in spec.reducers.items():
        yield from _name(key, "state key of a reducer", check_key)
        yield from _name(reducer.name, f"state key {key!r}: reducer name", check_key)
    for key, kind in cast("Mapping[str, object]", spec.resources).items():
        if not isinstance(kind, type):
            place = f"resource {key!r}"
            action = "declare it by its class, as in {'client': Client}"
            yield problem_at("resource", place, f"is declared as {kind!r}", action)


def _name(value: object, what: str, check: Callable[[object, str], str] = check_id) -> Iterator[BuildProblem]:
    try:
        check(value, what)
    except IdError as error:
        yield problem_of_error(error, what)


def _ids(spec: GraphSpec) -> Iterator[BuildProblem]:
    for executor in spec.executors:
        yield from _name(executor.id, "executor id")
    for name, number in Counter(executor.id for executor in spec.executors).items():
        if number > 1:
            place = f"executor {name!r}"
            sentence = f"{number} different executors have the id {name!r}"
            yield problem("duplicate-id", place, sentence, "give each an id of its own")
    refused = any(each.place == "start_executor" for each in spec.problems)
    if spec.start not in spec.by_id and not refused:
        place = f"start executor {spec.start!r}"
        yield problem_at("start", place, "is not in the graph", "pass the executor itself as start_executor")


def _executor(executor: Executor) -> Iterator[BuildProblem]:
    place = f"executor {executor.id!r}"
    specs = executor.handler_table.specs
    for error in specs.errors:
        yield problem_of_error(error, place)
    is_workflow = isinstance(executor, WorkflowExecutor)
    if is_workflow and specs.handlers:
        action = "put them into an executor beside it"
        yield problem_at("workflow-handlers", place, "runs a workflow and cannot have handlers", action)
    if not is_workflow and not specs.handlers and not specs.errors:
        yield problem_at("no-handler", place, "has no handler", "mark a method with @handler")
    for one, other in combinations(specs.handlers, 2):
        if ambiguous(one.message, other.message):
            yield _ambiguity(place, one, other)
    for first, second in combinations(specs.response_handlers, 2):
        if _same_pair(first, second):
            yield problem(
                "same-response-handlers",
                place,
                f"{place}: response handlers {first.name!r} and {second.name!r} both take the pair"
                f" ({describe(first.request)}, {describe(first.response)})",
                "change a type of one",
            )
    if isinstance(executor, WorkflowExecutor) and (depth := 1 + _depth(executor.definition)) > MAX_DEPTH:
        what = f"would nest workflows {depth} levels deep; {MAX_DEPTH} are possible"
        yield BuildProblem(f"{place} {what}: {_LOOP}", "nesting", place, _LOOP)
    hooks = () if is_workflow else overridden_hooks(executor)
    if len(hooks) == 1:
        yield problem_at("one-hook", place, f"overrides only {hooks[0]}", "override both checkpoint hooks or neither")


def _depth(definition: Definition) -> int:
    return max((1 + _depth(child) for child in definition.children.values()), default=0)


def _ambiguity(place: str, one: HandlerSpec, other: HandlerSpec) -> BuildProblem:
    return problem(
        "ambiguous-handlers",
        place,
        f"{place}: handlers {one.name!r} ({describe(one.message)}) and {other.name!r} ({describe(other.message)})"
        " can be equally exact for one message",
        "change a type of one",
    )


def _same_pair(one: ResponseHandlerSpec, other: ResponseHandlerSpec) -> bool:
    return ambiguous(one.request, other.request) and ambiguous(one.response, other.response)


def _unknown_ends(spec: GraphSpec) -> Iterator[BuildProblem]:
    for group in spec.groups:
        for edge in edges_of(group):
            for name in filter(None, (edge.source, edge.target, edge.into)):
                if name not in spec.by_id:
                    place = edge_place(edge)
                    yield problem("unknown-end", place, f"{place}: there is no executor {name!r}", "add it by object")


def _forwarding(spec: GraphSpec) -> Iterator[BuildProblem]:
    """Say where outputs of a sub-workflow are to wait for its end, and there is no sub-workflow."""
    for edge in (edge for edges in spec.leaving.values() for edge in edges if edge.forward_when != "rest"):
        if edge.forward_when not in get_args(ForwardWhen):
            what = f"has forward_when={edge.forward_when!r:.100}"
            yield problem_at("forward-when", edge_place(edge), what, "use 'rest' or 'finished'")
        elif not isinstance(spec.by_id.get(edge.source), WorkflowExecutor):
            what = f"has forward_when, and {edge.source!r} is no sub-workflow"
            yield problem_at("forward-when", edge_place(edge), what, "leave it out")


def _edges(spec: GraphSpec) -> Iterator[BuildProblem]:
    yield from _forwarding(spec)
    for group in spec.groups:
        yield from _group(group)
        yield from _deciding(group)
    yield from _duplicates(spec)
    joins = Counter(group.edges[0].target for group in spec.groups if isinstance(group, FanInGroup) and group.edges)
    for target, number in joins.items():
        if number > 1:
            sentence = f"{number} fan-ins lead to {target!r}; an executor can be the target of one only"
            yield BuildProblem(f"{sentence}: {_IN_STEPS}", "two-joins", f"executor {target!r}", _IN_STEPS)


def _group(group: EdgeGroup) -> Iterator[BuildProblem]:
    match group:
        case DirectGroup() | FanOutGroup() | MapGroup():
            return
        case SwitchGroup():
            yield from _switch(group)
        case MultiSelectionGroup():
            yield from _repeated(group, [edge.target for edge in group.edges])
        case FanInGroup():
            target = group.edges[0].target
            sources = [edge.source for edge in group.edges]
            yield from _repeated(group, sources)
            if target in sources:
                sentence = f"fan-in into {target!r} has {target!r} among its sources"
                yield problem(
                    "join-of-itself", group_place(group), sentence, "leave it out, a join cannot wait for itself"
                )


def _switch(group: SwitchGroup) -> Iterator[BuildProblem]:
    place = group_place(group)
    if not group.cases:
        yield problem_at("no-case", place, "has no case", "add a Case, or use add_edge")
    defaults = len(group.edges) - len(group.cases)
    if defaults != 1:
        what = f"has {defaults or 'no'} default{'s' if defaults > 1 else ''}"
        yield problem_at("one-default", place, what, "end it with one Default(target)")


def _repeated(group: EdgeGroup, names: list[str]) -> Iterator[BuildProblem]:
    for name, number in Counter(names).items():
        if number > 1:
            what = f"names {name!r} {number} times"
            yield problem_at("named-twice", group_place(group), what, "name each executor once")


def _deciding(group: EdgeGroup) -> Iterator[BuildProblem]:
    """Find what is wrong with the functions that decide, and with their names."""
    place = group_place(group)
    for function in deciding_in(group):
        if not callable(function):
            what = f"is decided by {function!r:.100}, which is no function"
            yield problem_at("condition", place, what, "pass a function of the message")
        elif inspect.iscoroutinefunction(function):
            what = f"is decided by {getattr(function, '__name__', 'a function')!r}, which is async"
            action = "pass a plain `def`; what has to wait belongs into an executor before the edge"
            yield problem_at("async-condition", place, what, action)
    for name in names_in(group):
        if name is not None:
            yield from _name(name, f"{place}: condition name", check_key)
    if isinstance(group, DirectGroup) and group.name is not None and group.condition is None:
        what = f"has the name {group.name!r:.100} of a condition, and no condition"
        yield problem_at("name-alone", place, what, "pass condition=, or leave name= out")


def _duplicates(spec: GraphSpec) -> Iterator[BuildProblem]:
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
            sentence = f"there are two of {kind} {source!r} -> {ends} with the same names"
            yield problem("same-names", group_place(group), sentence, "name their conditions differently")
    for pair, number in always.items():
        if number > 1 or pair in sometimes:
            place = f"edge {pair[0]!r} -> {pair[1]!r}"
            sentence = f"there is more than one {place} and one has no condition, so a message would arrive twice"
            yield problem("second-edge", place, sentence, "remove one")


def _unreachable(spec: GraphSpec) -> Iterator[BuildProblem]:
    for name in sorted(spec.by_id.keys() - set(canonical_order(spec))):
        place = f"executor {name!r}"
        what = f"cannot be reached from the start {spec.start!r}"
        yield problem_at("unreachable", place, what, "add an edge to it or leave it out")
