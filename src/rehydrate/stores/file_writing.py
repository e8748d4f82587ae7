"""What the file store writes: commits, leases, and the end of a run. docs/decisions/0016 says why in this order.

Every function runs while no other process writes. What a commit needs is written and synced first; the last rename
makes it be. A process that dies before that leaves something in `tmp`, by which the next one takes the rest back.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

from rehydrate.errors import CheckpointCorruptError, CommitConflictError, RunBusyError, WrongCallError
from rehydrate.model.checkpoint import Commit, Status

from .file_commit import CommitFile, after, commit_bytes, commit_file, contents_of
from .file_disk import make_folder, new_token, put_in_place, read_whole, sync_folder, write_new
from .file_format import FILE_FORMAT, Contents, HeadLine, LivePiece, as_number, opened_line, sealed_line
from .file_index import find, mark, point, pointers_of, remove, unmark, withdraw
from .file_names import commit_folder, commit_name, commit_number, is_commit_folder
from .file_place import FilePlace
from .file_reading import find_run, is_alive
from .file_runs import HEAD, RunFolder
from .standing import Standing, check_commit, id_in_use, standing_after, standing_renewed

#: A table of what is live is written once the commits since the last hold more entries than this, and than it would.
_ENTRIES: Final = 64
_COMMIT: Final = ".commit"
_HEAD: Final = ".head"
_NEW_RUN: Final = ".run"
_GONE_RUN: Final = ".gone"


def write_commit(place: FilePlace, commit: Commit, now: Callable[[], float]) -> None:
    """Write a commit. Raises `CommitConflictError` where head, epoch, an id or a key is not as expected."""
    header, lease = commit.header, commit.lease
    run = find_run(place, header.run_id)
    check_commit(commit, run.head.standing() if run else None)
    if header.seq < 0:
        raise WrongCallError(f"a checkpoint of run {header.run_id!r} has number {header.seq}.", "Count from 0.")
    _check_names(place, commit)
    if lease.seconds > 0:
        place.owners.hold(lease.owner)
    token, contents = new_token(), contents_of(commit)
    live, since = _table(run, commit, contents)
    base = header.seq if run is None or live is not None else run.line(run.head.seq).base
    pieces = commit_bytes(commit, contents, token, run.head.seq if run else None, base, live)
    head = sealed_line(_head_line(standing_after(commit, now()), token, since))
    if run is None:
        _start(place, commit, token, pieces, head)
    else:
        _go_on(place, run, commit, token, pieces, head)


def renew_lease(place: FilePlace, run_id: str, owner: str, epoch: int, until: float) -> None:
    """Lengthen a lease. Raises `CommitConflictError` where owner or epoch are not the run's."""
    run = find_run(place, run_id)
    renewed = standing_renewed(run.head.standing() if run else None, run_id, owner, epoch, until)
    if run is None:
        return
    place.owners.hold(owner)
    temporary = place.temporary(".lease")
    write_new(temporary, [sealed_line(_head_line(renewed, run.head.token, run.head.since))])
    put_in_place(temporary, run.folder / HEAD)


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
    gone = place.temporary(_GONE_RUN)
    put_in_place(run.folder, gone)
    sync_folder(run.folder.parent)
    _discard_run(place, gone)
    return True


def take_back(place: FilePlace) -> None:
    """Undo what processes that are gone have begun and not finished, and finish what they were deleting."""
    for path in place.left_behind():
        match path.suffix:
            case ".run" | ".gone":
                _discard_run(place, path)
            case ".commit":
                _discard_commit(place, path)
            case ".head":
                _take_back_head(place, path)
            case _:
                pass  # a file that was to take the place of another
        path.unlink(missing_ok=True)


def _check_names(place: FilePlace, commit: Commit) -> None:
    header = commit.header
    taken = find(place, "checkpoints", header.checkpoint_id)
    if taken is not None:
        raise id_in_use(header, taken.run_id, taken.seq)
    for row in commit.requests:
        known = find(place, "requests", row.request_id)
        if known is not None and known.run_id != row.run_id:
            raise CommitConflictError(header.run_id, f"request {row.request_id} as its own", "another run's")
    turn = commit.turn
    held = find(place, "turns", turn.workflow, turn.key) if turn else None
    if turn and held and held.turn and (held.run_id, held.turn.number) != (turn.run_id, turn.number):
        raise CommitConflictError(header.run_id, f"key {turn.key!r} as its own", "another turn's")


def _table(run: RunFolder | None, commit: Commit, contents: Contents) -> tuple[dict[str, LivePiece] | None, int]:
    """Return the table of what is live, where this commit is to have one, and what has been written since the last."""
    if run is None:
        return after({}, commit.header.seq, contents), 0
    since = run.head.since + len(contents.puts) + len(contents.removes) + 1
    if since <= max(_ENTRIES, commit.header.records):
        return None, since
    return after(run.live_at(run.head.seq), commit.header.seq, contents), 0


def _head_line(standing: Standing, token: str, since: int) -> HeadLine:
    return HeadLine(
        rehydrate="head",
        format=FILE_FORMAT,
        run_id=standing.run_id,
        workflow=standing.workflow,
        checkpoint_id=standing.checkpoint_id,
        seq=standing.seq,
        token=token,
        epoch=standing.epoch,
        owner=standing.owner,
        lease_end=as_number(standing.lease_end),
        since=since,
    )


def _start(place: FilePlace, commit: Commit, token: str, pieces: list[bytes], head: bytes) -> None:
    """Write the first commit of a run: its whole folder, which comes to its place last."""
    header = commit.header
    target, folder = place.run_folder(header.run_id), place.temporary(_NEW_RUN, token)
    commits = folder / commit_folder(header.seq)
    folder.mkdir()
    commits.mkdir()
    write_new(commits / commit_name(header.seq), pieces)
    write_new(folder / HEAD, [head])
    sync_folder(commits)
    sync_folder(folder)
    for kind, pointer in pointers_of(commit, token):
        point(place, kind, pointer)
    mark(place, "workflows", header.workflow, target.name)
    mark(place, "statuses", header.status, target.name)
    put_in_place(folder, target)


def _go_on(place: FilePlace, run: RunFolder, commit: Commit, token: str, pieces: list[bytes], head: bytes) -> None:
    """Write a commit of a run that is there: the new head comes to its place last."""
    header, name = commit.header, run.folder.name
    temporary, new_head = place.temporary(_COMMIT, token), place.temporary(_HEAD, token)
    former = run.line(run.head.seq).header.status
    write_new(temporary, pieces)
    for kind, pointer in pointers_of(commit, token):
        point(place, kind, pointer)
    if header.status is not former:
        mark(place, "statuses", header.status, name)
    write_new(new_head, [head])
    path = run.path(header.seq)
    make_folder(path.parent)
    put_in_place(temporary, path)
    put_in_place(new_head, run.folder / HEAD)
    if header.status is not former:
        unmark(place, "statuses", former, name)


def _discard_run(place: FilePlace, folder: Path) -> None:
    """Remove the folder of a run that is no more, or never was, and what pointed to it."""
    for path in _commits_in(folder):
        _discard_commit(place, path)
    shutil.rmtree(folder)


def _discard_commit(place: FilePlace, path: Path) -> None:
    """Remove what points to a commit that is not one of its run; one that is not whole has nothing that does."""
    with contextlib.suppress(CheckpointCorruptError), commit_file(path, f"file {str(path)!r}") as commit:
        _remove_hints(place, commit)


def _remove_hints(place: FilePlace, commit: CommitFile) -> None:
    header, token, contents = commit.header, commit.line.token, commit.contents()
    names: list[tuple[str, tuple[str, ...]]] = [("checkpoints", (header.checkpoint_id,))]
    names += [("requests", (row.request_id,)) for row in contents.requests]
    if contents.turn is not None:
        names.append(("turns", (contents.turn.workflow, contents.turn.key)))
    run = find_run(place, header.run_id)
    for kind, key in names:
        if run is None:
            remove(place, kind, key, header.run_id)
        else:
            withdraw(place, kind, key, token)
    folder = place.run_folder(header.run_id).name
    if run is None:
        unmark(place, "workflows", header.workflow, folder)
    # A process that died right after a commit has left the mark of the status before.
    now = run.line(run.head.seq).header.status if run else None
    for status in Status:
        if status is not now:
            unmark(place, "statuses", status, folder)


def _take_back_head(place: FilePlace, path: Path) -> None:
    """Remove a commit whose head did not come to its place."""
    data = read_whole(path)
    if data is None:
        return
    with contextlib.suppress(CheckpointCorruptError):
        lost = opened_line(data, HeadLine, f"file {str(path)!r}")
        run = find_run(place, lost.run_id)
        if run is None or run.head.token == lost.token or not run.path(lost.seq).exists():
            return
        if run.line(lost.seq).token == lost.token:
            _discard_commit(place, run.path(lost.seq))
            run.path(lost.seq).unlink()


def _commits_in(folder: Path) -> list[Path]:
    folders = [path for path in folder.iterdir() if is_commit_folder(path.name)]
    return sorted(path for shard in folders for path in shard.iterdir() if commit_number(path.name) is not None)
