"""A call made in a process of its own, which shares nothing with the test but the store's file.

As a module it makes one call of a desk or a team, told as JSON, and prints how it ended.
"""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

from rehydrate import SqliteCheckpointStorage, WorkflowRunResult
from rehydrate.errors import RehydrateError
from tests.call.desk import Note, World, desk, team

ROOT = Path(__file__).resolve().parents[2]
MAKERS = {"desk": desk, "team": team}


def command(folder: Path, module: str, *arguments: str) -> subprocess.Popen[str]:
    """Start a module in a new process that works in `folder`."""
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=folder,
        env={"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def in_new_process(folder: Path, module: str, *arguments: str) -> object:
    """Run a module in a new process and return what it printed as JSON."""
    process = command(folder, module, *arguments)
    out, err = process.communicate()
    assert process.returncode == 0, err
    return json.loads(out)


def call_in_new_process(folder: Path, **told: object) -> dict[str, object]:
    """Make a call in a new process and return how it ended."""
    return in_new_process(folder, "tests.call.process", json.dumps(told))


def crash_in_new_process(folder: Path, **told: object) -> list[str]:
    """Make a call in a new process that ends itself in a handler; return its diary up to there."""
    process = command(folder, "tests.call.process", json.dumps(told))
    out, err = process.communicate()
    assert process.returncode == 9, err
    return out.split()


def hang_in_new_process(folder: Path, **told: object) -> subprocess.Popen[str]:
    """Make a call in a new process and return when it hangs in a handler; the caller kills it."""
    process = command(folder, "tests.call.process", json.dumps(told))
    assert process.stdout is not None
    assert process.stdout.readline() == "hanging\n"
    return process


def facts(result: WorkflowRunResult, diary: list[str]) -> dict[str, object]:
    """Return what a test compares of a result, as plain values."""
    return {
        "run_id": result.run_id,
        "checkpoint": result.checkpoint_id,
        "status": result.status.value,
        "outputs": result.outputs,
        "turn": result.turn,
        "replayed": result.replayed,
        "requests": [[r.request_id, r.path, r.data.text] for r in result.pending_requests],
        "diary": diary,
    }


async def main(told: dict[str, object]) -> dict[str, object]:
    """Make the call that is told."""
    world = World(crashes=set(told.pop("crashes", [])), hangs=set(told.pop("hangs", [])))
    make = MAKERS[str(told.pop("workflow", "desk"))]
    store = SqliteCheckpointStorage("runs.db", keep_events=bool(told.pop("keep_events", False)))
    workflow = make(world, store, depth=told.pop("depth", 1))
    text = told.pop("text", None)
    message = None if text is None else Note(str(text))
    try:
        return facts(await workflow.run(message, **told), world.diary)
    except RehydrateError as error:
        return {"error": type(error).__name__, "text": str(error), "diary": world.diary}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(main(json.loads(sys.argv[1])))))
