"""What an invocation sees of state: what was committed before the superstep, and what its own executor has written.

Reads only; a value is handed out as a fresh copy, so that changing it changes nothing.
"""

from __future__ import annotations

from typing import TypeAlias, cast

from rehydrate.codecs import ValueCodec
from rehydrate.engine.run import Run
from rehydrate.engine.splicing import grows, items_set, part_name, sealed_value
from rehydrate.graph.definition import LIST_REDUCERS, Reducer
from rehydrate.model.effects import SetState, UpdateState
from rehydrate.model.records import PartRecord, Spliced, StateRecord
from rehydrate.model.sealed import Items, Sealed

#: Writes of one executor in this superstep, by key in order.
ChainWrites: TypeAlias = dict[str, list[SetState | UpdateState]]
MISSING = object()


def read_state(
    codec: ValueCodec,
    run: Run,
    path: str,
    key: str,
    writes: list[SetState | UpdateState],
    reducer: Reducer | None,
    start: int | None,
) -> object:
    """Return a state value, or `MISSING`; `start` gives only a list's part from there on."""
    record = run.get(path, "state", key)
    if not writes and record is None:
        return MISSING
    if reducer is not None and reducer.name in LIST_REDUCERS:
        return _read_list(codec, run, path, key, writes, start)
    newest = next((i for i in range(len(writes) - 1, -1, -1) if isinstance(writes[i], SetState)), None)
    value: object = MISSING
    if newest is None:
        value = _value_of(codec, run, path, key, cast("StateRecord | None", record))
    for write in writes[newest or 0 :]:
        if isinstance(write, SetState):
            value = codec.open(write.value) if isinstance(write.value, Sealed) else MISSING
        elif reducer is not None and reducer.function is not None:
            contribution = codec.open(cast("Sealed", write.value))
            value = reducer.function(None if value is MISSING else value, contribution)
    if start is not None and isinstance(value, list):
        return cast("list[object]", value)[start:]
    return value


def _value_of(codec: ValueCodec, run: Run, path: str, key: str, record: StateRecord | None) -> object:
    if record is None:
        return MISSING
    if not grows(record):
        return codec.open(sealed_value(run, path, key, record))
    return open_list(codec, committed_parts(run, path, key), None)


def _read_list(
    codec: ValueCodec,
    run: Run,
    path: str,
    key: str,
    writes: list[SetState | UpdateState],
    start: int | None,
) -> object:
    """Read from the end: what was written last decides, and a tail needs no more parts than hold it."""
    if writes and isinstance(writes[-1], SetState) and writes[-1].value is None:
        return MISSING
    if not writes and run.get(path, "state", key) is None:
        return MISSING
    wanted = -start if start is not None and start < 0 else None
    newest: list[Items] = []
    held, replaced = 0, False
    for write in reversed(writes):
        if isinstance(write.value, Items):
            newest.append(write.value)
            held += write.value.count
        replaced = isinstance(write, SetState)
        if replaced or (wanted is not None and held >= wanted):
            break
    parts = newest[::-1]
    if not replaced and (wanted is None or held < wanted):
        parts = committed_parts(run, path, key, None if wanted is None else wanted - held) + parts
    return open_list(codec, parts, start)


def committed_parts(run: Run, path: str, key: str, wanted: int | None = None) -> list[Items]:
    """Return the parts of a list in state, in order; with `wanted` only the last, that hold so many elements."""
    record = run.get(path, "state", key)
    if not isinstance(record, StateRecord) or not grows(record):
        return []
    table = run.table(path, "part")
    left, number, found = record.count, record.next, list[Items]()
    first = record.value.until if isinstance(record.value, Spliced) else 0
    while number > first and left > 0 and (wanted is None or record.count - left < wanted):
        number -= 1
        part = cast("PartRecord | None", table.get(part_name(key, number)))
        if part is not None:  # a number that is missing was merged into one before it
            found.append(part.items)
            left -= part.items.count
    if left > 0 and (wanted is None or record.count - left < wanted):
        found += items_set(run, path, key, record)
    return found[::-1]


def open_list(codec: ValueCodec, parts: list[Items], start: int | None) -> list[object]:
    """Return the elements of parts; with a negative `start` only as many parts as hold them are opened."""
    if start is not None and start < 0:
        wanted, first = -start, len(parts)
        held = 0
        while first and held < wanted:
            first -= 1
            held += parts[first].count
        parts = parts[first:]
    elements = codec.open_items([part.data for part in parts], sum(part.count for part in parts))
    return elements if start is None else elements[start:]
