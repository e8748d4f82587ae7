"""A workflow with a sub-workflow that asks, a plain handler behind it, and what may go wrong in it."""

from dataclasses import dataclass
from typing import Never

from rehydrate import (
    CheckpointStorage,
    Executor,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    executor,
    handler,
    response_handler,
)
from rehydrate.ports.observer import Observer


@dataclass(frozen=True)
class Claim:
    id: str
    amount: int


@dataclass(frozen=True)
class Question:
    claim: Claim
    text: str


class Assess(Executor):
    @handler
    async def on_claim(self, claim: Claim, ctx: WorkflowContext[Never, Claim]) -> None:
        if claim.amount < 0:
            raise ValueError(f"{claim.id} has a negative amount")
        if claim.amount < 1000:
            ctx.yield_output(claim)
        else:
            ctx.request_info(Question(claim, f"Pay {claim.id}?"), response_type=bool)

    @response_handler
    async def on_answer(self, question: Question, approved: bool, ctx: WorkflowContext[Never, Claim]) -> None:
        ctx.yield_output(question.claim)


@executor(id="intake")
async def intake(claim: Claim, ctx: WorkflowContext[Claim]) -> Claim:
    ctx.set_state("last", claim.id)
    return claim


@executor(id="pay")
def pay(claim: Claim) -> str:
    return f"{claim.id} paid"


def payment(*observers: Observer, store: CheckpointStorage | None = None) -> Workflow:
    """Claims go in, large ones are asked about in the sub-workflow, then they are paid."""
    review = WorkflowBuilder("review", Assess("assess")).build()
    builder = WorkflowBuilder("payment", intake, checkpoint_storage=store, observers=observers)
    return builder.add_chain([intake, WorkflowExecutor(review, id="review"), pay]).build()
