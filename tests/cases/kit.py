"""What the tests of this folder share: places where runs are kept, and ways to go on from their checkpoints.

Both places keep nothing but bytes. A place can be opened again, and can tell a fresh process where a run is.
"""

import asyncio
from pathlib import Path
from typing import Final

from rehydrate import InMemoryCheckpointStorage, SqliteCheckpointStorage
from rehydrate.codecs.checkpoints import encode_checkpoint
from rehydrate.errors import RunFailedError
from rehydrate.model.checkpoint import key_of
from rehydrate.model.events import StatusChanged, SuperstepCompleted, SuperstepStarted

KINDS: Final = ("memory", "sqlite")


class Watching:
    """A store that notes its commits, and whose saves fail from a given one on."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.commits = []
        self.fails_from = None

    async def commit(self, commit):
        if self.fails_from is not None and len(self.commits) + 1 >= self.fails_from:
            raise OSError("the disk is full")
        await super().commit(commit)
        self.commits.append(commit)


class MemoryStore(Watching, InMemoryCheckpointStorage):
    pass


class SqliteStore(Watching, SqliteCheckpointStorage):
    pass


class Place:
    """A store that can be thrown away and opened again; `path` is the file, where there is one."""

    def __init__(self, kind, folder, **options):
        self.kind = kind
        self.path = Path(folder) / "runs.db"
        self.options = options
        self.store = self._opened()

    def _opened(self):
        return MemoryStore(**self.options) if self.kind == "memory" else SqliteStore(self.path, **self.options)

    def reopen(self):
        """Open the file with a new store object; what is in memory stays where it is."""
        if self.kind == "sqlite":
            self.close()
            self.store = self._opened()
        return self.store

    def close(self):
        asyncio.run(self.store.close())

    def history(self, run_id):
        """Return the headers of a run, oldest first."""
        return asyncio.run(self.store.history(run_id, limit=10_000))[::-1]

    def head(self, run_id):
        return asyncio.run(self.store.head(run_id)).header

    def kinds(self, checkpoint_id):
        """Return the kinds of the records of a checkpoint."""
        return {key_of(key)[1] for key in asyncio.run(self.store.load(checkpoint_id)).records}

    def checkpoints_with(self, run_id, kind):
        """Return the ids of the checkpoints of a run that hold a record of a kind."""
        return [h.checkpoint_id for h in self.history(run_id) if kind in self.kinds(h.checkpoint_id)]

    def told(self, checkpoint_id):
        """Say where a fresh process finds a checkpoint: in the file, or in the bytes that are sent along."""
        if self.kind == "sqlite":
            return {"path": str(self.path), "checkpoint": checkpoint_id}
        stored = asyncio.run(self.store.load(checkpoint_id))
        return {"bytes": encode_checkpoint(stored.header, stored.records).hex()}


def bounded(work):
    """Drive a coroutine on an event loop of its own; one that hangs fails instead of stopping all tests."""

    async def drive():
        async with asyncio.timeout(20):
            return await work

    return asyncio.run(drive())


def run(workflow, message=None, **options):
    """Make one call on an event loop of its own."""
    return bounded(workflow.run(message, **options))


def failed(workflow, message=None, **options):
    """Make one call that ends FAILED and return its error."""
    try:
        result = run(workflow, message, **options)
    except RunFailedError as error:
        return error
    raise AssertionError(f"the run did not fail: {result!r} {result.outputs} {result.pending_requests}")


async def streamed(workflow, message=None, **options):
    """Make one call and return its events, read to the end."""
    return [event async for event in workflow.run(message, stream=True, **options)]


def answers(result, *values):
    """Answer the open requests of a result in their order."""
    return [request.answer(value) for request, value in zip(result.pending_requests, values, strict=True)]


def scope_events(events):
    """Return the committed events by scope path, without what depends on how scopes interleave."""
    found = {}
    for event in events:
        if event.live or isinstance(event, StatusChanged):
            continue
        fields = {name: getattr(event, name) for name in event.__struct_fields__ if name not in {"run_id", "sequence"}}
        found.setdefault(event.path, []).append((type(event).__name__, fields))
    return found


def supersteps(events):
    """Return (path, number) of each superstep that began and of each that was completed."""
    began = [(e.path, e.superstep) for e in events if isinstance(e, SuperstepStarted)]
    completed = [(e.path, e.superstep) for e in events if isinstance(e, SuperstepCompleted)]
    return began, completed
