"""What must hold after a trial, looked at from another process than the one that was in it.

Each check raises `AssertionError` with the place that it happened at; nothing is repaired but by the store itself.
"""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any, Final, TypeVar

from rehydrate.model.checkpoint import Latest
from tests.processes.nursery import Nursery
from tests.proof.p02_acts import ACTS, LATER, act_store, fill, make_older, nothing, what_is_there
from tests.proof.p02_calls import DOINGS, Words, open_store, silent
from tests.proof.p02_gate import READS, SYNCS
from tests.proof.p02_trial import Fault, Player, Show

T = TypeVar("T")
#: What of a file store may outlive a crash: it is looked through (docs/decisions/0016-file-store.md).
MARKS: Final = ("runs/statuses/", "runs/open/", "runs/locks/")
#: Faults of which a store says that nothing of the write is there.
FULL: Final = frozenset({"ENOSPC", "full disk"})
#: Ends of what may fail to be synced unsaid: what the file store does behind a write that is there and lasts, see
#: `tidying` of `file_place`, and the folder of a SQLite file, as SQLite takes no notice of that.
UNSAID: Final = (".offer", "/inbox", " .")
#: What a fault may be called that a call is told of.
NAMED: Final = frozenset(
    {"SaveFailedError", "StoreBrokenError", "StoreFullError", "StoreUnavailableError", "StoreReadOnlyError"}
)


def do(call: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(call)


def rows_of(place: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of a SQLite file, whose own check must find nothing wrong; nothing for another store."""
    path = place / "runs.db"
    if not path.exists():
        return {}
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        named = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
        return {name: connection.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall() for (name,) in named}


def files_of(place: Path) -> list[str]:
    """Return the files that are there."""
    return sorted(str(path.relative_to(place)) for path in place.rglob("*") if path.is_file())


def left_over(place: Path) -> list[str]:
    """Return what a closed store should not have left: files on their way, owners that are gone, SQLite's own."""
    return [
        name
        for name in files_of(place)
        if "/tmp/" in name or name.endswith((".owner", "-wal", "-shm", "-journal")) or name.count("/commits-") > 1
    ]


class Examiner:
    """Tries one doing of one kind of store: `base` is its prepared place, `place` where each trial happens."""

    def __init__(self, nursery: Nursery, root: Path, kind: str, doing: str, broken: str = "") -> None:
        self.root, self.base, self.place = root, root / "base", root / "0"
        self.player = Player(nursery)
        self.told: dict[str, Any] = {"store": kind, "doing": doing, "broken": broken}
        self.kind = kind
        self.doing = doing

    def trial(self, fault: Fault | None = None, **more: object) -> Show:
        """Play one trial on a fresh copy of the place."""
        self.copy()
        looks = fault is not None and fault.kind in FULL
        return self.player.play(self.place, {**self.told, **more}, fault, self.at_error if looks else None)

    def copy(self) -> None:
        """Make another place, a copy of the prepared one."""
        shutil.rmtree(self.place, ignore_errors=True)
        self.place = self.root / str(int(self.place.name) + 1)
        shutil.copytree(self.base, self.place)

    def at_error(self) -> object:
        """Look at what is there while the process that was told of an error waits."""
        raise NotImplementedError

    def check(self, fault: Fault, show: Show) -> None:
        """Look at what a trial has left."""
        where = f"{self.kind}, {self.doing}, {fault.kind} at call {fault.at} ({show.hit})"
        try:
            if fault.kind in {"kill", "torn"}:
                assert show.status == -9, show.status
            else:
                self._check_told(show)
            self.look(show)
        except Exception as error:
            raise AssertionError(f"{where}: {type(error).__name__}: {error}\n{show.heard}") from error

    def look(self, show: Show) -> None:
        """Look at what is there."""
        raise NotImplementedError

    def _check_told(self, show: Show) -> None:
        """Check what a process was told of a fault, and how it went on."""
        assert show.status == 0, show.status
        assert not [each for each in show.heard if each.get("known") is False]
        first = show.by("first")
        assert first is not None
        assert not _is_unsynced(show), "it was acknowledged although a sync of it had failed"
        self._check_silent(show)
        if "result" in first:
            return
        assert self._is_named(show, first["chain"]), first
        if "StoreFullError" in first["chain"]:
            assert not self.is_there(show), "the error says that nothing of it is there"
        again = show.by("same object")
        assert again is not None
        if "StoreBrokenError" in first["chain"]:
            assert "StoreBrokenError" in again.get("chain", ()), again
            again = show.by("new object")
        assert again is not None
        if not _arrived(show):
            assert "result" in again, again

    def _is_named(self, show: Show, chain: list[str]) -> bool:
        """Say whether a fault is told as one; to SQLite a disk that cannot be read is a damaged file."""
        if (
            show.hit is not None
            and show.hit.name in READS
            and self.kind != "file"
            and "CheckpointCorruptError" in chain
        ):
            return True
        return bool(NAMED & set(chain))

    def _check_silent(self, show: Show) -> None:
        """Check that nothing ran after a save had failed, until its call was told."""
        after = [index for index, each in enumerate(show.heard) if "failed" in each]
        end = next((index for index, each in enumerate(show.heard) if each.get("by") == "first"), 0)
        if after and after[0] < end:
            ran = [each["ran"] for each in show.heard[after[0] : end] if "ran" in each]
            assert not ran, f"after a save had failed {ran} ran"
            assert "error" in show.heard[end], "a save had failed and its call was not told"

    def is_there(self, show: Show) -> bool:
        """Say whether the write that failed was there when its process was told of the error."""
        raise NotImplementedError


async def _heads(store: Any) -> None:
    for run_id in ("run", "second"):
        await store.load(Latest(run_id))


class ActExaminer(Examiner):
    """Tries a single write of a store: afterwards all is as it was, or all is done."""

    def __init__(self, nursery: Nursery, root: Path, kind: str, doing: str, broken: str = "") -> None:
        super().__init__(nursery, root, kind, doing, broken)
        self.act = ACTS[doing]
        self.base.mkdir(parents=True)
        if self.act.before == "older":
            make_older(self.base)
        elif self.act.before == "filled":
            do(self._fill())
        self.calls = self.trial().calls
        self.after = self._contents()
        #: The files that there may be once another write has come.
        self.files = set(self._tidied())
        self.copy()
        self.before = self._contents()
        self.files |= set(self._tidied())
        assert self.before != self.after

    async def _fill(self) -> None:
        async with act_store(self.kind, self.base, now=1_000_000.0) as store:
            await fill(store)

    def at_error(self) -> object:
        return self._contents() == self.after

    def is_there(self, show: Show) -> bool:
        first = show.by("first")
        return first is not None and bool(first.get("found"))

    def look(self, show: Show) -> None:
        """Compare all rows, and all answers."""
        found = self._contents()
        assert found in (self.before, self.after), f"half of it is there: {found}"
        if show.said("result") or _arrived(show):
            assert found == self.after, "what was acknowledged is not there"
        more = set(self._tidied()) - self.files
        assert not more, f"it has left {more}"
        if found == self.before:
            do(self._with_store(self.act.do))
            assert self._contents() == self.after, "it could not be done again"
        elif self.kind == "file":
            assert self._contents() == self.after, "it has changed afterwards"
        assert left_over(self.place) == []

    def _tidied(self) -> list[str]:
        """Return the files that are there once another write has come; marks may outlive a crash."""
        if self.kind == "file":
            do(self._with_store(nothing))
        return [name for name in files_of(self.place) if not name.startswith(MARKS)]

    def _contents(self) -> object:
        """Return all answers; of a SQLite file all rows, which say more and cost less."""
        if self.kind == "file":
            return do(self._with_store(what_is_there))
        do(self._with_store(_heads))
        return rows_of(self.place)

    async def _with_store(self, call: Any) -> Any:
        async with act_store(self.kind, self.place, LATER) as store:
            return await call(store)


class CallExaminer(Examiner):
    """Tries a call of a workflow: what was acknowledged is there, and the same call again gives what it should."""

    def __init__(self, nursery: Nursery, root: Path, kind: str, doing: str, broken: str = "") -> None:
        super().__init__(nursery, root, kind, doing, broken)
        self.act = DOINGS[doing]
        made = root / "made"
        made.mkdir()
        #: The number of the head that was prepared, -1 for none.
        self.number = -1
        self.words: Words = do(self._prepare(made))
        self.told["words"] = self.words
        show = self.trial()
        self.calls = show.calls
        (self.expected,) = show.said("result")

    async def _prepare(self, made: Path) -> Words:
        """Prepare the place; one that is `left_open` is copied while its store is in use."""
        store = open_store(self.kind, made)
        words = await self.act.prepare(store)
        head = await store.head("run")
        self.number = head.header.seq if head else -1
        if not self.act.left_open:
            await store.close()
        shutil.copytree(made, self.base)
        await store.close()
        return words

    def at_error(self) -> object:
        return do(self._head_number())

    def is_there(self, show: Show) -> bool:
        first, failed = show.by("first"), show.said("failed")
        return first is not None and bool(failed) and first.get("found", -1) >= failed[0][1]

    async def _head_number(self) -> int:
        store = open_store(self.kind, self.place)
        try:
            head = await store.head("run")
        finally:
            await store.close()
        return head.header.seq if head else -1

    def look(self, show: Show) -> None:
        """Look at every checkpoint, make the same call again, and compare."""
        done = do(self._go_on(show))
        assert done == self.expected, f"the same call again gave {done}, not {self.expected}"
        rows_of(self.place)
        assert left_over(self.place) == []

    async def _go_on(self, show: Show) -> dict[str, str]:
        store = open_store(self.kind, self.place)
        try:
            await self._check_stored(store, show)
            done = await self.act.make(store, self.words, {"say": silent})
            if self.kind == "file":
                await nothing(store)
            return done
        finally:
            await store.close()

    async def _check_stored(self, store: Any, show: Show) -> None:
        acknowledged = show.said("acknowledged")
        last = acknowledged[-1][1] if acknowledged else self.number
        head = await store.head("run")
        number = head.header.seq if head else -1
        # The last acknowledged one, or what was being written when its process ended or was told of an error.
        allowed = {last, *(seq for _, seq in show.said("begins") if seq > last)}
        assert number in allowed, f"the head is number {number}, not one of {allowed}"
        if head is not None:
            assert not head.alive
            history = await store.history("run", limit=1000)
            known = {header.checkpoint_id for header in history}
            assert self.doing == "retention" or {checkpoint_id for checkpoint_id, _ in acknowledged} <= known
            for header in history:
                stored = await store.load(header.checkpoint_id)
                assert stored is not None
                assert stored.header == header
            events = await store.events("run", limit=100_000)
            assert [event.number for event in events] == list(range(1, head.header.events + 1))


def examiner(nursery: Nursery, root: Path, kind: str, doing: str, broken: str = "") -> ActExaminer | CallExaminer:
    """Return the examiner of a doing."""
    return (ActExaminer if doing in ACTS else CallExaminer)(nursery, root, kind, doing, broken)


def _arrived(show: Show) -> bool:
    """Say whether a write that nobody could say of whether it would last did last, so that it cannot be done again."""
    first, again = show.by("first"), show.by("new object")
    known = first is not None and "StoreBrokenError" in first.get("chain", ())
    return known and again is not None and again.get("error") == "CommitConflictError"


def _is_unsynced(show: Show) -> bool:
    """Say whether something was acknowledged although a sync of it had failed."""
    at = next((index for index, each in enumerate(show.heard) if "fault" in each), None)
    if at is None:
        return False
    kind, call = show.heard[at]["fault"], show.heard[at]["call"]
    if kind not in {"EIO", "ENOSPC", "dead disk"} or call.split()[0] not in SYNCS or call.endswith(UNSAID):
        return False
    begun = {"begins", "acknowledged", "failed", "result"}
    before = [each for each in show.heard[:at] if begun & set(each)]
    if before and "begins" not in before[-1]:
        return False
    after = next((each for each in show.heard[at:] if {*begun, "error"} & set(each)), {})
    return "acknowledged" in after or "result" in after
