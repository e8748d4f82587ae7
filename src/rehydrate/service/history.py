"""`RunHistory`: the checkpoints of one run, by headers, with their names.

Listing reads headers only. It must not run anything, and writes nothing but names.
"""

from __future__ import annotations

import difflib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from rehydrate.errors import CheckpointNotFoundError, ForeignCheckpointError, RunNotFoundError, WrongCallError
from rehydrate.model.checkpoint import At, Cause, Header, Latest, Status, Stored
from rehydrate.ports import CheckpointStorage
from rehydrate.runtime.call import LATEST, with_article
from rehydrate.runtime.checkpoint import WorkflowCheckpoint, restored

from .arguments import check_store
from .differences import Differences, diff_checkpoints

#: What names a checkpoint of a run: its number, its id, a name that it was given, or `"latest"`.
CheckpointPlace: TypeAlias = int | str
#: So many headers are read at once.
PAGE: Final = 100
#: So many numbers or names are told that are near to one that is not there.
_NEAR: Final = 5


@dataclass(frozen=True)
class HistoryEntry:
    """What is known of a checkpoint without reading its records, and the names that it has.

    `number` orders a run's checkpoints. `size` counts the bytes of the records that it wrote, `changed` the scopes in
    which it wrote any, of which `scopes` names the first. `created` is in seconds since the epoch. `keyed` tells that
    its turn has an idempotency key.
    """

    run_id: str
    number: int
    checkpoint_id: str
    previous_checkpoint_id: str | None
    status: Status
    cause: Cause
    reason: str
    keyed: bool
    turn: int
    superstep: int
    created: float
    pending: int
    events: int
    size: int
    changed: int
    scopes: tuple[str, ...]
    tags: tuple[str, ...] = ()

    def __str__(self) -> str:
        where = ", ".join(path or "the root" for path in self.scopes) or "nothing"
        more = f" and {self.changed - len(self.scopes)} more" if self.changed > len(self.scopes) else ""
        text = f"#{self.number} turn {self.turn} superstep {self.superstep} {self.status.value}"
        text += f" by {self.cause.value}: {self.size:,} bytes in {where}{more}"
        text += f", {self.pending} open" if self.pending else ""
        text += f" [{', '.join(self.tags)}]" if self.tags else ""
        return f"{text} {self.reason!r}" if self.reason else text


def entry_of(header: Header, tags: tuple[str, ...] = ()) -> HistoryEntry:
    """Return a header as an entry."""
    return HistoryEntry(
        run_id=header.run_id,
        number=header.seq,
        checkpoint_id=header.checkpoint_id,
        previous_checkpoint_id=header.previous_checkpoint_id,
        status=header.status,
        cause=header.cause,
        reason=header.reason,
        keyed=header.keyed,
        turn=header.turn,
        superstep=header.superstep,
        created=header.created,
        pending=header.pending,
        events=header.events,
        size=header.size,
        changed=header.changed,
        scopes=header.scopes,
        tags=tags,
    )


class RunHistory:
    """The checkpoints of a run in a store, newest first."""

    def __init__(self, storage: CheckpointStorage, run_id: str) -> None:
        check_store(storage)
        self.storage = storage
        self.run_id = run_id

    async def entries(self, before: int | None = None, limit: int = PAGE) -> list[HistoryEntry]:
        """Return a page of entries, newest first, from the one below number `before` on. Raises `RunNotFoundError`."""
        headers = await self.storage.history(self.run_id, before=before, limit=limit)
        if not headers:
            if await self.storage.head(self.run_id) is None:
                raise RunNotFoundError(self.run_id)
            return []
        names: dict[str, list[str]] = {}
        for name, checkpoint_id in (await self.storage.tags(self.run_id)).items():
            names.setdefault(checkpoint_id, []).append(name)
        return [entry_of(header, tuple(names.get(header.checkpoint_id, ()))) for header in headers]

    async def __aiter__(self) -> AsyncIterator[HistoryEntry]:
        """Give all entries, newest first, a page at a time."""
        page = await self.entries()
        while page:
            for entry in page:
                yield entry
            page = await self.entries(before=page[-1].number) if len(page) == PAGE else []

    async def load(self, at: CheckpointPlace) -> WorkflowCheckpoint:
        """Return a checkpoint by its number, id or name, or the head for `"latest"`.

        Raises `CheckpointNotFoundError`, which names what is near, and what a damaged one raises.
        """
        return restored(await self._stored(at))

    async def _stored(self, at: CheckpointPlace) -> Stored:
        _check_place(at)
        stored = await self.storage.load(_reference(self.run_id, at))
        if stored is None and isinstance(at, str) and at != LATEST:
            stored = await self.storage.load(At(self.run_id, at))
        if stored is None:
            raise await self._not_found(at)
        if stored.header.run_id != self.run_id:
            raise ForeignCheckpointError(str(at), f"run {stored.header.run_id!r}", f"run {self.run_id!r}")
        return stored

    async def _not_found(self, at: CheckpointPlace) -> CheckpointNotFoundError:
        if await self.storage.head(self.run_id) is None:
            return RunNotFoundError(self.run_id)
        if isinstance(at, int):
            around = await self.storage.history(self.run_id, before=max(at, 0) + _NEAR // 2 + 1, limit=_NEAR)
            around = around or await self.storage.history(self.run_id, limit=_NEAR)
            near = tuple(f"number {header.seq}" for header in around)
            return CheckpointNotFoundError(str(at), near=near, run_id=self.run_id)
        names = list(await self.storage.tags(self.run_id))
        close = difflib.get_close_matches(at, names, _NEAR, 0.5) or names[:_NEAR]
        return CheckpointNotFoundError(at, near=tuple(f"name {name!r}" for name in close), run_id=self.run_id)

    async def tag(self, name: str, at: CheckpointPlace) -> HistoryEntry:
        """Give a checkpoint a name, which keeps it from being forgotten; a name that another one has moves here.

        Raises `CheckpointNotFoundError`, and `WrongCallError` for a name that can be none.
        """
        if name == LATEST:
            raise WrongCallError(f"{LATEST!r} cannot be given as a name: it is the head's.", "Pass another name.")
        _check_place(at)
        header = await self._header(at)
        await self.storage.tag(self.run_id, name, header.checkpoint_id)
        names = [key for key, value in (await self.storage.tags(self.run_id)).items() if value == header.checkpoint_id]
        return entry_of(header, tuple(names))

    async def _header(self, at: CheckpointPlace) -> Header:
        """Return a checkpoint's header; for an id or a name its records are loaded and checked, too."""
        if at == LATEST:
            head = await self.storage.head(self.run_id)
            if head is not None:
                return head.header
        elif isinstance(at, int):
            page = await self.storage.history(self.run_id, before=at + 1, limit=1)
            if page and page[0].seq == at:
                return page[0]
            raise await self._not_found(at)
        return (await self._stored(at)).header

    async def untag(self, name: str) -> None:
        """Take a name back. Raises `CheckpointNotFoundError` where no checkpoint of the run has it."""
        if name not in await self.storage.tags(self.run_id):
            raise await self._not_found(name)
        await self.storage.tag(self.run_id, name, None)

    async def diff(
        self, before: CheckpointPlace | WorkflowCheckpoint, after: CheckpointPlace | WorkflowCheckpoint = LATEST
    ) -> Differences:
        """Return what is not the same at two checkpoints; one of another run is given as it was loaded."""
        one = before if isinstance(before, WorkflowCheckpoint) else await self.load(before)
        other = after if isinstance(after, WorkflowCheckpoint) else await self.load(after)
        return diff_checkpoints(one, other)

    def __repr__(self) -> str:
        return f"RunHistory(run_id={self.run_id!r})"


def _check_place(at: object) -> None:
    if isinstance(at, bool) or not isinstance(at, int | str):
        raise WrongCallError(
            f"a checkpoint was named by {with_article(at)}.", 'Pass its number, its id, a name, or "latest".'
        )


def _reference(run_id: str, at: CheckpointPlace) -> str | Latest | At:
    if at == LATEST:
        return Latest(run_id)
    return At(run_id, at) if isinstance(at, int) else at
