"""The store contract, fourth part: several processes on one place, some of which are killed, stopped or forked.

`make` must be picklable here, and open the same place whenever it is called. Each check fails by an assert.
"""

# ruff: noqa: S101  (a contract is made of asserts)

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import signal
from collections.abc import Callable, Generator
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Barrier
from typing import Final, cast

from rehydrate.errors import CommitConflictError, RunBusyError
from rehydrate.model.checkpoint import Latest, RequestRow
from rehydrate.ports import CheckpointStorage

from .contract_races import ROUNDS, attempt, race_on_one_head
from .contract_tools import Check, CommitMaker, MakeStore, ManualClock, head_of, loaded

#: A fork of a process with threads may hang; a new interpreter does not.
_SPAWN: Final = multiprocessing.get_context("spawn")
#: Seconds after which a process that says nothing has failed.
_PATIENCE: Final = 60.0


async def a_store_can_be_opened_again(make: MakeStore) -> None:
    """What was committed is there when the store is closed and opened again, and the run goes on."""
    store, maker = make(clock=ManualClock()), CommitMaker()
    await store.commit(maker.claim({"k": b"v"}))
    await store.commit(maker.end({"l": b"w"}))
    await store.close()
    store = make(clock=ManualClock())
    assert (await loaded(store, Latest("run"))).records == {"k": b"v", "l": b"w"}
    await store.commit(maker.claim({"k": b"again"}))
    assert (await loaded(store, "run:0")).records == {"k": b"v"}
    await store.close()


async def another_process_goes_on(make: MakeStore) -> None:
    """A run that one process left at rest is loaded and continued by another, and the first sees what that did."""
    store, maker = make(clock=ManualClock()), CommitMaker()
    await store.commit(maker.claim({"k": b"1"}))
    await store.commit(maker.end({"l": b"1"}))
    with _child(_go_on, make) as (_, answers):
        assert _next(answers) == {"k": b"1", "l": b"1"}
        assert _next(answers) == "committed"
    assert (await loaded(store, Latest("run"))).records == {"k": b"2", "l": b"1"}
    assert (await head_of(store)).epoch == 2
    await store.close()


async def of_two_processes_one_wins(make: MakeStore, rounds: int = ROUNDS) -> None:
    """Two processes commit on one head at once, 50 times: exactly one is taken each time, and it is the head."""
    store = make(clock=ManualClock())
    barrier = _SPAWN.Barrier(2)
    rivals = (_child(_race, make, tag, barrier, rounds) for tag in ("a", "b"))
    with next(rivals) as (_, first), next(rivals) as (_, second):
        a_won, b_won = cast("list[bool]", _next(first)), cast("list[bool]", _next(second))
    assert [one + other for one, other in zip(a_won, b_won, strict=True)] == [1] * rounds
    for number, won in enumerate(a_won):
        head = await head_of(store, f"r{number}")
        assert head.header.checkpoint_id == f"r{number}:0{'a' if won else 'b'}"
    await store.close()


async def of_two_processes_one_goes_on(make: MakeStore, rounds: int = ROUNDS) -> None:
    """Two processes commit on one head at once, 50 times: exactly one is taken each time, and both see its head."""
    store, maker = make(clock=ManualClock()), CommitMaker()
    await store.commit(maker.claim(seconds=0))
    barrier = _SPAWN.Barrier(2, timeout=_PATIENCE)
    rivals = (_child(_race_on_one_head, make, tag, barrier, rounds) for tag in ("a", "b"))
    with next(rivals) as (_, first), next(rivals) as (_, second):
        a_won, b_won = cast("list[bool]", _next(first)), cast("list[bool]", _next(second))
    assert [one + other for one, other in zip(a_won, b_won, strict=True)] == [1] * rounds
    winners = [header.checkpoint_id[-1] for header in await store.history("run", limit=rounds)]
    assert winners[::-1] == ["a" if won else "b" for won in a_won]
    await store.close()


async def another_process_deletes(make: MakeStore) -> None:
    """While one process starts and ends a run again and again, another deletes it: it is whole or not there."""
    store = make(clock=ManualClock())
    with _child(_start_and_end, make, 20) as (_, answers):
        deleted = 0
        while deleted < 20:
            with contextlib.suppress(RunBusyError):
                deleted += await store.delete("run")
            stored = await store.load(Latest("run"))
            assert stored is None or stored.records == {"k": b"%d" % stored.header.seq}
        assert _next(answers) == "ended"
    assert (await store.head("run"), await store.find_request("q")) == (None, None)
    await store.close()


async def a_killed_owner_is_gone(make: MakeStore) -> None:
    """The owner lives as long as its process, and is gone the moment that is killed, long before its lease ends."""
    store = make(clock=ManualClock())
    with _child(_claim_and_wait, make) as (process, answers):
        assert _next(answers) == "claimed"
        head = await head_of(store)
        assert (head.owner, head.alive) == ("owner", True)
        process.kill()
        process.join()
        head = await head_of(store)
        assert (head.owner, head.alive) == ("owner", False)
    maker = CommitMaker(owner="heir")
    maker.head, maker.seq, maker.epoch = "run:0", 0, 1
    await store.commit(maker.claim())
    assert (await head_of(store)).alive
    await store.close()


async def a_stopped_owner_lives_until_its_lease_ends(make: MakeStore) -> None:
    """A process that is stopped still owns its run; the end of the lease is what frees it."""
    clock = ManualClock()
    store = make(clock=clock)
    with _child(_claim_and_wait, make) as (process, answers):
        assert _next(answers) == "claimed"
        assert process.pid is not None
        os.kill(process.pid, signal.SIGSTOP)
        assert (await head_of(store)).alive
        clock.now += 31
        assert not (await head_of(store)).alive
        process.kill()
        process.join()
    await store.close()


async def a_continued_owner_has_lost_its_run(make: MakeStore) -> None:
    """A process that was stopped while another one took its run over can neither commit nor renew when it goes on."""
    clock = ManualClock()
    store = make(clock=clock)
    with _child(_claim_and_go_on, make) as (process, answers):
        assert _next(answers) == "claimed"
        assert process.pid is not None
        os.kill(process.pid, signal.SIGSTOP)
        clock.now += 31
        taker = CommitMaker(owner="taker", tag="taker")
        taker.head, taker.seq, taker.epoch = "run:0", 0, 1
        await store.commit(taker.claim({"k": b"taken"}))
        os.kill(process.pid, signal.SIGCONT)
        answers.send("go on")
        assert _next(answers) == ["CommitConflictError", "CommitConflictError"]
    head = await head_of(store)
    assert (head.owner, head.epoch, head.alive, head.header.checkpoint_id) == ("taker", 2, True, "run:1taker")
    assert (await loaded(store, Latest("run"))).records == {"k": b"taken"}
    await store.close()


async def a_forked_child_is_another_owner(make: MakeStore) -> None:
    """A forked child uses the store on its own, and does not keep its parent's runs owned when the parent is killed."""
    store = make(clock=ManualClock())
    with _child(_fork, make) as (process, answers):
        assert _next(answers) == ("child", True, {"k": b"v"})
        assert (await head_of(store)).alive
        assert (await head_of(store, "child")).alive
        process.kill()
        process.join()
        assert not (await head_of(store)).alive
        assert (await head_of(store, "child")).alive
        answers.send("end")
        assert _next(answers) == "ended"
    assert (await loaded(store, Latest("child"))).records == {"k": b"end"}
    await store.close()


@contextlib.contextmanager
def _child(
    target: Callable[..., None], make: MakeStore, *more: object
) -> Generator[tuple[BaseProcess, Connection], None, None]:
    """Run `target(connection, make, *more)` in a new process and give the process and our end of the connection."""
    ours, theirs = _SPAWN.Pipe()
    process = _SPAWN.Process(target=target, args=(theirs, make, *more), daemon=True)
    process.start()
    theirs.close()
    try:
        yield process, ours
        process.join(_PATIENCE)
    finally:
        process.kill()
        process.join()
        process.close()
        ours.close()


def _next(answers: Connection) -> object:
    assert answers.poll(_PATIENCE), "the other process says nothing"
    return answers.recv()


def _go_on(answers: Connection, make: MakeStore) -> None:
    async def main() -> None:
        store = make(clock=ManualClock())
        stored = await loaded(store, Latest("run"))
        answers.send(stored.records)
        maker = CommitMaker(owner="second", tag="second")
        for key, data in stored.records.items():
            maker.know(key, data)
        maker.head, maker.seq, maker.epoch = stored.header.checkpoint_id, stored.header.seq, stored.head.epoch
        await store.commit(maker.claim({"k": b"2"}))
        answers.send("committed")
        await store.close()

    asyncio.run(main())


def _race(answers: Connection, make: MakeStore, tag: str, barrier: Barrier, rounds: int) -> None:
    async def main() -> None:
        store = make(clock=ManualClock())
        won: list[bool] = []
        for number in range(rounds):
            commit = CommitMaker(f"r{number}", owner=tag, tag=tag).claim({"k": tag.encode()})
            barrier.wait(_PATIENCE)
            won.append(await attempt(store, commit))
        answers.send(won)
        await store.close()

    asyncio.run(main())


def _claim_and_wait(answers: Connection, make: MakeStore) -> None:
    async def main() -> None:
        store = make(clock=ManualClock())
        await store.commit(CommitMaker().claim(seconds=30))
        answers.send("claimed")
        answers.poll(None)

    asyncio.run(main())


def _claim_and_go_on(answers: Connection, make: MakeStore) -> None:
    async def main() -> None:
        store, maker = make(clock=ManualClock()), CommitMaker()
        await store.commit(maker.claim(seconds=30))
        answers.send("claimed")
        answers.recv()
        errors: list[str] = []
        for call in (store.commit(maker.step({"k": b"late"})), store.renew("run", "owner", 1, 30)):
            try:
                await call
            except CommitConflictError as error:
                errors.append(type(error).__name__)
        answers.send(errors)
        await store.close()

    asyncio.run(main())


def _race_on_one_head(answers: Connection, make: MakeStore, tag: str, barrier: Barrier, rounds: int) -> None:
    async def main() -> None:
        store = make(clock=ManualClock())
        answers.send(await race_on_one_head(store, tag, barrier, rounds, seconds=0))
        await store.close()

    asyncio.run(main())


def _start_and_end(answers: Connection, make: MakeStore, rounds: int) -> None:
    async def main() -> None:
        store = make(clock=ManualClock())
        for number in range(rounds):
            maker = CommitMaker(owner="second", tag=f".{number}")
            while not await attempt(store, maker.claim({"k": b"0"})):
                maker = CommitMaker(owner="second", tag=f".{number}")
            request = RequestRow("q", "run", "", "open")
            await store.commit(maker.step({"k": b"1"}, requests=[request]))
            await store.commit(maker.end({"k": b"2"}))
        answers.send("ended")
        await store.close()

    asyncio.run(main())


def _fork(answers: Connection, make: MakeStore) -> None:
    store = make(clock=ManualClock())
    asyncio.run(store.commit(CommitMaker().claim({"k": b"v"})))
    if os.fork():
        # The test kills this process while the child goes on.
        asyncio.run(_use(store))
        signal.pause()
        return
    asyncio.run(_live_as_child(store, answers))
    os._exit(0)


async def _use(store: CheckpointStorage) -> None:
    await store.commit(CommitMaker("parent").claim())


async def _live_as_child(store: CheckpointStorage, answers: Connection) -> None:
    maker = CommitMaker("child", owner="child")
    await store.commit(maker.claim({"k": b"begin"}))
    answers.send(("child", (await head_of(store)).alive, (await loaded(store, Latest("run"))).records))
    answers.poll(None)
    await store.commit(maker.step({"k": b"end"}))
    answers.send("ended")


#: What a store promises that several processes open.
PROCESS_CHECKS: tuple[Check, ...] = (
    a_store_can_be_opened_again,
    another_process_goes_on,
    of_two_processes_one_wins,
    of_two_processes_one_goes_on,
    another_process_deletes,
)
#: What a store promises that sees at once when the process of an owner is gone.
OWNER_CHECKS: tuple[Check, ...] = (
    a_killed_owner_is_gone,
    a_stopped_owner_lives_until_its_lease_ends,
    a_continued_owner_has_lost_its_run,
    a_forked_child_is_another_owner,
)
