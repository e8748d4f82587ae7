"""The store contract: what is kept of a run's history, names of checkpoints, forgetting, and whole runs as archives.

Each check is an async function over `make(clock=...)` and fails by an assert.
"""

# ruff: noqa: S101  (a contract is made of asserts)

from __future__ import annotations

import random
from typing import cast

import msgspec

from rehydrate.errors import CheckpointCorruptError, CheckpointNotFoundError, CommitConflictError, WrongCallError
from rehydrate.model.checkpoint import Archive, At, Latest, Offer, Put, RequestRow, StoredEvent
from rehydrate.ports import CheckpointStorage

from .contract_events import telling
from .contract_names import HOSTILE
from .contract_tools import Check, CommitMaker, MakeStore, ManualClock, head_of, loaded, refused


async def checkpoints_have_names(make: MakeStore) -> None:
    """A name stands for one checkpoint of its run, can be moved and taken back, and loads what it stands for."""
    store, maker, other = make(clock=ManualClock()), CommitMaker(), CommitMaker("other")
    for commit in (maker.claim({"a": b"1"}), maker.step({"a": b"2"}), maker.end({"a": b"3"}), other.claim()):
        await store.commit(commit)
    await store.tag("run", "good", "run:0")
    await store.tag("run", "best", "run:1")
    assert await store.tags("run") == {"best": "run:1", "good": "run:0"}
    assert (await loaded(store, At("run", "good"))).records == {"a": b"1"}
    await store.tag("run", "good", "run:1")
    await store.tag("run", "best", None)
    await store.tag("run", "never given", None)
    assert await store.tags("run") == {"good": "run:1"}
    assert (await loaded(store, At("run", "good"))).header.seq == 1
    assert (await loaded(store, At("run", 2))).records == {"a": b"3"}
    for ref in (At("run", "best"), At("run", 3), At("run", -1), At("run", 2**70), At("other", "good"), At("none", 0)):
        assert await store.load(ref) is None, ref
    assert (await store.tags("other"), await store.tags("none")) == ({}, {})
    for run_id, checkpoint_id in (("run", "none"), ("run", "other:0"), ("none", "run:0"), ("none", None)):
        await refused(CheckpointNotFoundError, store.tag(run_id, "good", checkpoint_id))
    for name in ("", "a/b", "a#b", "a\0b", "x" * 201, cast("str", 3)):
        await refused(WrongCallError, store.tag("run", name, "run:0"))
    assert await store.tags("run") == {"good": "run:1"}
    await store.close()


async def what_is_forgotten_is_gone(make: MakeStore) -> None:
    """Forgotten checkpoints are not there any more; the others load as they were, in a lineage without a gap."""
    store, maker = make(clock=ManualClock()), CommitMaker()
    await store.commit(maker.claim({"a": b"1", "b": b"1"}))
    await store.commit(maker.step({"a": b"2", "c": b"2"}))
    await store.commit(maker.step({"c": b"3"}, ["b"]))
    await store.commit(maker.end({"a": b"4"}))
    await store.tag("run", "kept", "run:1")
    assert await store.forget("run", [0, 1, 2, 3, 7, -1, 0]) == [0, 2]
    assert await store.forget("run", [0, 2]) == []
    assert await store.forget("none", [0]) == []
    kept = await store.history("run")
    assert [(h.seq, h.checkpoint_id, h.previous_checkpoint_id) for h in kept] == [
        (3, "run:3", "run:1"),
        (1, "run:1", None),
    ]
    assert await store.load("run:0") is None
    assert await store.load(At("run", 2)) is None
    assert (await loaded(store, "run:1")).records == {"a": b"2", "b": b"1", "c": b"2"}
    assert (await loaded(store, Latest("run"))).records == {"a": b"4", "c": b"3"}
    assert await store.read("run", ["a", "b", "c"]) == {"a": b"4", "c": b"3"}
    await refused(CheckpointNotFoundError, store.tag("run", "late", "run:0"))
    await store.commit(maker.claim({"b": b"5"}))
    assert await store.forget("run", [3]) == [3]
    assert (await loaded(store, Latest("run"))).records == {"a": b"4", "b": b"5", "c": b"3"}
    for numbers in (cast("list[int]", "01"), cast("list[int]", ["0"]), cast("list[int]", 3)):
        await refused(WrongCallError, store.forget("run", numbers))
    await store.close()


async def forgetting_loses_nothing_else(make: MakeStore) -> None:
    """Whatever is forgotten, in whatever order and by however many runs, every other checkpoint loads as it was."""
    chance = random.Random(2026)  # noqa: S311  (a seed that makes the check repeatable)
    store, makers = make(clock=ManualClock()), [CommitMaker("one"), CommitMaker("two")]
    there: dict[tuple[str, int], dict[str, bytes]] = {}
    for _ in range(40):
        maker = chance.choice(makers)
        puts = {f"k{key}": chance.randbytes(chance.choice((1, 300_000))) for key in range(4) if chance.random() < 0.3}
        removes = [f"k{key}" for key in range(4) if f"k{key}" not in puts and chance.random() < 0.2]
        await store.commit(maker.step(puts, removes) if maker.head else maker.claim(puts))
        there[maker.run_id, maker.seq] = dict(maker.records)
        if chance.random() < 0.4:
            asked = chance.sample(range(maker.seq + 1), min(3, maker.seq + 1))
            dropped = await store.forget(maker.run_id, asked)
            assert dropped == [seq for seq in sorted(asked) if (maker.run_id, seq) in there and seq != maker.seq]
            for seq in dropped:
                del there[maker.run_id, seq]
    assert len(there) < 35
    for (run_id, seq), records in there.items():
        assert (await loaded(store, At(run_id, seq))).records == records
        assert (await loaded(store, f"{run_id}:{seq}")).records == records
    for maker in makers:
        await store.commit(maker.end())
        assert await store.delete(maker.run_id) is True
        assert await store.load(Latest(maker.run_id)) is None
    await store.close()


async def filled(store: CheckpointStorage, run_id: str = "run") -> CommitMaker:
    """Store a run at rest with something of everything; its middle checkpoint is forgotten."""
    maker = CommitMaker(run_id)
    await store.commit(maker.claim({"a": b"1", "big": b"x" * 600_000}))
    request = RequestRow(f"q-{run_id}", run_id, "child#1", "open")
    await store.commit(maker.step({"a": b"2"}, requests=[request], turn=maker.turn(f"key-{run_id}")))
    await store.commit(telling(maker.step({"a": b"3", "b": b"3"}), b"one", b"two", last=2))
    await store.commit(telling(maker.end({"c": b"4"}), b"three", last=3))
    await store.tag(run_id, "begun", f"{run_id}:0")
    await store.offer(Offer(run_id, "letter", b"come"))
    await store.forget(run_id, [1])
    return maker


async def pages_may_be_of_any_size(make: MakeStore) -> None:
    """A limit beyond any number that a database has gives all that there is, and so do the ends of a page."""
    store, much = make(clock=ManualClock()), 2**70
    await filled(store)
    history = await store.history("run")
    assert [header.seq for header in history] == [3, 2, 0]
    assert await store.history("run", limit=much) == history
    assert await store.history("run", before=much, limit=much) == history
    assert await store.history("run", before=-much, limit=much) == []
    assert [header.run_id for header in await store.runs(limit=much)] == ["run"]
    assert [row.request_id for row in await store.requests(limit=much)] == ["q-run"]
    assert await store.events("run", limit=much) == await store.events("run")
    assert await store.events("run", after=much, limit=much) == []
    assert [offer.key for offer in await store.offers("run", limit=much)] == ["letter"]
    assert await store.offers("run", after=much, limit=much) == []
    await store.close()


async def a_run_moves_as_an_archive(make: MakeStore) -> None:
    """A run that was archived, deleted and taken in is the same run: every checkpoint and all that stands beside."""
    store = make(clock=ManualClock())
    maker = await filled(store)
    await filled(store, "other")
    archive = await store.archive("run")
    assert archive is not None
    assert [commit.header.seq for commit in archive.commits] == [0, 2, 3]
    before = [await loaded(store, At("run", seq)) for seq in (0, 2, 3)]
    history, events = await store.history("run"), await store.events("run")
    await refused(CommitConflictError, store.adopt(archive))
    assert await store.delete("run") is True
    assert await store.archive("run") is None
    await store.adopt(archive)
    after = [await loaded(store, At("run", seq)) for seq in (0, 2, 3)]
    assert [(one.header, one.records) for one in after] == [(one.header, one.records) for one in before]
    assert (await store.history("run"), await store.events("run")) == (history, events)
    assert await store.find_request("q-run") == RequestRow("q-run", "run", "child#1", "open")
    assert await store.find_turn("flow", "key-run") == archive.turns[0]
    assert await store.tags("run") == {"begun": "run:0"}
    assert [(offer.number, offer.key, offer.body) for offer in await store.offers("run")] == [(1, "letter", b"come")]
    head = await head_of(store)
    assert (head.owner, head.epoch, head.alive) == (None, 1, False)
    assert await store.archive("run") == archive
    maker.epoch = 1
    await store.commit(maker.claim({"a": b"5"}))
    assert (await loaded(store, Latest("run"))).records["a"] == b"5"
    await store.close()


async def a_damaged_archive_is_refused(make: MakeStore) -> None:
    """An archive with a record changed, lost or swapped, a checkpoint missing or foreign rows leaves no trace."""
    store = make(clock=ManualClock())
    await filled(store)
    archive = await store.archive("run")
    assert archive is not None
    assert await store.delete("run") is True
    first, middle, last = archive.commits
    changed = msgspec.structs.replace(last, puts=(Put("c", b"?"),))
    lost = msgspec.structs.replace(middle, puts=middle.puts[:1])
    swapped = msgspec.structs.replace(first, puts=tuple(Put(put.key[::-1], put.data) for put in first.puts))
    damaged = (
        msgspec.structs.replace(archive, commits=(first, middle, changed)),
        msgspec.structs.replace(archive, commits=(first, lost, last)),
        msgspec.structs.replace(archive, commits=(swapped, middle, last)),
        msgspec.structs.replace(archive, commits=(first, last)),
        msgspec.structs.replace(archive, commits=(middle, last)),
        msgspec.structs.replace(archive, commits=(first, last, middle)),
        msgspec.structs.replace(archive, requests=(RequestRow("q", "other", "", "open"),)),
        msgspec.structs.replace(archive, offers=(Offer("other", "k", b"", 1),)),
        msgspec.structs.replace(archive, tags={"begun": "other:0"}),
        msgspec.structs.replace(archive, events=(StoredEvent(9, b"late"),)),
    )
    for number, one in enumerate(damaged):
        await refused(CheckpointCorruptError, store.adopt(one))
        assert await store.head("run") is None, number
        assert await store.find_request("q-run") is None, number
    await refused(WrongCallError, store.adopt(Archive(())))
    await store.adopt(archive)
    assert await store.archive("run") == archive
    await store.close()


async def an_archive_takes_nothing_of_others(make: MakeStore) -> None:
    """An archive whose checkpoint id, request or key another run has by now is refused as a whole."""
    store = make(clock=ManualClock())
    await filled(store)
    archive = await store.archive("run")
    assert archive is not None
    assert await store.delete("run") is True
    for thief in ("checkpoint", "request", "turn"):
        other = CommitMaker("other")
        claim = other.claim({"k": b"kept"})
        if thief == "checkpoint":
            claim = msgspec.structs.replace(claim, header=msgspec.structs.replace(claim.header, checkpoint_id="run:2"))
        elif thief == "request":
            claim = msgspec.structs.replace(claim, requests=(RequestRow("q-run", "other", "", "open"),))
        else:
            claim = msgspec.structs.replace(claim, turn=other.turn("key-run"))
        await store.commit(claim)
        await refused(CommitConflictError, store.adopt(archive))
        assert await store.head("run") is None
        assert (await loaded(store, Latest("other"))).records == {"k": b"kept"}
        other.head = claim.header.checkpoint_id
        await store.commit(other.end())
        assert await store.delete("other") is True
    await store.adopt(archive)
    await store.close()


async def names_and_offers_go_with_their_run(make: MakeStore) -> None:
    """A deleted run leaves no name and no offer; an id used again has none."""
    store = make(clock=ManualClock())
    await filled(store)
    await filled(store, "other")
    assert await store.delete("run") is True
    assert (await store.tags("run"), await store.offers("run"), await store.requests(run_id="run")) == ({}, [], [])
    await store.commit(CommitMaker(tag="again").claim())
    assert (await store.tags("run"), await store.offers("run")) == ({}, [])
    assert await store.offer(Offer("run", "letter", b"another")) == 1
    assert await store.tags("other") == {"begun": "other:0"}
    await store.close()


async def hostile_texts_are_names_and_keys(make: MakeStore) -> None:
    """Ids and keys of any characters name exactly what they were given for."""
    store = make(clock=ManualClock())
    for text in HOSTILE:
        maker = CommitMaker(text)
        await store.commit(maker.claim({"k": text.encode()}))
        await store.tag(text, "name", maker.head)
        assert await store.offer(Offer(text, text, text.encode())) == 1
    for text in HOSTILE:
        assert (await loaded(store, At(text, "name"))).records == {"k": text.encode()}
        assert [(offer.key, offer.body) for offer in await store.offers(text)] == [(text, text.encode())]
        archive = await store.archive(text)
        assert archive is not None
        assert archive.tags == {"name": f"{text}:0"}
    await store.close()


HISTORY_CHECKS: tuple[Check, ...] = (
    checkpoints_have_names,
    what_is_forgotten_is_gone,
    forgetting_loses_nothing_else,
    pages_may_be_of_any_size,
    a_run_moves_as_an_archive,
    a_damaged_archive_is_refused,
    an_archive_takes_nothing_of_others,
    names_and_offers_go_with_their_run,
    hostile_texts_are_names_and_keys,
)
