"""What the file store reads of one run: heads, checkpoints with their records, a request, a turn, headers and events.

No lock is taken. Where files of a run are missing because it was deleted or went on meanwhile, the answer is looked
for again; what does not fit together then is `CheckpointCorruptError`, never a shorter answer.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from rehydrate.codecs.checkpoints import check_digests
from rehydrate.errors import CheckpointCorruptError
from rehydrate.model.checkpoint import (
    At,
    CheckpointRef,
    Head,
    Header,
    Latest,
    RequestRow,
    Stored,
    StoredEvent,
    TurnRow,
)

from .file_format import PointerLine
from .file_index import find
from .file_place import WAITING, FilePlace
from .file_runs import RunFolder, run_folder
from .standing import Standing

_T = TypeVar("_T")
#: How often an answer is looked for while its run goes on or is deleted under it.
_TRIES: Final = 100


def find_run(place: FilePlace, run_id: str) -> RunFolder | None:
    """Return a run, or `None`."""
    return run_folder(place.run_folder(run_id), run_id, place.store)


def is_alive(place: FilePlace, standing: Standing, now: float) -> bool:
    """Say whether a run's lease holds and its owner's process is there."""
    owner = standing.owner
    return owner is not None and standing.lease_end > now and place.owners.lives(owner)


def read_head(place: FilePlace, run_id: str, now: Callable[[], float]) -> Head | None:
    """Return the run's head, or `None`."""
    return steadily(place, run_id, lambda run: _head(place, run, now()))


def read_checkpoint(place: FilePlace, ref: CheckpointRef, now: Callable[[], float]) -> Stored | None:
    """Return a checkpoint with its records, checked against its header's sum, or `None`."""
    if isinstance(ref, Latest):
        return steadily(place, ref.run_id, lambda run: _stored(place, run, run.head.seq, now))
    if isinstance(ref, At):
        return steadily(place, ref.run_id, lambda run: _stored_at(place, run, ref.at, now))
    pointer = tried(lambda: find(place, "checkpoints", ref))
    if pointer is None:
        return None
    return steadily(place, pointer.run_id, lambda run: _stored_under(place, run, pointer, now))


def read_records(place: FilePlace, run_id: str, keys: Sequence[str]) -> dict[str, bytes]:
    """Return those of the head's records that exist."""

    def read(run: RunFolder) -> dict[str, bytes]:
        live = run.live_at(run.head.seq)
        return run.records({key: live[key] for key in keys if key in live})[0]

    return steadily(place, run_id, read) or {}


def read_request(place: FilePlace, request_id: str) -> RequestRow | None:
    """Return a request of any run."""
    pointer = tried(lambda: find(place, "requests", request_id))
    return pointer.request if pointer else None


def read_turn(place: FilePlace, workflow: str, key: str) -> TurnRow | None:
    """Return the turn that a key belongs to."""
    pointer = tried(lambda: find(place, "turns", workflow, key))
    return pointer.turn if pointer else None


def read_history(place: FilePlace, run_id: str, before: int | None, limit: int) -> list[Header]:
    """Return headers of a run, newest first, below `before`."""

    def read(run: RunFolder) -> list[Header]:
        first = _first_below(run, before)
        if first is None:
            return []
        return [link.header for link, _ in zip(run.back_from(first), range(limit), strict=False)]

    return steadily(place, run_id, read) or []


def read_events(place: FilePlace, run_id: str, after: int, limit: int) -> list[StoredEvent]:
    """Return the kept events of a run by number, behind `after`."""

    def read(run: RunFolder) -> list[StoredEvent]:
        events: list[StoredEvent] = []
        for seq in in_chain(run, _last_without(run, after)):
            with run.commit(seq) as commit:
                events += [event for event in commit.events() if event.number > after]
            if len(events) >= limit:
                break
        return events[:limit]

    return steadily(place, run_id, read) or []


def steadily(place: FilePlace, run_id: str, read: Callable[[RunFolder], _T]) -> _T | None:
    """Return what `read` makes of a run, again where the run's files went away under it; `None` where it has none."""
    for _ in range(_TRIES):
        run = find_run(place, run_id)
        if run is None:
            return None
        try:
            return read(run)
        except CheckpointCorruptError:
            if _same_head(run, find_run(place, run_id)):
                raise
    raise CheckpointCorruptError(f"run {run_id!r} in store {place.store}", "it changes whenever it is read")


def tried(read: Callable[[], _T]) -> _T:
    """Return what `read` gives, at a second try where a run was deleted under the first."""
    try:
        return read()
    except CheckpointCorruptError:
        return read()


def _same_head(run: RunFolder, now: RunFolder | None) -> bool:
    return now is not None and (now.head.commits, now.head.token) == (run.head.commits, run.head.token)


def _head(place: FilePlace, run: RunFolder, now: float) -> Head:
    link, head = run.link(run.head.seq), run.head
    if (link.token, link.header.checkpoint_id) != (head.token, head.checkpoint_id):
        raise CheckpointCorruptError(f"run {head.run_id!r} in store {place.store}", "its head is another's")
    offered = (place.marks("inboxes", WAITING) / run.folder.name).exists()
    return Head(link.header, head.owner, head.epoch, is_alive(place, head.standing(), now), offered)


def _stored(place: FilePlace, run: RunFolder, seq: int, now: Callable[[], float]) -> Stored:
    head = _head(place, run, now())
    header = head.header if seq == head.header.seq else run.link(seq).header
    records, digests = run.records(run.live_at(seq))
    check_digests(header, digests)
    return Stored(header=header, records=records, digests=digests, head=head)


def _stored_at(place: FilePlace, run: RunFolder, at: int | str, now: Callable[[], float]) -> Stored | None:
    if isinstance(at, int):
        return _stored(place, run, at, now) if run.has(at) else None
    checkpoint_id = run.tags().get(at)
    if checkpoint_id is None:
        return None
    pointer = find(place, "checkpoints", checkpoint_id)
    stored = _stored_under(place, run, pointer, now) if pointer and pointer.run_id == run.head.run_id else None
    if stored is None:
        raise CheckpointCorruptError(f"checkpoint {checkpoint_id!r} in store {place.store}", "it has a name only")
    return stored


def _stored_under(place: FilePlace, run: RunFolder, pointer: PointerLine, now: Callable[[], float]) -> Stored | None:
    if not run.is_in_chain(pointer.seq, pointer.token):
        return None
    stored, ref = _stored(place, run, pointer.seq, now), pointer.names[0]
    if stored.header.checkpoint_id != ref:
        raise CheckpointCorruptError(f"checkpoint {ref!r} in store {place.store}", "its header is another one's")
    return stored


def _first_below(run: RunFolder, before: int | None) -> int | None:
    """Return the number of the newest checkpoint of a run below one."""
    if before is None or before > run.head.seq:
        return run.head.seq
    return run.link(next(run.numbers(before - 1), run.head.seq)).previous


def _last_without(run: RunFolder, after: int) -> int:
    """Return the number of the last commit that tells no event above `after`; those behind it do."""
    if run.link(run.head.seq).header.events <= after:
        return run.head.seq
    firsts = [(folder, numbers[0]) for folder in run.folders if (numbers := run.numbers_in(folder))]

    def events(seq: int) -> int:
        return run.link(seq).header.events if seq <= run.head.seq else after + 1

    place = bisect_right(firsts, after, key=lambda first: events(first[1])) - 1
    if place < 0:
        return -1
    numbers = run.numbers_in(firsts[place][0])
    return numbers[bisect_right(numbers, after, key=events) - 1]


def in_chain(run: RunFolder, above: int) -> Iterator[int]:
    """Give the numbers of commits above one, in order: each is what the next one names as the one before it."""
    seqs = [*run.numbers(above)]
    if not seqs or seqs[-1] != run.head.seq:
        seqs = [*seqs, run.head.seq] if run.head.seq > above else []
    last, links = above, map(run.link, seqs)
    current = next(links, None)
    while current is not None:
        later = next(links, None)
        if later is None or later.previous == current.header.seq:
            if current.previous is not None and current.previous > last:
                raise CheckpointCorruptError(run.what(current.previous), "it is not there")
            last = current.header.seq
            yield last
        current = later
