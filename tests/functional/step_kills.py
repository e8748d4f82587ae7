"""A process that makes runs of one function in processes of its own, each killed while a step runs, until it is done.

Each step writes a line as it begins and one as it ends; the kill comes with such a line. As a module it is the process
that forks the others: it has loaded everything, and has no threads, no store and no event loop.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from rehydrate import (
    FunctionalContext,
    SqliteCheckpointStorage,
    WorkflowBuilder,
    WorkflowExecutor,
    current_step,
    executor,
    step,
    workflow,
)
from tests.functional.random_runs import saved_steps

RUN_ID = "run"


@dataclass
class Diary:
    """The lines of all processes, and after which of them this process is killed; 0 is never."""

    file: Path
    kill_at: int = 0

    def lines(self) -> list[list[str]]:
        return [json.loads(line) for line in self.file.read_text().splitlines()] if self.file.exists() else []

    def write(self, what: str, name: str, key: str) -> None:
        with self.file.open("a") as file:
            file.write(json.dumps([what, name, key]) + "\n")
        if what != "known" and sum(line[0] != "known" for line in self.lines()) == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)


DIARY = Diary(Path())


@step
async def work(name: str) -> str:
    """Take some turns of the event loop."""
    DIARY.write("begin", name, current_step().effect_key)
    for _ in range(len(name)):
        await asyncio.sleep(0)
    DIARY.write("end", name, current_step().effect_key)
    return name.upper()


@workflow(name="below", message=str, returns=str)
async def below(word: str, ctx: FunctionalContext) -> str:
    """Two steps, one after the other."""
    return await work(f"{word} first") + await work(f"{word} then")


@executor(id="relay")
async def relay(word: str) -> str:
    return f"{word} relayed"


INSIDE = WorkflowExecutor(below, id="inside")
GRAPH = WorkflowBuilder("graph", relay).add_edge(relay, INSIDE).build()


@workflow(name="top", message=str, returns=list, types=[str], calls=[below, GRAPH])
async def top(word: str, ctx: FunctionalContext) -> list[object]:
    """Steps in a row, side by side, and in what is called, before and after a question."""
    first = await work("one")
    side = await ctx.gather(work("left"), ctx.call(below, "called"), work("the right one"), ctx.call(GRAPH, word))
    answer = await ctx.request_info(f"{word}?", response_type=str)
    both = await asyncio.gather(work("same"), work("same"))
    return [first, *side, answer, *both, await work("last")]


async def go_on(folder: Path) -> None:
    """Do what is left of the run and write its outputs into a file."""
    async with SqliteCheckpointStorage(folder / "runs.db") as store:
        DIARY.write("known", "", " ".join(await saved_steps(store, RUN_ID)))
        options = {"run_id": RUN_ID, "checkpoint_storage": store, "idempotency_key": "first"}
        result = await top.run("word", **options)
        if result.pending_requests:
            answers = [result.pending_requests[0].answer("yes")]
            result = await top.run(
                checkpoint=result, responses=answers, checkpoint_storage=store, idempotency_key="second"
            )
        (folder / "outputs").write_text(json.dumps(result.outputs))


def in_a_process(folder: Path, kill_at: int) -> bool:
    """Go on in a new process; tell whether it was killed."""
    pid = os.fork()
    if pid == 0:
        DIARY.file, DIARY.kill_at = folder / "diary", kill_at
        try:
            asyncio.run(go_on(folder))
        except BaseException as error:
            (folder / "error").write_text(repr(error))
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise AssertionError((folder / "error").read_text())
    return os.WIFSIGNALED(status)


def wrong_after(folder: Path, kills: list[int]) -> list[str]:
    """Kill at these lines, one process each, as far as they come, and then let one finish; name what is wrong."""
    folder.mkdir()
    killed = sum(in_a_process(folder, kill) for kill in kills)
    in_a_process(folder, 0)
    lines = Diary(folder / "diary").lines()
    wrong = [] if killed else ["no process was killed"]
    finished: set[str] = set()
    begun: dict[str, int] = {}
    for what, name, key in lines:
        if what == "known":
            finished = set(key.split())
            begun = dict.fromkeys(begun, 0)
        elif what == "begin":
            begun[key] = begun.get(key, 0) + 1
            wrong += [f"{name} began again after it was saved"] if key in finished else []
            wrong += [f"{name} began twice in one process"] if begun[key] > 1 else []
    outputs = json.loads((folder / "outputs").read_text())
    wrong += [] if outputs == [EXPECTED] else [f"the outputs are {outputs}"]
    return [f"kills at {kills}: {text}" for text in wrong]


EXPECTED = [
    "ONE", "LEFT", "CALLED FIRSTCALLED THEN", "THE RIGHT ONE", ["WORD RELAYED FIRSTWORD RELAYED THEN"], "yes", "SAME",
    "SAME", "LAST",
]  # fmt: skip
#: A begin and an end of each step.
LINES = 20


def main() -> None:
    folder, every = Path(sys.argv[1]), int(sys.argv[2])
    wrong: list[str] = []
    for kill in range(1, LINES + 1, every):
        wrong += wrong_after(folder / f"{kill}", [kill])
    for first in range(1, LINES, 4) if every == 1 else (5,):  # five in a row that save nothing would be too many
        wrong += wrong_after(folder / f"from {first}", list(range(first, first + 24, 6)))
    sys.stdout.write(json.dumps(wrong))


if __name__ == "__main__":
    main()
