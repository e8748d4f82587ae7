"""Models that fail: what is asked again and by whom, what ends the run, and what a later call pays for."""

import pytest

from rehydrate import RunFailedError, errors
from rehydrate.agents import ChatAgent, TextDelta
from rehydrate.model.events import AttemptFailed, Emitted
from rehydrate.testing import ModelFailure, ToolCall
from tests.agents.kit import Desk, quick, talk


@pytest.mark.parametrize("status", [429, 503, *(pytest.param(n, marks=pytest.mark.proof) for n in (408, 409, 500))])
def test_a_busy_model_is_asked_again_by_the_policy(status):
    """The attempts are events, with the same key for the provider, and the answer is used."""
    agent = ChatAgent("clerk", quick())

    async def scenario(call, model):
        stream = agent.workflow.run("hello", stream=True, **call)
        failures = [event async for event in stream if isinstance(event, AttemptFailed)]
        assert [(event.step, event.attempt) for event in failures] == [("model", 1), ("model", 2)]
        assert f"(HTTP {status})" in failures[0].failure.text
        assert (await stream.result()).outputs == ["Here."]

    model = talk([ModelFailure(status, "Here.", times=2)], scenario)
    assert len(model.requests) == 3
    assert len({headers["idempotency-key"] for headers in model.headers}) == 1


def test_an_answer_that_breaks_off_is_asked_for_again():
    """Its text was told already; the next attempt's begins anew, and says so."""
    agent = ChatAgent("clerk", quick())

    async def scenario(call, model):
        stream = agent.workflow.run("hello", stream=True, **call)
        told = [event.data async for event in stream if isinstance(event, Emitted)]
        assert told == [
            TextDelta("clerk", 1, 1, "Half"),
            TextDelta("clerk", 1, 2, "Half"),
            TextDelta("clerk", 1, 2, " way"),
        ]
        assert (await stream.result()).outputs == ["Half way"]

    assert len(talk([ModelFailure(0, "Half way")], scenario).requests) == 2


def test_a_whole_answer_that_is_lost_on_the_way_is_asked_for_again():
    """The connection ends before anything came."""
    agent = ChatAgent("clerk", quick(stream=False))

    async def scenario(call, model):
        assert (await agent.workflow.run("hello", **call)).outputs == ["Here."]

    assert len(talk([ModelFailure(0, "Here.")], scenario).requests) == 2


def test_a_client_that_repeats_by_itself_does_so_inside_of_an_attempt():
    """Its repetitions are no attempts of the policy: both are made, and only the policy's are events."""
    agent = ChatAgent("clerk", quick())

    async def scenario(call, model):
        stream = agent.workflow.run("hello", stream=True, **call)
        failures = [event async for event in stream if isinstance(event, AttemptFailed)]
        assert len(failures) == 1
        assert (await stream.result()).outputs == ["Here."]

    model = talk([ModelFailure(503, "Here.", times=2)], scenario, max_retries=1)
    assert [headers["x-stainless-retry-count"] for headers in model.headers] == ["0", "1", "0"]


@pytest.mark.parametrize("status", [404, *(pytest.param(n, marks=pytest.mark.proof) for n in (400, 422))])
def test_a_refused_request_fails_at_once_and_a_resume_asks_again(status):
    """What was done before is kept: only the round that failed is asked again."""
    desk = Desk()
    agent = ChatAgent("clerk", quick(), tools=desk.tools)

    async def scenario(call, model):
        with pytest.raises(RunFailedError, match=rf"refused the request \(HTTP {status}\)"):
            await agent.workflow.run("hello", run_id="r", **call)
        assert len(model.requests) == 2
        result = await agent.workflow.run(checkpoint="latest", run_id="r", **call)
        assert result.outputs == ["Here."]

    model = talk([ToolCall("look_up", {"order": "o"}), ModelFailure(status, "Here.")], scenario)
    assert (len(model.requests), len(desk.log)) == (3, 1)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (ModelFailure(then="Too lo", finish_reason="length"), "cut off at the limit of its length"),
        (ModelFailure(then="A se", finish_reason="content_filter"), "its provider has filtered it"),
        ("", "it has neither text nor tool calls"),
    ],
)
def test_an_answer_that_nobody_can_use_fails_the_run(given, says):
    """Half an answer is not taken for a whole one; the error is the library's own."""
    agent = ChatAgent("clerk", quick())

    async def scenario(call, model):
        with pytest.raises(RunFailedError, match=says) as failed:
            await agent.workflow.run("hello", **call)
        step_failed = failed.value.__cause__
        assert isinstance(step_failed, errors.StepFailedError)
        assert isinstance(step_failed.__cause__, errors.ModelReplyError)

    assert len(talk([given], scenario).requests) == 1
