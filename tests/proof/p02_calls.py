"""What is done while a process is killed or its disk fails: calls of workflows, each prepared, made, and made again.

The store of such a call says what it begins to write and what it has acknowledged.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rehydrate import CheckpointStorage, FileCheckpointStorage, Retention, SqliteCheckpointStorage, prune
from rehydrate.errors import AlreadyAnsweredError, RunExistsError, StaleCheckpointError
from rehydrate.model.checkpoint import Commit, Latest
from rehydrate.testing.facts import facts
from rehydrate.testing.store_contract import ManualClock
from tests.proof.p02_workflow import deep, flat

Say = Callable[[dict[str, object]], None]
#: What a call needs to know of its preparation.
Words = dict[str, str]
STORES: Final = ("sqlite3", "apsw", "file")


def silent(told: dict[str, object]) -> None:
    """Say nothing."""


class Telling:
    """A store that says which checkpoints it begins to write, which it has acknowledged, and which have failed."""

    say: Say = staticmethod(silent)

    async def commit(self, commit: Commit) -> None:
        found = [commit.header.checkpoint_id, commit.header.seq]
        self.say({"begins": found})
        try:
            await super().commit(commit)
        except Exception as error:
            self.say({"failed": found, "error": type(error).__name__})
            raise
        self.say({"acknowledged": found})


class TellingFile(Telling, FileCheckpointStorage):
    """Such a store in a folder."""


class TellingSqlite(Telling, SqliteCheckpointStorage):
    """Such a store in a file."""


def open_store(kind: str, place: Path, say: Say = silent) -> TellingFile | TellingSqlite:
    """Return a store of a kind in the folder `place`. Its leases last: whoever goes on does so as the owner is dead."""
    clock = ManualClock()
    if kind == "file":
        store: TellingFile | TellingSqlite = TellingFile(place / "runs", clock=clock, keep_events=True)
    else:
        store = TellingSqlite(place / "runs.db", clock=clock, keep_events=True, driver=kind)
    store.say = say
    return store


@dataclass(frozen=True)
class Doing:
    """One call: how its place is prepared, the call, and what it gives."""

    prepare: Callable[[CheckpointStorage], Awaitable[Words]]
    make: Callable[[CheckpointStorage, Words, dict[str, Any]], Awaitable[dict[str, str]]]
    #: Whether the place is left as by a dead process, with all that such a one leaves open.
    left_open: bool = False


async def _nothing(store: CheckpointStorage) -> Words:
    return {}


async def _asked(store: CheckpointStorage) -> Words:
    result = await deep().run("a?", checkpoint_storage=store, run_id="run", resources={"say": silent})
    (request,) = result.pending_requests
    return {"checkpoint": result.checkpoint_id, "request": request.request_id}


async def _rested(store: CheckpointStorage) -> Words:
    result = await deep().run("a", checkpoint_storage=store, run_id="run", resources={"say": silent})
    return {"checkpoint": result.checkpoint_id}


async def _flat(store: CheckpointStorage) -> Words:
    result = await flat().run("a", checkpoint_storage=store, run_id="run", resources={"say": silent})
    return {"checkpoint": result.checkpoint_id}


async def _long(store: CheckpointStorage) -> Words:
    words = await _rested(store)
    await store.tag("run", "good", words["checkpoint"])
    for text in ("b", "c"):
        await deep().run(text, checkpoint_storage=store, checkpoint="latest", run_id="run", resources={"say": silent})
    return words


async def _finished(workflow: Any, *arguments: object, **more: Any) -> dict[str, str]:
    """Make a call, or look at its end where it has ended before."""
    where = {name: more[name] for name in ("resources", "checkpoint_storage")}
    try:
        result = await workflow.run(*arguments, **more)
    except (AlreadyAnsweredError, RunExistsError, StaleCheckpointError):
        result = await workflow.run(checkpoint="latest", run_id="run", **where)
    return {name: fact.shown for name, fact in facts(result).items()}


async def _first(store: CheckpointStorage, words: Words, resources: dict[str, Any]) -> dict[str, str]:
    return await _finished(deep(), "a", run_id="run", resources=resources, checkpoint_storage=store)


async def _superstep(store: CheckpointStorage, words: Words, resources: dict[str, Any]) -> dict[str, str]:
    return await _finished(flat(), "b", checkpoint=words["checkpoint"], resources=resources, checkpoint_storage=store)


async def _nested(store: CheckpointStorage, words: Words, resources: dict[str, Any]) -> dict[str, str]:
    return await _finished(deep(), "b", checkpoint=words["checkpoint"], resources=resources, checkpoint_storage=store)


async def _resume(store: CheckpointStorage, words: Words, resources: dict[str, Any]) -> dict[str, str]:
    answers = {words["request"]: "yes"}
    return await _finished(
        deep(),
        "b",
        checkpoint=words["checkpoint"],
        responses=answers,
        resources=resources,
        checkpoint_storage=store,
    )


async def _migration(store: CheckpointStorage, words: Words, resources: dict[str, Any]) -> dict[str, str]:
    answers = {words["request"]: "yes"}
    return await _finished(
        deep(2),
        checkpoint=words["checkpoint"],
        responses=answers,
        resources=resources,
        checkpoint_storage=store,
    )


async def _retention(store: CheckpointStorage, words: Words, resources: dict[str, Any]) -> dict[str, str]:
    await prune(store, Retention(keep_last=2), run_id="run")
    kept = [header.checkpoint_id for header in await store.history("run")]
    assert kept[-1] == words["checkpoint"]
    loaded = await store.load(Latest("run"))
    assert loaded is not None
    return {"checkpoints": str(len(kept)), "records": repr(sorted(loaded.records))}


DOINGS: Final = {
    "first run": Doing(_nothing, _first),
    "superstep": Doing(_flat, _superstep),
    "nested superstep": Doing(_rested, _nested, left_open=True),
    "one-call resume": Doing(_asked, _resume),
    "retention": Doing(_long, _retention, left_open=True),
    "migration": Doing(_asked, _migration),
}


def load() -> None:
    """Build the workflows, so that processes made by a fork need not."""
    for workflow in (deep(), deep(2), flat()):
        assert workflow.name
