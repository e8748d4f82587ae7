"""The store contract, second part: requests, turns, hostile texts, deleting, and the record sum.

Each check is an async function over `make(clock=...)` and fails by an assert.
"""

# ruff: noqa: S101  (a contract is made of asserts)

from __future__ import annotations

from typing import cast

import msgspec

from rehydrate.errors import CheckpointCorruptError, CommitConflictError, RunBusyError, WrongCallError
from rehydrate.model.checkpoint import Commit, Latest, Put, RequestRow, Status

from .contract_tools import Check, CommitMaker, MakeStore, ManualClock, head_of, in_order, loaded, refused

#: Texts that break a store which builds statements or paths out of them.
HOSTILE = (
    "'; DROP TABLE rehydrate_run; --",
    'say "no"',
    "a\0b",
    "../../etc/passwd",
    "..",
    "%s ? :name {x}",
    "\x1f",
    "x" * 300,
    "ünï 🙂 \u202e",
    " ",
)


async def requests_are_rows(make: MakeStore) -> None:
    """A request is found by its id in any state, and replaced by the next commit that names it."""
    store, maker = make(clock=ManualClock()), CommitMaker()
    rows = [RequestRow(f"q{number}", "run", "a#1/b#2", "open") for number in range(3)]
    await store.commit(maker.claim())
    await store.commit(maker.step(requests=rows))
    assert await store.find_request("q1") == rows[1]
    answered = msgspec.structs.replace(rows[1], state="answered")
    cancelled = msgspec.structs.replace(rows[2], state="cancelled")
    await store.commit(maker.step(requests=[answered, cancelled]))
    assert [await store.find_request(f"q{number}") for number in range(4)] == [rows[0], answered, cancelled, None]
    await store.close()


async def a_request_has_one_run(make: MakeStore) -> None:
    """A commit that names another run's request is refused as a whole; rows of another run are no part of a commit."""
    store, maker, other = make(clock=ManualClock()), CommitMaker(), CommitMaker("other")
    row = RequestRow("q", "run", "", "open")
    await store.commit(maker.claim())
    await store.commit(maker.step(requests=[row]))
    await store.commit(other.claim({"k": b"kept"}))
    theirs = RequestRow("q", "other", "", "answered")
    lost = other.copy(owner="owner", tag="lost").step({"k": b"lost"}, requests=[theirs])
    await refused(CommitConflictError, store.commit(lost))
    assert await store.find_request("q") == row
    assert (await loaded(store, Latest("other"))).records == {"k": b"kept"}
    await refused(WrongCallError, store.commit(other.copy(owner="owner", tag="w").step(requests=[row])))
    await store.close()


async def a_key_has_one_turn(make: MakeStore) -> None:
    """A turn's row is replaced by its own commits; a key of another turn or run makes the commit fail as a whole."""
    store, maker, other = make(clock=ManualClock()), CommitMaker(), CommitMaker("other")
    await store.commit(maker.claim())
    await store.commit(maker.step(turn=maker.turn("key")))
    ended = maker.turn("key", status=Status.IDLE)
    await store.commit(maker.step(turn=ended))
    assert await store.find_turn("flow", "key") == ended
    assert await store.find_turn("another flow", "key") is None
    assert await store.find_turn("flow", "another key") is None
    await refused(CommitConflictError, store.commit(maker.copy(owner="o", tag="2").step(turn=maker.turn("key", 2))))
    await store.commit(other.claim())
    lost = other.copy(owner="o", tag="lost").step({"k": b"lost"}, turn=other.turn("key"))
    await refused(CommitConflictError, store.commit(lost))
    assert (await head_of(store, "other")).header.checkpoint_id == other.head
    same = CommitMaker("third", workflow="another flow")
    await store.commit(msgspec.structs.replace(same.claim(), turn=same.turn("key")))
    assert await store.find_turn("another flow", "key") == same.turn("key")
    assert await store.find_turn("flow", "key") == ended
    await store.close()


async def texts_are_data(make: MakeStore) -> None:
    """Quotes, NUL, slashes, separators and 300 characters in any id or key come back as they were."""
    store = make(clock=ManualClock())
    for text in HOSTILE:
        maker = CommitMaker(text, workflow=text, owner=text, tag=text)
        claim = maker.claim({text: text.encode()})
        await store.commit(claim)
        request, turn = RequestRow(text, text, text, "open"), maker.turn(text)
        step = maker.step({"k": b"v"}, requests=[request], turn=turn)
        await store.commit(step)
        head = await head_of(store, text)
        assert (head.header, head.owner, head.alive) == (step.header, text, True)
        assert (await loaded(store, claim.header.checkpoint_id)).records == {text: text.encode()}
        assert await store.read(text, [text]) == {text: text.encode()}
        assert await store.find_request(text) == request
        assert await store.find_turn(text, text) == turn
        assert [header.run_id for header in await store.runs(workflow=text)] == [text]
        await store.renew(text, text, 1, 30)
    assert [header.run_id for header in await store.runs()] == in_order(store, *HOSTILE)
    await store.close()


async def half_characters_are_refused(make: MakeStore) -> None:
    """Half of a surrogate pair is refused with an error of ours in every place, and nothing is stored."""
    store, half = make(clock=ManualClock()), "a\ud800"
    for commit in (
        CommitMaker(half).claim(),
        CommitMaker(workflow=half).claim(),
        CommitMaker(owner=half).claim(),
        CommitMaker(tag=half).claim(),
        msgspec.structs.replace(CommitMaker().claim(), puts=(Put(half, b""),)),
        msgspec.structs.replace(CommitMaker().claim(), removes=(half,)),
    ):
        await refused(WrongCallError, store.commit(commit))
    assert await store.runs() == []
    for call in (
        store.head(half),
        store.load(half),
        store.load(Latest(half)),
        store.read(half, []),
        store.read("run", [half]),
        store.find_request(half),
        store.find_turn(half, "key"),
        store.find_turn("flow", half),
        store.history(half),
        store.delete(half),
        store.runs(after=half),
        store.renew(half, "owner", 1, 30),
    ):
        await refused(WrongCallError, call)
    await store.close()


async def ids_are_text(make: MakeStore) -> None:
    """What is no text is no id, key or name: each call refuses it as a wrong call and says what it was."""
    store, number = make(clock=ManualClock()), cast("str", 3)
    for call in (
        store.commit(CommitMaker(owner=number).claim()),
        store.commit(msgspec.structs.replace(CommitMaker().claim(), removes=(number,))),
        store.head(number),
        store.load(number),
        store.load(Latest(number)),
        store.inspect(number),
        store.read(number, []),
        store.read("run", [number]),
        store.find_request(number),
        store.find_turn(number, "key"),
        store.find_turn("flow", number),
        store.history(number),
        store.delete(number),
        store.runs(workflow=number),
        store.runs(status=number),
        store.runs(after=number),
        store.renew("run", number, 1, 30),
    ):
        assert "an int" in str(await refused(WrongCallError, call))
    await refused(WrongCallError, store.read("run", "keys"))
    await refused(WrongCallError, store.runs(limit=cast("int", "all")))
    await refused(WrongCallError, store.runs(due_by=cast("float", "today")))
    await refused(WrongCallError, store.runs(due_by=float("nan")))
    await refused(WrongCallError, store.history("run", before=cast("int", "run:1")))
    assert await store.runs() == []
    await store.close()


async def a_checkpoint_id_is_used_once(make: MakeStore) -> None:
    """A commit with the id of a checkpoint that is there is refused as a whole, whichever run has it."""
    store, maker, other = make(clock=ManualClock()), CommitMaker(), CommitMaker("other")
    await store.commit(maker.claim({"k": b"kept"}))
    await store.commit(other.claim({"k": b"kept"}))
    for rival in (maker.copy(owner="owner", tag=""), other.copy(owner="owner", tag="")):
        commit = rival.step({"k": b"lost"})
        taken = msgspec.structs.replace(commit.header, checkpoint_id="run:0")
        await refused(CommitConflictError, store.commit(msgspec.structs.replace(commit, header=taken)))
        assert (await loaded(store, Latest(rival.run_id))).records == {"k": b"kept"}
    assert (await loaded(store, "run:0")).header.run_id == "run"
    await store.close()


async def a_deleted_run_leaves_nothing(make: MakeStore) -> None:
    """Nothing of a deleted run is found any more, another run is untouched, and the id can be used again."""
    store, maker, other = make(clock=ManualClock()), CommitMaker(), CommitMaker("other")
    for one in (other, maker):
        await store.commit(one.claim({"k": b"v" * 300_000}))
        await store.commit(one.step(requests=[RequestRow(f"q-{one.run_id}", one.run_id, "", "open")]))
        await store.commit(one.step({"l": b"w"}, ["k"], turn=one.turn(f"key-{one.run_id}")))
        await store.commit(one.end())
    assert await store.delete("run") is True
    assert await store.delete("run") is False
    assert [await store.head("run"), await store.load(Latest("run")), await store.load("run:0")] == [None] * 3
    assert [await store.find_request("q-run"), await store.find_turn("flow", "key-run")] == [None] * 2
    assert (await store.history("run"), await store.read("run", ["l"])) == ([], {})
    assert [header.run_id for header in await store.runs()] == ["other"]
    again = CommitMaker()
    await store.commit(msgspec.structs.replace(again.claim({"n": b"new"}), turn=again.turn("key-run")))
    assert (await loaded(store, Latest("run"))).records == {"n": b"new"}
    assert (await loaded(store, "other:0")).records == {"k": b"v" * 300_000}
    assert (await loaded(store, Latest("other"))).records == {"l": b"w"}
    assert await store.find_request("q-other") is not None
    await store.close()


async def a_busy_run_is_not_deleted(make: MakeStore) -> None:
    """Deleting is refused while the owner lives, with run and owner named, and works when its lease has ended."""
    clock = ManualClock()
    store, maker = make(clock=clock), CommitMaker()
    await store.commit(maker.claim({"k": b"v"}, seconds=30))
    error = await refused(RunBusyError, store.delete("run"))
    assert (error.run_id, error.owner) == ("run", "owner")
    assert (await loaded(store, Latest("run"))).records == {"k": b"v"}
    clock.now += 31
    assert await store.delete("run") is True
    await store.close()


async def the_record_sum_is_checked(make: MakeStore) -> None:
    """A checkpoint whose records are not those of its header is damaged, named by run and checkpoint."""
    wrong_count, wrong_sum = CommitMaker("count"), CommitMaker("sum")

    def with_header(commit: Commit, **changes: object) -> Commit:
        return msgspec.structs.replace(commit, header=msgspec.structs.replace(commit.header, **changes))

    store = make(clock=ManualClock())
    await store.commit(with_header(wrong_count.claim({"k": b"v"}), records=2))
    await store.commit(with_header(wrong_sum.claim({"k": b"v"}), digest=b"\x01" * 32))
    for run_id in ("count", "sum"):
        for ref in (Latest(run_id), f"{run_id}:0"):
            error = await refused(CheckpointCorruptError, store.load(ref))
            assert f"checkpoint '{run_id}:0' of run {run_id!r}" in str(error)
        assert (await head_of(store, run_id)).header.run_id == run_id
    await store.close()


NAME_CHECKS: tuple[Check, ...] = (
    requests_are_rows,
    a_request_has_one_run,
    a_key_has_one_turn,
    texts_are_data,
    half_characters_are_refused,
    ids_are_text,
    a_checkpoint_id_is_used_once,
    a_deleted_run_leaves_nothing,
    a_busy_run_is_not_deleted,
    the_record_sum_is_checked,
)
