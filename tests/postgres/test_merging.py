"""Records that became one in PostgreSQL: their bytes stand there once, and what a record is made of cannot be lost."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from rehydrate.errors import CheckpointCorruptError
from rehydrate.model.checkpoint import At, Latest
from rehydrate.stores.postgres import PostgresCheckpointStorage
from rehydrate.testing.contract_merging import merged
from rehydrate.testing.store_contract import CommitMaker
from tests.postgres.server import Place


def use(place: Place, call: Callable[[PostgresCheckpointStorage], Awaitable[object]]) -> object:
    """Open the store, make one call and close it."""

    async def main() -> object:
        async with place.store() as store:
            return await call(store)

    return asyncio.run(main())


async def fill(store: PostgresCheckpointStorage) -> CommitMaker:
    """Store a run whose parts became one three times, at 25, 50 and 75."""
    maker = CommitMaker()
    await merged(store, maker)
    return maker


def test_bytes_of_merged_records_stand_there_once(postgres: Place) -> None:
    """A merged record takes a list of places, and what is live is written with it."""
    maker = use(postgres, fill)
    lengths = postgres.ask("SELECT length(data) FROM rehydrate.checkpoint WHERE seq IN (25, 50, 75)")
    assert len(lengths) == 3
    assert all(length < 900 for (length,) in lengths)
    assert len(maker.records["all 0"]) > 16 * 1024
    assert postgres.ask("SELECT convert_from(key, 'UTF8'), seq, size < 0 FROM rehydrate.live ORDER BY key") == [
        ("all 0", 25, True),
        ("all 1", 50, True),
        ("all 2", 75, True),
        ("first", 0, False),
        ("last", 74, False),
    ]
    assert postgres.ask("SELECT live_to FROM rehydrate.run") == [(75,)]


def test_what_is_live_is_written_every_so_often(postgres: Place) -> None:
    """Loading a head reads what is live and a bounded number of later commits, however long the run is."""

    async def run(store: PostgresCheckpointStorage) -> None:
        maker = CommitMaker()
        await store.commit(maker.claim({"a": b"0", "b": b"0"}))
        for number in range(1, 300):
            await store.commit(maker.step({"a": b"%d" % number, f"k{number % 50}": b"v" * 300}, ["b"]))
        stored = await store.load(Latest("run"))
        assert stored is not None
        assert stored.records == maker.records
        assert await store.read("run", ["a", "b", "k3"]) == {"a": b"299", "k3": b"v" * 300}

    use(postgres, run)
    assert postgres.ask("SELECT live_to FROM rehydrate.run") == [(288,)]
    assert postgres.ask("SELECT count(*), max(seq) FROM rehydrate.live") == [(51, 288)]


def test_what_others_are_made_of_stays_when_it_is_forgotten(postgres: Place) -> None:
    """Rows that only hold bytes of later records have no id any more; they go with the last of these."""
    use(postgres, fill)
    nameless = "SELECT count(*), count(checkpoint_id) FROM rehydrate.checkpoint WHERE seq BETWEEN 1 AND 24"
    use(postgres, lambda store: store.forget("run", range(99)))
    assert postgres.ask(nameless) == [(24, 0)]

    async def replace(store: PostgresCheckpointStorage) -> None:
        stored = await store.load(Latest("run"))
        assert stored is not None
        maker = CommitMaker()
        maker.records, maker.seq, maker.epoch = dict(stored.records), stored.header.seq, 1
        maker.head = stored.header.checkpoint_id
        await store.commit(maker.step({"all 0": b"short"}))
        await store.forget("run", [stored.header.seq])

    use(postgres, replace)
    assert postgres.ask(nameless) == [(0, 0)]


#: Each changes one row.
DAMAGE = [
    "DELETE FROM rehydrate.checkpoint WHERE seq = 7",
    "UPDATE rehydrate.checkpoint SET data = '' WHERE seq = 7",
    "UPDATE rehydrate.checkpoint SET data = set_byte(data, 99, get_byte(data, 99) # 1) WHERE seq = 7",
    "UPDATE rehydrate.checkpoint SET data = set_byte(data, 9, get_byte(data, 9) # 1) WHERE seq = 25",
    "UPDATE rehydrate.checkpoint SET data = (SELECT data FROM rehydrate.checkpoint WHERE seq = 50) WHERE seq = 25",
    "UPDATE rehydrate.live SET seq = 50 WHERE key = 'all 0'",
    "UPDATE rehydrate.live SET key = 'all 9' WHERE key = 'all 0'",
    "UPDATE rehydrate.live SET size = -size WHERE key = 'all 0'",
    "DELETE FROM rehydrate.live WHERE key = 'first'",
    "UPDATE rehydrate.run SET live_to = 90",
]


def test_damage_to_what_records_are_made_of_is_reported(postgres: Place) -> None:
    """A head that needs what was lost or changed is damage, and never another one."""
    use(postgres, fill)
    kept = ("checkpoint", "live")
    postgres.change(*(f"CREATE TABLE rehydrate.kept_{name} AS SELECT * FROM rehydrate.{name}" for name in kept))

    async def load(store: PostgresCheckpointStorage) -> None:
        for damage in DAMAGE:
            assert postgres.change(damage) == 1
            with pytest.raises(CheckpointCorruptError):
                await store.load(Latest("run"))
            for name in kept:
                postgres.change(
                    f"DELETE FROM rehydrate.{name}", f"INSERT INTO rehydrate.{name} SELECT * FROM rehydrate.kept_{name}"
                )
            postgres.change("UPDATE rehydrate.run SET live_to = 75")
            assert await store.load(Latest("run")) is not None

    use(postgres, load)


def test_a_single_record_is_not_read_from_another_place(postgres: Place) -> None:
    """Where a live record is has a checksum of its own."""
    use(postgres, fill)
    postgres.change("UPDATE rehydrate.live SET start = start + 1 WHERE key = 'all 0'")
    with pytest.raises(CheckpointCorruptError):
        use(postgres, lambda store: store.read("run", ["all 0"]))


def test_a_damaged_run_holds_up_no_other(postgres: Place) -> None:
    """Of commits that share a transaction, only that of the run whose list of records was changed is refused."""

    async def run(store: PostgresCheckpointStorage) -> None:
        makers = [CommitMaker(f"r{number}") for number in range(10)]
        await asyncio.gather(*(store.commit(maker.claim({"a": b"1"})) for maker in makers))
        (no,) = postgres.ask("SELECT no FROM rehydrate.run WHERE run_id = 'r4'")[0]
        postgres.change(f"UPDATE rehydrate.checkpoint SET entries = substr(entries, 2) WHERE run = {no}")
        many = {f"k{number}": b"v" for number in range(300)}
        commits = [maker.step(many) for maker in makers]
        results = await asyncio.gather(*map(store.commit, commits), return_exceptions=True)
        assert [number for number, result in enumerate(results) if result is not None] == [4]
        assert isinstance(results[4], CheckpointCorruptError)
        assert "run 'r4'" in str(results[4])
        assert [header.seq for header in await store.runs()] == [1, 1, 1, 1, 0, 1, 1, 1, 1, 1]

    use(postgres, run)


def test_an_earlier_checkpoint_needs_no_later_one(postgres: Place) -> None:
    """The parts load although what they became is lost."""
    use(postgres, fill)
    postgres.change("UPDATE rehydrate.checkpoint SET data = '' WHERE seq = 25")
    stored = use(postgres, lambda store: store.load(At("run", 24)))
    assert len(stored.records) == 26
