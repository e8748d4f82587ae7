"""What the file store lists over its runs: open requests, and the heads of runs, by pages.

The indexes say where to look and are hints; what does not hold any more is left out.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from rehydrate.model.checkpoint import Header, RequestRow

from .arguments import RunsAsked
from .file_disk import names_in
from .file_format import HeadLine
from .file_inbox import read_offers
from .file_index import marked, marked_request, values
from .file_names import unescaped
from .file_place import WAITING, FilePlace
from .file_reading import read_request, tried
from .file_runs import read_run


def read_requests(
    place: FilePlace, *, workflow: str | None, run_id: str | None, after: str | None, limit: int
) -> list[RequestRow]:
    """Return open requests behind `after`, ordered by id."""
    if run_id is not None:
        runs = [place.run_folder(run_id).name]
    elif workflow is not None:
        runs = marked(place, "workflows", workflow)
    else:
        runs = values(place, "open")
    found: list[RequestRow] = []
    for request_id, run in _open_requests(place, runs, after):
        row = read_request(place, request_id)
        if row is None or row.state != "open" or place.run_folder(row.run_id).name != run:
            continue
        if workflow is not None and tried(lambda run=run: _workflow_of(place, run)) != workflow:
            continue
        found.append(row)
        if len(found) == limit:
            break
    return found


def read_runs(place: FilePlace, asked: RunsAsked) -> list[Header]:
    """Return the heads of runs behind `after`, ordered by run id."""
    if asked.due_by is not None:
        names = marked(place, "timers", WAITING)
    elif asked.offered:
        names = marked(place, "inboxes", WAITING)
    elif asked.status is not None:
        names = marked(place, "statuses", asked.status)
    elif asked.workflow is not None:
        names = marked(place, "workflows", asked.workflow)
    else:
        names = names_in(place.root / "runs")
    found: list[Header] = []
    for _, name in _by_run_id(place, names, asked.after):
        header = tried(lambda name=name: _header_in(place, name))
        if header is None or not asked.takes(header):
            continue
        if asked.offered and not read_offers(place, header.run_id, 0, 1):
            continue
        found.append(header)
        if len(found) == asked.limit:
            break
    return found


def _open_requests(place: FilePlace, runs: list[str], after: str | None) -> Iterator[tuple[str, str]]:
    """Give requests behind an id that may be open, in the order of ids, each with its run's folder."""
    found: list[tuple[str, str]] = []
    for run in runs:
        for name in marked(place, "open", run):
            request_id = marked_request(place, name)
            if request_id is not None and (after is None or request_id > after):
                found.append((request_id, run))
    heapq.heapify(found)
    while found:
        yield heapq.heappop(found)


def _by_run_id(place: FilePlace, names: list[str], after: str | None) -> Iterator[tuple[str, str]]:
    """Give the run ids and folders behind an id, in the order of ids; most names have the whole id in them."""
    found: list[tuple[str, str]] = []
    for name in names:
        run_id = unescaped(name)
        if run_id is None:
            head = tried(lambda name=name: _head_in(place, name))
            run_id = head.run_id if head else None
        if run_id is not None and (after is None or run_id > after):
            found.append((run_id, name))
    heapq.heapify(found)
    while found:
        yield heapq.heappop(found)


def _header_in(place: FilePlace, name: str) -> Header | None:
    run = read_run(place.root / "runs" / name, place.store)
    return run.link(run.head.seq).header if run else None


def _workflow_of(place: FilePlace, name: str) -> str | None:
    head = _head_in(place, name)
    return head.workflow if head else None


def _head_in(place: FilePlace, name: str) -> HeadLine | None:
    run = read_run(place.root / "runs" / name, place.store)
    return run.head if run else None
