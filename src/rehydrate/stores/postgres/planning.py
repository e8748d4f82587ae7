"""Plans of commits: how each is laid out, and whether what is live is written with it.

What is live is written once in a while only: most records are replaced before. It reads, for those commits that need it
and inside of their transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from rehydrate.errors import RehydrateError
from rehydrate.model.checkpoint import Commit
from rehydrate.stores.packing import SMALL, Source, replaced_keys

from .layout import Did, Place, folded, laid_out
from .records import named_places, raw_bytes
from .session import Session
from .waves import Plan, in_order

#: What is live is written with every so manieth commit of a run, and with one that does so much.
_EVERY: Final = 64
#: But not with one that comes so soon after another.
_FEW: Final = 60
_MUCH: Final = 256


def planned(session: Session, commits: Sequence[Commit]) -> list[Plan | RehydrateError]:
    """Return how commits of different runs are written, or what is wrong with one or its run.

    Their runs are locked where something is read for that.
    """
    replaced = [replaced_keys(commit) if commit.expected is not None else [] for commit in commits]
    writes = [_writes_live(commit, keys) for commit, keys in zip(commits, replaced, strict=True)]
    if any(commit.expected is not None and live for commit, live in zip(commits, writes, strict=True)):
        session.ask(*in_order(commits))
    plans: list[Plan | RehydrateError] = []
    for commit, keys, live in zip(commits, replaced, writes, strict=True):
        try:
            plans.append(_plan(session, commit, keys) if live else Plan(laid_out(commit, session.store, [])))
        except RehydrateError as error:
            plans.append(error)
    return plans


def _writes_live(commit: Commit, replaced: Sequence[str]) -> bool:
    # With one that merges records, as the small ones are then gone again; else as far from those as can be.
    return _is_large(commit) or commit.header.seq % _EVERY == _EVERY // 2 or bool(replaced)


def _is_large(commit: Commit) -> bool:
    return len(commit.puts) + len(commit.removes) > _MUCH


def _plan(session: Session, commit: Commit, replaced: Sequence[str]) -> Plan:
    run_id = commit.header.run_id
    what = f"run {run_id!r} in store {session.store}"
    window: Sequence[Did] = ()
    sources: list[Source] = []
    if commit.expected is not None:
        no, window, places = named_places(session, run_id, replaced, what)
        sources = _sources(session, no, {place.key: place for place in places} | folded(window), replaced, what)
    layout = laid_out(commit, session.store, sources)
    if len(window) < _FEW and not _is_large(commit) and not replaced:
        return Plan(layout)
    return Plan(layout, folded([*window, (commit.header.seq, layout.entries)]))


def _sources(
    session: Session, no: int, found: Mapping[str, Place | None], keys: Sequence[str], what: str
) -> list[Source]:
    """Return the small records under some keys, in the order in which they were written."""
    places = [place for key in keys if (place := found.get(key)) is not None and _is_source(place)]
    places.sort(key=lambda place: (place.seq, place.start))
    data = raw_bytes(session, no, places, what)
    return [Source(place.seq, place.start, small) for place, small in zip(places, data, strict=True)]


def _is_source(place: Place) -> bool:
    return place.start >= 0 and 0 < place.size < SMALL
