"""Where a run's checkpoints are kept in a test, and how they come to another process.

In this process a place gives stores; to a fresh one it hands over the SQLite file, or, of a store that lives in memory
only, the checkpoint's bytes.
"""

import base64
import gc
import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from rehydrate import InMemoryCheckpointStorage, SqliteCheckpointStorage

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("memory", "sqlite")


@dataclass
class Place:
    """A store that can be opened again and again."""

    kind: str
    file: Path
    _memory: InMemoryCheckpointStorage = field(default_factory=InMemoryCheckpointStorage)

    def open(self):
        """Return a store of this place; on a file it is a new object, and nothing of the old ones is left."""
        gc.collect()
        return self._memory if self.kind == "memory" else SqliteCheckpointStorage(self.file)

    def hand_over(self, result) -> dict[str, str]:
        """Return what a fresh process needs to go on from a result."""
        if self.kind == "sqlite":
            return {"file": str(self.file), "checkpoint": result.checkpoint_id}
        return {"bytes": base64.b64encode(result.checkpoint.to_bytes()).decode()}


def both_places(folder: Path) -> list[Place]:
    """Return a place of each kind."""
    return [Place(kind, folder / f"{kind}.db") for kind in KINDS]


@dataclass(frozen=True)
class Outcome:
    """What a call in another process gave; `pending` has path, executor and data of each open request."""

    status: str
    outputs: list[str]
    pending: list[tuple[str, str, str]]
    request_ids: list[str]
    hand_over: dict[str, str]


def in_fresh_process(*jobs: dict[str, object]) -> list[Outcome]:
    """Let one new process do the calls that `fresh.call` describes."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.nested.fresh"],
        cwd=ROOT,
        input=json.dumps(jobs),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    outcomes = [Outcome(**found) for found in json.loads(done.stdout)]
    return [Outcome(o.status, o.outputs, [tuple(p) for p in o.pending], o.request_ids, o.hand_over) for o in outcomes]
