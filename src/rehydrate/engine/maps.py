"""Maps: lists that an edge took apart, and the one list that comes of their items.

An item is done when nothing with its trail, or one that extends it, is left; when all are, the end of the map gets
what came to it on their behalf. Nothing here knows where messages come from or what they hold.
"""

from __future__ import annotations

from rehydrate.model.records import GatherRecord, MapRecord, Trail
from rehydrate.model.sealed import Listed

from .change import Change
from .run import Draft
from .standing import held_by_joins, standing_in
from .steps import Arrival


def map_of(draft: Draft, path: str, into: str, trail: Trail) -> int:
    """Return the number of the innermost map with this end that a trail belongs to."""
    for place in range(len(trail) - 2, 0, -2):
        record: MapRecord | None = draft.get(path, "map", str(trail[place]))
        if record is not None and record.into == into:
            return trail[place]
    raise AssertionError(f"trail {trail} reached {into!r}, the end of a map, and belongs to none of its maps")


def close_maps(change: Change, path: str, arrivals: list[Arrival]) -> None:
    """Hand over what came of every map of a scope whose items are all done, inner ones first."""
    maps: dict[int, MapRecord] = {int(name): record for name, record in change.draft.items(path, "map")}
    if not maps:
        return
    standing = [*standing_in(change, path, arrivals), *held_by_joins(change, path)]
    #: A map's number stands at every second place of a trail.
    at_work = {number for _, trail in standing for number in trail[1::2]}
    done: list[int] = []
    # A map inside of another has the higher number; whether it works or hands over, it stands on behalf of the other.
    for number in sorted(maps, reverse=True):
        if number not in at_work:
            done.append(number)
        at_work.update(maps[number].trail[1::2])
    gathered = _gathered(change, path) if done else {}
    for number in reversed(done):
        record = maps[number]
        held = sorted(gathered.get(number, []), key=lambda item: (_index(item.trail, number), item.number))
        for item in held:
            change.draft.remove(path, "gather", str(item.number))
        change.draft.remove(path, "map", str(number))
        arrivals.append(Arrival(record.into, Listed(tuple(item.payload for item in held)), record.trail, "list"))


def _gathered(change: Change, path: str) -> dict[int, list[GatherRecord]]:
    found: dict[int, list[GatherRecord]] = {}
    for _, record in change.draft.items(path, "gather"):
        found.setdefault(record.map, []).append(record)
    return found


def _index(trail: Trail, number: int) -> int:
    """Return the index of the item of a map that a trail belongs to."""
    place = next(place for place in range(1, len(trail) - 1, 2) if trail[place] == number)
    return trail[place + 1]
