"""What stands in a scope and may still send: at which executor, and with what trail.

Joins and maps ask it whether more can come. Reads a draft and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from rehydrate.ids import join_slot, scope_of
from rehydrate.model.records import JoinRecord, MapRecord, Trail

from .change import Change
from .requests import standing_requests
from .scopes import trails_of
from .steps import Arrival

#: Something that may still send: the executor it stands at, and its trail.
Standing: TypeAlias = tuple[str, Trail]


def standing_in(change: Change, path: str, arrivals: Iterable[Arrival]) -> list[Standing]:
    """Return what stands in a scope at its barrier, but for what joins and maps hold."""
    draft = change.draft
    found: list[Standing] = [(arrival.executor, arrival.trail) for arrival in arrivals]
    found += standing_requests(draft, path)
    for segment, record in draft.items(path, "scope"):
        executor = scope_of(segment)[0]
        found += [(executor, trail) for trail in trails_of(draft, join_slot(path, segment), record)]
    return found


def open_maps(change: Change, path: str) -> list[Standing]:
    """Return the ends of maps that will get something, with the trails of their lists."""
    maps: list[MapRecord] = [record for _, record in change.draft.items(path, "map")]
    return [(record.into, record.trail) for record in maps]


def held_by_joins(change: Change, path: str) -> list[Standing]:
    """Return the joins that hold something, with its trail."""
    held: list[JoinRecord] = [record for _, record in change.draft.items(path, "join")]
    return [(record.join, record.trail) for record in held]
