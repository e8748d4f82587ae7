"""Names of checkpoints in a file store, what is forgotten of a run, and whole runs as archives.

Writing functions run while no other process writes. A run that forgets gets a new folder of commits, in which what the
forgotten ones wrote and others need is the next one's; its head names that folder, so that it is all or nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import msgspec

from rehydrate.errors import CheckpointCorruptError, CheckpointNotFoundError, CommitConflictError, RunNotFoundError
from rehydrate.model.checkpoint import Archive, Commit, Header, Put, RequestRow, StoredEvent, TurnRow

from .archives import adopted, archived, check_archive
from .file_commit import Part, advance, pieces_of
from .file_disk import new_token, put_in_place, write_new
from .file_format import LivePiece
from .file_inbox import all_offers, settle
from .file_index import find, point, pointers_of
from .file_names import commits_name
from .file_place import FilePlace, tidying
from .file_reading import find_run, in_chain, steadily
from .file_runs import HEAD, TAGS, RunFolder
from .file_undo import drop_other_commits
from .file_writing import check_names, head_line, start_run, tags_line, write_parts
from .retention import droppable
from .standing import standing_after


def write_tag(place: FilePlace, run_id: str, name: str, checkpoint_id: str | None) -> None:
    """Give a checkpoint a name, or take the name back. Raises `CheckpointNotFoundError`."""
    run = find_run(place, run_id)
    if run is None:
        raise RunNotFoundError(run_id)
    tags = run.tags()
    if checkpoint_id is None:
        if tags.pop(name, None) is None:
            return
    else:
        pointer = find(place, "checkpoints", checkpoint_id)
        if pointer is None or pointer.run_id != run_id:
            raise CheckpointNotFoundError(checkpoint_id)
        tags[name] = checkpoint_id
    temporary = place.temporary(".tags")
    write_new(temporary, [tags_line(run_id, tags)])
    put_in_place(temporary, run.folder / TAGS)


def read_tags(place: FilePlace, run_id: str) -> dict[str, str]:
    """Return the names of a run's checkpoints with their ids."""
    return steadily(place, run_id, RunFolder.tags) or {}


def forget_checkpoints(place: FilePlace, run_id: str, asked: Sequence[int]) -> list[int]:
    """Drop checkpoints, but for the head and what has a name, and what no other one needs."""
    run = find_run(place, run_id)
    if run is None:
        return []
    known = list(in_chain(run, -1))
    tagged = {_number_of(place, checkpoint_id) for checkpoint_id in run.tags().values()}
    dropped = droppable(run.head.seq, tagged, set(known), asked)
    if not dropped:
        return []
    settle(place, run)
    token, commits = new_token(), commits_name(int(run.head.commits.rpartition("-")[2]) + 1)
    intent, fresh = place.temporary(".forget", token), place.temporary(".commits", token)
    # By its name it is found what there is twice; how many entries follow the last table is known later.
    write_new(intent, [head_line(run.head.standing(), run.head.token, commits, 0)])
    since = write_parts(fresh, _kept(place, run, known, set(dropped)))
    new_head = place.temporary(".lease")
    write_new(new_head, [head_line(run.head.standing(), run.head.token, commits, since)])
    put_in_place(fresh, run.folder / commits)
    put_in_place(new_head, run.folder / HEAD)
    with tidying(place):
        now = find_run(place, run_id)
        if now is not None:
            drop_other_commits(place, now)
        intent.unlink()
    return dropped


def read_archive(place: FilePlace, run_id: str) -> Archive | None:
    """Return a whole run, or `None`. Raises `CheckpointCorruptError` where any of it is."""
    archive = steadily(place, run_id, lambda run: _archive(place, run))
    if archive is not None:
        check_archive(archive)
    return archive


def write_archive(place: FilePlace, archive: Archive) -> None:
    """Write a whole run that was checked. Raises `CommitConflictError` where it, an id or a key is there already."""
    run_id = archive.commits[0].header.run_id
    known = find_run(place, run_id)
    if known is not None:
        raise CommitConflictError(run_id, "no such run", f"head {known.head.checkpoint_id}")
    commits = list(adopted(archive))
    for commit in commits:
        check_names(place, commit.header, commit.requests, ())
    check_names(place, commits[-1].header, (), archive.turns)
    events = iter(archive.events)
    waiting = next(events, None)
    parts: list[Part] = []
    for commit in commits:
        told: list[StoredEvent] = []
        while waiting is not None and waiting.number <= commit.header.events:
            told.append(waiting)
            waiting = next(events, None)
        turns = archive.turns if commit is commits[-1] else ()
        parts.append(Part(commit.header, new_token(), commit.puts, commit.removes, commit.requests, turns, told))
    start_run(place, parts, standing_after(commits[-1], 0.0), archive.tags, archive.offers)


def _number_of(place: FilePlace, checkpoint_id: str) -> int:
    pointer = find(place, "checkpoints", checkpoint_id)
    if pointer is None:
        raise CheckpointCorruptError(f"checkpoint {checkpoint_id!r} in store {place.store}", "it has a name only")
    return pointer.seq


class _Gathered:
    """What commits wrote since the last one that stays."""

    def __init__(self) -> None:
        self.before: dict[str, LivePiece | None] = {}
        self.requests: dict[str, RequestRow] = {}
        self.turns: dict[tuple[str, str], TurnRow] = {}
        self.events: list[StoredEvent] = []


def _kept(place: FilePlace, run: RunFolder, known: Sequence[int], dropped: set[int]) -> Iterator[Part]:
    """Give the commits that stay, with what the dropped ones before them wrote, and let rows be found there."""
    live: dict[str, LivePiece] = {}
    gathered, named, moved = _Gathered(), None, False
    for seq in known:
        with run.commit(seq) as commit:
            header, token, contents = commit.header, commit.line.token, commit.contents()
            gathered.events += commit.events()
        for key in itertools.chain(contents.removes, (piece.key for piece in contents.puts)):
            gathered.before.setdefault(key, live.get(key))
        advance(live, seq, contents)
        gathered.requests.update((row.request_id, row) for row in contents.requests)
        gathered.turns.update(((turn.workflow, turn.key), turn) for turn in contents.turns)
        if seq in dropped:
            moved = True
            continue
        header = msgspec.structs.replace(header, previous_checkpoint_id=named)
        part = _part(run, header, token, live, gathered)
        if moved:
            _find_there(place, part, dropped)
        yield part
        gathered, named, moved = _Gathered(), header.checkpoint_id, False


def _part(run: RunFolder, header: Header, token: str, live: dict[str, LivePiece], gathered: _Gathered) -> Part:
    puts = {key: live[key] for key, before in gathered.before.items() if key in live and live[key] != before}
    records, _ = run.records(puts)
    return Part(
        header,
        token,
        [Put(key, records[key]) for key in puts],
        [key for key, before in gathered.before.items() if key not in live and before is not None],
        list(gathered.requests.values()),
        list(gathered.turns.values()),
        gathered.events,
    )


def _find_there(place: FilePlace, part: Part, dropped: set[int]) -> None:
    """Let requests and turns whose newest row was a dropped commit's be found in the next one, which has it now."""
    for kind, pointer in pointers_of(part):
        if kind == "checkpoints":
            continue
        known = find(place, kind, *pointer.names)
        if known is not None and known.run_id == pointer.run_id and known.seq in dropped:
            point(place, kind, pointer)


def _archive(place: FilePlace, run: RunFolder) -> Archive:
    commits: list[Commit] = []
    events: list[StoredEvent] = []
    requests: dict[str, RequestRow] = {}
    turns: dict[tuple[str, str], TurnRow] = {}
    for seq in in_chain(run, -1):
        with run.commit(seq) as commit:
            contents = commit.contents()
            changed: dict[str, bytes | None] = dict.fromkeys(contents.removes)
            changed.update((key, commit.record(key, piece)[0]) for key, piece in pieces_of(seq, contents.puts))
            commits.append(archived(commit.header, changed))
            events += commit.events()
        requests.update((row.request_id, row) for row in contents.requests)
        turns.update(((turn.workflow, turn.key), turn) for turn in contents.turns)
    return Archive(
        commits=tuple(commits),
        events=tuple(events),
        requests=tuple(requests[request_id] for request_id in sorted(requests)),
        turns=tuple(turns[name] for name in sorted(turns)),
        tags=run.tags(),
        offers=tuple(all_offers(place, run)),
    )
