"""What all drawings have in common: texts that fit on one line, titles of boxes, rules of executors, labels of edges.

Knows no format.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Final, assert_never

from rehydrate.graph.description import (
    UNNAMED,
    EdgeDescription,
    ExecutorDescription,
    RequestDescription,
    WorkflowDescription,
)
from rehydrate.model.printable import printable

#: Ids are never longer; names of conditions and of types may be.
_LONGEST: Final = 200
_CELLS: Final = {"W": 2, "F": 2}


def visible(text: str, longest: int = _LONGEST) -> str:
    """Return a text for one line: what is not printable as an escape, without the middle of a very long one."""
    shown = printable(text)
    if len(shown) <= longest:
        return shown
    end = longest // 3
    return f"{shown[: longest - end - 1]}…{shown[-end:]}"


def cells(text: str) -> int:
    """Return how many cells of a terminal a text takes."""
    return sum(_CELLS.get(unicodedata.east_asian_width(char), 1) for char in text if not unicodedata.combining(char))


def packed(texts: Iterable[str], longest: int) -> list[str]:
    """Return lines of texts with commas between them, as many to a line as fit; none is cut."""
    lines: list[str] = []
    for text in texts:
        if lines and len(lines[-1]) + len(text) + 2 <= longest:
            lines[-1] += f", {text}"
        else:
            lines.append(text)
    return lines


def title_of(workflow: WorkflowDescription, id: str | None = None) -> str:
    """Return the title of a workflow's box; `id` is that of the executor which runs it."""
    name = workflow.name if id in {None, workflow.name} else f"{id}: {workflow.name}"
    return name if workflow.version == 1 else f"{name} (version {workflow.version})"


def question_of(request: RequestDescription) -> str:
    """Return what an executor asks as a text."""
    return f"{request.request} → {request.response}"


def rules_of(executor: ExecutorDescription, workflow: WorkflowDescription) -> list[str]:
    """Return how an executor of a workflow is run, where that is not the default."""
    found = [f"{executor.policies.attempts} attempts"] if executor.policies.attempts > 1 else []
    nesting = executor.nesting
    timeout = executor.policies.timeout if nesting is None else nesting.timeout
    if timeout is not None:
        found.append(f"{timeout:g} s at most")
    if nesting is None:
        return found
    found += ["shared"] if nesting.isolation == "shared" else []
    found += ["requests intercepted"] if nesting.requests == "intercept" else []
    # Without an edge all outputs leave; that is the default, and needs no word.
    leaves = nesting.forward_outputs == "output" and any(edge.source == executor.id for edge in workflow.edges)
    found += ["outputs leave"] if leaves else []
    found += [f"{parent} in as {child}" for parent, child in nesting.inputs]
    found += [f"{child} out as {parent}" for child, parent in nesting.outputs]
    return found


class Labels:
    """The labels of one workflow's edges."""

    def __init__(self, workflow: WorkflowDescription) -> None:
        self._several = {(edge.source, edge.kind) for edge in workflow.edges if edge.group > 1}
        self._sources = {join.target: len(join.sources) for join in workflow.joins}

    def of(self, edge: EdgeDescription) -> str:
        """Return the label of an edge; nothing for one that each message takes by itself, at once."""
        # A join always waits for the end of a sub-workflow.
        waits = edge.forward_when == "finished" and edge.kind != "join"
        parts = [self._own(edge), "when finished" if waits else "", "one list" if edge.gathers else ""]
        return ", ".join(filter(None, parts))

    def _own(self, edge: EdgeDescription) -> str:
        name = "" if edge.condition in {None, UNNAMED} else f": {edge.condition}"
        number = f" {edge.group}" if (edge.source, edge.kind) in self._several else ""
        match edge.kind:
            case "edge":
                return f"if {edge.condition}" if edge.condition else ""
            case "fan-out":
                return f"fan-out{number}"
            case "switch":
                case = "default" if edge.condition is None else f"case {edge.place}{name}"
                return f"switch{number}, {case}" if number else case
            case "selection":
                return f"selection{number}{name}"
            case "join":
                return f"join {edge.place} of {self._sources[edge.target]}"
            case "map":
                return f"map{number}: each item, into {edge.into}"
            case _:
                assert_never(edge.kind)
