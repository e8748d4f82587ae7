"""Text that no UTF-8 can say, numbers that JSON cannot, and names that come in pieces: repaired or refused, the same
everywhere and with the real client."""

import math
from dataclasses import dataclass

import pytest

from rehydrate import RunFailedError
from rehydrate.agents import ChatAgent, tool
from rehydrate.testing import ToolCall
from tests.agents.kit import RawModel, quick, streamed, talk, told


@dataclass(frozen=True)
class Reading:
    value: float


def _as_parts(message: str) -> list[dict[str, object]]:
    return [{"type": "text", "text": f"{message} \ud83d"}]


def test_what_is_said_to_a_model_is_repaired_wherever_it_stands():
    """In instructions, in the parts of a prompt, in what a tool returns and in its description; so it is kept, too."""

    @tool
    async def list_orders() -> list[dict[str, str]]:
        return [{"\udc80": "\ud83d\ude00 \ud83d"}]

    list_orders.step.function.__doc__ = "List \ud83d."
    agent = ChatAgent("clerk", "m", "Be \ud83d.", prompt=_as_parts, tools=[list_orders])

    async def scenario(call, model):
        result = await agent.workflow.run("go", **call)
        assert result.output == "done"
        assert result.checkpoint.state["conversation"][0][0] == model.requests[0]["messages"][1]

    model = talk([ToolCall("list_orders", {}), "done"], scenario)
    assert model.requests[0]["messages"] == [
        {"role": "system", "content": "Be \ufffd."},
        {"role": "user", "content": [{"type": "text", "text": "go \ufffd"}]},
    ]
    assert model.requests[0]["tools"][0]["function"]["description"] == "List \ufffd."
    assert told(model) == ['[{"\ufffd":"\U0001f600 \ufffd"}]']


def test_a_character_that_comes_in_two_pieces_is_whole_in_the_answer():
    """As where a provider escapes its halves; one that stays alone is replaced."""

    async def scenario(call, model):
        assert (await ChatAgent("clerk", quick()).workflow.run("go", **call)).output == "\U0001f600 \ufffd"

    choices = [({"content": text}, None) for text in ("\ud83d", "\ude00 \ud83d")]
    talk(RawModel(streamed(*choices, ({}, "stop"))), scenario)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_json_has_not_is_not_told_as_null(number):
    """The run fails, as by any result that JSON cannot say, wherever in it the number stands."""

    @tool
    async def measure() -> float:
        return number

    @tool
    async def all_readings() -> dict[str, list[Reading]]:
        return {"today": [Reading(number)]}

    for name in ("measure", "all_readings"):

        async def scenario(call, model, name=name):
            with pytest.raises(RunFailedError, match=f"tool '{name}': its result cannot be told to a model: Out of"):
                await ChatAgent("clerk", "m", tools=[measure, all_readings]).workflow.run("go", **call)

        assert len(talk([ToolCall(name, {})], scenario).requests) == 1


@pytest.mark.parametrize(
    "pieces",
    [
        [("note", '{"n":'), ("note", "1"), ("note", "}")],
        [("no", ""), ("te", '{"n":1}')],
        [("", '{"n":'), ("note", "1}"), (None, "")],
    ],
    ids=["whole in each", "in parts", "late"],
)
def test_a_name_that_each_piece_repeats_is_taken_once(pieces):
    """Most providers give it once, some in parts, and some whole in each piece of a call."""

    @tool
    async def note(n: int) -> str:
        return f"noted {n}"

    async def scenario(call, model):
        assert (await ChatAgent("clerk", quick(), tools=[note]).workflow.run("go", **call)).output == "done"

    calls = [
        ({"tool_calls": [{"index": 0, "id": "a", "function": {"name": name, "arguments": arguments}}]}, None)
        for name, arguments in pieces
    ]
    model = talk(RawModel(streamed(*calls, ({}, "tool_calls")), streamed(({"content": "done"}, "stop"))), scenario)
    assert told(model) == ["noted 1"]
