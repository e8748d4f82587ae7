"""Values in state as one piece each while a run is migrated, so that a migration has nothing to do with pieces.

What a migration leaves as it was gets its pieces back. Opens nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from rehydrate.engine.run import Delta, Run, delta_of
from rehydrate.engine.splicing import grows, items_set, part_name, part_numbers, sealed_value
from rehydrate.model.records import Key, PartRecord, Record, Spliced, StateRecord
from rehydrate.model.sealed import Items, Sealed


class _Joined(NamedTuple):
    """A key whose value was joined: the change, what it was, and what was made of it."""

    path: str
    key: str
    undo: Delta
    value: Sealed | Items


def join_values(run: Run) -> list[_Joined]:
    """Join every value that is in pieces; returns what `split_values` needs."""
    found: list[_Joined] = []
    states = [(place[0], dict(table)) for place, table in run.tables.items() if place[1] == "state"]
    for path, table in states:
        for key, record in table.items():
            if isinstance(record, StateRecord) and isinstance(record.value, Spliced):
                found.append(_joined(run, path, key, record, record.value))
    return found


def split_values(run: Run, joined: list[_Joined]) -> None:
    """Give the values that are what they were their pieces again."""
    for path, key, undo, value in joined:
        record: StateRecord | None = run.get(path, "state", key)
        if record is None:
            continue
        if isinstance(value, Sealed):
            same = record.value == value
        else:
            numbers = part_numbers(run, path, key)
            first: PartRecord | None = run.get(path, "part", part_name(key, numbers[0])) if numbers else None
            same = record.value is None and first is not None and first.items == value
        if same:
            run.apply(undo)


def _joined(run: Run, path: str, key: str, record: StateRecord, value: Spliced) -> _Joined:
    numbers = part_numbers(run, path, key)
    change: dict[Key, Record | None] = {}
    made: Sealed | Items
    if grows(record):
        numbers = [number for number in numbers if number < value.until]
        (made,) = items_set(run, path, key, record)
        change |= {(path, "part", part_name(key, number)): None for number in numbers}
        change[path, "part", part_name(key, numbers[-1])] = PartRecord(made)
        change[path, "state", key] = StateRecord(None, record.count, record.merged, record.next)
    else:
        made = sealed_value(run, path, key, record)
        change |= {(path, "part", part_name(key, number)): None for number in numbers}
        change[path, "state", key] = StateRecord(made)
    undo: dict[Key, Record | None] = {name: run.get(*name) for name in change}
    run.apply(delta_of(change))
    return _Joined(path, key, delta_of(undo), made)
