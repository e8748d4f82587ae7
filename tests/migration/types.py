"""One workflow with two forms of its type: a price in whole units, and one in cents."""

from dataclasses import dataclass
from typing import Never

from rehydrate import Executor, Workflow, WorkflowBuilder, WorkflowContext, WorkflowExecutor, append, handler
from rehydrate import response_handler as answers
from tests.migration.flows import Migrations


def with_amount(version: int = 1, migrate: Migrations | None = None) -> Workflow:
    """The older form."""

    @dataclass(frozen=True)
    class Price:
        amount: int

    return _built(Price, version, migrate)


def with_cents(version: int = 1, migrate: Migrations | None = None) -> Workflow:
    """The newer form."""

    @dataclass(frozen=True)
    class Price:
        cents: int

    return _built(Price, version, migrate)


def cost(version: int = 1, migrate: Migrations | None = None) -> Workflow:
    """The newer form under another name."""

    @dataclass(frozen=True)
    class Cost:
        cents: int

    return _built(Cost, version, migrate)


def _built(kind: type, version: int, migrate: Migrations | None) -> Workflow:
    class Ask(Executor):
        @handler
        async def on_number(self, number: int, ctx: WorkflowContext[Never, Never]) -> None:
            ctx.set_state("prices", {"one": kind(number), "more": [(kind(number), kind(number + 1))]})
            ctx.update_state("log", kind(number))
            ctx.request_info(kind(number), response_type=kind)

        @answers(request=kind, response=kind, yields=str)
        async def on_answer(self, asked, answer, ctx: WorkflowContext[Never, str]) -> None:
            prices, log = ctx.get_state("prices"), ctx.get_state("log")
            ctx.yield_output(f"{vars(asked)} {vars(answer)} {vars(prices['more'][0][1])} {vars(log[0])} {ctx.run_args}")

    child = WorkflowBuilder("child", Ask("ask"), reducers={"log": append}).build()
    return WorkflowBuilder("prices", WorkflowExecutor(child, "ask"), version=version, migrate=migrate).build()
