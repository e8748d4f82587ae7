"""The open requests of a run as a list by path and name, and by their outer ids, opening no more packs than needed.

Names of packs may overlap, as where requests came one at a time; what overlaps is opened together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from rehydrate.ids import order_key
from rehydrate.model.records import RequestRecord
from rehydrate.model.request_packs import ID_BYTES, RequestsRecord

from .reading import OpenedRequest, open_requests, opened_request, scopes
from .requests import open_in_pack, request_at, requests_of
from .run import Run

_Bound: TypeAlias = tuple[tuple[int, int | str], ...]
_Bounds: TypeAlias = tuple[_Bound, _Bound]


class Stretch(NamedTuple):
    """Requests of one scope that follow each other: how many, single ones by name, and packs."""

    path: str
    size: int
    singles: tuple[str, ...] = ()
    packs: tuple[tuple[str, RequestsRecord], ...] = ()

    def requests(self, run: Run) -> list[OpenedRequest]:
        """Return the requests in their order."""
        found: list[tuple[str, RequestRecord]] = [(name, run.get(self.path, "request", name)) for name in self.singles]
        for label, pack in self.packs:
            found += requests_of(run, self.path, label, pack)
        found.sort(key=lambda item: order_key(item[0]))
        return [opened_request(run, self.path, name, record) for name, record in found]

    def with_next(self, other: Stretch) -> Stretch:
        """Return both as one."""
        return Stretch(self.path, self.size + other.size, self.singles + other.singles, self.packs + other.packs)


def stretches(run: Run) -> list[Stretch]:
    """Return the open requests of a run as stretches, in their order."""
    if not run.totals["request"]:
        return []
    return [stretch for path in scopes(run) for stretch in _stretches_of(run, path)]


def _stretches_of(run: Run, path: str) -> Iterator[Stretch]:
    found: list[tuple[_Bounds, Stretch]] = []
    for name in run.table(path, "request"):
        key = order_key(name)
        found.append(((key, key), Stretch(path, 1, singles=(name,))))
    for label, pack in run.items(path, "requests"):
        bounds = order_key(pack.low), order_key(pack.high)
        found.append((bounds, Stretch(path, open_in_pack(run, path, label, pack), packs=((label, pack),))))
    found.sort(key=lambda item: item[0])
    whole: Stretch | None = None
    end: _Bound = ()
    for (low, high), stretch in found:
        if whole is not None and low <= end:
            whole, end = whole.with_next(stretch), max(end, high)
            continue
        if whole is not None:
            yield whole
        whole, end = stretch, high
    if whole is not None:
        yield whole


def find_by_id(run: Run, request_id: str) -> OpenedRequest | None:
    """Return the open request that has an outer id; where no pack has it, all of them are looked through.

    What a pack says of ids may be of another run, of which a scope was put into this one.
    """
    for opened in _at_hand(run, request_id):
        if opened.request_id == request_id:
            return opened
    return next((opened for opened in open_requests(run) if opened.request_id == request_id), None)


def _at_hand(run: Run, request_id: str) -> Iterator[OpenedRequest]:
    """Give the requests that may have this id: all single ones, and those of which a pack says so."""
    try:
        start = bytes.fromhex(request_id[: ID_BYTES * 2])
    except ValueError:
        return
    for path, kind in run.tables:
        if kind == "request":
            yield from (opened_request(run, path, *item) for item in run.items(path, kind))
        if kind != "requests" or len(start) != ID_BYTES:
            continue
        for label, pack in run.items(path, kind):
            for index in _places_of(pack.ids, start):
                found = request_at(run, path, label, pack, index)
                if found is not None:
                    yield opened_request(run, path, *found)


def _places_of(ids: bytes, start: bytes) -> Iterator[int]:
    at = ids.find(start)
    while at >= 0:
        if at % ID_BYTES == 0:
            yield at // ID_BYTES
        at = ids.find(start, at + 1)
