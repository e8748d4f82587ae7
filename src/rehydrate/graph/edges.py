"""Edges: how messages go on from an executor.

Frozen data and the user's predicates. Nothing here calls a predicate; the runtime does, once per message and edge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

#: Takes the message; true lets it pass.
Condition: TypeAlias = Callable[[object], bool]
#: Takes the message and the target ids; returns the chosen ids.
Selection: TypeAlias = Callable[[object, list[str]], Sequence[str]]
ForwardWhen: TypeAlias = Literal["rest", "finished"]


@dataclass(frozen=True)
class Edge:
    """One way from a source to a target; `index` numbers it in its graph, whatever the order of building.

    `fan_in`: the target is a join that gets it. `forward_when` matters where the source is a sub-workflow. `into`: it
    takes lists apart, and this executor gets what comes of the items. `gathers`: it leads there.
    """

    index: int
    source: str
    target: str
    fan_in: bool = False
    forward_when: ForwardWhen = "rest"
    into: str | None = None
    gathers: bool = False


@dataclass(frozen=True)
class DirectGroup:
    """One edge, with or without a condition."""

    edge: Edge
    condition: Condition | None = None
    name: str | None = None


@dataclass(frozen=True)
class FanOutGroup:
    """Every target gets the message."""

    edges: tuple[Edge, ...]


@dataclass(frozen=True)
class SwitchGroup:
    """The first case that holds gets the message, else the default (the last edge) does."""

    cases: tuple[Condition, ...]
    edges: tuple[Edge, ...]
    names: tuple[str | None, ...] = ()


@dataclass(frozen=True)
class MultiSelectionGroup:
    """The targets that the selection names get the message."""

    edges: tuple[Edge, ...]
    selection: Selection
    name: str | None = None


@dataclass(frozen=True)
class FanInGroup:
    """A join: its target gets one list, in the order of the sources. One edge per source."""

    edges: tuple[Edge, ...]


@dataclass(frozen=True)
class MapGroup:
    """Takes a list apart: the target gets each item, and the edge's `into` one list of what came of them."""

    edge: Edge


EdgeGroup: TypeAlias = DirectGroup | FanOutGroup | SwitchGroup | MultiSelectionGroup | FanInGroup | MapGroup
