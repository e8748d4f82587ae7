"""Annotations that are text when handlers are read: postponed, of local classes, of names for type checkers only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Never

import pytest

from rehydrate.errors import ExecutorDefinitionError
from rehydrate.graph.context import WorkflowContext
from rehydrate.graph.executor import Executor, executor
from rehydrate.graph.handlers import handler, response_handler

if TYPE_CHECKING:
    from decimal import Decimal


class Early(Executor):
    @handler
    async def on_late(self, message: Late, ctx: WorkflowContext[list[Late], Late | None]) -> None: ...


@dataclass(frozen=True)
class Late:
    number: int


def test_a_name_of_the_module_is_found_even_if_it_is_defined_later() -> None:
    """Handlers are read when they are needed, not when they are decorated."""
    spec = Early().handlers[0]
    assert (spec.message, spec.sends, spec.yields) == (Late, (list[Late],), (Late, type(None)))


def test_a_class_of_the_enclosing_function_is_found() -> None:
    """Also from a method, which keeps no reference to the locals around its class."""

    class Local: ...

    class Answer: ...

    class Reader(Executor):
        @handler
        async def on_local(self, message: Local, ctx: WorkflowContext[Never, Answer]) -> None: ...

        @response_handler(response=bool)
        async def on_answer(self, request: Local | Answer, response: bool) -> None: ...

    @executor(id="read")
    async def read(message: list[Local]) -> Answer | None: ...

    reader = Reader()
    assert (reader.handlers[0].message, reader.handlers[0].yields) == (Local, (Answer,))
    assert reader.response_handlers[0].request == Local | Answer
    assert (read.handlers[0].message, read.handlers[0].returns) == (list[Local], (Answer,))


def test_a_class_inside_the_executor_is_found() -> None:
    """The namespace of the class is searched after locals and the module."""

    class Counter(Executor):
        class Tick: ...

        @handler
        async def on_tick(self, tick: Tick, ctx: WorkflowContext[Counter.Tick]) -> None: ...

    assert Counter().handlers[0].message is Counter.Tick
    assert Counter().handlers[0].sends == (Counter.Tick,)


def test_a_handler_of_a_base_is_read_in_the_scope_of_the_base() -> None:
    """A subclass elsewhere does not lose the names of its base."""

    def base() -> type[Executor]:
        class Inner: ...

        class Base(Executor):
            @handler
            async def on_inner(self, message: Inner) -> None: ...

        return Base

    class Derived(base()): ...

    assert Derived().handlers[0].message.__name__ == "Inner"


def test_a_name_for_type_checkers_only_is_an_error_that_says_how() -> None:
    """The error names parameter and text, and both ways out."""

    class Pay(Executor):
        @handler
        async def on_sum(self, price: Decimal, ctx: WorkflowContext[Never, int]) -> None: ...

    with pytest.raises(ExecutorDefinitionError) as caught:
        _ = Pay().handlers
    assert str(caught.value) == (
        "executor 'Pay.on_sum': the annotation of parameter 'price', Decimal, cannot be resolved (name 'Decimal' is not"
        " defined). Import or define the type where the module can see it at run time (not under TYPE_CHECKING), or"
        " state it: @handler(message=..., sends=..., yields=...)."
    )


def test_stated_types_need_no_annotation_that_can_be_resolved() -> None:
    """Only what is not stated is read."""

    class Pay(Executor):
        @handler(message=int)
        async def on_sum(self, price: Decimal, ctx: WorkflowContext[Never, int]) -> None: ...

        @handler(message=str, sends=(), yields=int)
        async def on_text(self, text: str, ctx: WorkflowContext[Decimal]) -> None: ...

    assert [(spec.message, spec.sends, spec.yields) for spec in Pay().handlers] == [
        (int, (), (int,)),
        (str, (), (int,)),
    ]


def test_a_method_may_not_return_what_cannot_be_resolved() -> None:
    """Whatever it is, it is not None."""

    class Pay(Executor):
        @handler
        async def on_sum(self, price: int) -> Decimal: ...

    with pytest.raises(ExecutorDefinitionError, match="is annotated to return Decimal, but methods return nothing"):
        _ = Pay().handlers
