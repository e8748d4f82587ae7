"""A process of its own: takes up checkpoints of random programs that stand in a job file, and prints the differences.

It shares nothing with the writer of the runs but that file, and a database where the job names one.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from rehydrate import InMemoryCheckpointStorage, SqliteCheckpointStorage
from rehydrate.testing import run_virtually
from tests.differential.facts import RunFacts
from tests.differential.harness import stored_checkpoints
from tests.differential.spawning import spawn_module
from tests.differential.stopping import from_bytes
from tests.functional.random_plans import draw_programs
from tests.functional.random_runs import RUN_ID, calls_of, uninterrupted, wrong_from


class Job(msgspec.Struct):
    """The reference of a seed, and every `step`-th of its checkpoints: their bytes, or the SQLite file they are in."""

    seed: int
    facts: RunFacts
    step: int
    exported: list[bytes]
    database: str


def write_job(seed: int, step: int, database: Path | None) -> Job:
    """Run a seed's reference and describe what is to be taken up."""
    return run_virtually(_write_job(seed, step, database))


async def _write_job(seed: int, step: int, database: Path | None) -> Job:
    store = InMemoryCheckpointStorage() if database is None else SqliteCheckpointStorage(database)
    reference = await uninterrupted(draw_programs(seed), store)
    exported = []
    if database is None:
        exported = [checkpoint.to_bytes() for checkpoint in (await stored_checkpoints(store, RUN_ID))[::step]]
    await store.close()
    return Job(seed, reference.facts, step, exported, str(database or ""))


async def differences(job: Job) -> list[str]:
    """Take up the checkpoints of a job and name everything that differs from its reference."""
    plan, wrong = draw_programs(job.seed), list[str]()
    if not job.database:
        for number, data in enumerate(job.exported):
            wrong += await wrong_from(job.facts, calls_of(plan, None, number), from_bytes(data), None, 1)
        return wrong
    async with SqliteCheckpointStorage(job.database) as store:
        for checkpoint in (await stored_checkpoints(store, RUN_ID))[:: job.step]:
            number = checkpoint.header.seq
            wrong += await wrong_from(job.facts, calls_of(plan, store, number), checkpoint, f"again {number}", 1)
    return wrong


def spawn(jobs: Sequence[Job], file: Path) -> list[str]:
    """Let a new process do the jobs; return the differences that it saw."""
    return spawn_module("tests.functional.random_restorer", jobs, file)


def main() -> None:
    logging.disable(logging.WARNING)
    jobs = msgspec.msgpack.decode(Path(sys.argv[1]).read_bytes(), type=list[Job])
    wrong = [text for job in jobs for text in run_virtually(differences(job))]
    sys.stdout.write(msgspec.json.encode(wrong).decode())


if __name__ == "__main__":
    main()
