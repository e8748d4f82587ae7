"""Drawings of a workflow: Mermaid, DOT for Graphviz, SVG, and text for a terminal.

Text is made here and nothing is rendered; nothing beyond Python is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeAlias

from rehydrate.errors import WrongCallError
from rehydrate.graph.description import WorkflowDescription
from rehydrate.graph.drawing_boxes import boxes_of
from rehydrate.graph.drawing_dot import dot_of
from rehydrate.graph.drawing_mermaid import mermaid_of
from rehydrate.graph.drawing_svg import svg_of
from rehydrate.graph.drawing_text import text_of

DrawingFormat: TypeAlias = Literal["text", "mermaid", "dot", "svg"]

_FORMATS: Final[Mapping[str, Callable[[WorkflowDescription], str]]] = {
    "text": text_of,
    "mermaid": lambda workflow: mermaid_of(boxes_of(workflow)),
    "dot": lambda workflow: dot_of(boxes_of(workflow)),
    "svg": lambda workflow: svg_of(boxes_of(workflow)),
}


def draw(workflow: WorkflowDescription, format: DrawingFormat) -> str:
    """Return the drawing of a workflow with all below it, ending in a line break. Raises `WrongCallError`."""
    drawn = _FORMATS.get(format)
    if drawn is None:
        known = ", ".join(map(repr, _FORMATS))
        raise WrongCallError(f"there is no drawing of the format {format!r:.100}.", f"Use one of {known}.")
    return drawn(workflow)
