"""Tasks for a process that shares nothing with the writer of a run: what to take up, and what must follow.

The process gets a file and gives back the differences that it saw; see `restorer`.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from rehydrate import (
    CheckpointStorage,
    InMemoryCheckpointStorage,
    PostgresCheckpointStorage,
    SqliteCheckpointStorage,
    WorkflowCheckpoint,
)
from tests.differential.facts import RunFacts
from tests.differential.harness import Calls, Replay, calls_of, reference_run, stored_checkpoints
from tests.differential.plans import FamilyPlan
from tests.differential.stopping import Handover, gone_on

ROOT = Path(__file__).resolve().parents[2]
RUN_ID = "reference"


class Job(msgspec.Struct, tag=True):
    """One family: its reference, and where its checkpoints are: a SQLite file, a place in PostgreSQL, or their bytes.

    `numbers` are the checkpoints to take up (all, where empty); `further` limits the calls that follow the first, but
    for every tenth checkpoint, which is always followed to the end.
    """

    family: FamilyPlan
    facts: RunFacts
    database: str = ""
    exported: list[bytes] = []
    numbers: list[int] = []
    further: int = 1


def opened(database: str) -> CheckpointStorage:
    """Return the store of a file, or of a URL and a schema, on two lines."""
    url, found, schema = database.partition("\n")
    return PostgresCheckpointStorage(url, schema=schema) if found else SqliteCheckpointStorage(database)


def write_job(family: FamilyPlan, database: Path | str | None) -> Job:
    """Run a family's reference over a store and describe what is to be taken up."""
    return asyncio.run(_write_job(family, database))


async def _write_job(family: FamilyPlan, database: Path | str | None) -> Job:
    store: CheckpointStorage = InMemoryCheckpointStorage() if database is None else opened(str(database))
    facts = await reference_run(calls_of(family, store, chance=1), RUN_ID)
    exported: list[bytes] = []
    if database is None:
        exported = [checkpoint.to_bytes() for checkpoint in await stored_checkpoints(store, RUN_ID)]
    await store.close()
    return Job(family, facts, str(database or ""), exported)


#: The checkpoints of an uninterrupted run, or a run that was stopped.
Task = Job | Handover


async def differences(task: Task) -> list[str]:
    """Do a task and name everything that differs from the reference."""
    return await _replayed(task) if isinstance(task, Job) else await gone_on(task)


async def _replayed(job: Job) -> list[str]:
    """Take up the checkpoints of a job."""
    wrong: list[str] = []
    store: CheckpointStorage = opened(job.database) if job.database else InMemoryCheckpointStorage()
    if job.database:
        checkpoints = await stored_checkpoints(store, RUN_ID)
    else:
        checkpoints = [WorkflowCheckpoint.from_bytes(data) for data in job.exported]
    stored = calls_of(job.family, store, chance=2)
    unstored = Calls(job.family, stored.workflow, None, chance=3)
    if len(checkpoints) != job.facts.ends[-1] + 1:
        wrong.append(f"seed {job.family.seed}: {len(checkpoints)} checkpoints instead of {job.facts.ends[-1] + 1}")
    for checkpoint in checkpoints:
        number = checkpoint.header.seq
        if job.numbers and number not in job.numbers:
            continue
        further = len(job.facts.calls) if number % 10 == 0 else job.further
        # Half of the exported ones go on without any store.
        alone = not job.database and (number // 2) % 2 == 0
        fork = None if alone else f"again {number}"
        wrong += await Replay(unstored if alone else stored, job.facts, checkpoint, fork, further).compare()
    await store.close()
    return wrong


def spawn(tasks: Sequence[Task], file: Path) -> list[str]:
    """Let a new process do the tasks; return the differences that it saw."""
    return spawn_module("tests.differential.restorer", tasks, file)


def spawn_module(module: str, tasks: Sequence[msgspec.Struct], file: Path) -> list[str]:
    """Let a module do tasks in a new process; return the differences that it prints."""
    file.write_bytes(msgspec.msgpack.encode(list(tasks)))
    command = [sys.executable, "-m", module, str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return [f"the process ended with {done.returncode}: {done.stderr[-2000:]}"]
    return msgspec.json.decode(done.stdout, type=list[str])
