"""The indexes of a file store: pointers by id, and marks by status, workflow and run of open requests.

Both are written before the commit that they are about, so one may be about a commit that never came. Therefore each is
a hint: what it says holds where the run has that commit in its chain. A missing hint is a missing answer.
"""

from __future__ import annotations

import contextlib
import os
from functools import partial
from pathlib import Path

import msgspec

from rehydrate.errors import CheckpointCorruptError
from rehydrate.model.checkpoint import Header

from .file_commit import Part
from .file_disk import make_folder, names_in, put_in_place, read_whole, sync_folder, write_new
from .file_format import FILE_FORMAT, Contents, PointerLine, opened_line, sealed_line
from .file_names import escaped, hashed_name, unescaped
from .file_place import FilePlace
from .file_runs import run_folder


def find(place: FilePlace, kind: str, *names: str) -> PointerLine | None:
    """Return the pointer under an id that holds, if any; `kind` is `checkpoints`, `requests` or `turns`."""
    pointer = _read(place.pointer(kind, *names), names, f"the pointer to {names[-1]!r} in store {place.store}")
    while pointer is not None and not _holds(place, pointer):
        pointer = pointer.before
    return pointer


def point(place: FilePlace, kind: str, pointer: PointerLine) -> None:
    """Write a pointer that lasts. The one that holds stays in it, for as long as its commit may not come."""
    path = place.pointer(kind, *pointer.names)
    before = find(place, kind, *pointer.names)
    if before is not None:
        pointer = msgspec.structs.replace(pointer, before=msgspec.structs.replace(before, before=None))
    make_folder(path.parent)
    _replace(place, path, pointer)


def pointers_of(part: Part) -> list[tuple[str, PointerLine]]:
    """Return the pointers to a commit, each with its kind."""
    to = partial(PointerLine, "pointer", FILE_FORMAT, run_id=part.header.run_id, seq=part.header.seq, token=part.token)
    found = [("checkpoints", to(names=(part.header.checkpoint_id,)))]
    found += [("requests", to(names=(row.request_id,), request=row)) for row in part.requests]
    found += [("turns", to(names=(turn.workflow, turn.key), turn=turn)) for turn in part.turns]
    return found


def names_of(header: Header, contents: Contents) -> list[tuple[str, tuple[str, ...]]]:
    """Return what may point to a commit: kinds of pointers, and the ids that they stand under."""
    found: list[tuple[str, tuple[str, ...]]] = [("checkpoints", (header.checkpoint_id,))]
    found += [("requests", (row.request_id,)) for row in contents.requests]
    found += [("turns", (turn.workflow, turn.key)) for turn in contents.turns]
    return found


def hint(place: FilePlace, run: str, part: Part) -> None:
    """Write all that is to be found of a commit, before it comes; `run` is the name of the run's folder."""
    for kind, pointer in pointers_of(part):
        point(place, kind, pointer)
    asked = [row.request_id for row in part.requests if row.state == "open"]
    if asked:
        mark(place, "open", run, *map(escaped, asked))


def withdraw(place: FilePlace, kind: str, names: tuple[str, ...], token: str) -> None:
    """Take back the pointer to a commit that did not come."""
    path = place.pointer(kind, *names)
    pointer = _read(path, names, f"the pointer to {names[-1]!r} in store {place.store}")
    if pointer is None or pointer.token != token:
        return
    if pointer.before is None:
        path.unlink()
    else:
        _replace(place, path, pointer.before)


def remove(place: FilePlace, kind: str, names: tuple[str, ...], run_id: str) -> None:
    """Remove the pointer under an id, unless it is another run's."""
    path = place.pointer(kind, *names)
    pointer = _read(path, names, f"the pointer to {names[-1]!r} in store {place.store}")
    if pointer is not None and pointer.run_id == run_id:
        path.unlink(missing_ok=True)


def mark(place: FilePlace, kind: str, value: str, *names: str) -> None:
    """Note names under a value: folders of runs under a status or workflow, requests under a run's folder."""
    folder = place.marks(kind, value)
    make_folder(folder)
    for name in names:
        descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        os.close(descriptor)
    sync_folder(folder)


def unmark(place: FilePlace, kind: str, value: str, *names: str) -> None:
    """Take that back. A crash may leave a mark; it is looked through."""
    folder = place.marks(kind, value)
    for name in names:
        (folder / name).unlink(missing_ok=True)
    if kind == "open":
        with contextlib.suppress(OSError):  # others are left in it, or it is not there
            folder.rmdir()


def marked(place: FilePlace, kind: str, value: str) -> list[str]:
    """Return the names under a value."""
    with contextlib.suppress(FileNotFoundError):
        return names_in(place.marks(kind, value))
    return []


def marked_request(place: FilePlace, name: str) -> str | None:
    """Return the id of the request that is noted under a name; `None` where it is none any more."""
    request_id = unescaped(name)
    if request_id is not None:
        return request_id
    hashed = hashed_name(name)
    data = read_whole(place.root.joinpath("requests", *hashed)) if hashed else None
    if data is None:
        return None
    return opened_line(data, PointerLine, f"a pointer to a request in store {place.store}").names[-1]


def values(place: FilePlace, kind: str) -> list[str]:
    """Return the values that have names under them, as they are written."""
    return names_in(place.root / kind)


def _holds(place: FilePlace, pointer: PointerLine) -> bool:
    run = run_folder(place.run_folder(pointer.run_id), pointer.run_id, place.store)
    return run is not None and run.is_in_chain(pointer.seq, pointer.token)


def _read(path: Path, names: tuple[str, ...], what: str) -> PointerLine | None:
    data = read_whole(path)
    if data is None:
        return None
    pointer = opened_line(data, PointerLine, what)
    if pointer.names != names:
        raise CheckpointCorruptError(what, "it is another one's")
    return pointer


def _replace(place: FilePlace, path: Path, pointer: PointerLine) -> None:
    temporary = place.temporary(".pointer")
    write_new(temporary, [sealed_line(pointer)])
    put_in_place(temporary, path)
