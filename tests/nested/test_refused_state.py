"""State that is refused: what a hook may not return (case 47), and state that was not declared (case 62)."""

import asyncio
import functools
from typing import Never

import pytest

from rehydrate import Executor, Status, WorkflowBuilder, WorkflowContext, WorkflowExecutor, handler
from rehydrate.errors import FrozenExecutorError, RunFailedError, SaveHookError, WorkflowBuildError
from tests.nested.journalled import Adder, adding


def run(workflow, message=None, **options):
    """Do one call and wait for it."""
    return asyncio.run(workflow.run(message, **options))


# What a hook may return (case 47)


class Returns(Executor):
    """Has a save hook that returns whatever it is told."""

    def __init__(self, id: str, saved: object) -> None:
        super().__init__(id)
        self.saved = saved

    @handler
    async def on_number(self, number: int, ctx: WorkflowContext[Never, int]) -> None:
        ctx.set_state("number", number)
        ctx.yield_output(number)

    async def on_checkpoint_save(self) -> dict[str, object]:
        return self.saved

    def on_checkpoint_restore(self, state: dict[str, object]) -> None:
        self.saved = state


class Unknown:
    """A type that nobody registered."""


@pytest.mark.parametrize("depth", [0, 2])
@pytest.mark.parametrize(
    "saved", [None, [("total", 1)], "total", 3, {1: "total"}, {("a",): 1}, {"total": Unknown()}, {"a": {"b": Unknown}}]
)
def test_a_save_hook_that_returns_anything_but_a_storable_dict_of_strings_is_refused(saved, depth) -> None:
    """Case 47: the run fails at the save, naming the executor with its path; nothing of the invocation is kept."""
    builder = WorkflowBuilder("wrong", Returns("keeper", saved))
    workflow = builder.build()
    for _ in range(depth):
        workflow = WorkflowBuilder("outer", WorkflowExecutor(workflow, "inner")).build()
    with pytest.raises(RunFailedError, match="keeper") as caught:
        run(workflow, 5)
    error = caught.value
    where = "/".join([*["inner#1"] * depth, "keeper"])
    assert error.where == where
    assert isinstance(error.__cause__, SaveHookError)
    assert (error.__cause__.where, error.__cause__.hook) == (where, "on_checkpoint_save")
    assert (error.result.outputs, error.result.status) == ([], Status.FAILED)
    assert error.result.checkpoint.state == {}


def test_a_save_hook_may_return_an_empty_dict_and_nested_values() -> None:
    """Case 47: what is storable under string keys is taken."""
    assert run(WorkflowBuilder("empty", Returns("keeper", {})).build(), 5).outputs == [5]
    saved = {"a": {"b": [(1, 2), {3}]}, "": None}
    assert run(WorkflowBuilder("deep", Returns("keeper", saved)).build(), 5).outputs == [5]


class Refuses(Adder):
    """Has a restore hook that raises."""

    def on_checkpoint_restore(self, state: dict[str, object]) -> None:
        raise LookupError("this state is not for me")


def test_a_restore_hook_that_raises_fails_the_run_and_loses_no_answer() -> None:
    """The executor is named, and with a better hook the same answer is still there."""
    first = run(adding(Adder("adder", [], []), depth=1), [4, 0])
    answer = first.pending_requests[0].answer(6)
    with pytest.raises(RunFailedError, match="adder") as caught:
        run(adding(Refuses("adder", [], []), depth=1), None, checkpoint=first, responses=[answer])
    assert isinstance(caught.value.__cause__, SaveHookError)
    assert caught.value.__cause__.hook == "on_checkpoint_restore"
    second = run(adding(Adder("adder", [], []), depth=1), None, checkpoint=caught.value.result)
    assert second.outputs == ["adder has 10"]


class OneHook(Executor):
    """Forgot the other hook."""

    @handler
    async def on_number(self, number: int) -> None: ...

    def on_checkpoint_save(self) -> dict[str, object]:
        return {}


def test_one_hook_without_the_other_is_an_error_at_build() -> None:
    """It names the executor and the hook."""
    with pytest.raises(WorkflowBuildError, match=r"'half'.*on_checkpoint_save"):
        WorkflowBuilder("half", OneHook("half")).build()


# State that was not declared (case 62)


class Undeclared(Executor):
    """Keeps a count in itself and has no hooks."""

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.count = 0

    @handler
    async def on_number(self, number: int, ctx: WorkflowContext[Never, int]) -> None:
        self.count += 1
        ctx.yield_output(self.count)

    @functools.cached_property
    def client(self) -> object:
        return object()


@pytest.mark.parametrize("depth", [0, 1])
def test_an_executor_without_hooks_cannot_keep_a_count_in_itself(depth) -> None:
    """Case 62: the first assignment is an error that names the ways out, and the next run starts from nothing."""
    counter = Undeclared("counter")
    workflow = WorkflowBuilder("counting", counter).build()
    for _ in range(depth):
        workflow = WorkflowBuilder("outer", WorkflowExecutor(workflow, "inner")).build()
    for _ in range(2):
        with pytest.raises(RunFailedError) as caught:
            run(workflow, 1)
        cause = caught.value.__cause__
        assert isinstance(cause, FrozenExecutorError)
        for way_out in ("'counter'", "'count'", "set_state", "on_checkpoint_save", "cached_property"):
            assert way_out in str(cause)
        assert caught.value.result.outputs == []
    assert counter.count == 0
    assert counter.client is counter.client
