"""Where everything in the drawing of a workflow stands: its boxes from the innermost outwards, each one laid out for
itself.

Numbers are in the units of the drawing. Texts are cut and measured here, as nothing knows the reader's fonts; nothing
is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from rehydrate.graph.drawing_boxes import Arrow, Box, Node, Style
from rehydrate.graph.drawing_parts import cells, visible
from rehydrate.graph.layers import Item, Layout, Link, Point, Route, layered

#: Sizes of the letters of names and of small print, and the height of a line of each.
TEXT: Final = 13.0
SMALL: Final = 10.5
LINE: Final = 18.0
SMALL_LINE: Final = 14.0
_BOLD: Final = 1.15
#: Between a box and what is in it.
_MARGIN: Final = 16.0
#: Beside the text of a node, on both sides together.
_BESIDE: Final = 26.0
_MARK: Final = 12.0
#: What a line from a node to itself takes beside it.
LOOP: Final = 26.0
_LONGEST: Final = 44
#: Widths of letters in parts of their size: a little more than those of usual fonts.
_NARROW: Final = frozenset("iIjlftr.,:;!|'`()[]{}/ ")
_WIDE: Final = frozenset("mwMW@%→…")


class Line(NamedTuple):
    """An arrow with its way. Both ends of a loop are at one node, at whose right side it stands; it has no points."""

    style: Style
    label: str
    points: tuple[Point, ...]
    at: Point | None
    loop: bool = False


@dataclass(frozen=True)
class Placed:
    """A node or a box, by the corner at its left and top. What is in a box is placed from the box's corner."""

    thing: Node | Box
    label: str
    x: float
    y: float
    width: float
    height: float
    inside: tuple[Placed, ...] = ()
    lines: tuple[Line, ...] = ()

    def moved(self, x: float, y: float) -> Placed:
        """Return the same at another place."""
        return replace(self, x=x, y=y)

    def mark(self, key: str) -> Placed:
        """Return the node with a key right in this box."""
        return next(each for each in self.inside if isinstance(each.thing, Node) and each.thing.key == key)


def text_width(text: str, size: float) -> float:
    """Return about how wide a text is."""
    return size * sum(_letter(char) for char in text)


def _letter(char: str) -> float:
    if char in _NARROW:
        return 0.36
    if char in _WIDE:
        return 0.95
    if cells(char) == 2:
        return 1.05
    return 0.7 if char.isupper() else 0.58


def placed(box: Box) -> Placed:
    """Return a box with all in it in their places, its own corner at 0, 0."""
    things = [placed(each) if isinstance(each, Box) else _node(each) for each in box.inside]
    numbers = _numbers(things)
    loops = _loops(box.arrows, numbers)
    arrows = [arrow for arrow in box.arrows if not _is_loop(arrow, numbers)]
    items = [_item(thing, loops.get(number)) for number, thing in enumerate(things)]
    links = [_link(arrow, things, numbers) for arrow in arrows]
    layout = layered(items, links, numbers.get(box.outlet), SMALL_LINE)
    label = visible(box.label, _LONGEST)
    head = _MARGIN / 2 + LINE + SMALL_LINE * len(box.rules)
    title = max(text_width(label, TEXT * _BOLD), *(text_width(rule, SMALL) for rule in box.rules), 0.0) + 1.5 * _MARGIN
    # The line that comes from above to the mark at the top stands beside the title.
    shift = max(_MARGIN, title - layout.places[0][0])
    inside = tuple(_at(thing, layout, number, shift, head) for number, thing in enumerate(things))
    lines = [
        _line(arrow, route, inside, numbers, shift, head) for arrow, route in zip(arrows, layout.routes, strict=True)
    ]
    lines += [_loop(inside[number], *loop) for number, loop in loops.items()]
    width, height = layout.width + shift + _MARGIN, layout.height + head + _MARGIN
    return Placed(box, label, 0.0, 0.0, width, height, inside, tuple(lines))


def _node(node: Node) -> Placed:
    if node.shape in {"start", "output"}:
        return Placed(node, node.label, 0.0, 0.0, _MARK, _MARK)
    label = visible(node.label, _LONGEST)
    size = SMALL if node.shape == "ask" else TEXT
    width = max(text_width(label, size), *(text_width(rule, SMALL) for rule in node.rules), 0.0)
    height = 1.6 * LINE + SMALL_LINE * len(node.rules) if node.shape != "ask" else 1.4 * LINE
    return Placed(node, label, 0.0, 0.0, width + _BESIDE, height)


def _numbers(things: Sequence[Placed]) -> dict[str, int]:
    """Return the numbers of things by their keys, those of a box by the keys of its two ends."""
    numbers: dict[str, int] = {}
    for number, thing in enumerate(things):
        if isinstance(thing.thing, Box):
            numbers[thing.thing.inlet] = number
            numbers[thing.thing.outlet] = number
        else:
            numbers[thing.thing.key] = number
    return numbers


def _is_loop(arrow: Arrow, numbers: dict[str, int]) -> bool:
    return numbers[arrow.source] == numbers[arrow.target]


def _item(thing: Placed, loop: tuple[Style, str] | None) -> Item:
    beside = 0.0 if loop is None else LOOP + text_width(loop[1], SMALL)
    return Item(thing.width / 2, thing.width / 2 + beside, thing.height)


def _link(arrow: Arrow, things: Sequence[Placed], numbers: dict[str, int]) -> Link:
    source, target = things[numbers[arrow.source]], things[numbers[arrow.target]]
    label = visible(arrow.label, _LONGEST)
    width = text_width(label, SMALL) + 8 if label else 0.0
    ends = numbers[arrow.source], numbers[arrow.target]
    return Link(*ends, _port(source, arrow.source), _port(target, arrow.target), width, arrow.style == "return")


def _port(thing: Placed, key: str) -> float:
    """Return how far beside the middle of a thing its end with this key is."""
    if not isinstance(thing.thing, Box):
        return 0.0
    mark = thing.mark(key)
    return mark.x + mark.width / 2 - thing.width / 2


def _at(thing: Placed, layout: Layout, number: int, shift: float, head: float) -> Placed:
    x, y = layout.places[number]
    return thing.moved(x + shift - thing.width / 2, y + head - thing.height / 2)


def _line(
    arrow: Arrow, route: Route, inside: Sequence[Placed], numbers: dict[str, int], shift: float, head: float
) -> Line:
    points = [(x + shift, y + head) for x, y in route.points]
    if not route.upwards:  # a line that goes up ends at the border of a box, as its marks are at the other sides
        points = [
            *_to_mark(inside[numbers[arrow.source]], arrow.source, points[0][0], lower=True),
            *points,
            *_to_mark(inside[numbers[arrow.target]], arrow.target, points[-1][0], lower=False),
        ]
    at = None if route.label is None else (route.label[0] + shift, route.label[1] + head)
    return Line(arrow.style, visible(arrow.label, _LONGEST), tuple(points), at)


def _to_mark(thing: Placed, key: str, x: float, *, lower: bool) -> list[Point]:
    """Return the point at the mark in a box, to which a line goes on from the border."""
    if not isinstance(thing.thing, Box):
        return []
    mark = thing.mark(key)
    return [(x, thing.y + mark.y + (mark.height if lower else 0.0))]


def _loops(arrows: Sequence[Arrow], numbers: dict[str, int]) -> dict[int, tuple[Style, str]]:
    """Return style and label of the lines from a thing to itself, those of one thing as one line."""
    found: dict[int, list[Arrow]] = {}
    for arrow in arrows:
        if _is_loop(arrow, numbers):
            found.setdefault(numbers[arrow.source], []).append(arrow)
    return {
        number: (some[0].style, visible("; ".join(each.label for each in some if each.label), _LONGEST))
        for number, some in found.items()
    }


def _loop(thing: Placed, style: Style, label: str) -> Line:
    return Line(style, label, (), (thing.x + thing.width, thing.y + thing.height / 2), loop=True)
