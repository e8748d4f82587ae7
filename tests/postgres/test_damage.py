"""Damage in PostgreSQL's tables is reported: an answer is the right one, none where nothing is found, or an error."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from rehydrate.errors import CheckpointCorruptError, CheckpointFormatError, CommitConflictError, RehydrateError
from rehydrate.model.checkpoint import At, Latest
from rehydrate.stores.postgres import PostgresCheckpointStorage
from rehydrate.testing.store_contract import CommitMaker
from tests.postgres.server import Place
from tests.postgres.test_schema import CLOCK, fill

Call = Callable[[PostgresCheckpointStorage], Awaitable[object]]
OF_RUN = "run = (SELECT no FROM rehydrate.run WHERE run_id = 'run')"
#: A sealed column: changing any byte of it must be seen by the call.
SEALED: dict[str, tuple[str, Call]] = {
    "run.seal": ("run", lambda store: store.head("run")),
    "run.checkpoint_id": ("run", lambda store: store.head("run")),
    "run.workflow": ("run", lambda store: store.head("run")),
    "checkpoint.body": ("checkpoint", lambda store: store.history("run")),
    "checkpoint.entries": ("checkpoint", lambda store: store.load("run:1")),
    "checkpoint.data": ("checkpoint", lambda store: store.archive("run")),
    "request.body": ("request", lambda store: store.find_request("q-run")),
    "tag.body": ("tag", lambda store: store.tags("run")),
    "offer.body": ("offer", lambda store: store.offers("run")),
    "offer.data": ("offer", lambda store: store.offers("run")),
    "turn.body": ("turn", lambda store: store.find_turn("flow", "key-run")),
}


def use(place: Place, call: Call) -> object:
    """Open the store, make one call and close it."""

    async def main() -> object:
        async with place.store(clock=CLOCK) as store:
            return await call(store)

    return asyncio.run(main())


@pytest.mark.parametrize("column", SEALED)
def test_every_byte_that_is_changed_is_seen(postgres: Place, column: str) -> None:
    """A flipped bit in any byte of a sealed column, and its end cut off, is damage."""
    fill(postgres)
    table, call = SEALED[column]
    name = column.partition(".")[2]
    where = f"length({name}) BETWEEN 1 AND 999 AND ({OF_RUN if table not in {'run', 'request', 'turn'} else 'true'})"
    (length,) = postgres.ask(f"SELECT min(length({name})) FROM rehydrate.{table} WHERE {where}")[0]

    async def main(change: Callable[[str], int]) -> None:
        async with postgres.store(clock=CLOCK) as store:
            before = await call(store)
            for place in range(length):
                bit = f"set_byte({name}, {place}, get_byte({name}, {place}) # {1 << place % 8})"
                assert change(f"UPDATE rehydrate.{table} SET {name} = {bit} WHERE {where}") >= 1
                with pytest.raises(RehydrateError) as no:
                    await call(store)
                assert isinstance(no.value, CheckpointCorruptError | CheckpointFormatError)
                change(f"UPDATE rehydrate.{table} SET {name} = {bit} WHERE {where}")
            assert await call(store) == before
            change(f"UPDATE rehydrate.{table} SET {name} = substr({name}, 1, {length - 1}) WHERE {where}")
            with pytest.raises(CheckpointCorruptError):
                await call(store)

    with postgres.changing() as change:
        asyncio.run(main(change))


LOAD: Call = lambda store: store.load(Latest("run"))  # noqa: E731


@pytest.mark.parametrize(
    ("damage", "call"),
    [
        (f"UPDATE rehydrate.checkpoint SET data = '' WHERE {OF_RUN} AND seq = 0", LOAD),
        (f"UPDATE rehydrate.checkpoint SET data = substr(data, 2) WHERE {OF_RUN} AND seq = 0", LOAD),
        (
            f"UPDATE rehydrate.checkpoint SET entries = (SELECT entries FROM rehydrate.checkpoint WHERE"
            f" checkpoint_id = 'run:2') WHERE {OF_RUN} AND seq = 1",
            LOAD,
        ),
        (f"UPDATE rehydrate.checkpoint SET body = NULL WHERE {OF_RUN} AND seq = 1", lambda store: store.load("run:2")),
        (f"DELETE FROM rehydrate.checkpoint WHERE {OF_RUN} AND seq = 0", LOAD),
        (
            f"UPDATE rehydrate.checkpoint SET body = (SELECT body FROM rehydrate.checkpoint WHERE"
            f" checkpoint_id = 'run:2') WHERE {OF_RUN} AND seq = 0",
            lambda store: store.history("run"),
        ),
        (f"UPDATE rehydrate.checkpoint SET seq = 7 WHERE {OF_RUN} AND seq = 2", lambda store: store.history("run")),
        ("UPDATE rehydrate.run SET seq = 1 WHERE run_id = 'other'", lambda store: store.load(At("other", 2))),
        (
            f"UPDATE rehydrate.checkpoint SET body = (SELECT body FROM rehydrate.checkpoint WHERE"
            f" checkpoint_id = 'other:2') WHERE {OF_RUN} AND seq = 2",
            lambda store: store.runs(),
        ),
        (f"DELETE FROM rehydrate.checkpoint WHERE {OF_RUN} AND seq = 1", lambda store: store.history("run")),
        (f"DELETE FROM rehydrate.checkpoint WHERE {OF_RUN} AND seq = 0", lambda store: store.load("run:1")),
        ("UPDATE rehydrate.run SET live_to = 1 WHERE run_id = 'run'", LOAD),
        ("UPDATE rehydrate.run SET seal = (SELECT seal FROM rehydrate.run WHERE run_id = 'other')", LOAD),
        ("UPDATE rehydrate.run SET seq = 1", LOAD),
        ("UPDATE rehydrate.run SET epoch = 7", LOAD),
        ("UPDATE rehydrate.run SET owner = 'mallory'", LOAD),
        ("UPDATE rehydrate.run SET run_id = 'third' WHERE run_id = 'run'", lambda store: store.load("run:1")),
        (
            f"UPDATE rehydrate.checkpoint SET body = (SELECT body FROM rehydrate.checkpoint WHERE"
            f" checkpoint_id = 'other:2') WHERE {OF_RUN} AND seq = 2",
            LOAD,
        ),
        ("DELETE FROM rehydrate.checkpoint WHERE checkpoint_id = 'run:2'", LOAD),
        ("DELETE FROM rehydrate.checkpoint WHERE checkpoint_id = 'run:2'", lambda store: store.runs()),
        ("DELETE FROM rehydrate.run WHERE run_id = 'run'", lambda store: store.load("run:1")),
        (
            "UPDATE rehydrate.request SET request_id = 'q-third' WHERE request_id = 'q-run'",
            lambda store: store.find_request("q-third"),
        ),
        (
            "UPDATE rehydrate.turn SET body = (SELECT body FROM rehydrate.turn WHERE run ="
            " (SELECT no FROM rehydrate.run WHERE run_id = 'other'))",
            lambda store: store.find_turn("flow", "key-run"),
        ),
    ],
)
def test_rows_that_are_lost_stale_or_swapped_are_reported(postgres: Place, damage: str, call: Call) -> None:
    """An intact row in the wrong place, an old one, or one that another needs and that is gone, is damage."""
    fill(postgres)
    fill(postgres, "other")
    assert postgres.change(damage) >= 1
    with pytest.raises(CheckpointCorruptError):
        use(postgres, call)


def test_a_header_of_a_newer_format_says_so(postgres: Place) -> None:
    """A header written by newer code is an error of its own, even where its fields are others."""
    fill(postgres)
    body = msgspec.msgpack.encode([2, "no number"])
    covered = msgspec.msgpack.encode(("run", "flow", "run:2", "run:1"))
    sealed = hashlib.sha256(covered + body).digest()[:8] + body
    postgres.change(f"UPDATE rehydrate.checkpoint SET body = '\\x{sealed.hex()}' WHERE checkpoint_id = 'run:2'")
    with pytest.raises(CheckpointFormatError, match="has format 2; this version reads up to 1"):
        use(postgres, LOAD)


def test_a_checkpoint_that_a_lost_run_left_is_damage(postgres: Place) -> None:
    """Where the row of a run is lost, its checkpoints are found by the next new run, and named as what they are."""
    fill(postgres)
    assert postgres.change("DELETE FROM rehydrate.run") == 1
    with pytest.raises(CheckpointCorruptError, match=r"run:0 in store .*: it is there and the row of its run is not"):
        use(postgres, lambda store: store.commit(CommitMaker().claim()))
    assert postgres.ask("SELECT count(*) FROM rehydrate.run") == [(0,)]


def test_a_checkpoint_id_in_use_says_by_what(postgres: Place) -> None:
    """A commit with the id of a checkpoint that is there says which checkpoint has it."""
    maker = fill(postgres)
    commit = maker.claim()
    taken = msgspec.structs.replace(commit, header=msgspec.structs.replace(commit.header, checkpoint_id="run:1"))
    with pytest.raises(CommitConflictError) as no:
        use(postgres, lambda store: store.commit(taken))
    assert no.value.expected == "a new checkpoint id"
    assert no.value.found == "run:1 in use by checkpoint number 1 of run 'run'"
