"""State at a barrier: writes of a superstep merged in executor order, and lists that grow by parts.

Compares sealed bytes and opens none; a reducer that is a function is called by the runtime in between.
"""

from __future__ import annotations

from typing import Final, TypeAlias, cast

import msgspec

from rehydrate.graph.definition import LIST_REDUCERS, Definition
from rehydrate.model.effects import Failure, SetState, UpdateState
from rehydrate.model.records import PartRecord, StateRecord
from rehydrate.model.sealed import Items, Sealed

from .change import Change
from .commands import Contribution
from .plan import ChainKey
from .run import Draft
from .splicing import part_name, put_value, remove_parts, sealed_value

#: So many small parts are merged into one.
FAN: Final = 64
#: Parts are merged only up to so many bytes, so that an append of large elements never rewrites them.
MERGED_BYTES: Final = 256 * 1024


class Write(msgspec.Struct, frozen=True, gc=False):
    """One write, and the invocation that made it; each item of a map writes as an executor of its own."""

    chain: ChainKey
    activation: int
    effect: SetState | UpdateState

    @property
    def executor(self) -> str:
        """The executor that wrote."""
        return self.chain[0]


Writes: TypeAlias = dict[str, list[Write]]


def note_write(writes: Writes, write: Write) -> None:
    """Add a write to those of its key."""
    made = writes.get(write.effect.key)
    if made is None:
        writes[write.effect.key] = [write]
    else:
        made.append(write)


class Conflict(msgspec.Struct, frozen=True, gc=False):
    """Two executors wrote a key in ways that do not go together."""

    key: str
    first: Write
    second: Write

    def failure(self) -> Failure:
        """Return what fails both writers."""
        first, second = self.first.executor, self.second.executor
        text = f"executors {first!r} and {second!r} wrote different values to state key {self.key!r} in one superstep"
        return Failure("conflict", "StateConflictError", text, facts=(self.key, first, second))


def find_conflict(graph: Definition, writes: Writes) -> Conflict | None:
    """Return the first conflict, by key in order of writing."""
    for key, made in writes.items():
        if len(made) == 1:
            continue
        first = made[0]
        if all(write.chain == first.chain for write in made):
            continue
        last_of = {write.chain: write for write in made}
        last = list(last_of.values())
        if key not in graph.reducers:
            other = next((w for w in last[1:] if w.effect != last[0].effect), None)
            if other is not None:
                return Conflict(key, last[0], other)
            continue
        setter = next((w for w in made if isinstance(w.effect, SetState)), None)
        if setter is not None:
            other = next(w for w in made if w.chain != setter.chain)
            return Conflict(key, setter, other) if setter is made[0] else Conflict(key, other, setter)
    return None


def contributions(change: Change, path: str, graph: Definition, writes: Writes) -> tuple[Contribution, ...]:
    """Return what reducers that are functions have to merge before this barrier."""
    found: list[Contribution] = []
    for key, made in writes.items():
        reducer = graph.reducers.get(key)
        if reducer is None or reducer.name in LIST_REDUCERS:
            continue
        record: StateRecord | None = change.draft.get(path, "state", key)
        base = sealed_value(change.draft, path, key, record) if record is not None else None
        values: list[Sealed] = []
        for write in made:
            effect = write.effect
            if isinstance(effect, SetState):
                base = cast("Sealed | None", effect.value)
                values = []
            else:
                values.append(cast("Sealed", effect.value))
        if values:
            found.append(Contribution(key, base, tuple(values)))
    return tuple(found)


def apply_writes(draft: Draft, path: str, graph: Definition, writes: Writes, merged: dict[str, Sealed]) -> None:
    """Make the writes of a superstep real; `merged` holds what reducers gave."""
    for key, made in writes.items():
        value = merged.get(key)
        if value is not None:
            put_value(draft, path, key, value)
            continue
        reducer = graph.reducers.get(key)
        grows = reducer is not None and reducer.name in LIST_REDUCERS
        # Of other keys nothing was left to merge, so the last write replaces all before it.
        for write in made if grows else made[-1:]:
            effect = write.effect
            if isinstance(effect, SetState):
                set_whole(draft, path, effect)
            else:
                _append(draft, path, key, cast("Items", effect.value))


def set_whole(draft: Draft, path: str, effect: SetState) -> None:
    """Replace a key's value, or remove it."""
    if effect.value is not None:
        put_value(draft, path, effect.key, effect.value)
        return
    remove_parts(draft, path, effect.key, draft.get(path, "state", effect.key))
    draft.remove(path, "state", effect.key)


def _append(draft: Draft, path: str, key: str, items: Items) -> None:
    """Add a part; every 64th time the newest 64 become one, so that both writing and loading stay cheap."""
    record: StateRecord = draft.get(path, "state", key) or StateRecord(None)
    number = record.next
    draft.put(path, "part", part_name(key, number), PartRecord(items))
    merged = record.merged
    if number + 1 - merged == FAN:
        parts: list[PartRecord] = [draft.get(path, "part", part_name(key, n)) for n in range(merged, number + 1)]
        if sum(len(part.items.data) for part in parts) <= MERGED_BYTES:
            for n in range(merged + 1, number + 1):
                draft.remove(path, "part", part_name(key, n))
            data = b"".join(part.items.data for part in parts)
            count = sum(part.items.count for part in parts)
            draft.put(path, "part", part_name(key, merged), PartRecord(Items(data, count)))
        merged = number + 1
    draft.put(path, "state", key, StateRecord(record.value, record.count + items.count, merged, number + 1))
