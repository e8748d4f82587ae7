"""The store contract: many small records that become one, however a store keeps them.

A store may keep bytes once that stand in both; none of this may be seen. Each check is an async function over
`make(clock=...)` and fails by an assert.
"""

# ruff: noqa: S101  (a contract is made of asserts)

from __future__ import annotations

import random
from typing import Final

from rehydrate.model.checkpoint import At, Latest
from rehydrate.ports import CheckpointStorage

from .contract_tools import Check, CommitMaker, MakeStore, ManualClock, loaded

#: Parts that become one, and how often that happens.
_PARTS: Final = 24
_ROUNDS: Final = 3

_There = dict[int, dict[str, bytes]]


async def merged_records_load_as_they_were(make: MakeStore) -> None:
    """Every checkpoint loads, before and after its parts became one, and so do single records of the head."""
    store, maker = make(clock=ManualClock()), CommitMaker()
    there = await merged(store, maker)
    await _all_load(store, there)
    keys = ["all 0", "all 2", "part 1", "last", "none"]
    assert await store.read("run", keys) == {key: maker.records[key] for key in keys if key in maker.records}
    await store.close()


async def what_merged_records_are_made_of_may_be_forgotten(make: MakeStore) -> None:
    """Whatever is forgotten, the parts' own checkpoints or the merged record's, all others load as they were."""
    chance = random.Random(2026)  # noqa: S311  (a seed that makes the check repeatable)
    store, maker = make(clock=ManualClock()), CommitMaker()
    there = await merged(store, maker)
    for asked in ([_PARTS, _PARTS + 2], chance.sample(sorted(there), 30), range(5, 2 * _PARTS)):
        for seq in await store.forget("run", list(asked)):
            del there[seq]
        await _all_load(store, there)
    assert list(there) == [header.seq for header in reversed(await store.history("run", limit=1000))]
    # Parts that are merged again, from records whose places may have changed, and a merged record that goes.
    await store.commit(maker.step({"all 3": _joined(maker, "part"), "all 0": b"short"}, _parts(maker)))
    there[maker.seq] = dict(maker.records)
    await _all_load(store, there)
    assert await store.forget("run", sorted(there)) == sorted(there)[:-1]
    assert (await loaded(store, Latest("run"))).records == maker.records
    assert await store.read("run", ["all 1", "all 3"]) == {key: maker.records[key] for key in ("all 1", "all 3")}
    await store.close()


async def an_archive_holds_merged_records_whole(make: MakeStore) -> None:
    """A run that is taken out, deleted and taken in again is the same at every checkpoint."""
    store, maker = make(clock=ManualClock()), CommitMaker()
    there = await merged(store, maker)
    await store.commit(maker.end())
    there[maker.seq] = dict(maker.records)
    for seq in await store.forget("run", range(3, 9)):
        del there[seq]
    archive = await store.archive("run")
    assert archive is not None
    assert await store.delete("run") is True
    await store.adopt(archive)
    assert await store.archive("run") == archive
    await _all_load(store, there)
    await store.close()


async def an_archive_holds_each_version_of_a_merged_record(make: MakeStore) -> None:
    """Where parts became one under a key more than once, each checkpoint of the archive has its own bytes there."""
    store, maker = make(clock=ManualClock()), CommitMaker()
    chance = random.Random(11)  # noqa: S311  (as above)
    await store.commit(maker.claim())
    wholes: list[bytes] = []
    for _ in range(2):
        for part in range(_PARTS):
            await store.commit(maker.step({f"part {part}": b"head %04d" % part + chance.randbytes(800) + b"t"}))
        wholes.append(_joined(maker, "part"))
        await store.commit(maker.step({"all": wholes[-1]}, _parts(maker)))
    archive = await store.archive("run")
    assert archive is not None
    assert [put.data for commit in archive.commits for put in commit.puts if put.key == "all"] == wholes
    await store.close()


async def merged(store: CheckpointStorage, maker: CommitMaker) -> _There:
    """Store a run whose parts become one record three times, with parts left; return the records by number."""
    chance = random.Random(7)  # noqa: S311  (as above)
    await store.commit(maker.claim({"first": b"1"}))
    there = {0: dict(maker.records)}
    for number in range(_ROUNDS):
        for part in range(_PARTS):
            # What stands around the bytes that the merged record has differs, as an envelope does.
            puts = {f"part {part}": b"head %04d" % part + chance.randbytes(700 + 40 * (part % 3)) + b"t"}
            if part % 2:
                puts["last"] = b"%d" % maker.seq
            await store.commit(maker.step(puts))
            there[maker.seq] = dict(maker.records)
        await store.commit(maker.step({f"all {number}": _joined(maker, "part")}, _parts(maker)))
        there[maker.seq] = dict(maker.records)
    for part in range(_PARTS):
        await store.commit(maker.step({f"part {part}": b"head %04d" % part + chance.randbytes(800) + b"t"}))
        there[maker.seq] = dict(maker.records)
    return there


def _parts(maker: CommitMaker) -> list[str]:
    return [key for key in maker.records if key.startswith("part")]


def _joined(maker: CommitMaker, prefix: str) -> bytes:
    return b"many" + b"".join(data[9:-1] for key, data in maker.records.items() if key.startswith(prefix)) + b"end"


async def _all_load(store: CheckpointStorage, there: _There) -> None:
    for seq, records in there.items():
        assert (await loaded(store, At("run", seq))).records == records, seq


#: What a store promises of records that become one.
MERGING_CHECKS: tuple[Check, ...] = (
    merged_records_load_as_they_were,
    what_merged_records_are_made_of_may_be_forgotten,
    an_archive_holds_merged_records_whole,
    an_archive_holds_each_version_of_a_merged_record,
)
