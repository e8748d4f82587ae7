"""What the file store writes: commits, leases, and runs as a whole. docs/decisions/0016-file-store.md has the reasons.

Every function runs while no other process writes. What a commit needs is written and synced first; the last rename
makes it be. A process that dies before that leaves something in `tmp`, by which `file_undo` takes the rest back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from rehydrate.errors import CommitConflictError, WrongCallError
from rehydrate.model.checkpoint import Commit, Header, Offer, RequestRow, TurnRow

from .file_commit import Part, advance
from .file_disk import make_folder, new_token, put_in_place, sync_folder, write_new
from .file_format import FILE_FORMAT, Contents, HeadLine, LivePiece, TagsLine, as_number, sealed_line
from .file_inbox import check_taken, empty, take, write_inbox
from .file_index import find, hint, mark, unmark
from .file_names import commit_folder, commit_name, commits_name, escaped
from .file_place import WAITING, FilePlace, tidying
from .file_reading import find_run
from .file_runs import HEAD, TAGS, RunFolder
from .standing import Standing, check_commit, id_in_use, numbered_events, standing_after, standing_renewed

#: A table of what is live is written once the commits since the last hold more entries than this, and than it would.
_ENTRIES: Final = 64


def write_commit(place: FilePlace, commit: Commit, now: Callable[[], float]) -> None:
    """Write a commit. Raises `CommitConflictError` where head, epoch, an id or a key is not as expected."""
    header, lease = commit.header, commit.lease
    run = find_run(place, header.run_id)
    check_commit(commit, run.head.standing() if run else None)
    if header.seq < 0:
        raise WrongCallError(f"a checkpoint of run {header.run_id!r} has number {header.seq}.", "Count from 0.")
    turns = () if commit.turn is None else (commit.turn,)
    check_names(place, header, commit.requests, turns)
    offers = check_taken(place, run, header.run_id, commit.taken)
    if lease.seconds > 0:
        place.owners.hold(lease.owner)
    part = Part(
        header,
        new_token(),
        commit.puts,
        commit.removes,
        commit.requests,
        turns,
        numbered_events(commit),
        commit.taken,
    )
    standing = standing_after(commit, now())
    if run is None:
        start_run(place, [part], standing)
    else:
        _go_on(place, run, part, standing, offers)


def renew_lease(place: FilePlace, run_id: str, owner: str, epoch: int, until: float) -> None:
    """Lengthen a lease. Raises `CommitConflictError` where owner or epoch are not the run's."""
    run = find_run(place, run_id)
    renewed = standing_renewed(run.head.standing() if run else None, run_id, owner, epoch, until)
    if run is None:
        return
    place.owners.hold(owner)
    temporary = place.temporary(".lease")
    write_new(temporary, [head_line(renewed, run.head.token, run.head.commits, run.head.since)])
    put_in_place(temporary, run.folder / HEAD)


def check_names(place: FilePlace, header: Header, requests: Iterable[RequestRow], turns: Iterable[TurnRow]) -> None:
    """Raise `CommitConflictError` where an id or a key is another run's or turn's."""
    taken = find(place, "checkpoints", header.checkpoint_id)
    if taken is not None:
        raise id_in_use(header, taken.run_id, taken.seq)
    for row in requests:
        known = find(place, "requests", row.request_id)
        if known is not None and known.run_id != row.run_id:
            raise CommitConflictError(header.run_id, f"request {row.request_id} as its own", "another run's")
    for turn in turns:
        held = find(place, "turns", turn.workflow, turn.key)
        if held and held.turn and (held.run_id, held.turn.number) != (turn.run_id, turn.number):
            raise CommitConflictError(header.run_id, f"key {turn.key!r} as its own", "another turn's")


def start_run(
    place: FilePlace,
    parts: Sequence[Part],
    standing: Standing,
    tags: Mapping[str, str] | None = None,
    offers: Sequence[Offer] = (),
) -> None:
    """Write a run that is not there: its whole folder, which comes to its place last."""
    last = parts[-1]
    target, folder = place.run_folder(standing.run_id), place.temporary(".run", last.token)
    folder.mkdir()
    since = write_parts(folder / commits_name(1), parts)
    write_inbox(place, folder, offers, target.name)
    if tags:
        write_new(folder / TAGS, [tags_line(standing.run_id, tags)])
    write_new(folder / HEAD, [head_line(standing, last.token, commits_name(1), since)])
    sync_folder(folder)
    for part in parts:
        hint(place, target.name, part)
    mark(place, "workflows", last.header.workflow, target.name)
    mark(place, "statuses", last.header.status, target.name)
    if last.header.due is not None:
        mark(place, "timers", WAITING, target.name)
    put_in_place(folder, target)


def write_parts(commits: Path, parts: Iterable[Part]) -> int:
    """Write all commits of a run into a new folder, and return how many entries there are since the last table."""
    commits.mkdir()
    live: dict[str, LivePiece] = {}
    previous: int | None = None
    base = since = 0
    for part in parts:
        seq, contents = part.header.seq, part.contents()
        advance(live, seq, contents)
        since += _entries(contents)
        has_table = previous is None or since > max(_ENTRIES, len(live))
        if has_table:
            base, since = seq, 0
        folder = commits / commit_folder(seq)
        folder.mkdir(exist_ok=True)
        write_new(folder / commit_name(seq), part.pieces(contents, previous, base, live if has_table else None))
        previous = seq
    for folder in commits.iterdir():
        sync_folder(folder)
    sync_folder(commits)
    return since


def head_line(standing: Standing, token: str, commits: str, since: int) -> bytes:
    """Return what a head file holds."""
    line = HeadLine(
        rehydrate="head",
        format=FILE_FORMAT,
        commits=commits,
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
    return sealed_line(line)


def tags_line(run_id: str, tags: Mapping[str, str]) -> bytes:
    """Return what the file of the names of a run's checkpoints holds."""
    return sealed_line(TagsLine("tags", FILE_FORMAT, run_id, dict(tags)))


def _go_on(place: FilePlace, run: RunFolder, part: Part, standing: Standing, offers: Sequence[Offer]) -> None:
    """Write a commit of a run that is there: the new head comes to its place last."""
    header, name, former = part.header, run.folder.name, run.link(run.head.seq)
    contents = part.contents()
    since = run.head.since + _entries(contents)
    live: dict[str, LivePiece] | None = None
    if since > max(_ENTRIES, header.records):
        live, since = run.live_at(run.head.seq), 0
        advance(live, header.seq, contents)
    base = former.base if live is None else header.seq
    temporary, new_head = place.temporary(".commit", part.token), place.temporary(".head", part.token)
    write_new(temporary, part.pieces(contents, run.head.seq, base, live))
    hint(place, name, part)
    take(place, run, offers, header.seq, part.token)
    if header.status is not former.header.status:
        mark(place, "statuses", header.status, name)
    if header.due is not None:
        mark(place, "timers", WAITING, name)
    write_new(new_head, [head_line(standing, part.token, run.head.commits, since)])
    path = run.path(header.seq)
    make_folder(path.parent)
    put_in_place(temporary, path)
    put_in_place(new_head, run.folder / HEAD)
    # From here on the commit is there. What follows is looked through where it is missing.
    with tidying(place):
        if header.status is not former.header.status:
            unmark(place, "statuses", former.header.status, name)
        if header.due is None and former.header.due is not None:
            unmark(place, "timers", WAITING, name)
        closed = [escaped(row.request_id) for row in part.requests if row.state != "open"]
        if closed:
            unmark(place, "open", name, *closed)
        empty(place, run, offers)


def _entries(contents: Contents) -> int:
    return len(contents.puts) + len(contents.removes) + 1
