"""The user's file of these tests: claims, which the sub-workflow `review` asks about, as graph and as function.

With HOLD in the environment `pay` says so and never ends, with HOLD=stubborn not even where it is cancelled.
As a program it starts a run in the store that it is given.
"""

import asyncio
import os
import sys
from dataclasses import dataclass
from typing import Never

from rehydrate import (
    Executor,
    FunctionalContext,
    SqliteCheckpointStorage,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    executor,
    handler,
    response_handler,
    step,
    workflow,
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
    approved: bool
    note: str = ""


class Assess(Executor):
    @handler
    async def on_claim(self, claim: Claim, ctx: WorkflowContext[Never, Claim]) -> None:
        if claim.amount < 1000:
            ctx.yield_output(claim)
        else:
            ctx.request_info(Question(claim, f"Pay {claim.amount}?"), response_type=Verdict)

    @response_handler
    async def on_answer(self, question: Question, verdict: Verdict, ctx: WorkflowContext[Never, Claim]) -> None:
        if verdict.approved:
            ctx.yield_output(question.claim)


@executor(id="intake")
async def intake(claim: Claim) -> Claim:
    print("intake", claim.id)  # noqa: T201  (what user code prints is no part of the result)
    return claim


async def held() -> None:
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if os.environ["HOLD"] != "stubborn":
                raise


@executor(id="pay")
async def pay(claim: Claim) -> str:
    if "HOLD" in os.environ:
        print("holding", flush=True)  # noqa: T201  (for the test that waits for it)
        await held()
    if claim.id == "broken":
        raise ValueError("no such account")
    return f"{claim.id}: paid"


@step
async def pay_out(claim: Claim) -> str:
    return f"{claim.id}: paid"


@workflow
async def payments(claim: Claim, ctx: FunctionalContext) -> str:
    return await pay_out(claim)


@workflow
async def patient(seconds: int, ctx: FunctionalContext) -> str:
    asked = asyncio.ensure_future(ctx.request_info("well?", response_type=bool))
    slept = asyncio.ensure_future(ctx.sleep(seconds))
    done, _ = await asyncio.wait({asked, slept}, return_when=asyncio.FIRST_COMPLETED)
    return "answered" if asked in done else "nobody answered"


review = WorkflowBuilder("review", Assess("assess")).build()
payment = WorkflowBuilder("payment", intake).add_chain([intake, WorkflowExecutor(review, "review"), pay]).build()


if __name__ == "__main__":
    paused = payment.run_sync(
        Claim("c-1", 5000), run_id="script", checkpoint_storage=SqliteCheckpointStorage(sys.argv[1])
    )
    print(paused.pending_requests[0].request_id)  # noqa: T201
