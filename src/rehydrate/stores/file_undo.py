"""The end of a run in a file store, and the end of what a process has begun that is gone.

Every function runs while no other process writes. Whatever is in `tmp` then is left behind: it names what else there
may be of it. Nothing that a run has in its chain is touched.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from rehydrate.errors import CheckpointCorruptError, CheckpointFormatError, RunBusyError
from rehydrate.model.checkpoint import Header, Status

from .file_commit import CommitFile, commit_file
from .file_disk import names_in, put_in_place, read_whole, sync_folder
from .file_format import HeadLine, opened_line
from .file_index import find, marked, names_of, remove, unmark, withdraw
from .file_names import commit_number, escaped, is_commit_folder, is_commits
from .file_place import WAITING, FilePlace, tidying
from .file_reading import find_run, is_alive
from .file_runs import RunFolder


def delete_run(place: FilePlace, run_id: str, now: Callable[[], float]) -> bool:
    """Delete a run and all that belongs to it; `False` where there was none. Raises `RunBusyError`."""
    run = find_run(place, run_id)
    if run is None:
        return False
    owner = run.head.owner
    if owner is not None and is_alive(place, run.head.standing(), now()):
        raise RunBusyError(run_id, owner)
    for seq in run.numbers(-1):
        # What points to a commit is found in it: damage is reported while all is still there.
        with run.commit(seq) as commit:
            commit.contents()
    gone = place.temporary(".gone")
    put_in_place(run.folder, gone)
    sync_folder(run.folder.parent)
    with tidying(place):
        _discard_run(place, gone)
    return True


def take_back(place: FilePlace) -> None:
    """Undo what processes that are gone have begun and not finished, and finish what they were deleting."""
    for path in place.left_behind():
        try:
            _take_one_back(place, path)
        except (CheckpointCorruptError, CheckpointFormatError):
            continue  # whoever asks for that run is told; the others are not to be held up by it
        path.unlink(missing_ok=True)


def _take_one_back(place: FilePlace, path: Path) -> None:
    match path.suffix:
        case ".run" | ".gone":
            _discard_run(place, path)
        case ".commits":
            shutil.rmtree(path)
        case ".commit":
            _discard_commit(place, path)
        case ".head":
            _take_back_head(place, path)
        case ".forget":
            _take_back_forgetting(place, path)
        case _:
            pass  # a file that was to take the place of another


def drop_other_commits(place: FilePlace, run: RunFolder) -> None:
    """Remove folders of commits that a run's head does not name, and what leads to checkpoints only they have."""
    for name in names_in(run.folder):
        if not is_commits(name) or name == run.head.commits:
            continue
        for path in _commits_in(run.folder / name):
            with contextlib.suppress(CheckpointCorruptError), commit_file(path, f"file {str(path)!r}") as commit:
                if not run.is_in_chain(commit.header.seq, commit.line.token):
                    withdraw(place, "checkpoints", (commit.header.checkpoint_id,), commit.line.token)
        shutil.rmtree(run.folder / name)


def _discard_run(place: FilePlace, folder: Path) -> None:
    """Remove the folder of a run that is no more, or never was, and what pointed to it."""
    for name in filter(is_commits, names_in(folder)):
        for path in _commits_in(folder / name):
            _discard_commit(place, path)
    shutil.rmtree(folder)


def _discard_commit(place: FilePlace, path: Path) -> None:
    """Remove what points to a commit that is not one of its run; one that is not whole has nothing that does."""
    with contextlib.suppress(CheckpointCorruptError), commit_file(path, f"file {str(path)!r}") as commit:
        run = find_run(place, commit.header.run_id)
        if run is None:
            _remove_hints(place, commit)
        else:
            _withdraw_hints(place, commit, run)


def _remove_hints(place: FilePlace, commit: CommitFile) -> None:
    """Remove what pointed to a commit of a run that is not there."""
    header = commit.header
    for kind, names in names_of(header, commit.contents()):
        remove(place, kind, names, header.run_id)
    folder = place.run_folder(header.run_id).name
    unmark(place, "workflows", header.workflow, folder)
    for kind in ("inboxes", "timers"):
        unmark(place, kind, WAITING, folder)
    for status in Status:
        unmark(place, "statuses", status, folder)
    unmark(place, "open", folder, *marked(place, "open", folder))


def _withdraw_hints(place: FilePlace, commit: CommitFile, run: RunFolder) -> None:
    """Take back what was to lead to a commit that did not come."""
    header, contents, folder = commit.header, commit.contents(), run.folder.name
    for kind, names in names_of(header, contents):
        withdraw(place, kind, names, commit.line.token)
    head = run.link(run.head.seq).header
    _unmark_statuses(place, head, folder)
    if head.due is None:
        unmark(place, "timers", WAITING, folder)
    for row in contents.requests:
        pointer = find(place, "requests", row.request_id)
        if pointer is None or pointer.request is None or pointer.request.state != "open":
            unmark(place, "open", folder, escaped(row.request_id))


def _unmark_statuses(place: FilePlace, head: Header, folder: str) -> None:
    for status in Status:
        if status is not head.status:
            unmark(place, "statuses", status, folder)


def _take_back_head(place: FilePlace, path: Path) -> None:
    """Remove a commit whose head did not come to its place."""
    lost = _head_in(path)
    run = find_run(place, lost.run_id) if lost else None
    if lost is None or run is None or run.head.token == lost.token or not run.path(lost.seq).exists():
        return
    if run.link(lost.seq).token == lost.token:
        _discard_commit(place, run.path(lost.seq))
        run.path(lost.seq).unlink()


def _take_back_forgetting(place: FilePlace, path: Path) -> None:
    """Remove what a run has twice since a process died while it forgot some of its checkpoints."""
    lost = _head_in(path)
    run = find_run(place, lost.run_id) if lost else None
    if run is not None:
        drop_other_commits(place, run)


def _head_in(path: Path) -> HeadLine | None:
    """Return the head in a file that was left behind; `None` where it is not whole, as nothing followed it then."""
    data = read_whole(path)
    with contextlib.suppress(CheckpointCorruptError):
        return opened_line(data, HeadLine, f"file {str(path)!r}") if data else None
    return None


def _commits_in(folder: Path) -> Iterator[Path]:
    for name in sorted(filter(is_commit_folder, names_in(folder))):
        for file in sorted(names_in(folder / name)):
            if commit_number(file) is not None:
                yield folder / name / file
