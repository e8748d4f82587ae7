"""Which of several handlers gets a message, in whole runs; what cannot be decided is a problem of the build."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Never, Protocol, runtime_checkable

import pytest

from rehydrate import Executor, RunFailedError, WorkflowBuilder, WorkflowContext, checkpointable, executor, handler
from rehydrate.errors import ExecutorDefinitionError, MessageTypeError, WorkflowBuildError

if TYPE_CHECKING:
    from collections import OrderedDict

Out = WorkflowContext[Never, str]


@dataclass(frozen=True)
class Event:
    id: int


@dataclass(frozen=True)
class Paid(Event): ...


@checkpointable
@dataclass(frozen=True)
class PaidTwice(Paid): ...


@dataclass(frozen=True)
class Mail:
    subject: str


@checkpointable
@dataclass(frozen=True)
class Letter(Mail):
    pages: int


@runtime_checkable
class HasSubject(Protocol):
    subject: str


def given(cls: type[Executor], *messages: object) -> list[str]:
    """What the handlers of a class say of messages."""
    workflow = WorkflowBuilder("exact", cls("x")).build()
    return [workflow.run_sync(message).output for message in messages]


def test_lists_are_told_apart_by_their_elements() -> None:
    """Case 52: handlers for `list[str]` and `list[int]` each get their own; a mixed list is neither's."""

    class Lists(Executor):
        @handler
        async def texts(self, message: list[str], ctx: Out) -> None:
            ctx.yield_output("texts")

        @handler
        async def numbers(self, message: list[int], ctx: Out) -> None:
            ctx.yield_output("numbers")

    assert given(Lists, ["a"], [1], [True]) == ["texts", "numbers", "numbers"]
    workflow = WorkflowBuilder("exact", Lists("x")).build()
    with pytest.raises(MessageTypeError):
        workflow.run_sync(["a", 1])
    # Only the value shows it: an empty list is as much the one as the other.
    with pytest.raises((RunFailedError, ExecutorDefinitionError), match=r"handlers 'texts' and 'numbers' fit an empty"):
        workflow.run_sync([])


def test_a_member_goes_before_its_union_and_a_subclass_before_its_base() -> None:
    """Case 52: the order in which the handlers stand does not matter."""

    class Events(Executor):
        @handler
        async def anything(self, message: Any, ctx: Out) -> None:
            ctx.yield_output("anything")

        @handler
        async def events(self, message: Event, ctx: Out) -> None:
            ctx.yield_output("event")

        @handler
        async def several(self, message: Paid | Mail | int, ctx: Out) -> None:
            ctx.yield_output("several")

        @handler
        async def letters(self, message: Letter, ctx: Out) -> None:
            ctx.yield_output("letter")

        @handler
        async def subjects(self, message: HasSubject, ctx: Out) -> None:
            ctx.yield_output("subject")

        @handler
        async def flags(self, message: bool, ctx: Out) -> None:
            ctx.yield_output("flag")

        @handler
        async def seven(self, message: Literal[7], ctx: Out) -> None:
            ctx.yield_output("seven")

    messages = [Event(1), Paid(1), PaidTwice(1), Mail("a"), Letter("a", 2), 5, True, 7, "text"]
    assert given(Events, *messages) == [
        "event", "several", "several", "several", "letter", "several", "flag", "seven", "anything",
    ]  # fmt: skip


def test_a_message_that_was_sent_as_its_base_is_handled_as_what_it_is() -> None:
    """Case 52: what the edge is declared with does not decide, the message does."""

    @executor
    async def send(number: int) -> Event:
        return Paid(number) if number > 10 else Event(number)

    class Take(Executor):
        @handler
        async def event(self, message: Event, ctx: Out) -> None:
            ctx.yield_output("event")

        @handler
        async def paid(self, message: Paid, ctx: Out) -> None:
            ctx.yield_output("paid")

    workflow = WorkflowBuilder("sent", send).add_edge(send, Take("take")).build()
    assert [workflow.run_sync(number).output for number in (1, 11)] == ["event", "paid"]


@pytest.mark.parametrize(
    ("first", "second", "shown"),
    [
        (int, int, "'one' (int) and 'other' (int)"),
        (int | str, str | bytes, "'one' (int | str) and 'other' (bytes | str)"),
        (Event | None, Mail | None, "'one' (Event | None) and 'other' (Mail | None)"),
        (Any, object, "'one' (Any) and 'other' (Any)"),
        (Literal["a", "b"], Literal["b", "c"], "'one' (Literal['a', 'b']) and 'other' (Literal['b', 'c'])"),
        (list[int] | Event, list[int], None),
        (Event, Paid | Mail, None),
        (list[int], list[str], None),
    ],
)
def test_handlers_that_could_both_be_meant_are_a_problem_of_the_build(first, second, shown) -> None:
    """Case 52: the problem names both; where one is more exact there is none."""

    class Two(Executor):
        @handler(message=first)
        async def one(self, message) -> None: ...

        @handler(message=second)
        async def other(self, message) -> None: ...

    builder = WorkflowBuilder("two", Two("x"))
    if shown is None:
        builder.build()
        return
    with pytest.raises(WorkflowBuildError) as caught:
        builder.build()
    assert caught.value.problems == (
        f"executor 'x': handlers {shown} can be equally exact for one message; change a type of one",
    )


def test_postponed_names_are_resolved_or_the_error_says_how() -> None:
    """Case 51: a type of the function around is found; one for type checkers only is not, and may be stated."""

    @dataclass(frozen=True)
    class Local:
        number: int

    class Take(Executor):
        @handler
        async def local(self, message: Local, ctx: WorkflowContext[Never, list[Local]]) -> None:
            ctx.yield_output([message])

    assert WorkflowBuilder("local", Take("x")).build().run_sync(Local(1)).output == [Local(1)]

    @executor
    async def wrong(message: OrderedDict[str, int]) -> None: ...

    with pytest.raises(WorkflowBuildError, match=r"OrderedDict.*not under TYPE_CHECKING.*@executor\(message=\.\.\."):
        WorkflowBuilder("wrong", wrong).build()

    @executor(message=dict[str, int])
    async def stated(message: OrderedDict[str, int], ctx: Out) -> None:
        ctx.yield_output("stated")

    assert WorkflowBuilder("stated", stated).build().run_sync({"a": 1}).output == "stated"
