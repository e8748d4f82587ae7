"""The open requests of a scope, whether each has a record of its own or many share one.

Everything that asks for them asks here. A pack is opened only where one of its requests is looked at. One that is
closed is noted beside its pack, which is written again once half of it is gone: an answer costs what it changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from rehydrate.errors import CheckpointCorruptError
from rehydrate.ids import order_key, outer_id
from rehydrate.model.records import Record, RequestRecord, Trail
from rehydrate.model.request_packs import ID_BYTES, ClosedRecord, RequestGroup, RequestsRecord

from .run import Draft, Run, birth_of, known_name

#: A pack holds no more requests, and not more bytes of them.
MOST: Final = 256
MOST_BYTES: Final = 64 * 1024
#: A request with more data stands in a record of its own.
SMALL: Final = 4 * 1024
#: No name of a request is longer; the numbers in such a text can be read, whoever wrote it.
LONGEST: Final = 400

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(tuple[RequestRecord, ...]).decode
_key: Final = lru_cache(maxsize=1024)(order_key)


class OpenedPack(NamedTuple):
    """What a pack holds, in the order of names, and where each name stands in it."""

    requests: tuple[RequestRecord, ...]
    places: dict[str, int]


class _Place(NamedTuple):
    """Where a request stands: its pack's name, the pack, and its place in that."""

    label: str
    pack: RequestsRecord
    at: int


def name_of(request: RequestRecord) -> str:
    """Return a request's name in its scope."""
    return f"{request.executor}#{request.activation}?{request.count}"


def get_request(records: Run | Draft, path: str, name: str) -> RequestRecord | None:
    """Return an open request."""
    single: RequestRecord | None = records.get(path, "request", name)
    if single is not None:
        return single
    place = _find(records, path, name)
    return None if place is None else opened_pack(records, path, place.label, place.pack).requests[place.at]


def has_requests(records: Run | Draft, path: str) -> bool:
    """Tell whether a scope has open requests; no pack is left of which all are closed."""
    return records.count(path, "request") > 0 or records.count(path, "requests") > 0


def requests_in(records: Run | Draft, path: str) -> list[tuple[str, RequestRecord]]:
    """Return all open requests of a scope by name. It opens every pack."""
    found: list[tuple[str, RequestRecord]] = records.items(path, "request")
    packs = records.items(path, "requests")
    for label, pack in packs:
        found += requests_of(records, path, label, pack)
    return sorted(found, key=lambda item: _order(item[1]))


def requests_of(records: Run | Draft, path: str, label: str, pack: RequestsRecord) -> list[tuple[str, RequestRecord]]:
    """Return the open requests of one pack by name."""
    opened, closed = opened_pack(records, path, label, pack), _closed(records, path, label)
    return [(name, opened.requests[index]) for name, index in opened.places.items() if not closed >> index & 1]


def names_in(records: Run | Draft, path: str, label: str, pack: RequestsRecord) -> list[str]:
    """Return the names of the open requests of one pack. What it opens for that is not remembered."""
    closed = _closed(records, path, label)
    return [name_of(request) for index, request in enumerate(requests_held(pack)) if not closed >> index & 1]


def open_in_pack(records: Run | Draft, path: str, label: str, pack: RequestsRecord) -> int:
    """Return how many requests of a pack are open."""
    return pack.count - _closed(records, path, label).bit_count()


def request_at(
    records: Run | Draft, path: str, label: str, pack: RequestsRecord, index: int
) -> tuple[str, RequestRecord] | None:
    """Return the request at a place of a pack by its name, if it is open."""
    if _closed(records, path, label) >> index & 1:
        return None
    request = opened_pack(records, path, label, pack).requests[index]
    return name_of(request), request


def standing_requests(records: Run | Draft, path: str) -> list[tuple[str, Trail]]:
    """Return the executor and the trail of what is open in a scope; requests that are alike may count once."""
    found = [(record.executor, record.trail) for _, record in records.items(path, "request")]
    for label, pack in records.items(path, "requests"):
        closed = _closed(records, path, label)
        if not closed:
            found += [(group.executor, group.trail) for group in pack.groups]
            continue
        for group in pack.groups:
            all_of_it = (1 << group.count) - 1
            if closed & all_of_it != all_of_it:
                found.append((group.executor, group.trail))
            closed >>= group.count
    return found


def take_requests(draft: Draft, path: str, asked: list[RequestRecord], apart: int) -> None:
    """Take requests that a scope has asked; where `apart` small ones would have records of their own, they share."""
    if not asked:
        return
    has_small = any(map(_is_small, asked))
    for request in asked:
        draft.put(path, "request", name_of(request), request)
    asked.clear()
    # What is large stays apart, so without a small one there is nothing to look for among all that are open.
    if has_small and draft.count(path, "request") >= apart:
        _pack(draft, path, apart)


def close_request(draft: Draft, path: str, name: str) -> RequestRecord:
    """Take an open request away, and return it."""
    single: RequestRecord | None = draft.get(path, "request", name)
    if single is not None:
        draft.remove(path, "request", name)
        return single
    place = _find(draft, path, name)
    if place is None:  # whoever closes one has found it
        raise CheckpointCorruptError(f"the open request {name!r:.80}", "it stands in more than one record")
    label, pack, index = place
    request = opened_pack(draft, path, label, pack).requests[index]
    closed = _closed(draft, path, label) | 1 << index
    left = pack.count - closed.bit_count()
    draft.totals["request"] -= 1
    if left * 2 > pack.count:
        draft.put(path, "closed", label, ClosedRecord(closed.to_bytes((pack.count + 7) // 8, "big")))
        return request
    still = [record for _, record in requests_of(draft, path, label, pack) if record is not request]
    draft.remove(path, "closed", label)
    if still:
        draft.put(path, "requests", label, _packed(draft, path, still))
    else:
        draft.remove(path, "requests", label)
    return request


def clear_requests(draft: Draft, path: str) -> None:
    """Take all open requests of a scope away."""
    draft.clear(path, "request")
    packs = draft.items(path, "requests")
    if not packs:
        return
    draft.totals["request"] -= sum(open_in_pack(draft, path, *item) for item in packs)
    draft.clear(path, "requests")
    draft.clear(path, "closed")


def opened_pack(records: Run | Draft, path: str, label: str, pack: RequestsRecord) -> OpenedPack:
    """Return what a pack holds. Raises `CheckpointCorruptError`."""
    run = records.run if isinstance(records, Draft) else records
    known = run.packs.get((path, label))
    if known is not None and known[0] is pack and isinstance(known[1], OpenedPack):
        return known[1]
    requests = requests_held(pack)
    opened = OpenedPack(requests, {name_of(request): index for index, request in enumerate(requests)})
    run.packs[path, label] = pack, opened
    return opened


def requests_held(pack: RequestsRecord) -> tuple[RequestRecord, ...]:
    """Return what was packed, in its order. Raises `CheckpointCorruptError`."""
    what = f"the open requests {pack.low!r:.80} to {pack.high!r:.80}"
    try:
        requests = _decode(pack.body)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise CheckpointCorruptError(what, str(error)) from None
    names = [name_of(request) for request in requests]
    right = len(set(names)) == pack.count > 0 and (names[0], names[-1]) == (pack.low, pack.high)
    if not right or max(map(len, names)) > LONGEST or _groups(requests) != pack.groups:
        raise CheckpointCorruptError(what, "they are others than their record says")
    return requests


def unpack_requests(run: Run) -> None:
    """Give every open request of a run a record of its own."""
    for path in [path for path, kind in run.tables if kind == "requests"]:
        singles = requests_in(run, path)
        run.apply(
            {
                (path, "requests"): dict.fromkeys(run.table(path, "requests")),
                (path, "closed"): dict.fromkeys(run.table(path, "closed")),
                (path, "request"): dict(singles),
            }
        )


def renew_ids(run: Run) -> None:
    """Let packs say what ids their requests have, once a run has got another birth."""
    delta: dict[tuple[str, str], dict[str, Record | None]] = {}
    for place in [place for place in run.tables if place[1] == "requests"]:
        for label, pack in run.items(*place):
            requests = list(opened_pack(run, place[0], label, pack).requests)
            delta.setdefault(place, {})[label] = _packed(run, place[0], requests)
    run.apply(delta)


def pack_requests(run: Run, apart: int) -> None:
    """Let the open requests of each scope share records where there are many."""
    draft = Draft(run)
    for path in [path for path, kind in run.tables if kind == "request"]:
        if run.count(path, "request") >= apart:
            _pack(draft, path, apart)
    run.apply(draft.delta())


def _pack(draft: Draft, path: str, apart: int) -> None:
    singles: list[tuple[str, RequestRecord]] = draft.items(path, "request")
    small = [record for name, record in singles if _is_small(record) and name == name_of(record)]
    if len(small) < apart:
        return
    small.sort(key=_order)
    for record in small:
        draft.remove(path, "request", name_of(record))
    draft.totals["request"] += len(small)
    for some in _chunks(small):
        draft.put(path, "requests", name_of(some[0]), _packed(draft, path, some))


def _is_small(request: RequestRecord) -> bool:
    return len(request.data.data) <= SMALL


def _order(request: RequestRecord) -> tuple[object, int, int]:
    """Return a key that orders requests of a scope as `order_key` orders their names."""
    return _key(f"{request.executor}#"), request.activation, request.count


def _chunks(requests: list[RequestRecord]) -> Iterator[list[RequestRecord]]:
    chunk: list[RequestRecord] = []
    size = 0
    for request in requests:
        size += len(request.data.data)
        if len(chunk) == MOST or (chunk and size > MOST_BYTES):
            yield chunk
            chunk, size = [], len(request.data.data)
        chunk.append(request)
    if chunk:
        yield chunk


def _packed(records: Run | Draft, path: str, requests: list[RequestRecord]) -> RequestsRecord:
    birth = birth_of(records)
    ids = [outer_id(birth, known_name(records, path, name_of(request)))[: ID_BYTES * 2] for request in requests]
    low, high = name_of(requests[0]), name_of(requests[-1])
    return RequestsRecord(low, high, _groups(requests), bytes.fromhex("".join(ids)), _encode(requests))


def _groups(requests: Iterable[RequestRecord]) -> tuple[RequestGroup, ...]:
    found: list[tuple[str, Trail, int]] = []
    for request in requests:
        if found and found[-1][0] == request.executor and found[-1][1] == request.trail:
            found[-1] = (request.executor, request.trail, found[-1][2] + 1)
        else:
            found.append((request.executor, request.trail, 1))
    return tuple(RequestGroup(*group) for group in found)


def _find(records: Run | Draft, path: str, name: str) -> _Place | None:
    if len(name) > LONGEST or not records.count(path, "requests"):
        return None
    key = order_key(name)
    for label, pack in records.items(path, "requests"):
        if not _key(pack.low) <= key <= _key(pack.high):
            continue
        index = opened_pack(records, path, label, pack).places.get(name)
        if index is not None:
            return None if _closed(records, path, label) >> index & 1 else _Place(label, pack, index)
    return None


def _closed(records: Run | Draft, path: str, label: str) -> int:
    record: ClosedRecord | None = records.get(path, "closed", label)
    return 0 if record is None else record.mask
