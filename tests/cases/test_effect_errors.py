"""Wrong effects: each is an error at the line of the handler, and leaves nothing (section 2, 3.2 and 3.6)."""

import asyncio
from dataclasses import dataclass
from typing import Never

import pytest

from rehydrate import (
    Executor,
    Status,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    append,
    checkpointable,
    executor,
    handler,
    response_handler,
)
from rehydrate.errors import ClosedContextError, EffectError, SendTypeError, WorkflowBuildError
from rehydrate.model.events import MessageDropped
from tests.cases.flows import adder
from tests.cases.kit import failed, run


@dataclass(frozen=True)
class Animal:
    name: str


@dataclass(frozen=True)
class Dog(Animal):
    pass


@checkpointable
@dataclass(frozen=True)
class Cat(Animal):
    pass


class Dogs(Executor):
    """Takes dogs only."""

    @handler
    async def on_dog(self, dog: Dog, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(f"took {dog.name}")


def trying(attempt, caught, *, sends=Animal, yields=str):
    """first makes an attempt, notes its error and goes on; behind it stands an executor that takes dogs only."""

    class First(Executor):
        @handler(sends=sends, yields=yields)
        async def on_text(self, text: str, ctx: WorkflowContext) -> None:
            try:
                attempt(ctx)
            except EffectError as error:
                caught.append(error)
            await ctx.yield_output("went on")

    first, dogs = First("first"), Dogs("dogs")
    return WorkflowBuilder("trying", first).add_edge(first, dogs).build()


def caught_in(place, attempt, **options):
    """Return the one error of an attempt, after seeing that it left nothing behind."""
    caught = []
    result = run(trying(attempt, caught, **options), "x", checkpoint_storage=place.store)
    assert result.outputs == ["went on"]
    assert result.status is Status.IDLE
    assert len(caught) == 1
    return caught[0]


def test_sending_an_undeclared_type_is_an_error_at_the_line(place):
    """Section 2: what a handler may send stands in its context's first parameter; the error names both types."""
    error = caught_in(place, lambda ctx: ctx.send_message(7))
    assert isinstance(error, SendTypeError)
    assert isinstance(error, TypeError)
    assert "int" in str(error)
    assert "Animal" in str(error)
    assert "first" in error.where


def test_yielding_an_undeclared_type_is_an_error_at_the_line(place):
    """Section 2: what a handler may yield stands in its context's second parameter."""
    error = caught_in(place, lambda ctx: ctx.yield_output(7))
    assert isinstance(error, SendTypeError)
    assert "int" in str(error)
    assert "str" in str(error)


def test_sending_a_type_that_no_target_takes_is_an_error_at_the_line(place):
    """Section 3.6: a cat is an animal, so it is declared; but behind the edges only dogs are taken."""
    error = caught_in(place, lambda ctx: ctx.send_message(Cat("tom")))
    assert isinstance(error, SendTypeError)
    assert "Cat" in str(error)


def test_sending_to_a_target_without_an_edge_is_an_error_at_the_line(place):
    """Section 2: `target_id` follows the edges, so an executor to which none leads is refused by name."""
    error = caught_in(place, lambda ctx: ctx.send_message(Dog("rex"), target_id="nobody"))
    assert isinstance(error, SendTypeError)
    assert "'nobody'" in str(error)


def test_asking_without_a_response_handler_is_an_error_at_the_line(place):
    """Requests: no response handler for the pair is an error that names the pair."""
    error = caught_in(place, lambda ctx: ctx.request_info("sure?", response_type=bool))
    assert "str" in str(error)
    assert "bool" in str(error)


def test_a_function_executor_cannot_ask(place):
    """Requests: a function has no response handlers, so its `request_info` is an error at the line."""

    @executor(id="asks")
    async def asks(text: str, ctx: WorkflowContext) -> None:
        await ctx.request_info(text, response_type=str)

    error = failed(WorkflowBuilder("asks", asks).build(), "x", checkpoint_storage=place.store)
    assert isinstance(error.__cause__, EffectError)
    assert error.result.pending_requests == ()


def test_nothing_may_be_sent_or_yielded_by_default(place):
    """Section 2: both parameters are `Never` by default."""
    caught = []

    class Silent(Executor):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext) -> None:
            for effect in (ctx.send_message, ctx.yield_output):
                try:
                    effect(text)
                except SendTypeError as error:
                    caught.append(error)

    assert run(WorkflowBuilder("silent", Silent("silent")).build(), "x", checkpoint_storage=place.store).outputs == []
    assert len(caught) == 2


def test_sending_from_an_executor_without_edges_is_an_error_at_build():
    """Section 3.6: where the declared type shows it, it is found before anything runs."""

    @executor(id="last")
    async def last(text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(text)

    with pytest.raises(WorkflowBuildError, match="last"):
        WorkflowBuilder("last", last).build()


def test_a_type_that_no_target_takes_is_an_error_at_build():
    """Section 3.6: a declared type that nothing behind the edges takes is found by `build()`."""

    @executor(id="counts")
    async def counts(text: str) -> int:
        return len(text)

    with pytest.raises(WorkflowBuildError) as caught:
        WorkflowBuilder("counts", counts).add_edge(counts, Dogs("dogs")).build()
    assert any("counts" in problem and "int" in problem and "dogs" in problem for problem in caught.value.problems)


def test_yielding_what_no_successor_of_the_sub_workflow_takes_is_an_error_at_the_childs_line(place):
    """Section 4: what a scope yields becomes a message; a type that no successor takes is refused at that line."""
    caught = []

    @executor(id="inner")
    async def inner(text: str, ctx: WorkflowContext[Never, Animal]) -> None:
        try:
            await ctx.yield_output(Cat("tom"))
        except SendTypeError as error:
            caught.append(error)
        await ctx.yield_output(Dog("rex"))

    child, dogs = WorkflowExecutor(WorkflowBuilder("child", inner).build(), id="child"), Dogs("dogs")
    workflow = WorkflowBuilder("parent", child).add_edge(child, dogs).build()
    assert run(workflow, "x", checkpoint_storage=place.store).outputs == ["took rex"]
    assert len(caught) == 1
    assert "Cat" in str(caught[0])
    assert "child#1/inner" in caught[0].where


def test_an_effect_error_that_is_not_caught_fails_the_run(place):
    """Section 3.2: it is the handler's exception, and what was recorded before it leaves no trace."""

    @executor(id="first")
    async def first(text: str, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output("before")
        await ctx.set_state("k", 1)
        await ctx.yield_output(7)

    error = failed(WorkflowBuilder("failing", first).build(), "x", checkpoint_storage=place.store)
    assert isinstance(error.__cause__, SendTypeError)
    assert (error.result.outputs, error.result.checkpoint.state) == ([], {})


# A context after its handler -----------------------------------------------------------------------------------------

LATE = {
    "send_message": lambda ctx: ctx.send_message(Dog("late")),
    "yield_output": lambda ctx: ctx.yield_output("late"),
    "request_info": lambda ctx: ctx.request_info("late", response_type=str),
    "emit": lambda ctx: ctx.emit("late"),
    "get_state": lambda ctx: ctx.get_state("k"),
    "set_state": lambda ctx: ctx.set_state("k", "late"),
    "update_state": lambda ctx: ctx.update_state("list", "late"),
    "delete_state": lambda ctx: ctx.delete_state("k"),
}


class Leaks(Executor):
    """Lets its context out."""

    def __init__(self, leaked, fails=False):
        super().__init__("leaks")
        self.leaked, self.fails = leaked, fails

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[Dog, str]) -> None:
        await ctx.set_state("k", "kept")
        self.leaked.append(ctx)
        if self.fails:
            raise ValueError(text)

    @response_handler
    async def on_answer(self, text: str, answer: str, ctx: WorkflowContext[Dog, str]) -> None:
        await ctx.yield_output(answer)


def leaking(leaked, *, fails=False, then=None):
    leaks, dogs = Leaks(leaked, fails), Dogs("dogs")
    builder = WorkflowBuilder("leaking", leaks, reducers={"list": append}).add_edge(leaks, dogs)
    return builder.build()


@pytest.mark.parametrize("call", LATE)
def test_a_context_is_closed_once_its_handler_has_ended(place, call):
    """Section 3.8: every call on it raises, by name and place, and nothing of it is seen."""
    leaked = []
    first = run(leaking(leaked), "x", checkpoint_storage=place.store)
    with pytest.raises(ClosedContextError) as caught:
        LATE[call](leaked[0])
    assert call in str(caught.value)
    assert "leaks" in str(caught.value)
    again = run(leaking([]), "y", checkpoint=first, checkpoint_storage=place.store)
    assert (again.outputs, again.checkpoint.state) == ([], {"k": "kept"})


def test_a_context_is_closed_after_a_failure_too(place):
    """Section 3.8: a failed handler's context takes nothing any more."""
    leaked = []
    failed(leaking(leaked, fails=True), "x", checkpoint_storage=place.store)
    with pytest.raises(ClosedContextError):
        leaked[0].set_state("k", "late")


def test_a_task_that_outlives_its_handler_records_nothing(place):
    """Section 3.8: what a handler left running is refused while the run goes on, and its run sees none of it."""
    caught = []

    async def meet():
        passed = asyncio.Event()
        tasks = []

        async def late(ctx):
            await passed.wait()
            try:
                ctx.send_message(7)
            except ClosedContextError as error:
                caught.append(error)

        @executor(id="starts")
        async def starts(number: int, ctx: WorkflowContext[int]) -> None:
            tasks.append(asyncio.create_task(late(ctx)))
            await ctx.send_message(number)

        @executor(id="next")
        async def following(number: int) -> int:
            passed.set()
            await tasks[0]
            return number

        workflow = WorkflowBuilder("late", starts).add_edge(starts, following).build()
        return await workflow.run(1, checkpoint_storage=place.store)

    assert asyncio.run(meet()).outputs == [1]
    assert len(caught) == 1


# Messages that nobody wants ------------------------------------------------------------------------------------------


def test_a_message_that_every_condition_declined_is_dropped_with_an_event(place):
    """Section 3.6: it is no error; the event names executor, superstep and type."""
    s, a, b = adder("s", 0, []), adder("a", 0, []), adder("b", 0, [])
    builder = WorkflowBuilder("declined", s).add_edge(s, a, condition=lambda number: False)
    workflow = builder.add_edge(s, b, condition=lambda number: number > 5).build()
    result = run(workflow, 1, checkpoint_storage=place.store)
    dropped = [event for event in result.events if isinstance(event, MessageDropped)]
    assert [(e.path, e.executor_id, e.superstep, e.activation, e.type) for e in dropped] == [("", "s", 1, 1, "int")]
    assert (result.status, result.outputs) == (Status.IDLE, [])
    taken = run(workflow, 9, checkpoint_storage=place.store)
    assert taken.outputs == [9]
    assert not any(isinstance(event, MessageDropped) for event in taken.events)


def test_an_empty_selection_drops_the_message(place):
    """Section 3.6: a selection that chooses nobody declines as conditions do."""
    s, a = adder("s", 0, []), adder("a", 0, [])
    builder = WorkflowBuilder("declined", s)
    workflow = builder.add_multi_selection_edge_group(s, [a], lambda number, targets: []).build()
    result = run(workflow, 1, checkpoint_storage=place.store)
    assert [event.executor_id for event in result.events if isinstance(event, MessageDropped)] == ["s"]
    assert result.outputs == []


def test_what_a_sub_workflow_yields_and_its_parent_declines_is_dropped_with_an_event(place):
    """Section 3.6: the edge of a sub-workflow declines what the scope yielded; the reader is told."""

    @executor(id="inner")
    async def inner(number: int) -> int:
        return number

    child, a = WorkflowExecutor(WorkflowBuilder("child", inner).build(), id="child"), adder("a", 0, [])
    workflow = WorkflowBuilder("parent", child).add_edge(child, a, condition=lambda number: False).build()
    result = run(workflow, 1, checkpoint_storage=place.store)
    assert [event.type for event in result.events if isinstance(event, MessageDropped)] == ["int"]
    assert result.outputs == []


def test_a_message_to_one_target_goes_to_no_other(place):
    """Section 2: `target_id` sends along the edges to that target only."""

    @executor(id="s")
    async def s(number: int, ctx: WorkflowContext[int]) -> None:
        await ctx.send_message(number, target_id="b")
        await ctx.send_message(number + 10)

    a, b = adder("a", 100, []), adder("b", 200, [])
    workflow = WorkflowBuilder("targets", s).add_fan_out_edges(s, [a, b]).build()
    assert run(workflow, 1, checkpoint_storage=place.store).outputs == [111, 201, 211]


def test_a_message_goes_to_those_targets_that_take_it(place):
    """Section 3.6: a message is an error only where no target takes it; those that do not are passed over."""

    @executor(id="s")
    async def s(text: str, ctx: WorkflowContext[Animal]) -> None:
        await ctx.send_message(Dog(text))
        await ctx.send_message(Cat(text))

    @executor(id="animals")
    async def animals(animal: Animal) -> str:
        return f"saw {type(animal).__name__}"

    dogs = Dogs("dogs")
    workflow = WorkflowBuilder("zoo", s).add_edge(s, dogs).add_edge(s, animals).build()
    assert run(workflow, "x", checkpoint_storage=place.store).outputs == ["saw Dog", "saw Cat", "took x"]


def test_a_class_handler_that_returns_a_value_is_an_error(place):
    """Section 2: a class handler returns `None`; what it returns instead is neither sent nor yielded."""

    class Returns(Executor):
        @handler
        async def on_number(self, number: int, ctx: WorkflowContext[Never, int]):
            return number

    error = failed(WorkflowBuilder("returns", Returns("returns")).build(), 1, checkpoint_storage=place.store)
    assert isinstance(error.__cause__, EffectError)
    assert "returns" in error.__cause__.where
    assert error.result.outputs == []
