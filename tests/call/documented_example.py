"""The example of the first page of the documentation, its two calls in two processes.

`first` pauses and keeps the checkpoint's id in a file; `second` restores it.
"""

import asyncio
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Never

from rehydrate import (
    Executor,
    SqliteCheckpointStorage,
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
    @handler
    async def on_claim(self, claim: Claim, ctx: WorkflowContext[Never, Verdict]) -> None:
        if claim.amount < 1000:
            await ctx.yield_output(Verdict(claim, True))
        else:
            await ctx.request_info(Question(claim, f"Pay {claim.amount}?"), response_type=bool)

    @response_handler
    async def on_answer(self, question: Question, approved: bool, ctx: WorkflowContext[Never, Verdict]) -> None:
        await ctx.yield_output(Verdict(question.claim, approved))


@executor(id="intake")
async def intake(claim: Claim) -> Claim:
    return claim


@executor(id="pay")
async def pay(v: Verdict) -> str:
    return f"{v.claim.id}: {'paid' if v.approved else 'refused'}"


review = WorkflowBuilder(name="review", start_executor=Assess("assess")).build()
payment = (
    WorkflowBuilder(name="payment", start_executor=intake, checkpoint_storage=SqliteCheckpointStorage("runs.db"))
    .add_chain([intake, WorkflowExecutor(review, id="review"), pay])
    .build()
)


KEPT = Path("checkpoint.json")


def main(part: str) -> None:
    if part == "first":
        result = asyncio.run(payment.run(Claim("c-1", 5000), run_id="inbox-7"))
        KEPT.write_text(json.dumps([result.checkpoint_id, result.pending_requests[0].request_id]), encoding="utf-8")
    else:
        checkpoint, request = json.loads(KEPT.read_text(encoding="utf-8"))
        call = payment.run(Claim("c-2", 90), run_id="inbox-7", checkpoint=checkpoint, responses={request: True})
        result = asyncio.run(call)
    sys.stdout.write(json.dumps({"status": result.status.value, "outputs": result.outputs}))


if __name__ == "__main__":
    main(sys.argv[1])
