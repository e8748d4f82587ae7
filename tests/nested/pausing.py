"""A script with workflow and message types of its own: started, it pauses a run, or answers a paused one.

`python pausing.py FILE` prints the checkpoint of a new run; `python pausing.py FILE CHECKPOINT` answers and prints the
outputs. Its types are `__main__`'s then, and this module's where another program imports it.
"""

import asyncio
import sys
from dataclasses import dataclass
from enum import Enum
from typing import Never

from rehydrate import (
    Executor,
    SqliteCheckpointStorage,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    executor,
    handler,
    response_handler,
)


class Grade(Enum):
    LOW = 1
    HIGH = 2


class Claim:
    """Holds the types of this script, so that their names have two parts."""

    @dataclass(frozen=True)
    class Filed:
        id: str
        grade: Grade

    @dataclass(frozen=True)
    class Question:
        filed: "Claim.Filed"


@dataclass(frozen=True)
class Decision:
    approved: bool
    by: str


class Assess(Executor):
    """Keeps what it was given in itself and in the state, and asks."""

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.seen: list[Claim.Filed] = []

    @handler
    async def on_filed(self, filed: Claim.Filed, ctx: WorkflowContext[Never]) -> None:
        self.seen.append(filed)
        ctx.set_state("newest", filed)
        ctx.request_info(Claim.Question(filed), response_type=Decision)

    @response_handler
    async def on_decision(self, question: Claim.Question, decision: Decision, ctx: WorkflowContext[Never, str]) -> None:
        newest = ctx.get_state("newest")
        assert newest == question.filed == self.seen[-1]
        assert type(newest) is Claim.Filed
        ctx.yield_output(f"{newest.id} {newest.grade.name}: {decision.approved} by {decision.by}")

    def on_checkpoint_save(self) -> dict[str, object]:
        return {"seen": self.seen}

    def on_checkpoint_restore(self, state: dict[str, object]) -> None:
        self.seen = state["seen"]


@executor(id="intake")
async def intake(id: str) -> Claim.Filed:
    return Claim.Filed(id, Grade.HIGH)


def build() -> Workflow:
    """Build the workflow of this script: a parent whose child asks."""
    review = WorkflowBuilder("review", Assess("assess")).build()
    return WorkflowBuilder("claims", intake).add_chain([intake, WorkflowExecutor(review, "review")]).build()


async def main(file: str, checkpoint: str | None = None) -> str:
    workflow, store = build(), SqliteCheckpointStorage(file)
    if checkpoint is None:
        return (await workflow.run("c-1", checkpoint_storage=store)).checkpoint_id
    paused = await workflow.run(checkpoint=checkpoint, checkpoint_storage=store)
    answer = paused.pending_requests[0].answer(Decision(True, "script"))
    result = await workflow.run(checkpoint=paused, responses=[answer], checkpoint_storage=store)
    return ", ".join(map(str, result.outputs))


if __name__ == "__main__":
    sys.stdout.write(asyncio.run(main(*sys.argv[1:])))
