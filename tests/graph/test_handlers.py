"""Specs of handlers as read from signatures, and mistakes in them."""

import functools
from dataclasses import dataclass
from typing import Any, Never, Protocol

import pytest

from rehydrate.errors import ExecutorDefinitionError
from rehydrate.graph.context import WorkflowContext
from rehydrate.graph.executor import Executor, executor
from rehydrate.graph.handlers import HandlerSpec, ResponseHandlerSpec, handler, response_handler


@dataclass(frozen=True)
class Claim:
    amount: int


@dataclass(frozen=True)
class Verdict:
    approved: bool


class Assess(Executor):
    @handler
    async def on_claim(self, claim: Claim, ctx: WorkflowContext[str | int, Verdict]) -> None: ...

    @handler
    def on_text(self, text: str) -> None: ...

    @response_handler
    async def on_answer(self, claim: Claim, approved: bool | None, ctx: WorkflowContext[Never, Verdict]) -> None: ...


def test_a_class_has_a_spec_for_each_handler() -> None:
    """Unions of what is sent come apart; what a handler takes stays as it is written."""
    assess = Assess("assess")
    assert assess.handlers == (
        HandlerSpec("on_claim", Claim, (str, int), (Verdict,), is_async=True, takes_context=True),
        HandlerSpec("on_text", str, (), (), is_async=False, takes_context=False),
    )
    assert assess.response_handlers == (
        ResponseHandlerSpec("on_answer", Claim, bool | None, (), (Verdict,), is_async=True, takes_context=True),
    )


def test_a_subclass_has_the_handlers_of_its_bases_first() -> None:
    """A handler that replaces another keeps its place."""

    class Careful(Assess):
        @handler
        async def on_number(self, number: int) -> None: ...

        @handler
        async def on_text(self, text: bytes) -> None: ...

    assert [(spec.name, spec.message) for spec in Careful().handlers] == [
        ("on_claim", Claim),
        ("on_text", bytes),
        ("on_number", int),
    ]


def test_types_can_be_stated_at_the_decorator() -> None:
    """What is stated is not looked for in annotations; several types may be a tuple or a union."""

    class Stated(Executor):
        @handler(message=Claim, sends=(int, str | None), yields=Verdict)
        async def on_claim(self, claim, ctx) -> None: ...

        @response_handler(request=Claim, response=bool, sends=int)
        async def on_answer(self, claim: "Missing", approved, ctx: WorkflowContext[Never, Verdict]) -> None: ...  # noqa: F821

    stated = Stated()
    assert stated.handlers == (
        HandlerSpec("on_claim", Claim, (int, str, type(None)), (Verdict,), is_async=True, takes_context=True),
    )
    assert stated.response_handlers == (
        ResponseHandlerSpec("on_answer", Claim, bool, (int,), (Verdict,), is_async=True, takes_context=True),
    )


@pytest.mark.parametrize(
    ("returned", "specs"),
    [(int | None, (int,)), (None, ()), (Never, ()), (int | str, (int, str)), (list[int], (list[int],))],
)
def test_a_function_says_by_its_return_what_it_passes_on(returned, specs) -> None:
    """None is nothing, so it is not among the types."""

    @executor(returns=returned)
    def pass_on(claim: Claim): ...

    assert pass_on.handlers[0].returns == specs


def test_a_function_that_says_nothing_passes_nothing_on() -> None:
    """Without a return annotation there is no type that it could return."""

    @executor
    async def sink(claim: Claim, ctx: WorkflowContext[Never, Verdict]): ...

    assert sink.handlers == (HandlerSpec("function", Claim, (), (Verdict,), is_async=True, takes_context=True),)


def test_a_wrapped_handler_is_read_through_its_wrapper() -> None:
    """The signature and whether it is async are those of the function inside."""

    def logged(function):
        @functools.wraps(function)
        def call(*args):
            return function(*args)

        return call

    class Logged(Executor):
        @handler
        @logged
        async def on_claim(self, claim: Claim, ctx: WorkflowContext[int]) -> None: ...

        @logged
        @handler
        async def on_text(self, text: str) -> None: ...

    assert Logged().handlers == (
        HandlerSpec("on_claim", Claim, (int,), (), is_async=True, takes_context=True),
        HandlerSpec("on_text", str, (), (), is_async=True, takes_context=False),
    )


class Unchecked(Protocol):
    name: str


class Base(Executor):
    @handler
    async def go(self, claim: Claim) -> None: ...


class NoMessage(Executor):
    @handler
    async def go(self) -> None: ...


class TooMuch(Executor):
    @handler
    async def go(self, claim: Claim, ctx: WorkflowContext, more: int) -> None: ...


class NoAnnotation(Executor):
    @handler
    async def go(self, claim, ctx: WorkflowContext) -> None: ...


class NoContext(Executor):
    @handler
    async def go(self, claim: Claim, ctx: int) -> None: ...


class Returns(Executor):
    @handler
    async def go(self, claim: Claim) -> int: ...


class Generates(Executor):
    @handler
    async def go(self, claim: Claim):
        yield 1


class Static(Executor):
    @staticmethod
    @handler
    async def go(claim: Claim) -> None: ...


class Unmarked(Base):
    async def go(self, claim: Claim) -> None: ...


class Unreadable(Executor):
    @handler
    async def go(self, claim: Unchecked) -> None: ...


class Nothing(Executor):
    @handler
    async def go(self, claim: Never) -> None: ...


class OnlyAName(Executor):
    @handler
    async def go(self, claim: "Missing", ctx: WorkflowContext[int]) -> None: ...  # noqa: F821


class HalfAnAnswer(Executor):
    @response_handler
    async def go(self, claim: Claim) -> None: ...


@pytest.mark.parametrize(
    ("cls", "problem", "fix"),
    [
        (NoMessage, "does not take (self, message) or (self, message, ctx)", "Give it the parameters"),
        (TooMuch, "does not take (self, message) or (self, message, ctx)", "Give it the parameters"),
        (NoAnnotation, "parameter 'claim' has no annotation", "@handler(message=..., sends=..., yields=...)"),
        (NoContext, "parameter 'ctx' is the context, but is annotated int", "Annotate it WorkflowContext["),
        (Returns, "is annotated to return int, but methods return nothing", "Annotate it `-> None`"),
        (Generates, "is a generator", "ctx.send_message"),
        (Static, "is a static or class method", "plain method"),
        (Unmarked, "replaces a handler of a base class and is none itself", "Put @handler"),
        (Unreadable, "Unchecked is a protocol that is not @runtime_checkable", "Use classes"),
        (Nothing, "parameter 'claim' can have no value (Never)", "Use classes"),
        (OnlyAName, "the annotation of parameter 'claim', Missing, cannot be resolved", "not under TYPE_CHECKING"),
        (HalfAnAnswer, "does not take (self, request, response) or (self, request, response, ctx)", "Give it"),
    ],
)
def test_a_wrong_handler_is_an_error_that_says_what_to_do(cls, problem, fix) -> None:
    """The error names the method, what is wrong and the way out."""
    with pytest.raises(ExecutorDefinitionError) as caught:
        _ = cls().handlers
    assert caught.value.executor == f"{cls.__name__}.go"
    assert problem in caught.value.problem
    assert fix in caught.value.fix


def test_every_wrong_handler_of_a_class_is_found() -> None:
    """One mistake does not hide the next."""

    class Twice(Executor):
        @handler
        async def one(self, claim) -> None: ...

        @handler
        async def other(self, claim: Claim) -> str: ...

    assert [error.executor for error in Twice().handler_table.specs.errors] == ["Twice.one", "Twice.other"]


@pytest.mark.parametrize("decorator", [handler, executor])
def test_a_decorator_is_for_plain_functions(decorator) -> None:
    """Anything else is refused where it is decorated."""
    with pytest.raises(ExecutorDefinitionError, match="not a plain function"):
        decorator(functools.partial(print, 1))


def test_a_function_is_checked_like_a_method() -> None:
    """Its error names the function and how to state its types."""

    @executor(id="intake")
    async def take(claim): ...

    with pytest.raises(
        ExecutorDefinitionError, match=r"'take'.*@executor\(message=..., sends=..., yields=..., returns="
    ):
        _ = take.handlers


def test_anything_can_be_taken() -> None:
    """Any says nothing of the message."""

    @executor
    async def log(message: Any) -> None: ...

    assert log.can_take(object())
