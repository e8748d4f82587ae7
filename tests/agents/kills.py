"""A process that makes a run of an agent in processes of its own, each killed at a line of its tools, until it is done.

Each tool writes a line as it begins and one as it ends, and so does each piece of text that comes; the kill comes with
such a line. As a module it is the process that forks the others: it has loaded everything, and has no event loop.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from openai import AsyncOpenAI

from rehydrate import SqliteCheckpointStorage, WorkflowBuilder, WorkflowExecutor, current_step
from rehydrate.agents import ChatAgent, tool
from rehydrate.model.events import Emitted


@dataclass
class Diary:
    """The lines of all processes, and after which of them this process is killed; 0 is never."""

    file: Path
    kill_at: int = 0

    def write(self, what: str, key: str = "") -> None:
        with self.file.open("a") as file:
            file.write(f"{what} {key}\n")
        if len(self.file.read_text().splitlines()) == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)


DIARY = Diary(Path())


@tool
async def pack(item: str) -> str:
    """Pack an item."""
    DIARY.write(f"begin {item}", current_step().effect_key)
    await asyncio.sleep(0)
    DIARY.write(f"end {item}", current_step().effect_key)
    return f"{item} packed"


def office():
    """An agent one level down."""
    desk = WorkflowBuilder("desk", ChatAgent("packer", "m", tools=[pack])).build()
    return WorkflowBuilder("office", WorkflowExecutor(desk, id="desk")).build()


async def go_on(folder: Path, url: str) -> None:
    """Do what is left of the run and write its outputs into a file."""
    async with SqliteCheckpointStorage(folder / "runs.db") as store, AsyncOpenAI(base_url=url, api_key="k") as client:
        call = {"run_id": "run", "checkpoint_storage": store, "resources": {"openai": client}}
        async with office().run("pack all", stream=True, idempotency_key="first", **call) as stream:
            async for event in stream:
                if isinstance(event, Emitted):
                    DIARY.write("text")
            (folder / "outputs").write_text(json.dumps((await stream.result()).outputs))


def in_a_process(folder: Path, url: str, kill_at: int) -> bool:
    """Go on in a new process; tell whether it was killed."""
    pid = os.fork()
    if pid == 0:
        DIARY.file, DIARY.kill_at = folder / "diary", kill_at
        try:
            asyncio.run(go_on(folder, url))
        except BaseException as error:
            (folder / "error").write_text(repr(error))
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise AssertionError((folder / "error").read_text())
    return os.WIFSIGNALED(status)


def main() -> None:
    folder, url, kills = Path(sys.argv[1]), sys.argv[2], [int(number) for number in sys.argv[3:]]
    killed = [in_a_process(folder, url, number) for number in kills]
    in_a_process(folder, url, 0)
    lines = (folder / "diary").read_text().splitlines()
    sys.stdout.write(json.dumps([killed, lines, json.loads((folder / "outputs").read_text())]))


if __name__ == "__main__":
    main()
