"""A workflow as an SVG picture that needs nothing to be shown: no style sheet, script, font or file beside it.

Every text in it is escaped, and it has no ids, so that many pictures may stand in one page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import Final, NamedTuple

from rehydrate.graph.drawing_boxes import Box, Node, Shape, Style
from rehydrate.graph.drawing_parts import visible
from rehydrate.graph.drawing_places import LINE, LOOP, SMALL, SMALL_LINE, TEXT, Line, Placed, placed, text_width
from rehydrate.graph.layers import Point


class _Look(NamedTuple):
    fill: str
    stroke: str
    more: str = ""


_INK: Final = "#1f2430"
_LINES: Final = "#4a5160"
_BOX_FILLS: Final = ("#ffffff", "#f3f5f9")
_BOX: Final = "#9aa3b2"
_LOOKS: Final[Mapping[Shape, _Look]] = {
    "start": _Look(_LINES, _LINES),
    "output": _Look("#ffffff", _LINES),
    "class": _Look("#e4edfb", "#3c6db0"),
    "function": _Look("#e6f4ec", "#37835a"),
    "join": _Look("#fdf1d3", "#a5790f"),
    "ask": _Look("#fbe7ed", "#b0446a", ' stroke-dasharray="3 2"'),
}
_DASHES: Final[Mapping[Style, str]] = {
    "plain": "",
    "conditional": ' stroke-dasharray="5 3"',
    "list": ' stroke-width="2.2"',
    "ask": ' stroke-dasharray="1.5 2.5"',
    "return": ' stroke-dasharray="1.5 2.5"',
}
_HEAD: Final = 7.0


def svg_of(box: Box) -> str:
    """Return the picture of a workflow with all below it."""
    whole = placed(box).moved(1, 1)
    width, height = _number(whole.width + 2), _number(whole.height + 2)
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        f' role="img" font-family="Helvetica, Arial, sans-serif" font-size="{_number(TEXT)}">'
    )
    title = f"<title>{_text(f'The workflow {box.label}')}</title>"
    return "\n".join([opening, title, *_box(whole, 0), "</svg>"]) + "\n"


def _box(box: Placed, level: int) -> Iterator[str]:
    thing = box.thing
    yield f'<g transform="translate({_number(box.x)} {_number(box.y)})">'
    yield (
        f'<rect width="{_number(box.width)}" height="{_number(box.height)}" rx="8" fill="{_BOX_FILLS[level % 2]}"'
        f' stroke="{_BOX}"/>'
    )
    yield from _words(box.label, thing.label, thing.rules if isinstance(thing, Box) else (), (10.0, LINE), "start")
    for each in box.inside:
        if isinstance(each.thing, Box):
            yield from _box(each, level + 1)
    for line in box.lines:
        yield from _line(line)
    for each in box.inside:
        if isinstance(each.thing, Node):
            yield from _node(each, each.thing)
    for line in box.lines:
        yield from _label(line, _BOX_FILLS[level % 2])
    yield "</g>"


def _node(node: Placed, thing: Node) -> Iterator[str]:
    look = _LOOKS[thing.shape]
    x, y, width, height = node.x, node.y, node.width, node.height
    middle = x + width / 2, y + height / 2
    paint = f'fill="{look.fill}" stroke="{look.stroke}"{look.more}'
    match thing.shape:
        case "start":
            yield f'<circle {_at(middle, "c")} r="5" {paint}>{_tooltip(thing.label)}</circle>'
            return
        case "output":
            yield f'<circle {_at(middle, "c")} r="5.5" {paint}>{_tooltip(thing.label)}</circle>'
            yield f'<circle {_at(middle, "c")} r="2.8" fill="{_LINES}"/>'
            return
        case "join":
            left, right, end = x + 9, x + width - 9, y + height
            corners = [(left, y), (right, y), (x + width, middle[1]), (right, end), (left, end), (x, middle[1])]
            yield f'<path d="M{" L".join(map(_pair, corners))} Z" {paint}/>'
        case "class" | "function" | "ask":
            radius = {"class": 3.0, "function": height / 2 if not thing.rules else 14.0, "ask": 0.0}[thing.shape]
            size = f'width="{_number(width)}" height="{_number(height)}"'
            yield f'<rect {_at((x, y))} {size} rx="{_number(radius)}" {paint}/>'
    small = thing.shape == "ask"
    baseline = middle[1] + (SMALL if small else TEXT) * 0.36 - SMALL_LINE * len(thing.rules) / 2
    yield from _words(node.label, thing.label, thing.rules, (middle[0], baseline), "middle", small=small)


def _words(
    label: str, whole: str, rules: Sequence[str], at: Point, anchor: str, *, small: bool = False
) -> Iterator[str]:
    """Write a name, and how it is run in small print below it."""
    size = f' font-size="{_number(SMALL)}"' if small else ""
    bold = ' font-weight="600"' if anchor == "start" else ""
    tooltip = _tooltip(whole) if whole != label else ""
    yield f'<text {_at(at)} text-anchor="{anchor}" fill="{_INK}"{size}{bold}>{_text(label)}{tooltip}</text>'
    for number, rule in enumerate(rules, 1):
        place = at[0], at[1] + SMALL_LINE * number
        paint = f'fill="{_LINES}" font-size="{_number(SMALL)}"'
        yield f'<text {_at(place)} text-anchor="{anchor}" {paint}>{_text(rule)}</text>'


def _line(line: Line) -> Iterator[str]:
    if line.loop and line.at is not None:
        x, y = line.at
        reach = x + LOOP
        way = f"M{_pair((x, y - 6))} C{_pair((reach, y - 16))} {_pair((reach, y + 16))} {_pair((x, y + 6))}"
        before, end = (x + 9.0, y + 10.0), (x, y + 6)
    else:
        way = _way(line.points)
        before, end = line.points[-2], line.points[-1]
        if before[0] != end[0]:  # it comes in a curve that ends upright
            before = end[0], before[1]
    yield f'<path d="{way}" fill="none" stroke="{_LINES}"{_DASHES[line.style]}/>'
    if line.style != "ask":
        yield _head(before, end)


def _way(points: Sequence[Point]) -> str:
    """Return straight stretches, and curves that begin and end upright where a line goes aside."""
    parts = [f"M{_pair(points[0])}"]
    for (x, y), (to_x, to_y) in pairwise(points):
        if abs(to_x - x) < 0.05:
            parts.append(f"L{_pair((to_x, to_y))}")
            continue
        middle = (y + to_y) / 2
        parts.append(f"C{_pair((x, middle))} {_pair((to_x, middle))} {_pair((to_x, to_y))}")
    return " ".join(parts)


def _head(before: Point, end: Point) -> str:
    dx, dy = end[0] - before[0], end[1] - before[1]
    length = (dx * dx + dy * dy) ** 0.5 or 1.0
    dx, dy = dx / length, dy / length
    base = end[0] - dx * _HEAD, end[1] - dy * _HEAD
    half = _HEAD * 0.45
    left, right = (base[0] - dy * half, base[1] + dx * half), (base[0] + dy * half, base[1] - dx * half)
    return f'<path d="M{_pair(end)} L{_pair(left)} L{_pair(right)} Z" fill="{_LINES}"/>'


def _label(line: Line, ground: str) -> Iterator[str]:
    if not line.label or line.at is None:
        return
    x, y = line.at
    paint = f'fill="{_LINES}" font-size="{_number(SMALL)}"'
    if line.loop:
        yield f"<text {_at((x + LOOP - 2, y + 4))} {paint}>{_text(line.label)}</text>"
        return
    width = text_width(line.label, SMALL) + 4
    corner = x - width / 2, y - SMALL_LINE / 2
    size = f'width="{_number(width)}" height="{_number(SMALL_LINE)}"'
    yield f'<rect {_at(corner)} {size} fill="{ground}"/>'
    yield f'<text {_at((x, y + 4))} text-anchor="middle" {paint}>{_text(line.label)}</text>'


def _at(point: Point, prefix: str = "") -> str:
    return f'{prefix}x="{_number(point[0])}" {prefix}y="{_number(point[1])}"'


def _pair(point: Point) -> str:
    return f"{_number(point[0])} {_number(point[1])}"


def _number(value: float) -> str:
    return f"{round(value, 1):g}"


def _tooltip(text: str) -> str:
    return f"<title>{_text(text)}</title>"


def _text(text: str) -> str:
    return escape(visible(text))
