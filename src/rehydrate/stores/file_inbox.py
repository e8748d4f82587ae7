"""Inboxes in a file store: what was offered to runs that others have the hand on, one file for each offer.

A commit that takes offers is named in their files before it comes, so that they leave the inbox with it. Which offers
are the same is `inbox`'s to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from rehydrate.errors import CheckpointCorruptError, CommitConflictError, RunNotFoundError
from rehydrate.model.checkpoint import Offer

from .file_disk import make_folder, names_in, put_in_place, read_whole, write_new
from .file_format import FILE_FORMAT, OfferLine, opened_line, sealed_line
from .file_index import mark, unmark
from .file_names import offer_name, offer_number, offered_key
from .file_place import WAITING, FilePlace
from .file_reading import find_run, steadily
from .file_runs import INBOX, RunFolder
from .inbox import numbered_offer, same_offer, taken_offer


def write_offer(place: FilePlace, offer: Offer) -> int:
    """Put something into a run's inbox and return its number. Raises `RunNotFoundError` or `OfferConflictError`."""
    run = find_run(place, offer.run_id)
    if run is None:
        raise RunNotFoundError(offer.run_id)
    names = _names(run)
    for name in names:
        known = _read(place, run, name).offer if offered_key(name, offer.key) else None
        if known is not None and known.key == offer.key:
            return same_offer(known, offer)
    number = offer_number(names[-1]) + 1 if names else 1
    mark(place, "inboxes", WAITING, run.folder.name)
    make_folder(run.folder / INBOX)
    _write(place, run.folder, OfferLine("offer", FILE_FORMAT, numbered_offer(offer, number)))
    return number


def read_offers(place: FilePlace, run_id: str, after: int, limit: int) -> list[Offer]:
    """Return what is in a run's inbox behind `after`."""

    def read(run: RunFolder) -> list[Offer]:
        found: list[Offer] = []
        for name in _names(run):
            if offer_number(name) > after:
                line = _read(place, run, name)
                if not _is_taken(run, line):
                    found.append(line.offer)
                if len(found) == limit:
                    break
        return found

    return steadily(place, run_id, read) or []


def all_offers(place: FilePlace, run: RunFolder) -> list[Offer]:
    """Return everything that was ever offered to a run."""
    lines = [_read(place, run, name) for name in _names(run)]
    return [taken_offer(line.offer) if _is_taken(run, line) else line.offer for line in lines]


def check_taken(place: FilePlace, run: RunFolder | None, run_id: str, numbers: Iterable[int]) -> list[Offer]:
    """Return offers that a commit is to take. Raises `CommitConflictError` where one is not in the inbox."""
    by_number = {offer_number(name): name for name in _names(run)} if run else {}
    found: list[Offer] = []
    for number in numbers:
        line = _read(place, run, by_number[number]) if run and number in by_number else None
        if run is None or line is None or _is_taken(run, line):
            raise CommitConflictError(run_id, f"offer {number} in its inbox", "none")
        found.append(line.offer)
    return found


def take(place: FilePlace, run: RunFolder, offers: Sequence[Offer], seq: int, token: str) -> None:
    """Say of offers that they are taken if this commit comes."""
    for offer in offers:
        _write(place, run.folder, OfferLine("offer", FILE_FORMAT, offer, seq, token))


def empty(place: FilePlace, run: RunFolder, offers: Sequence[Offer]) -> None:
    """Drop the bodies of offers whose commit has come, so that they do not depend on it any more."""
    for offer in offers:
        _write(place, run.folder, OfferLine("offer", FILE_FORMAT, taken_offer(offer)))
    if offers and all(_is_taken(run, _read(place, run, name)) for name in _names(run)):
        unmark(place, "inboxes", WAITING, run.folder.name)


def settle(place: FilePlace, run: RunFolder) -> None:
    """Do that for what a process has left that died right after such a commit."""
    lines = [_read(place, run, name) for name in _names(run)]
    empty(place, run, [line.offer for line in lines if not line.offer.taken and _is_taken(run, line)])


def write_inbox(place: FilePlace, folder: Path, offers: Sequence[Offer], name: str) -> None:
    """Write all offers of a run, in its folder, which is not in its place yet; there it has this name."""
    if offers:
        make_folder(folder / INBOX)
    if any(not offer.taken for offer in offers):
        mark(place, "inboxes", WAITING, name)
    for offer in offers:
        _write(place, folder, OfferLine("offer", FILE_FORMAT, offer))


def _names(run: RunFolder) -> list[str]:
    """Return the files of a run's inbox, by number."""
    try:
        names = names_in(run.folder / INBOX)
    except FileNotFoundError:
        return []
    return sorted((name for name in names if offer_number(name)), key=offer_number)


def _is_taken(run: RunFolder, line: OfferLine) -> bool:
    return line.offer.taken or (line.by is not None and run.is_in_chain(line.by, line.token))


def _read(place: FilePlace, run: RunFolder, name: str) -> OfferLine:
    what = f"offer {offer_number(name)} to run {run.head.run_id!r} in store {place.store}"
    data = read_whole(run.folder / INBOX / name)
    if data is None:
        raise CheckpointCorruptError(what, "it is not there")
    line = opened_line(data, OfferLine, what)
    if (line.offer.run_id, line.offer.number) != (run.head.run_id, offer_number(name)):
        raise CheckpointCorruptError(what, "its file belongs to another offer")
    return line


def _write(place: FilePlace, folder: Path, line: OfferLine) -> None:
    temporary = place.temporary(".offer")
    write_new(temporary, [sealed_line(line)])
    put_in_place(temporary, folder / INBOX / offer_name(line.offer.number, line.offer.key))
