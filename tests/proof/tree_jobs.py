"""The two processes of the proof: one runs the references of some trees and ends, the other goes on from each of their
checkpoints. Between them there is a file of bytes, and the database where the checkpoints stay in one.

`python -m tests.proof.tree_jobs write|take FILE` does one of the two.
"""

from __future__ import annotations

import gc
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from rehydrate import CheckpointStorage, InMemoryCheckpointStorage, SqliteCheckpointStorage, Status, WorkflowCheckpoint
from rehydrate.engine import passes
from rehydrate.engine.passes import PACK
from rehydrate.testing import run_virtually
from tests.differential.facts import RunFacts
from tests.differential.harness import Calls, reference_run, stored_checkpoints
from tests.differential.nodes import Journal
from tests.functional.random_runs import wrong_from
from tests.proof.tree_building import RUN_ID, calls_of
from tests.proof.trees import draw_tree

ROOT: Final = Path(__file__).resolve().parents[2]
Result = TypeVar("Result")


class Order(msgspec.Struct):
    """Run these trees. `folder`: each into a SQLite file there; where it is empty, in memory. `pack`: see `Job`."""

    seeds: list[int]
    folder: str = ""
    pack: int = PACK


class Job(msgspec.Struct):
    """One tree that has been run: its facts, and where its checkpoints are: a SQLite file, or their bytes.

    `only`: the one checkpoint to take up, by its number; then bytes are those of that one. `pack`: so many calls of a
    function that came back share a record.
    """

    seed: int
    facts: RunFacts
    database: str = ""
    exported: list[bytes] = []
    only: int | None = None
    pack: int = PACK

    def alone(self, number: int) -> Job:
        """Return the job with one of its checkpoints only."""
        exported = self.exported[number : number + 1]
        return msgspec.structs.replace(self, exported=exported, only=number)


class Found(msgspec.Struct):
    """How many checkpoints were taken up, and what was different."""

    taken: int
    wrong: list[str]


async def write(seed: int, folder: str) -> Job:
    """Run the reference of a tree."""
    database = f"{folder}/{seed}.db" if folder else ""
    store: CheckpointStorage = SqliteCheckpointStorage(database) if database else InMemoryCheckpointStorage()
    calls = calls_of(draw_tree(seed), store, chance=1)
    facts = await reference_run(calls, RUN_ID)
    exported: list[bytes] = []
    if not database:
        exported = [checkpoint.to_bytes() for checkpoint in await stored_checkpoints(store, RUN_ID)]
    await store.close()
    return Job(seed, facts, database, exported)


async def take(job: Job, *, enough: int | None = None) -> Found:
    """Go on from each checkpoint of a job and name everything that differs from its reference; stop at the checkpoint
    at which that is enough."""
    found = Found(0, [])
    store: CheckpointStorage = SqliteCheckpointStorage(job.database) if job.database else InMemoryCheckpointStorage()
    calls = calls_of(draw_tree(job.seed), store, chance=2)
    known = (
        await stored_checkpoints(store, RUN_ID) if job.database else map(WorkflowCheckpoint.from_bytes, job.exported)
    )
    numbers: list[int] = []
    for checkpoint in known:
        numbers.append(checkpoint.header.seq)
        if job.only in (None, checkpoint.header.seq):
            found.taken += 1
            found.wrong += await _taken_up(job, calls, checkpoint)
        if enough is not None and len(found.wrong) >= enough:
            return found
    if job.only is None and numbers != list(range(job.facts.ends[-1] + 1)):
        found.wrong.append(f"seed {job.seed}: the checkpoints are numbered {numbers}")
    await store.close()
    return found


async def _taken_up(job: Job, calls: Calls, checkpoint: WorkflowCheckpoint) -> list[str]:
    number = checkpoint.header.seq
    # Half of the exported ones go on without any store.
    alone = not job.database and (number // 2) % 2 == 0
    own = replace(calls, store=None if alone else calls.store, chance=2 + number, journal=Journal())
    at_end = checkpoint.status is not Status.RUNNING
    # What went on from a checkpoint has been compared whole; a call after it shows what is not in the records.
    further = len(job.facts.calls) if number % 10 == 0 else int(at_end or number % 4 == 0)
    return await wrong_from(job.facts, own, checkpoint, None if alone else f"again {number}", further)


def written(order: Order, file: Path) -> list[Job]:
    """Let a process run the references of trees; it has ended when this returns."""
    return _process("write", order, file, list[Job])


def taken(jobs: Sequence[Job], file: Path) -> Found:
    """Let another process, in which hashes are others, go on from the checkpoints of jobs."""
    return _process("take", jobs, file, Found)


def _process(what: str, given: object, file: Path, result: type[Result]) -> Result:
    file.write_bytes(msgspec.msgpack.encode(given))
    seed = {"write": "1", "take": "2"}[what]
    command = [sys.executable, "-m", "tests.proof.tree_jobs", what, str(file)]
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"the process ended with {done.returncode}: {done.stderr[-2000:]}"
    return msgspec.msgpack.decode(file.read_bytes(), type=result)


def _write(data: bytes) -> list[Job]:
    order = msgspec.msgpack.decode(data, type=Order)
    vars(passes)["PACK"] = order.pack
    jobs = [run_virtually(write(seed, order.folder)) for seed in order.seeds]
    return [msgspec.structs.replace(job, pack=order.pack) for job in jobs]


def _take(data: bytes) -> Found:
    found: list[Found] = []
    for job in msgspec.msgpack.decode(data, type=list[Job]):
        vars(passes)["PACK"] = job.pack
        found.append(run_virtually(take(job)))
    return Found(sum(each.taken for each in found), [text for each in found for text in each.wrong])


def main() -> None:
    logging.disable(logging.WARNING)
    what, file = sys.argv[1], Path(sys.argv[2])
    gc.freeze()
    do: Callable[[bytes], object] = {"write": _write, "take": _take}[what]
    file.write_bytes(msgspec.msgpack.encode(do(file.read_bytes())))


if __name__ == "__main__":
    main()
