"""The order within the layers of a layout, for few crossings, and how far apart they stand, for straight lines.

Both are found by going down and up a fixed number of times, so the same graph always gives the same drawing.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, TypeAlias

_SWEEPS: Final = 8
#: How much more a place counts that keeps a long line straight.
_STRAIGHT: Final = 6.0


@dataclass
class Vertex:
    """An item, or a line where it passes a layer. Neighbours stand with how far beside both places the line runs."""

    left: float
    right: float
    height: float
    rank: int
    is_item: bool = True
    x: float = 0.0
    above: list[tuple[Vertex, float]] = field(default_factory=list["tuple[Vertex, float]"])
    below: list[tuple[Vertex, float]] = field(default_factory=list["tuple[Vertex, float]"])


Layer: TypeAlias = list[Vertex]
Neighbours: TypeAlias = Callable[[Vertex], list[tuple[Vertex, float]]]


def _above(vertex: Vertex) -> list[tuple[Vertex, float]]:
    return vertex.above


def _below(vertex: Vertex) -> list[tuple[Vertex, float]]:
    return vertex.below


def _both(vertex: Vertex) -> list[tuple[Vertex, float]]:
    return vertex.above + vertex.below


def ordered(layers: Sequence[Layer]) -> list[Layer]:
    """Return layers whose lines cross less, as far as a few sweeps find."""
    best = [list(layer) for layer in layers]
    fewest = _crossings(best)
    current = [list(layer) for layer in layers]
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        down = sweep % 2 == 0
        neighbours = _above if down else _below
        for layer in current if down else reversed(current):
            _sort(layer, current, neighbours)
        found = _crossings(current)
        if found < fewest:
            fewest, best = found, [list(layer) for layer in current]
    return best


def _sort(layer: Layer, layers: Sequence[Layer], neighbours: Neighbours) -> None:
    """Sort a layer by the mean place of what its things are linked with on one side."""
    place: dict[int, int] = {}
    ranks = {near.rank for vertex in layer for near, _ in neighbours(vertex)}
    for rank in ranks:
        place.update({id(vertex): number for number, vertex in enumerate(layers[rank])})
    means: dict[int, float] = {}
    for number, vertex in enumerate(layer):
        found = [place[id(near)] for near, _ in neighbours(vertex)]
        means[id(vertex)] = sum(found) / len(found) if found else float(number)
    layer.sort(key=lambda vertex: means[id(vertex)])


def _crossings(layers: Sequence[Layer]) -> int:
    count = 0
    for upper, lower in pairwise(layers):
        place = {id(vertex): number for number, vertex in enumerate(lower)}
        seen: list[int] = []
        for vertex in upper:
            ends = sorted(place[id(near)] for near, _ in vertex.below)
            count += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return count


def spread(layers: Sequence[Layer], gap: float) -> None:
    """Give everything in the layers its x."""
    for layer in layers:
        x = 0.0
        for vertex in layer:
            vertex.x = x + vertex.left
            x = vertex.x + vertex.right + gap
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            _settle(layer, _above if down else _below, gap)
    for layer in layers:
        _settle(layer, _both, gap)


def _settle(layer: Layer, neighbours: Neighbours, gap: float) -> None:
    """Move the things of a layer to below (or above) what they are linked with, in their order and with room between.

    That is the fit of least squares: things that would meet form a block, which stands at its mean.
    """
    offset = 0.0
    blocks: list[tuple[float, float, int]] = []  # mean place, weight, number of things
    offsets: list[float] = []
    for number, vertex in enumerate(layer):
        if number:
            offset += layer[number - 1].right + gap + vertex.left
        offsets.append(offset)
        wish, weight = _wish(vertex, neighbours(vertex))
        mean, count = wish - offset, 1
        while blocks and blocks[-1][0] >= mean:
            other, its_weight, its_count = blocks.pop()
            mean = (other * its_weight + mean * weight) / (its_weight + weight)
            weight += its_weight
            count += its_count
        blocks.append((mean, weight, count))
    places = [mean for mean, _, count in blocks for _ in range(count)]
    for vertex, mean, beside in zip(layer, places, offsets, strict=True):
        vertex.x = mean + beside


def _wish(vertex: Vertex, near: Sequence[tuple[Vertex, float]]) -> tuple[float, float]:
    """Return where a thing would best stand, and how much that counts."""
    if not near:
        return vertex.x, 0.1
    total = weights = 0.0
    for other, beside in near:
        weight = 1.0 if vertex.is_item or other.is_item else _STRAIGHT
        total += weight * (other.x + beside)
        weights += weight
    return total / weights, weights if not vertex.is_item else float(len(near))
