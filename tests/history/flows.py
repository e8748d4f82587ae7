"""A desk that pays claims: it counts and logs them, and a sub-workflow asks a person about the big ones."""

from dataclasses import dataclass
from typing import Never

from rehydrate import (
    CheckpointStorage,
    Executor,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    add,
    append,
    executor,
    handler,
    response_handler,
)


@dataclass(frozen=True)
class Claim:
    id: str
    amount: int


@dataclass(frozen=True)
class Verdict:
    id: str
    limit: int
    approved: bool


class Assess(Executor):
    """Approves what is within the limit of its scope's state, and asks about the rest."""

    @handler
    def on_claim(self, claim: Claim, ctx: WorkflowContext[Never, Verdict]) -> None:
        ctx.set_state("limit", ctx.get_state("limit", 1000))
        if claim.amount <= ctx.get_state("limit"):
            ctx.yield_output(Verdict(claim.id, ctx.get_state("limit"), True))
        else:
            ctx.request_info(claim, response_type=bool)

    @response_handler
    def on_answer(self, claim: Claim, approved: bool, ctx: WorkflowContext[Never, Verdict]) -> None:
        ctx.yield_output(Verdict(claim.id, ctx.get_state("limit"), approved))


@executor(id="intake")
def intake(claim: Claim, ctx: WorkflowContext[Claim]) -> None:
    if claim.amount > ctx.get_state("most", 10_000):
        raise ValueError(f"{claim.amount} is too much")
    ctx.update_state("log", claim.id)
    ctx.update_state("total", claim.amount)
    ctx.send_message(claim)


@executor(id="pay")
def pay(verdict: Verdict, ctx: WorkflowContext[Never, str]) -> None:
    rate = ctx.get_state("rate", 100)
    ctx.yield_output(f"{verdict.id} within {verdict.limit}: {'paid' if verdict.approved else 'refused'} at {rate}%")


def desk(store: CheckpointStorage | None = None, **options: object) -> Workflow:
    """The desk, on a store."""
    review = WorkflowBuilder("review", Assess("assess")).build()
    builder = WorkflowBuilder(
        "desk", intake, checkpoint_storage=store, reducers={"log": append, "total": add}, **options
    )
    return builder.add_chain([intake, WorkflowExecutor(review, id="review"), pay]).build()


SMALL, BIG, HUGE = Claim("c-1", 90), Claim("c-2", 5000), Claim("c-3", 20_000)
