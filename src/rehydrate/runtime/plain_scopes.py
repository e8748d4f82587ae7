"""A scope of a stored run as a picture in plain data, for migrations to look at.

Opens values without their classes. It changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from rehydrate.codecs.rewriting import list_of, open_plain
from rehydrate.engine.migration.pieces import was_taken
from rehydrate.engine.plan import invocation_name
from rehydrate.engine.requests import requests_in
from rehydrate.engine.run import Run, birth_of, known_name
from rehydrate.engine.splicing import grows, sealed_value
from rehydrate.graph.migration import PlainMessage, PlainRequest, PlainScope
from rehydrate.ids import outer_id, slot
from rehydrate.model.records import GatherRecord, JoinRecord, StateRecord, StepRecord
from rehydrate.model.sealed import Listed, Payload

from .state_view import committed_parts


def plain_scope(run: Run, path: str) -> PlainScope:
    """Return the picture of a live scope."""
    return PlainScope(
        path=path,
        state={key: _state(run, path, key, record) for key, record in sorted(run.items(path, "state"))},
        messages=tuple(_messages(run, path)),
        held=tuple(_held(run, path)),
        requests=tuple(_requests(run, path)),
        instances={name: open_plain(record.value) for name, record in sorted(run.items(path, "instance"))},
        counters={name: record.value for name, record in sorted(run.items(path, "counter"))},
    )


def _state(run: Run, path: str, key: str, record: StateRecord) -> object:
    if grows(record):
        return open_plain(list_of(committed_parts(run, path, key)))
    return open_plain(sealed_value(run, path, key, record))


def _messages(run: Run, path: str) -> Iterator[PlainMessage]:
    parent, segment = slot(path)
    step: StepRecord | None = run.get(parent, "step", segment)
    for delivery in step.deliveries if step is not None else ():
        name = invocation_name(delivery.executor, delivery.activation)
        is_done = any(run.get(path, kind, name) is not None for kind in ("done", "unrouted"))
        if step is not None and not is_done and not was_taken(run, path, delivery):
            yield PlainMessage(delivery.executor, _value(step.payloads[delivery.payload]))
    for _, record in sorted(run.items(path, "inbox"), key=lambda item: int(item[0])):
        yield PlainMessage(record.executor, _value(record.payload))


def _held(run: Run, path: str) -> Iterator[PlainMessage]:
    """Give what joins hold, and what has come to the ends of maps."""
    records: list[JoinRecord | GatherRecord] = [*run.table(path, "join").values(), *run.table(path, "gather").values()]
    for record in sorted(records, key=lambda record: record.number):
        if isinstance(record, JoinRecord):
            yield PlainMessage(record.join, open_plain(record.payload), record.source)
        else:
            yield PlainMessage(run.get(path, "map", str(record.map)).into, open_plain(record.payload))


def _value(payload: Payload) -> object:
    return [open_plain(item) for item in payload.items] if isinstance(payload, Listed) else open_plain(payload)


def _requests(run: Run, path: str) -> Iterator[PlainRequest]:
    for name, record in requests_in(run, path):
        request_id = outer_id(birth_of(run), known_name(run, path, name))
        yield PlainRequest(request_id, record.executor, open_plain(record.data), record.response_type)
