"""Workflows that wait in many ways, and what the tests of migrations share."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Never

import pytest

from rehydrate import (
    CheckpointStorage,
    Executor,
    InMemoryCheckpointStorage,
    MigrationView,
    SqliteCheckpointStorage,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    WorkflowRunResult,
    executor,
    handler,
    response_handler,
)
from rehydrate.errors import RunFailedError

Migrations = Mapping[int, Callable[[MigrationView], object]]


class Ask(Executor):
    """Asks, and yields the answer."""

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        ctx.set_state("asked", text)
        ctx.request_info(text, response_type=str)

    @response_handler
    async def on_answer(self, asked: str, answer: str, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output(f"{asked}: {answer}")


class BrokenError(RuntimeError):
    """What a handler raises that is not to run yet."""


def step(id: str, *, broken: bool = False) -> Executor:
    """Make an executor that adds its id to a text."""

    @executor(id=id)
    async def run(text: str, ctx: WorkflowContext) -> str:
        ctx.set_state(f"seen by {id}", [text])
        if broken:
            raise BrokenError(id)
        return f"{text} {id}"

    return run


def gather(id: str) -> Executor:
    """Make an executor that takes a join's list."""

    @executor(id=id)
    async def run(texts: list[str]) -> str:
        return f"{id}({', '.join(texts)})"

    return run


def chain(*ids: str, broken: str = "", version: int = 1, migrate: Migrations | None = None) -> Workflow:
    """A chain of steps, of which one may be broken."""
    steps = [step(id, broken=id == broken) for id in ids]
    builder = WorkflowBuilder("chain", steps[0], version=version, migrate=migrate)
    return (builder.add_chain(steps) if len(steps) > 1 else builder).build()


def asking(
    id: str = "ask", inner: str = "inner", *, version: int = 1, migrate: Migrations | None = None,
    child_version: int = 1, child_migrate: Migrations | None = None,
) -> Workflow:  # fmt: skip
    """A sub-workflow that asks, followed by a step."""
    child = WorkflowBuilder("child", Ask(inner), version=child_version, migrate=child_migrate).build()
    nodes = [WorkflowExecutor(child, id), step("last")]
    return WorkflowBuilder("asking", nodes[0], version=version, migrate=migrate).add_chain(nodes).build()


def go(workflow: Workflow, message: object = None, **options: object) -> WorkflowRunResult:
    """Make a call; a run that fails gives its result too."""

    async def call() -> WorkflowRunResult:
        try:
            return await workflow.run(message, **options)
        except RunFailedError as error:
            return error.result

    return asyncio.run(call())


def stored(store: CheckpointStorage, run_id: str = "r") -> tuple[object, object]:
    """All that a store holds of a run."""

    async def look() -> tuple[object, object]:
        head = await store.head(run_id)
        return head, await store.load(head.header.checkpoint_id)

    return asyncio.run(look())


def texts(result: WorkflowRunResult, kind: str) -> list[str]:
    """The texts of the events of one kind."""
    return [str(event) for event in result.events if type(event).__name__ == kind]


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path) -> CheckpointStorage:
    """A store of each kind."""
    return InMemoryCheckpointStorage() if request.param == "memory" else SqliteCheckpointStorage(tmp_path / "runs.db")
