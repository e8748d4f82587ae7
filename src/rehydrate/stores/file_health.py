"""How a file store is: its folder and marker, what is left over in it, how large it is, and its lock files.

It takes no lock and writes nothing, so it may run beside everything else.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from rehydrate.errors import RehydrateError
from rehydrate.ports import Examination, Finding

from .file_disk import check_is_folder, names_in, read_whole, translated
from .file_format import MarkerLine, opened_line
from .file_place import FOLDERS, LOCKS, MARKER, TEMPORARY
from .findings import counted, of_disk, of_error, of_owners, size_text

#: Without `full` sizes are summed up over so many files.
_FILES: Final = 20_000
#: What has not come to its place in this many seconds was left by a process that is gone.
_LEFT: Final = 60.0


def examine_folder(path: str, *, full: bool) -> Examination:
    """Look at the folder of a store; see `rehydrate.ports.Examined`."""
    findings: list[Finding] = []
    usable = False
    try:
        usable = _look(Path(path), findings, full=full)
    except RehydrateError as error:
        findings.append(of_error("folder", error))
    except OSError as error:
        findings.append(of_error("folder", translated(error, repr(path))))
    return Examination(tuple(findings), usable)


def _look(root: Path, findings: list[Finding], *, full: bool) -> bool:
    store = repr(str(root))
    marker = read_whole(root / MARKER) if check_is_folder(root) else None
    if marker is None:
        there = root.exists()
        what = f"the folder {store} has no {MARKER}" if there else f"there is no store at {store}"
        findings.append(Finding("folder", "problem", f"{what}.", "Check the path; a run makes a store."))
        return False
    opened_line(marker, MarkerLine, f"{MARKER} of store {store}")
    missing = [name for name in (*FOLDERS, LOCKS) if not check_is_folder(root / name)]
    if missing:
        text = f"of store {store} these folders are not there: {', '.join(missing)}."
        findings.append(Finding("folder", "problem", text, "Restore the folder from a backup."))
        return False
    findings += [_size(root, store, full=full), *_rights(root), _left_over(root)]
    findings += [of_disk(root), of_owners(root / LOCKS)]
    return True


def _size(root: Path, store: str, *, full: bool) -> Finding:
    size, count = 0, 0
    for path in islice(_files(root), None if full else _FILES):
        try:
            size += path.lstat().st_blocks * 512
        except FileNotFoundError:  # gone meanwhile
            continue
        count += 1
    more = "" if full or count < _FILES else "more than "
    return Finding("folder", "ok", f"{store}, {more}{size_text(size)} of the disk in {more}{counted(count, 'file')}.")


def _files(root: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(root):
        yield from (Path(folder) / name for name in names)


def _rights(root: Path) -> Iterator[Finding]:
    closed = [name for name in ("", *FOLDERS, LOCKS) if not os.access(root / name, os.R_OK | os.W_OK | os.X_OK)]
    if not closed:
        yield Finding("writing", "ok", "this process may write in all of its folders.")
        return
    where = ", ".join(name or str(root) for name in closed)
    yield Finding(
        "writing", "problem", f"this process may not write in {where}.", "Give it the right to read and write there."
    )


def _left_over(root: Path) -> Finding:
    now = time.time()
    left = 0
    for name in names_in(root / TEMPORARY):
        try:
            left += now - (root / TEMPORARY / name).lstat().st_mtime > _LEFT
        except FileNotFoundError:  # brought to its place meanwhile
            continue
    if not left:
        return Finding("left over", "ok", "no process has left anything unfinished.")
    text = f"{counted(left, 'file')} in {TEMPORARY}/: left by a process that is gone."
    return Finding("left over", "note", text, "Nothing: the next write takes back what is unfinished.")
