"""A run pauses in one process; in another, one call restores it, answers its question and brings the next claim.

    python examples/one_call_resume.py

It starts itself a second time for the first half, so that the second half finds nothing but a file.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Never

from rehydrate import (
    Executor,
    SqliteCheckpointStorage,
    Status,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    executor,
    handler,
    response_handler,
)


@dataclass(frozen=True)
class Claim:
    id: str
    amount: int


@dataclass(frozen=True)
class Question:
    claim: Claim
    text: str


@dataclass(frozen=True)
class Verdict:
    claim: Claim
    approved: bool


class Assess(Executor):
    """Lets small claims pass and asks about the others; notes in its scope's state what it has seen."""

    @handler
    async def on_claim(self, claim: Claim, ctx: WorkflowContext[Never, Verdict]) -> None:
        ctx.set_state("assessed in", os.getpid())
        if claim.amount < 1000:
            ctx.yield_output(Verdict(claim, True))
        else:
            ctx.request_info(Question(claim, f"Pay {claim.amount} for {claim.id}?"), response_type=bool)

    @response_handler
    async def on_answer(self, question: Question, approved: bool, ctx: WorkflowContext[Never, Verdict]) -> None:
        say(
            f"    answer for {question.claim.id}: {approved}; it was assessed in process {ctx.get_state('assessed in')}"
        )
        ctx.yield_output(Verdict(question.claim, approved))


@executor(id="intake")
async def intake(claim: Claim) -> Claim:
    say(f"    {claim.id} comes in")
    return claim


@executor(id="pay")
async def pay(verdict: Verdict) -> str:
    return f"{verdict.claim.id}: {'paid' if verdict.approved else 'refused'}"


def build() -> Workflow:
    """Build the workflow; every process that drives a run of it does."""
    review = WorkflowBuilder("review", Assess("assess")).build()
    return WorkflowBuilder("payment", intake).add_chain([intake, WorkflowExecutor(review, "review"), pay]).build()


async def first_process(file: Path) -> None:
    """Start the run; it pauses with an open question, and this process ends."""
    async with SqliteCheckpointStorage(file) as store:
        result = await build().run(Claim("c-1", 5000), run_id="inbox-7", checkpoint_storage=store)
        (question,) = result.pending_requests
        say(f"    it pauses in {question.path} and asks {question.data}")


async def second_process(file: Path) -> None:
    """Look at what is in the file, and go on with one call."""
    async with SqliteCheckpointStorage(file) as store:
        (header,) = await store.runs(status=Status.IDLE_WITH_PENDING_REQUESTS)
        found = await store.inspect(header.checkpoint_id)
        (question,) = found.requests
        say(f"    the file has {header.run_id}, {header.status.value}; {question.path} asks {question.data}")
        result = await build().run(
            Claim("c-2", 90),
            checkpoint=header.checkpoint_id,
            responses={question.request_id: True},
            checkpoint_storage=store,
        )
    for output in result.outputs:
        say(f"    {output}")
    assert result.outputs == ["c-1: paid", "c-2: paid"]
    assert result.pending_requests == ()


def say(text: str) -> None:
    """Print at once, so that the lines of both processes come in their order."""
    print(text, flush=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "runs.db"
        say("1. A process of its own starts the run.")
        subprocess.run([sys.executable, __file__, str(file)], check=True)
        say(f"2. It has ended. Process {os.getpid()} makes one call: restore, answer, and a new claim.")
        asyncio.run(second_process(file))
        say("Done: nothing was lost, and nothing had to stay in memory.")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(first_process(Path(sys.argv[1])))
    else:
        main()
