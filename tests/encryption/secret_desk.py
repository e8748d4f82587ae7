"""A nested workflow in which everything that a user can name or say holds the canary: also what fails.

As a module it goes on with its run in a process of its own: keys and the path of the store come from the command line.
"""

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Never

from rehydrate import (
    CheckpointStorage,
    Executor,
    Retry,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    append,
    executor,
    handler,
    response_handler,
)
from tests.encryption.kit import compressed, encrypted

C = "canary"
RUN = f"run-{C}"
ARGUMENTS = {f"{C}-argument": f"{C} argument"}
LONG = f"{C} sings a song; " * 1000


@dataclass(frozen=True)
class CanaryNote:
    canary_text: str


@dataclass(frozen=True)
class CanaryQuestion:
    canary_text: str


class Ask(Executor):
    """Asks twice, and keeps what it heard in state, in a list that grows and in itself."""

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.heard = f"{C} kept in an instance"

    @handler
    async def on_note(self, note: CanaryNote, ctx: WorkflowContext[Never, str]) -> None:
        ctx.set_state(f"{C}-state-key", {f"{C} key": note.canary_text})
        ctx.update_state(f"{C}-list", f"{C} in a list")
        ctx.emit(CanaryNote(f"{C} emitted"))
        ctx.request_info(CanaryQuestion(f"{C} asked first"), response_type=str)
        ctx.request_info(CanaryQuestion(f"{C} asked second"), response_type=str)

    @response_handler
    async def on_answer(self, question: CanaryQuestion, answer: str, ctx: WorkflowContext[Never, str]) -> None:
        self.heard += answer
        ctx.yield_output(f"{question.canary_text}: {answer}; {len(self.heard)}")

    async def on_checkpoint_save(self) -> dict[str, object]:
        return {f"{C}_heard": self.heard}

    async def on_checkpoint_restore(self, state: dict[str, object]) -> None:
        self.heard = state[f"{C}_heard"]


@executor(id=f"{C}-intake")
async def intake(note: CanaryNote) -> CanaryNote:
    return note


@executor(id=f"{C}-close", retry=Retry(attempts=2, delay=0))
async def close(text: str, ctx: WorkflowContext[Never, str]) -> None:
    if "fail" in text:
        raise ValueError(f"{C} went wrong with {text}")
    ctx.set_state(f"{C}-closed", LONG)
    ctx.yield_output(f"{text} ({ctx.run_args[f'{C}-argument']})")


def desk(store: CheckpointStorage) -> Workflow:
    """Build the workflow over a store."""
    below = WorkflowBuilder(f"{C}-below", Ask(f"{C}-ask"), reducers={f"{C}-list": append}).build()
    between = WorkflowBuilder(f"{C}-between", WorkflowExecutor(below, id=f"{C}-inner")).build()
    builder = WorkflowBuilder(f"{C}-flow", intake, checkpoint_storage=store)
    return builder.add_chain([intake, WorkflowExecutor(between, id=f"{C}-node"), close]).build()


def start(store: CheckpointStorage) -> list[str]:
    """Begin the run and return the ids of its two questions."""
    first = desk(store).run_sync(
        CanaryNote(f"{C} message"),
        run_id=RUN,
        idempotency_key=f"key-{C}",
        run_args=ARGUMENTS,
    )
    return [request.request_id for request in first.pending_requests]


if __name__ == "__main__":
    make, path, request_id, answer = sys.argv[1:]
    place = {"encrypted": encrypted, "compressed": compressed}[make](Path(path))
    result = desk(place).run_sync(responses={request_id: answer})
    asyncio.run(place.close())
    sys.stdout.write("\n".join([result.run_id, result.status.value, *result.outputs]))
