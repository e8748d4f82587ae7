"""What a user writes of functional workflows, for a type checker only: each line that must be an error ends with
`# error: <rule>`.

Never imported; `tests/graph/test_public_typing.py` has pyright read it.
"""

import random
import uuid
from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Never, TypeVar, assert_type

from rehydrate import (
    FunctionalContext,
    FunctionalWorkflow,
    InMemoryCheckpointStorage,
    Retry,
    Step,
    Workflow,
    WorkflowBuilder,
    WorkflowDescription,
    WorkflowExecutor,
    WorkflowRunResult,
    add,
    current_step,
    executor,
    step,
    workflow,
)

Thing = TypeVar("Thing")


@dataclass(frozen=True)
class Claim:
    id: str
    amount: int


@dataclass(frozen=True)
class Large(Claim):
    reason: str


@dataclass(frozen=True)
class Pair(Generic[Thing]):
    left: Thing
    right: Thing


@step
async def assess(claim: Claim, limit: int = 10, *, strict: bool = False) -> float:
    assert_type(current_step().attempt, int)
    assert_type(current_step().effect_key, str)
    return claim.amount / limit


@step
def pay(claim: Claim, note: str | None = None) -> str:
    return claim.id


@step(name="told", retry=Retry(attempts=3), timeout=30)
async def tell(*names: str, **amounts: int) -> list[str]:
    return [*names]


@step(timeout=2.5)
def nothing(number: int) -> None: ...


@step
def twice(thing: Thing) -> Pair[Thing]:
    return Pair(thing, thing)


@step
async def first_of(things: list[Thing]) -> Thing:
    return things[0]


step(tell.function)
step(5)  # error: reportArgumentType
step(name=5)  # error: reportArgumentType
step(retries=3)  # error: reportCallIssue


def takes_a_step(given: Step[..., str]) -> str:
    return given.name


async def steps(claim: Claim) -> None:
    takes_a_step(pay)
    assert_type(await assess(claim), float)
    assert_type(await assess(claim, 5, strict=True), float)
    assert_type(await assess(limit=5, claim=Large("a", 1, "why")), float)
    begun = assert_type(assess(claim), Coroutine[Any, Any, float])
    assert_type(await begun, float)
    assert_type(await pay(claim), str)
    assert_type(await pay(claim, note=None), str)
    assert_type(await tell("a", "b", amount=2), list[str])
    assert_type(await nothing(1), None)
    assert_type(await twice(1), Pair[int])
    assert_type(await twice(claim), Pair[Claim])
    assert_type(await first_of(["a"]), str)
    await assess("claim")  # error: reportArgumentType
    await assess(claim, "5")  # error: reportArgumentType
    await assess(claim, 5, True)  # error: reportCallIssue
    await assess(claim, strict=1)  # error: reportArgumentType
    await assess(claim, strickt=True)  # error: reportCallIssue
    await assess()  # error: reportCallIssue
    await pay(claim, note=5)  # error: reportArgumentType
    await tell(1)  # error: reportArgumentType
    await tell("a", amount="b")  # error: reportArgumentType
    pay(claim).upper()  # error: reportAttributeAccessIssue


@workflow
async def bare(claim: Claim) -> str:
    return await pay(claim)


@workflow
async def with_context(claim: Claim, ctx: FunctionalContext) -> float:
    return await assess(claim)


@workflow(name="given", version=2, checkpoint_storage=InMemoryCheckpointStorage(), types=[bool], reducers={"sum": add})
async def with_options(claim: Claim, ctx: FunctionalContext) -> Pair[str]:
    return await twice(claim.id)


@workflow(name="without-context")
async def options_without_context(number: int) -> None: ...


@workflow  # error: reportArgumentType
def not_async(claim: Claim) -> str:
    return claim.id


@workflow  # error: reportArgumentType
async def too_many(claim: Claim, ctx: FunctionalContext, more: int) -> str:
    return claim.id


@workflow(nam="a")  # error: reportCallIssue
async def wrong_option(claim: Claim) -> str:
    return claim.id


@workflow(version="2")  # error: reportArgumentType
async def wrong_version(claim: Claim) -> str:
    return claim.id


@executor
async def double(number: int) -> int:
    return number * 2


graph = WorkflowBuilder("graph", double).build()


async def made() -> None:
    assert_type(bare, FunctionalWorkflow[Claim, str])
    assert_type(with_context, FunctionalWorkflow[Claim, float])
    assert_type(with_options, FunctionalWorkflow[Claim, Pair[str]])
    assert_type(options_without_context, FunctionalWorkflow[int, None])
    assert_type(graph, Workflow)
    assert_type(bare.describe(), WorkflowDescription)
    assert_type(await bare.run(Claim("a", 1), run_id="r"), WorkflowRunResult)
    WorkflowExecutor(bare, id="node")
    bare(Claim("a", 1))  # error: reportCallIssue


@workflow(types=[bool, Claim], calls=[bare, with_options, options_without_context, graph])
async def uses(claim: Claim, ctx: FunctionalContext) -> str:
    assert_type(await ctx.request_info(claim, response_type=bool), bool)
    assert_type(await ctx.request_info(claim, response_type=Pair[int]), Pair[int])
    await ctx.request_info(claim, response_type=bool | None)
    await ctx.request_info(claim)  # error: reportCallIssue

    assert_type(await ctx.gather(pay(claim)), tuple[str])
    assert_type(await ctx.gather(pay(claim), assess(claim)), tuple[str, float])
    assert_type(await ctx.gather(pay(claim), assess(claim), twice(1)), tuple[str, float, Pair[int]])
    four = await ctx.gather(pay(claim), assess(claim), twice(1), ctx.request_info(claim, response_type=bool))
    assert_type(four, tuple[str, float, Pair[int], bool])
    assert_type(await ctx.gather(*[pay(claim) for _ in range(9)]), tuple[str, ...])
    await ctx.gather(5)  # error: reportArgumentType

    assert_type(await ctx.call(bare, claim), str)
    assert_type(await ctx.call(bare, Large("a", 1, "why")), str)
    assert_type(await ctx.call(with_options, claim), Pair[str])
    assert_type(await ctx.call(options_without_context, 1), None)
    assert_type(await ctx.call(graph, 1), list[Any])
    await ctx.call(bare, 1)  # error: reportCallIssue
    await ctx.call(options_without_context, "1")  # error: reportCallIssue
    await ctx.call(double, 1)  # error: reportArgumentType

    assert_type(await ctx.sleep(5), None)
    await ctx.sleep("5")  # error: reportArgumentType
    assert_type(ctx.now(), datetime)
    assert_type(ctx.random(), random.Random)
    assert_type(ctx.uuid(), uuid.UUID)
    assert_type(ctx.run_id, str)
    assert_type(ctx.version, int)
    assert_type(ctx.state.get("sum", 0), int)
    assert_type(ctx.state.get("sum"), Any)
    ctx.state.set("sum", 1)
    ctx.state.set(1, 1)  # error: reportArgumentType
    ctx.state = {}  # error: reportAttributeAccessIssue
    ctx.yield_output(1)  # error: reportAttributeAccessIssue
    if claim.amount:
        assert_type(await ctx.continue_as_new(claim), Never)
    return "done"
