"""A layered layout: where the things of one box stand, and which way the lines between them take.

Sizes and places are numbers without a unit; y grows downwards. What is given in one order always stands in the same
places. It must not know what the things are, nor any format.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

from rehydrate.graph.layer_order import Vertex, ordered, spread

Point: TypeAlias = tuple[float, float]

#: Between two neighbours of a layer, and between two layers.
_GAP: Final = 22.0
_LAYER_GAP: Final = 14.0
#: How much wider a gap is for each unit that a line in it goes aside, and how much at most.
_STEEP: Final = 0.05
_MOST: Final = 40.0
#: What a line takes in the layers that it only passes.
_LINE: Final = 5.0


@dataclass(frozen=True)
class Item:
    """A thing to place: how far it reaches to the left and to the right of its place, and its height."""

    left: float
    right: float
    height: float


@dataclass(frozen=True)
class Link:
    """A line from one item to another, by their numbers: where it leaves and enters, beside their places, and how wide
    its label is (0: it has none). One that goes `back` has no say in what stands above what."""

    source: int
    target: int
    leaves: float = 0.0
    enters: float = 0.0
    label: float = 0.0
    back: bool = False


@dataclass(frozen=True)
class Route:
    """The way of a line, point by point, from its source to its target; the stretches between two points are straight
    where their x are the same. `label` is where the middle of its label stands. `upwards`: the target is above."""

    points: tuple[Point, ...]
    label: Point | None
    upwards: bool = False


@dataclass(frozen=True)
class Layout:
    """The middle of each item, the way of each line, and the size of it all."""

    places: tuple[Point, ...]
    routes: tuple[Route, ...]
    width: float
    height: float


def layered(items: Sequence[Item], links: Sequence[Link], last: int | None, label_height: float) -> Layout:
    """Place items, of which the first stands at the top and `last` at the bottom. No link may lead to its source."""
    upwards = _upwards(len(items), links)
    ranks = _ranks(len(items), links, upwards, last)
    vertices = [Vertex(item.left, item.right, item.height, rank) for item, rank in zip(items, ranks, strict=True)]
    chains = [_chain(vertices, link, label_height, turned=turned) for link, turned in zip(links, upwards, strict=True)]
    passed = [vertex for chain in chains for vertex in chain[1:-1]]
    layers: list[list[Vertex]] = [[] for _ in range(max(ranks) + 1)]
    for vertex in (*vertices, *passed):
        layers[vertex.rank].append(vertex)
    layers = ordered(layers)
    spread(layers, _GAP)
    shift = -min(vertex.x - vertex.left for layer in layers for vertex in layer)
    for vertex in (*vertices, *passed):
        vertex.x += shift
    bands = _bands(layers)
    return Layout(
        places=tuple((vertex.x, sum(bands[vertex.rank]) / 2) for vertex in vertices),
        routes=tuple(_route(*each, bands) for each in zip(chains, links, upwards, strict=True)),
        width=max(vertex.x + vertex.right for layer in layers for vertex in layer),
        height=bands[-1][1],
    )


def _upwards(count: int, links: Sequence[Link]) -> list[bool]:
    """Tell of each link whether its target has to stand above its source, as it closes a loop."""
    upwards = [link.back for link in links]
    outgoing: list[list[int]] = [[] for _ in range(count)]
    for number, link in enumerate(links):
        if not link.back:
            outgoing[link.source].append(number)
    state = [0] * count  # 1: on the way to where we are; 2: seen with all behind it
    for root in range(count):
        way = [root] if not state[root] else []
        rests = [iter(outgoing[root])]
        state[root] = state[root] or 1
        while way:
            number = next(rests[-1], None)
            if number is None:
                state[way.pop()] = 2
                rests.pop()
                continue
            target = links[number].target
            upwards[number] = state[target] == 1
            if not state[target]:
                state[target] = 1
                way.append(target)
                rests.append(iter(outgoing[target]))
    return upwards


def _ranks(count: int, links: Sequence[Link], upwards: Sequence[bool], last: int | None) -> list[int]:
    """Return the layer of each item: as far down as the longest way to it. Items take each second one, labels stand in
    those between."""
    ends = [
        (link.target, link.source) if turned else (link.source, link.target)
        for link, turned in zip(links, upwards, strict=True)
    ]
    missing = [0] * count
    below: list[list[int]] = [[] for _ in range(count)]
    for source, target in ends:
        missing[target] += 1
        below[source].append(target)
    ranks = [0] * count
    ready = [number for number in range(count) if not missing[number]]
    for number in ready:  # grows while it is gone through
        for target in below[number]:
            ranks[target] = max(ranks[target], ranks[number] + 2)
            missing[target] -= 1
            if not missing[target]:
                ready.append(target)
    if last is not None:
        ranks[last] = max((rank + 2 for number, rank in enumerate(ranks) if number != last), default=0)
    return ranks


def _chain(vertices: Sequence[Vertex], link: Link, label_height: float, *, turned: bool) -> list[Vertex]:
    """Return what a line passes from its upper to its lower end, linked with one another."""
    top, end = vertices[link.source], vertices[link.target]
    if turned:
        top, end = end, top
    first, final = _ports(link, top, end, turned=turned)
    span = end.rank - top.rank
    labelled = top.rank + ((span // 2) | 1) if link.label else None
    chain = [top]
    for rank in range(top.rank + 1, end.rank):
        half = link.label / 2 if rank == labelled else _LINE
        height = label_height if rank == labelled else 0.0
        chain.append(Vertex(half, half, height, rank, is_item=False))
    chain.append(end)
    for number, (upper, lower) in enumerate(pairwise(chain)):
        beside = (first if number == 0 else 0.0) - (final if number == span - 1 else 0.0)
        lower.above.append((upper, beside))
        upper.below.append((lower, -beside))
    return chain


def _ports(link: Link, top: Vertex, end: Vertex, *, turned: bool) -> tuple[float, float]:
    """Return where a line leaves its upper and meets its lower end; one that goes up is beside the others."""
    return (top.left / 2, end.left / 2) if turned else (link.leaves, link.enters)


def _bands(layers: Iterable[Sequence[Vertex]]) -> list[Point]:
    """Return where each layer begins and ends; there is more room where lines go far aside."""
    bands: list[Point] = []
    y = 0.0
    for layer in layers:
        height = max((vertex.height for vertex in layer), default=0.0)
        bands.append((y, y + height))
        aside = max((abs(near.x - vertex.x) for vertex in layer for near, _ in vertex.below), default=0.0)
        y += height + _LAYER_GAP + min(aside * _STEEP, _MOST)
    return bands


def _route(chain: Sequence[Vertex], link: Link, turned: bool, bands: Sequence[Point]) -> Route:
    top, end = chain[0], chain[-1]
    first, final = _ports(link, top, end, turned=turned)
    middle = sum(bands[top.rank]) / 2
    points = [(top.x + first, middle + top.height / 2), (top.x + first, bands[top.rank][1])]
    label: Point | None = None
    for vertex in chain[1:-1]:
        begin, stop = bands[vertex.rank]
        points += [(vertex.x, begin), (vertex.x, stop)]
        if vertex.height:
            label = vertex.x, (begin + stop) / 2
    middle = sum(bands[end.rank]) / 2
    points += [(end.x + final, bands[end.rank][0]), (end.x + final, middle - end.height / 2)]
    kept = [point for number, point in enumerate(points) if number == 0 or point != points[number - 1]]
    return Route(tuple(reversed(kept) if turned else kept), label, turned)
