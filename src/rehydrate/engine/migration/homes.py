"""Homes: whether all that waits in a run has a place in a graph, told by path.

Looks at ids and kinds only; whether values fit their handlers is for who can open them. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from rehydrate.engine.plan import invocation_name, step_key
from rehydrate.engine.reading import scopes
from rehydrate.engine.run import Run
from rehydrate.graph.definition import LIST_REDUCERS, Definition
from rehydrate.graph.maps import regions_of
from rehydrate.ids import parent_of, scope_of, slot
from rehydrate.model.effects import SetState, UpdateState
from rehydrate.model.records import DoneRecord, ScopeRecord, StepRecord, Trail
from rehydrate.model.sealed import Items

from .pieces import has_scope


def homeless(run: Run, graph: Definition) -> tuple[str, ...]:
    """Return the waiting work (messages, requests, scopes) that has no place in the graph, one line each."""
    found: list[str] = []
    for path in scopes(run):
        where = f"{path}/" if path else ""
        here = definition_at(graph, path)
        if here is None and definition_at(graph, parent_of(path)) is not None:
            executor = scope_of(slot(path)[1])[0]
            found.append(f"{path}: it runs and waits, and there is no sub-workflow {executor!r} now")
        found += _isolation(run, graph, path)
        lines = (
            *_in_step(run, path, here),
            *_held(run, path, here),
            *_finished(run, path, here),
            *_maps(run, path, here),
        )
        found += [f"{where}{line}" for line in lines]
    return tuple(dict.fromkeys(found))


def _isolation(run: Run, graph: Definition, path: str) -> Iterator[str]:
    """Tell of a scope that is shared and must not be, or the other way round: its inputs have other trails."""
    around = definition_at(graph, parent_of(path)) if path else None
    nesting = around.nesting.get(scope_of(slot(path)[1])[0]) if around is not None else None
    if nesting is None:
        return
    parent, segment = slot(path)
    scope: ScopeRecord = run.get(parent, "scope", segment)
    if nesting.shared != (not scope.trail):
        word = "shared" if nesting.shared else "isolated"
        yield f"{path}: it runs and waits, and isolation={word!r} is new"


def definition_at(graph: Definition, path: str) -> Definition | None:
    """Return the definition that the scope at `path` runs, `None` where the graph has none there."""
    for segment in path.split("/") if path else ():
        child = graph.children.get(scope_of(segment)[0])
        if child is None:
            return None
        graph = child
    return graph


def _in_step(run: Run, path: str, here: Definition | None) -> Iterator[str]:
    step: StepRecord | None = run.get(*step_key(path))
    for delivery in step.deliveries if step is not None else ():
        executor = delivery.executor
        name = invocation_name(executor, delivery.activation)
        if here is None or executor not in here.executors:
            what = "a finished invocation" if run.get(path, "done", name) is not None else "a message"
            yield f"{executor}: {what} waits for it and it is not there"
            continue
        begun = run.get(path, "limit", "") is None
        if begun and executor in here.children and not has_scope(run, path, delivery):
            yield f"{executor}: a message waits for it in a superstep that has begun, and it is a sub-workflow now"


def _held(run: Run, path: str, here: Definition | None) -> Iterator[str]:
    """Give the requests, and what joins hold and what came from outside, for executors that are not there."""
    for request in run.table(path, "request").values():
        if here is None or request.executor not in here.executors:
            yield f"{request.executor}: an open request waits for it and it is not there"
    for held in run.table(path, "join").values():
        join = here.joins.get(held.join) if here is not None else None
        if join is None:
            yield f"{held.join}: a message from {held.source!r} waits in its join and it is not there"
        elif held.source not in join.sources:
            yield f"{held.join}: a message from {held.source!r} waits in its join, which has no such source now"
    for waiting in run.table(path, "inbox").values():
        if here is None or waiting.executor not in here.executors:
            yield f"{waiting.executor}: something from outside waits for it and it is not there"


def _finished(run: Run, path: str, here: Definition | None) -> Iterator[str]:
    """Give the state writes of finished invocations that today's reducers cannot take."""
    for kind in ("done", "unrouted"):
        for name, record in run.table(path, kind).items():
            done: DoneRecord = record
            for effect in done.effects:
                if here is None or not isinstance(effect, SetState | UpdateState):
                    continue
                if not _can_merge(here, effect):
                    yield f"{name}: its write to state key {effect.key!r} waits, and the reducer is another one now"


def _maps(run: Run, path: str, here: Definition | None) -> Iterator[str]:
    """Give open maps whose end is not there, and what works inside of a map today and belongs to none of its items."""
    if here is None:
        return
    gone = sorted({record.into for record in run.table(path, "map").values()} - here.executors.keys())
    if gone:
        yield from (f"{into}: items of a map that ends in it are at work and it is not there" for into in gone)
        return
    groups = dict.fromkeys(group for groups in here.outgoing.values() for group in groups)
    for region in regions_of(list(groups)):
        for executor, trail in _standing(run, path):
            ends = [run.get(path, "map", str(number)) for number in trail[1::2]]
            if executor in region.inside and all(end is None or end.into != region.into for end in ends):
                yield f"{executor}: something waits for it, and it works for items of a map into {region.into!r} now"


def _standing(run: Run, path: str) -> Iterator[tuple[str, Trail]]:
    step: StepRecord | None = run.get(*step_key(path))
    for delivery in step.deliveries if step is not None else ():
        yield delivery.executor, delivery.trail
    for kind in ("request", "inbox"):
        for record in run.table(path, kind).values():
            yield record.executor, record.trail
    for record in run.table(path, "join").values():
        yield record.join, record.trail
    for segment, record in run.items(path, "scope"):
        yield scope_of(segment)[0], record.trail


def _can_merge(here: Definition, effect: SetState | UpdateState) -> bool:
    reducer = here.reducers.get(effect.key)
    if reducer is None:
        return isinstance(effect, SetState) and not isinstance(effect.value, Items)
    if effect.value is None:
        return True
    return isinstance(effect.value, Items) == (reducer.name in LIST_REDUCERS)
