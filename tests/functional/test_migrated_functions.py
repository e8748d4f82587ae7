"""Functions that wait while their code changes: by their version, dropped, or refused by name."""

import asyncio
from enum import Enum

import pytest

from rehydrate import (
    FunctionalContext,
    InMemoryCheckpointStorage,
    MigrationView,
    SqliteCheckpointStorage,
    Status,
    Workflow,
    WorkflowBuilder,
    WorkflowRunResult,
    executor,
    step,
    workflow,
)
from rehydrate.errors import HomelessWorkError, NonDeterminismError, RunFailedError


@step
async def old_price(number: int) -> int:
    return number


@step
async def new_price(number: int) -> int:
    return number * 2


def unchanged(run: MigrationView) -> None:
    """Nothing stored has to change."""


def first() -> Workflow:
    """The version that runs begin with."""

    @workflow(types=[str, bool])
    async def order(number: int, ctx: FunctionalContext) -> str:
        price = await old_price(number)
        return f"{price} {await ctx.request_info('Buy it?', response_type=bool)}"

    return order


def changed() -> Workflow:
    """The same with another step, and no version that says so."""

    @workflow(types=[str, bool])
    async def order(number: int, ctx: FunctionalContext) -> str:
        price = await new_price(number)
        return f"{price} {await ctx.request_info('Buy it?', response_type=bool)}"

    return order


def by_version() -> Workflow:
    """Both, by the version in which a function has begun."""

    @workflow(types=[str, bool], version=2, migrate={1: unchanged})
    async def order(number: int, ctx: FunctionalContext) -> str:
        price = await (old_price if ctx.version < 2 else new_price)(number)
        return f"{price} {await ctx.request_info('Buy it?', response_type=bool)}"

    return order


class Size(Enum):
    SMALL = 1


STORES = {"memory": InMemoryCheckpointStorage, "sqlite": lambda: SqliteCheckpointStorage("runs.db")}


@pytest.fixture(name="store", params=STORES)
def make_store(request: pytest.FixtureRequest, tmp_path, monkeypatch):
    """An empty store."""
    monkeypatch.chdir(tmp_path)
    return STORES[request.param]()


def go_on(flow: Workflow, store, message: object = None, answers: dict[str, bool] | None = None) -> WorkflowRunResult:
    """One call on the run that waits."""
    return asyncio.run(
        flow.run(
            message,
            run_id="a",
            checkpoint="latest",
            responses=answers,
            checkpoint_storage=store,
            on_pending="keep" if message is not None else None,
        )
    )


def asked(store) -> str:
    """Begin with the first version and return the request that it waits for."""
    (request,) = asyncio.run(first().run(5, run_id="a", checkpoint_storage=store)).pending_requests
    return request.request_id


def test_a_changed_call_is_told_and_the_old_code_goes_on(store) -> None:
    """The failed turn names the place and both calls; its answer is not lost."""
    request = asked(store)
    with pytest.raises(RunFailedError) as raised:
        go_on(changed(), store, answers={request: True})
    cause = raised.value.__cause__
    assert isinstance(cause, NonDeterminismError)
    assert (cause.where, cause.call, cause.before, cause.now) == ("order", "1", "step 'old_price'", "step 'new_price'")
    assert go_on(first(), store).outputs == ["5 True"]


def test_a_function_goes_on_in_the_version_that_it_began_in(store) -> None:
    """What waits takes the branch of its version, what begins later that of today."""
    request = asked(store)
    result = go_on(by_version(), store, message=7, answers={request: True})
    assert result.outputs == ["5 True"]
    (request,) = result.pending_requests
    assert go_on(by_version(), store, answers={request.request_id: False}).outputs == ["14 False"]


def test_a_function_that_waits_can_be_dropped(store) -> None:
    """A migration that drops it leaves a run that takes the next message."""

    def drop(run: MigrationView) -> None:
        assert run.drop_executor("order") == ["request order#1?0", "what order#1 remembers"]

    request = asked(store)

    @workflow(types=[str, bool], version=2, migrate={1: drop})
    async def order(number: int) -> int:
        return await new_price(number)

    result = go_on(order, store, message=7)
    assert (result.outputs, result.pending_requests, result.status) == ([14], (), Status.IDLE)
    assert request not in str(result.checkpoint.pending_request_ids)
    assert [kind for (_, kind, _), _ in result.checkpoint.records.records() if kind in {"pass", "call", "read"}] == []


def test_what_no_version_takes_is_refused_by_name(store) -> None:
    """A message of another type, an answer that is not declared any more, and a graph in the place of the function."""

    def texts() -> Workflow:
        @workflow(types=[bool], version=2, migrate={1: unchanged})
        async def order(text: str) -> str:
            return text

        return order

    @executor(id="order")
    async def node(number: int) -> int:
        return number

    graph = WorkflowBuilder("order", node, version=2, migrate={1: unchanged}).build()
    asked(store)
    for flow, told in (
        (texts(), "order: it waits with a int and takes none"),
        (graph, "order: a function waits, and the workflow is a graph now"),
    ):
        with pytest.raises(HomelessWorkError) as raised:
            go_on(flow, store)
        assert told in raised.value.waiting


def test_an_answer_of_a_type_that_is_not_declared_any_more_is_refused(store) -> None:
    """The question waits for it; its type is named."""

    def build(answer: type, **options: object) -> Workflow:
        @workflow(types=[str, answer], **options)
        async def order(number: int, ctx: FunctionalContext) -> str:
            return str(await ctx.request_info("Which?", response_type=answer))

        return order

    asyncio.run(build(Size).run(5, run_id="a", checkpoint_storage=store))
    with pytest.raises(HomelessWorkError) as raised:
        go_on(build(bool, version=2, migrate={1: unchanged}), store)
    assert raised.value.waiting == ("order: an open request (str) waits for a Size, which is not declared now",)
