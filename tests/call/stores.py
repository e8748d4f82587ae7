"""Stores whose disk can be full and whose bytes can rot, and a view of everything that a store holds."""

import asyncio
from pathlib import Path

import msgspec

from rehydrate import CheckpointStorage, InMemoryCheckpointStorage, SqliteCheckpointStorage
from rehydrate.errors import CheckpointCorruptError
from rehydrate.model.checkpoint import CheckpointRef, Commit, Head, Put, Stored, TurnRow
from tests.call.desk import Gate


class DiskFullError(OSError):
    """What a store raises that has no room left."""


class Breakable:
    """The faults of a disk, for a store: after `saves_left` commits it is full; while `rotten` commits lose a bit."""

    saves_left: int | None = None
    rotten = False
    folder: Path
    #: Waits before or after this commit, counted from 1, until the gate is opened.
    gated_commit = 0
    gate_place = "before"
    commit_gate: Gate
    #: Where the first that has looked a key up waits.
    turn_gate: Gate | None = None
    #: Where the first that has loaded a checkpoint waits.
    load_gate: Gate | None = None

    async def commit(self, commit: Commit) -> None:
        if self.saves_left is not None:
            if self.saves_left == 0:
                raise DiskFullError("no space left on device")
            self.saves_left -= 1
        self.gated_commit -= 1
        await self._pass("before")
        await super().commit(damaged(commit) if self.rotten else commit)
        await self._pass("after")

    async def load(self, ref: CheckpointRef) -> Stored | None:
        found = await super().load(ref)
        if self.load_gate is not None:
            await self.load_gate.wait()
        return found

    async def find_turn(self, workflow: str, key: str) -> TurnRow | None:
        found = await super().find_turn(workflow, key)
        if self.turn_gate is not None:
            await self.turn_gate.wait()
        return found

    async def _pass(self, place: str) -> None:
        if self.gated_commit == 0 and self.gate_place == place:
            await self.commit_gate.wait()


def damaged(commit: Commit) -> Commit:
    """Return a commit with a flipped bit in the last byte of its longest record."""
    longest = max(commit.puts, key=lambda put: len(put.data))
    flipped = Put(longest.key, longest.data[:-1] + bytes([longest.data[-1] ^ 1]))
    return msgspec.structs.replace(commit, puts=tuple(flipped if put is longest else put for put in commit.puts))


class BreakableMemory(Breakable, InMemoryCheckpointStorage):
    """A memory store that can break."""


class BreakableSqlite(Breakable, SqliteCheckpointStorage):
    """A SQLite store that can break."""


async def everything(store: CheckpointStorage) -> list[bytes]:
    """Return all that a store holds: of every run its standing and all its checkpoints with their records."""
    found: list[bytes] = []
    for head in await store.runs():
        history = await store.history(head.run_id)
        found += [msgspec.msgpack.encode((header, await standing(store, header.checkpoint_id))) for header in history]
    return found


async def standing(store: CheckpointStorage, checkpoint_id: str) -> object:
    """Return a checkpoint's records and where the head of its run is; of a damaged one only that it is damaged."""
    try:
        stored = await store.load(checkpoint_id)
    except CheckpointCorruptError:
        return "damaged"
    return sorted(stored.records.items()), stored.head


async def rest(store: CheckpointStorage, run_id: str) -> Head:
    """Let others run until nobody owns the run, or for long; return its head."""
    for _ in range(2000):
        head = await store.head(run_id)
        if head.owner is None:
            break
        await asyncio.sleep(0)
    return head
