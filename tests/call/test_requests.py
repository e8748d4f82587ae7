"""What a result shows of its open requests, and answers made with them."""

import asyncio
from dataclasses import dataclass
from typing import Literal, Never

import pytest

from rehydrate import Executor, WorkflowBuilder, WorkflowContext, handler, response_handler
from rehydrate.errors import AnswerTypeError
from tests.call.desk import Note, Query, desk

run = asyncio.run


@dataclass(frozen=True)
class Choice:
    """An answer with a type of its own."""

    option: Literal["a", "b"]
    amount: int = 0


class Chooser(Executor):
    """Asks for a choice and yields it."""

    @handler
    async def on_note(self, note: Note, ctx: WorkflowContext[Never, Choice]) -> None:
        ctx.request_info(Query(note.text), response_type=Choice)

    @response_handler
    async def on_choice(self, query: Query, choice: Choice, ctx: WorkflowContext[Never, Choice]) -> None:
        ctx.yield_output(choice)


def chooser(store):
    """Make a workflow that asks for a choice."""
    return WorkflowBuilder(name="choose", start_executor=Chooser("chooser"), checkpoint_storage=store).build()


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_request_says_where_it_comes_from_and_what_it_wants(world, anywhere, depth):
    """Id, path, executor, data and response type are there, and the same after a restore."""
    workflow = desk(world, anywhere, depth=depth)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    (request,) = paused.pending_requests
    path = "/".join(["inner#1", "inner#1"][: depth - 1])
    assert (request.path, request.executor_id, request.data, request.response_type) == (
        path, "clerk", Query("a?", 1), bool,
    )  # fmt: skip
    assert run(workflow.run(checkpoint=paused)).pending_requests == (request,)


def test_requests_stand_in_the_order_in_which_they_were_asked(world, anywhere):
    """Two in one handler, then one of a later scope: by path and number, whatever their ids are."""
    workflow = desk(world, anywhere, depth=2)
    first = run(workflow.run(Note("b?,a?"), run_id="r"))
    second = run(workflow.run(Note("0?"), checkpoint=first, on_pending="keep"))
    assert [request.data.text for request in second.pending_requests] == ["b?", "a?", "0?"]


@pytest.mark.parametrize("value", ["yes", 1, None, 0.0, [True]])
def test_an_answer_of_another_type_is_refused_where_it_is_made(world, value):
    """`request.answer` raises at once, naming both types; a number is no truth value."""
    (request,) = run(desk(world).run(Note("a?"))).pending_requests
    with pytest.raises(AnswerTypeError, match="bool") as error:
        request.answer(value)
    assert (error.value.request_id, error.value.given) == (request.request_id, type(value).__name__)


@pytest.mark.parametrize("json", ['{"option": "a", "amount": 7}', b'{"option": "a", "amount": 7}'])
def test_an_answer_from_json(anywhere, json):
    """`request.parse` gives the typed answer that the text says."""
    workflow = chooser(anywhere)
    paused = run(workflow.run(Note("x")))
    result = run(workflow.run(checkpoint=paused, responses=[paused.pending_requests[0].parse(json)]))
    assert result.outputs == [Choice("a", 7)]


@pytest.mark.parametrize("json", ['{"option": "c"}', '{"amount": 7}', '{"option": "a", "amount": "7"}', "7", "", "{"])
def test_json_that_does_not_fit_is_refused(json):
    """Another value, a missing field, another type and broken text are an error that says what is expected."""
    (request,) = run(chooser(None).run(Note("x"))).pending_requests
    with pytest.raises(AnswerTypeError, match="Choice"):
        request.parse(json)


@pytest.mark.parametrize("kind", [list, tuple, iter, dict])
def test_answers_may_come_in_any_iterable(world, anywhere, kind):
    """A list, a tuple, an iterator of answers, or a mapping of ids to values: each is taken."""
    workflow = desk(world, anywhere)
    paused = run(workflow.run(Note("a?,b?")))
    one, two = paused.pending_requests
    given = (
        {two.request_id: False, one.request_id: True} if kind is dict else kind([two.answer(False), one.answer(True)])
    )
    assert run(workflow.run(checkpoint=paused, responses=given)).outputs == ["1: a? yes", "1: b? no"]
