"""Workflows whose handlers tell what the call brought: run arguments and resources, at a depth."""

from dataclasses import dataclass
from typing import Never

from rehydrate import (
    CheckpointStorage,
    Executor,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    handler,
    response_handler,
)


class Client:
    """A live object with a secret; it cannot be stored."""

    def __init__(self, secret: str) -> None:
        self.secret = secret
        self.used = 0

    def use(self) -> None:
        self.used += 1


@dataclass(frozen=True)
class Settings:
    """Run arguments with a type of their own."""

    tenant: str
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Errand:
    """What an envoy is sent with; one with a text that ends with `?` is asked about."""

    text: str
    settings: Settings | None = None


class Teller(Executor):
    """Yields the run arguments as it sees them, and changes its own copy."""

    @handler
    async def on_errand(self, errand: Errand, ctx: WorkflowContext[Never, str]) -> None:
        self.tell(errand.text, ctx)
        if errand.text.endswith("?"):
            ctx.request_info(errand, response_type=bool)

    @response_handler
    async def on_answer(self, errand: Errand, yes: bool, ctx: WorkflowContext[Never, str]) -> None:
        self.tell(f"{errand.text} answered", ctx)

    def tell(self, what: str, ctx: WorkflowContext[Never, str]) -> None:
        given = ctx.run_args
        ctx.yield_output(f"{what}: {given}")
        if isinstance(given, dict):
            given["changed"] = True
            ctx.yield_output(f"{what}: {ctx.run_args}")


class User(Executor):
    """Uses the client that the call brought."""

    @handler
    async def on_errand(self, errand: Errand, ctx: WorkflowContext[Never, str]) -> None:
        if errand.text.endswith("?"):
            ctx.request_info(errand, response_type=bool)
        else:
            self.use(errand.text, ctx)

    @response_handler
    async def on_answer(self, errand: Errand, yes: bool, ctx: WorkflowContext[Never, str]) -> None:
        self.use(errand.text, ctx)

    def use(self, what: str, ctx: WorkflowContext[Never, str]) -> None:
        ctx.resources["client"].use()
        ctx.yield_output(f"{what} at {ctx.path or 'the root'}")


def nested(
    innermost: Executor,
    store: CheckpointStorage | None,
    depth: int,
    *,
    inner: dict[str, type] | None = None,
    outer: dict[str, type] | None = None,
) -> Workflow:
    """Make a workflow of one executor, at a depth; `inner` and `outer` are the resources that each end declares."""
    target = innermost
    for level in range(depth, 1, -1):
        declared = inner if level == depth else None
        below = WorkflowBuilder(name=f"level {level}", start_executor=target, resources=declared).build()
        target = WorkflowExecutor(below, id="inner")
    return WorkflowBuilder(name="envoys", start_executor=target, checkpoint_storage=store, resources=outer).build()
