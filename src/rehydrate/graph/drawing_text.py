"""A workflow as text for a terminal: a box for each workflow, below each executor its edges.

Lines fit a screen where ids do; the middle of a long one is left out. Widths are those of a terminal, in cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from rehydrate.graph.description import EdgeDescription, ExecutorDescription, WorkflowDescription
from rehydrate.graph.drawing_parts import Labels, cells, packed, question_of, rules_of, title_of, visible

_LONGEST: Final = 48
#: For lists of types and of sources.
_LONGEST_LIST: Final = 72


def text_of(workflow: WorkflowDescription) -> str:
    """Return a drawing for a terminal."""
    return "\n".join(_box(workflow, title_of(workflow))) + "\n"


def _box(workflow: WorkflowDescription, title: str) -> list[str]:
    blocks = [_block(workflow, each) for each in workflow.executors]
    lines = list(chain(*([*block, ""] for block in blocks)))[:-1]
    shown = visible(title, _LONGEST)
    width = max(cells(line) for line in [*lines, f"{shown}  "])
    top = f"╭─ {shown} {'─' * (width - cells(shown) - 1)}╮"
    return [top, *(f"│ {line}{' ' * (width - cells(line))} │" for line in lines), f"╰{'─' * (width + 2)}╯"]


def _block(workflow: WorkflowDescription, executor: ExecutorDescription) -> Iterator[str]:
    mark = "▶" if executor.id == workflow.start else "○"
    id = visible(executor.id, _LONGEST)
    if executor.workflow:
        yield f"{mark} {id}"
        yield from (f"  {line}" for line in _box(executor.workflow, title_of(executor.workflow)))
    else:
        yield f"{mark} {id} ← {_listed(executor.takes)}"
    for join in workflow.joins:
        if join.target == executor.id:
            yield f"  & {visible(', '.join(join.sources), _LONGEST_LIST)}"
    for edge in workflow.edges:
        if edge.into == executor.id:
            yield f"  & the items of {visible(edge.source, _LONGEST)}"
    for request in executor.asks:
        yield f"  ? {visible(question_of(request), _LONGEST_LIST)}"
    if executor.yields and not executor.workflow:
        yield f"  ⇒ {_listed(executor.yields)}"
    rules = [visible(rule, _LONGEST_LIST) for rule in rules_of(executor, workflow)]
    for line in packed(rules, _LONGEST_LIST):
        yield f"  ~ {line}"
    yield from _calls(executor)
    yield from _edges(workflow, executor.id)


def _calls(executor: ExecutorDescription) -> Iterator[str]:
    # A function has no edges, so these lines are the last.
    for called in executor.calls:
        line = "└" if called == executor.calls[-1] else "├"
        yield f"  {line}⇄ {visible(called, _LONGEST)}  calls"


def _listed(types: Sequence[str]) -> str:
    return visible(" | ".join(types), _LONGEST_LIST)


def _edges(workflow: WorkflowDescription, source: str) -> Iterator[str]:
    edges = [edge for edge in workflow.edges if edge.source == source]
    place = {each.id: number for number, each in enumerate(workflow.executors)}
    labels = Labels(workflow)
    targets = [_target(edge, place) for edge in edges]
    width = max(map(cells, targets), default=0)
    for number, (edge, target) in enumerate(zip(edges, targets, strict=True), 1):
        line = "└" if number == len(edges) else "├"
        label = visible(labels.of(edge), _LONGEST)
        yield f"  {line}→ {target}{' ' * (width - cells(target))}  {label}".rstrip()


def _target(edge: EdgeDescription, place: dict[str, int]) -> str:
    above = place[edge.target] <= place[edge.source]
    return f"{visible(edge.target, _LONGEST)}{' ↑' if above else ''}"
