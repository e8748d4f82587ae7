"""A program that ends the process of a file store at every n-th of its calls to the system, and looks what is there.

    python dying_file_store.py FOLDER EVERY

It prints one line for each way to use the store: its name, how many places there were to die at, how often the commit
was there afterwards, and how often it was not.
"""

import asyncio
import os
import shutil
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from rehydrate.model.checkpoint import Latest, Offer, RequestRow, Status
from rehydrate.stores.file import FileCheckpointStorage
from rehydrate.testing.store_contract import CommitMaker, ManualClock

Act = Callable[[FileCheckpointStorage], Awaitable[object]]
#: The ways to use the store, by name.
ACTS: dict[str, Act] = {}
CALLS = ("open", "write", "fsync", "replace", "mkdir", "unlink", "rmdir")
DIED, NOT_REACHED = 9, 0


def begun(run_id: str = "run", tag: str = "") -> CommitMaker:
    return CommitMaker(run_id, tag=tag)


def stand(maker: CommitMaker) -> CommitMaker:
    """Bring a maker to where `prepare` leaves the run."""
    maker.claim({"a": b"1", "b": b"1"})
    maker.step({"a": b"2"})
    maker.step(requests=[RequestRow("q", "run", "", "open")], turn=maker.turn("key"), seconds=0)
    return maker


async def prepare(store: FileCheckpointStorage) -> None:
    maker = begun()
    await store.commit(maker.claim({"a": b"1", "b": b"1"}))
    await store.commit(maker.step({"a": b"2"}))
    rows = [RequestRow("q", "run", "", "open")]
    await store.commit(maker.step(requests=rows, turn=maker.turn("key"), seconds=0))
    await store.offer(Offer("run", "letter", b"come"))
    await store.offer(Offer("run", "parcel", b"bring"))
    await store.tag("run", "begun", "run:0")


async def go_on(store: FileCheckpointStorage) -> None:
    maker = stand(begun())
    answered = RequestRow("q", "run", "", "answered")
    asked = RequestRow("new", "run", "", "open")
    turn = maker.turn("key", status=Status.IDLE)
    commit = maker.step({"a": b"2"}, ["b"], status=Status.IDLE, requests=[answered, asked], turn=turn, seconds=0)
    await store.commit(msgspec.structs.replace(commit, taken=(1,)))


async def start(store: FileCheckpointStorage) -> None:
    maker = begun("second")
    row = RequestRow("q2", "second", "", "open")
    commit = maker.claim({"k": b"v"}, seconds=0)
    await store.commit(msgspec.structs.replace(commit, requests=(row,), turn=maker.turn("key2")))


async def end(store: FileCheckpointStorage) -> None:
    await store.delete("run")


async def forget(store: FileCheckpointStorage) -> None:
    await store.forget("run", [1])


async def adopt(store: FileCheckpointStorage) -> None:
    """Take in a copy of the run under another name and with other ids."""
    archive = await store.archive("run")
    header = msgspec.structs.replace(archive.commits[0].header, run_id="second", checkpoint_id="second:0")
    commit = msgspec.structs.replace(archive.commits[0], header=header)
    tags, offers = {"begun": "second:0"}, (msgspec.structs.replace(archive.offers[0], run_id="second"),)
    requests = (RequestRow("q2", "second", "", "open"),)
    copy = msgspec.structs.replace(archive, commits=(commit,), requests=requests, turns=(), tags=tags, offers=offers)
    await store.adopt(copy)


async def what_is_there(store: FileCheckpointStorage) -> dict[str, object]:
    """Return all that the store says, each answer by itself."""
    runs = [header.run_id for header in await store.runs()]
    told: dict[str, object] = {"runs": runs}
    for run_id in ("run", "second"):
        head = await store.load(Latest(run_id))
        told[run_id] = (head.header.seq, head.records) if head else None
        told[f"numbers of {run_id}"] = [header.seq for header in await store.history(run_id)]
        told[f"beside {run_id}"] = (await store.tags(run_id), [offer.key for offer in await store.offers(run_id)])
        ids = [f"{run_id}:{seq}" for seq in range(4)]
        told[f"found of {run_id}"] = [ref for ref in ids if await store.load(ref) is not None]
    for request_id in ("q", "new", "q2"):
        row = await store.find_request(request_id)
        told[request_id] = row.state if row else None
    told["open"] = [row.request_id for row in await store.requests()]
    for key in ("key", "key2"):
        row = await store.find_turn("flow", key)
        told[key] = row.status.value if row else None
    for status in Status:
        told[status.value] = [header.run_id for header in await store.runs(status=status)]
    return told


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def die_at(number: int) -> None:
    """End the process before its n-th call to the system; a write is half done."""
    left = [number]

    def counted(name: str) -> Callable[..., object]:
        call = getattr(os, name)

        def last_one(*args: object, **more: object) -> object:
            left[0] -= 1
            if left[0] < 0:
                if name == "write":
                    call(args[0], bytes(args[1])[: len(args[1]) // 2])
                os._exit(DIED)
            return call(*args, **more)

        return last_one

    for name in CALLS:
        setattr(os, name, counted(name))


def in_child(work: Callable[[], None]) -> int:
    """Do something in a fork of this process, which has no threads, and return its exit status."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        work()
        os._exit(NOT_REACHED)
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
        os._exit(1)


def use(folder: Path, act: Act) -> object:
    async def main() -> object:
        async with FileCheckpointStorage(folder, clock=ManualClock(2_000_000.0)) as store:
            return await act(store)

    return asyncio.run(main())


def answers(folder: Path, act: Act) -> str:
    """Return what an act gives, done in a process of its own."""
    reader, writer = os.pipe()
    status = in_child(lambda: os.write(writer, repr(use(folder, act)).encode()))
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        return pipe.read().decode() if status == NOT_REACHED else f"status {status}"


async def nothing(store: FileCheckpointStorage) -> None:
    """Write once, so that what a dead process left is taken back."""
    maker = begun("other")
    await store.commit(maker.claim(seconds=0))
    await store.delete("other")


def check(root: Path, name: str, act: Act, every: int) -> None:
    base, place = root / "base", root / "place"
    before, files_before = answers(base, what_is_there), files(base)
    shutil.copytree(base, place)
    in_child(lambda: use(place, act))
    after, files_after = answers(place, what_is_there), files(place)
    assert before != after
    number, tried, seen = 0, 0, {before: 0, after: 0}
    while True:
        shutil.rmtree(place)
        shutil.copytree(base, place)

        def work(number: int = number) -> None:
            die_at(number)
            use(place, act)

        status = in_child(work)
        if status == NOT_REACHED:
            break
        assert status == DIED, (name, number, status)
        found = answers(place, what_is_there)
        assert found in seen, f"{name}, call {number}: {found}\nbefore {before}\nafter {after}"
        seen[found] += 1
        in_child(lambda: use(place, nothing))
        assert answers(place, what_is_there) == found, f"{name}, call {number}: it changed afterwards"
        left = set(files(place))
        kept = set(files_after if found == after else files_before)
        extra = {path for path in left - kept if not path.startswith(("locks/", "statuses/", "open/"))}
        assert not extra, f"{name}, call {number}: left {extra}"
        if found == before:
            in_child(lambda: use(place, act))
            assert answers(place, what_is_there) == after, f"{name}, call {number}: it could not be done again"
        number, tried = number + every, tried + 1
    os.write(1, f"{name} {tried} {seen[after]} {seen[before]}\n".encode())


ACTS.update({"go on": go_on, "end": end, "start": start, "forget": forget, "adopt": adopt})

if __name__ == "__main__":
    root = Path(sys.argv[1])
    in_child(lambda: use(root / "base", prepare))
    for each_name, each in ACTS.items():
        check(root, each_name, each, int(sys.argv[2]))
        shutil.rmtree(root / "place", ignore_errors=True)
