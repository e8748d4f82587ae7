"""`ScriptedModel` itself: failures made anew for each request, and scripts that raise."""

import pytest

from rehydrate import RunFailedError
from rehydrate.agents import ChatAgent
from rehydrate.testing import ModelFailure
from tests.agents.kit import quick, talk


def test_a_function_may_make_its_failures_anew():
    """They are counted by what was asked, so each conversation has its own."""
    agent = ChatAgent("clerk", quick())

    async def scenario(call, model):
        for text in ("one", "two"):
            assert (await agent.workflow.run(text, **call)).outputs == [f"re {text}"]

    model = talk(lambda request: ModelFailure(503, f"re {request['messages'][-1]['content']}", times=2), scenario)
    assert len(model.requests) == 2 * 3


def test_a_script_that_raises_is_told_to_the_client():
    """It is no lost connection, which would be tried again."""

    async def scenario(call, model):
        with pytest.raises(RunFailedError, match="the script raised KeyError: 'nothing'"):
            await ChatAgent("clerk", quick()).workflow.run("hello", **call)

    assert len(talk(lambda request: request["nothing"], scenario).requests) == 1
