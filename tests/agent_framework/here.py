"""The workflows that take in the files of `tests/fixtures/maf`: the same graphs and type names, built here.

Types that have defaults there have none here, so that nothing stands in for a field that was lost.
"""

import asyncio
import functools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Never
from uuid import UUID

from rehydrate import (
    AgentFrameworkImport,
    Executor,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    handler,
    import_agent_framework,
    response_handler,
)
from tests.fixtures.maf.claims import Box, Claim, Draft, Level, Place, Review, Right

FILES = Path(__file__).parents[1] / "fixtures" / "maf" / "files"
#: What the betas kept of bytes cannot be read back, so this key has to be left out of their files.
OF_BETAS = ("state:everything",)


@dataclass
class Question:
    claim: Claim
    text: str
    asked: datetime


@dataclass
class Ask:
    """The question of the first betas, whose base class is not here."""

    text: str
    amount: int


@dataclass
class Everything:
    due: date
    wait: timedelta
    price: Decimal
    key: UUID
    place: Place
    level: Level
    pair: tuple[int, str]
    names: set[str]
    raw: bytes
    big: int


class Intake(Executor):
    """Its second handler is how the workflow gets to know the types that its state holds."""

    @handler
    async def on_claim(self, claim: Claim, ctx: WorkflowContext[Claim, Never]) -> None:
        ctx.send_message(claim)

    @handler
    async def on_kept(self, kept: Everything | Review, ctx: WorkflowContext[Claim, Never]) -> None: ...


class Assess(Executor):
    """Keeps how often it asked, as theirs does; `inner` yields, the other one sends."""

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.asked = 0

    @handler
    async def on_claim(self, claim: Claim, ctx: WorkflowContext[str, Never]) -> None:
        ctx.request_info(Ask(claim.id, claim.amount), response_type=bool)

    @response_handler
    async def on_answer(self, question: Question, approved: bool, ctx: WorkflowContext[str, Never]) -> None:
        ctx.send_message(f"{question.claim.id}: {approved}, asked {self.asked}")

    @response_handler
    async def on_ask(self, question: Ask, approved: bool, ctx: WorkflowContext[str, Never]) -> None:
        ctx.send_message(f"{question.text} {approved}")

    def on_checkpoint_save(self) -> dict[str, object]:
        return {"asked": self.asked}

    def on_checkpoint_restore(self, state: dict[str, object]) -> None:
        self.asked = int(str(state["asked"]))


class Inner(Assess):
    @handler
    async def on_claim(self, claim: Claim, ctx: WorkflowContext[Never, str]) -> None:
        ctx.request_info(Ask(claim.id, claim.amount), response_type=bool)

    @response_handler
    async def on_answer(self, question: Question, approved: bool, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output(f"{question.claim.id}: {approved}, asked {self.asked}, last {ctx.get_state('last')}")

    @response_handler
    async def on_ask(self, question: Ask, approved: bool, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output(f"{question.text} {approved}")


class Look(Executor):
    @handler
    async def on_claim(self, claim: Claim, ctx: WorkflowContext[str, Never]) -> None:
        ctx.send_message(f"looked at {claim.id} again")


class Sum(Executor):
    @handler
    async def on_all(self, verdicts: list[str], ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output("; ".join(verdicts))


class Pay(Executor):
    @handler
    async def on_verdict(self, verdict: str, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output(f"paid {verdict}")


class Shapes(Executor):
    @handler
    async def on_claim(self, claim: Claim, ctx: WorkflowContext[Never, str]) -> None: ...

    @response_handler
    async def on_str(self, question: str, answer: str, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output(f"{question} {answer}")

    @response_handler
    async def on_draft(self, question: Draft, answer: list[str], ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output(f"{question.text} {question.pages} {answer}")

    @response_handler
    async def on_lid(self, question: Box.Lid, answer: Level, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output(f"{question.colour} {answer}")

    @response_handler
    async def on_pair(self, question: tuple[str, int], answer: Decimal, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output(f"{question} {answer}")


def flat() -> Workflow:
    """Return intake -> assess -> pay."""
    intake = Intake("intake")
    return WorkflowBuilder("flat", intake).add_chain([intake, Assess("assess"), Pay("pay")]).build()


def nested(depth: int = 1) -> Workflow:
    """Return intake -> review -> pay, whose review is a workflow, as often as that."""
    workflow = WorkflowBuilder("level0", Inner("inner")).build()
    for level in range(1, depth + 1):
        intake = Intake("intake")
        chain = [intake, WorkflowExecutor(workflow, f"review{level}"), Pay("pay")]
        workflow = WorkflowBuilder(f"level{level}", intake).add_chain(chain).build()
    return workflow


def joined() -> Workflow:
    """Return intake -> [look, assess] -> sum."""
    intake, look, assess, total = Intake("intake"), Look("look"), Assess("assess"), Sum("sum")
    builder = WorkflowBuilder("joined", intake).add_fan_out_edges(intake, [look, assess])
    return builder.add_fan_in_edges([look, assess], total).build()


def pair() -> Workflow:
    """Return intake -> [left, right] -> sum, of which two are workflows that ask."""
    intake, total = Intake("intake"), Sum("sum")
    sides = [
        WorkflowExecutor(WorkflowBuilder(f"asks-{side}", Inner("inner")).build(), side) for side in ("left", "right")
    ]
    return WorkflowBuilder("pair", intake).add_fan_out_edges(intake, sides).add_fan_in_edges(sides, total).build()


def inside() -> Workflow:
    """Return checks -> pay, whose checks is `joined` as a workflow."""
    checks, pay = WorkflowExecutor(joined(), "checks"), Pay("pay")
    return WorkflowBuilder("inside", checks).add_edge(checks, pay).build()


def beside() -> Workflow:
    """Return intake -> [look1, look2] -> sum, and intake -> assess beside it."""
    intake, looks, assess = Intake("intake"), [Look("look1"), Look("look2")], Assess("assess")
    builder = WorkflowBuilder("beside", intake).add_fan_out_edges(intake, [*looks, assess])
    return builder.add_fan_in_edges(looks, Sum("sum")).add_edge(assess, Pay("pay")).build()


def shapes() -> Workflow:
    """Return one executor that asks four questions."""
    return WorkflowBuilder("shapes", Shapes("shapes")).build()


class Kinds(Executor):
    @handler
    async def on_rights(self, rights: Claim | Right, ctx: WorkflowContext[Never, str]) -> None: ...

    @response_handler
    async def on_str(self, question: str, answer: str, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output(f"{question} {answer}")


def kinds() -> Workflow:
    """Return one executor whose state holds dicts of other kinds and flags."""
    return WorkflowBuilder("kinds", Kinds("kinds")).build()


BUILDERS: dict[str, Callable[[], Workflow]] = {
    "flat": flat,
    "finished": flat,
    "nested": nested,
    "desk": nested,
    "deep": lambda: nested(2),
    "joined": joined,
    "shapes": shapes,
    "pair": pair,
    "inside": inside,
    "beside": beside,
    "desk_done": nested,
    "deep_done": lambda: nested(2),
    "kinds": kinds,
}


def import_from(folder: Path, workflow: Workflow, **options) -> AgentFrameworkImport:
    """Import a folder, and wait for it."""
    return asyncio.run(import_agent_framework(folder, workflow, **options))


def import_files(release: str, scenario: str, **options) -> AgentFrameworkImport:
    """Import one of the folders of files into the workflow of its scenario."""
    return _once(release, scenario) if not options else _import_files(release, scenario, **options)


@functools.cache
def _once(release: str, scenario: str) -> AgentFrameworkImport:
    """Nothing in an import without a store changes, so tests share it."""
    return _import_files(release, scenario)


def _import_files(release: str, scenario: str, **options) -> AgentFrameworkImport:
    if release.startswith("1.0.0b"):
        options = {"leave_out": OF_BETAS, **options}
    return import_from(FILES / release / scenario, BUILDERS[scenario](), **options)
