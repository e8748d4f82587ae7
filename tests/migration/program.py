"""Versions of one program, as they would follow each other in a repository, and a process that makes a call of one.

A claim is taken in, reviewed in a sub-workflow that asks a person about large ones, and paid.
"""

import asyncio
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Never

from rehydrate import (
    Executor,
    MigrationView,
    SqliteCheckpointStorage,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    checkpointable,
    executor,
    handler,
    response_handler,
)
from rehydrate.errors import RehydrateError
from tests.call.process import in_new_process


def nothing(run: MigrationView) -> None:
    """A new node needs nothing."""


def renamed(run: MigrationView) -> None:
    """Version 3 calls the sub-workflow by what it does."""
    run.rename_executor("review", "assessment")


def in_cents(run: MigrationView) -> None:
    """Version 4 counts in cents."""
    run.change_type("Claim", "Claim", lambda old: {"id": old["id"], "cents": old["amount"] * 100})


MIGRATIONS = {1: nothing, 2: renamed, 3: in_cents}


def claims(version: int) -> Workflow:
    """Build a version of the program."""
    first = claim_in_cents() if version == 4 else claim_of_euros()

    @dataclass(frozen=True)
    class Question:
        claim: first
        text: str

    class Assess(Executor):
        @handler(message=first, yields=str)
        async def on_claim(self, claim, ctx: WorkflowContext[Never, str]) -> None:
            ctx.set_state("seen", claim)
            ctx.request_info(Question(claim, f"Pay {claim}?"), response_type=bool)

        @response_handler(request=Question, response=bool, yields=str)
        async def on_answer(self, asked, approved, ctx: WorkflowContext[Never, str]) -> None:
            told = " ".join(f"{name}={value}" for name, value in vars(asked.claim).items())
            ctx.yield_output(f"{told} {ctx.get_state('seen') == asked.claim} {approved}")

    @executor(id="intake", message=first, returns=first)
    async def intake(claim):
        return claim

    @executor(id="audit")
    async def audit(text: str) -> str:
        return f"{text} audited"

    @executor(id="pay")
    async def pay(text: str) -> str:
        return f"{text} paid"

    review = WorkflowBuilder("review", Assess("assess")).build()
    inner = WorkflowExecutor(review, "review" if version < 3 else "assessment")
    builder = WorkflowBuilder("claims", intake, version=version, migrate={n: MIGRATIONS[n] for n in range(1, version)})
    return builder.add_chain([intake, inner, pay] if version == 1 else [intake, inner, audit, pay]).build()


def claim_of_euros() -> type:
    @dataclass(frozen=True)
    class Claim:
        id: str
        amount: int

    return Claim


def claim_in_cents() -> type:
    @dataclass(frozen=True)
    class Claim:
        id: str
        cents: int

    return Claim


def prices(version: int) -> Workflow:
    """A workflow of which only a type has versions: its upcast reads what older processes stored."""

    def upcast(stored: int, fields: dict[str, object]) -> dict[str, object]:
        return {**fields, "currency": f"EUR since {stored}"}

    if version == 1:

        @checkpointable(name="Price")
        @dataclass(frozen=True)
        class Price:
            amount: int

        made = Price(5)
    else:

        @checkpointable(name="Price", version=version, upcast=upcast)
        @dataclass(frozen=True)
        class NewPrice:
            amount: int
            currency: str

        made = NewPrice(5, "USD")

    class Ask(Executor):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
            ctx.set_state("price", made)
            ctx.request_info(made, response_type=bool)

        @response_handler(request=type(made), response=bool)
        async def on_answer(self, asked, answer, ctx: WorkflowContext[Never, str]) -> None:
            ctx.yield_output(f"{asked.amount} {getattr(asked, 'currency', '-')} {ctx.get_state('price') == asked}")

    inner = WorkflowBuilder("inner", Ask("ask")).build()
    return WorkflowBuilder("prices", WorkflowExecutor(inner, "inner")).build()


PROGRAMS = {"claims": claims, "prices": prices}


def call(folder: Path, program: str, version: int, **told: object) -> dict[str, object]:
    """Make a call of a version of a program in a process of its own, on the SQLite file in `folder`."""
    return in_new_process(folder, "tests.migration.program", json.dumps([program, version, told]))


async def main(program: str, version: int, told: dict[str, object]) -> dict[str, object]:
    """Make the call that is told."""
    store = SqliteCheckpointStorage("runs.db")
    if "claim" in told:
        told["message"] = claim_of_euros()("c-1", told.pop("claim"))
    try:
        workflow = PROGRAMS[program](version)
        message = told.pop("message", None)
        if program == "claims" and message is not None:
            message = taken(workflow)(message.id, message.amount)
        result = await workflow.run(message, checkpoint_storage=store, **told)
        requests = {request.request_id: request.path for request in result.pending_requests}
    except RehydrateError as error:
        return {"error": type(error).__name__, "text": str(error)}
    finally:
        await store.close()
    return {
        "status": result.status.value,
        "outputs": result.outputs,
        "requests": requests,
        "version": result.checkpoint.records.get("", "run", "").version,
        "checkpoint": result.checkpoint_id,
    }


def taken(workflow: Workflow) -> type:
    """Return the class of claims that a version takes."""
    return workflow.definition.executors["intake"].handlers[0].message


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(main(*json.loads(sys.argv[1])))))
