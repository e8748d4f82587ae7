"""A conversation with a model that calls tools: what is asked, told, streamed, kept and counted."""

import pytest

from rehydrate.agents import ChatAgent, ChatModel, TextDelta, Usage, tool
from rehydrate.errors import (
    ExecutorDefinitionError,
    MissingResourceError,
    ModelCallError,
    ResourceTypeError,
    RunFailedError,
)
from rehydrate.model.events import Emitted
from rehydrate.testing import ModelFailure, ToolCall
from tests.agents.kit import Desk, quick, talk, told


def test_text_is_streamed_as_it_comes_and_counted():
    """Each piece is an event of its own with round and attempt; the whole is the output, and usage is in state."""
    agent = ChatAgent("clerk", "m", "Be kind.")

    async def scenario(call, model):
        stream = agent.workflow.run("hello", stream=True, **call)
        deltas = [event.data async for event in stream if isinstance(event, Emitted)]
        result = await stream.result()
        assert deltas == [TextDelta("clerk", 1, 1, "Good"), TextDelta("clerk", 1, 1, " day")]
        assert result.outputs == ["Good day"]
        assert Usage(1, 2, 2) + Usage(1, 1, 1) == Usage(2, 3, 3)
        usage = {name: value for name, value in result.checkpoint.state["usage"].items() if name != "$type"}
        assert usage == {"requests": 1, "input_tokens": 2, "output_tokens": 2}

    model = talk(["Good day"], scenario)
    (request,) = model.requests
    assert request["messages"] == [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hello"}]
    assert (request["model"], request["stream"]) == ("m", True)


def test_a_model_that_does_not_stream_gives_the_same():
    """The same conversation, state and usage; nothing is told on the way."""
    states = []
    for stream in (True, False):
        desk = Desk()
        agent = ChatAgent("clerk", quick(stream=stream), tools=desk.tools)

        async def scenario(call, model, agent=agent):
            result = await agent.workflow.run("hello", **call)
            states.append((result.outputs, result.checkpoint.state))

        model = talk(
            [[ToolCall("look_up", {"order": "o-7"}), ToolCall("pay", {"order": "o", "amount": 3})], "Fine."], scenario
        )
        assert ("stream" in model.requests[0]) == stream
    assert states[0] == states[1]
    assert states[0][0] == ["Fine."]


def test_the_next_message_continues_the_conversation():
    """A later call with another agent object sees all that was said; instructions are those of today."""

    async def scenario(call, model):
        first = await ChatAgent("clerk", "m", "Old rules.").workflow.run("one", **call)
        second = await ChatAgent("clerk", "m", "New rules.").workflow.run("two", checkpoint=first, **call)
        assert second.outputs == ["2nd"]
        assert second.checkpoint.state["conversation"] == [
            [{"role": "user", "content": "one"}, {"role": "assistant", "content": "1st"}],
            [{"role": "user", "content": "two"}, {"role": "assistant", "content": "2nd"}],
        ]

    model = talk(["1st", "2nd"], scenario)
    assert [message["content"] for message in model.requests[1]["messages"]] == ["New rules.", "one", "1st", "two"]


def test_a_window_shows_the_model_the_newest_turns_only():
    """All is kept; the model sees as many earlier turns as it is to."""
    agent = ChatAgent("clerk", quick(window=1))

    async def scenario(call, model):
        result = None
        for text in ("one", "two", "three"):
            result = await agent.workflow.run(text, checkpoint=result, **call)
        assert len(result.checkpoint.state["conversation"]) == 3

    model = talk(lambda request: f"re {request['messages'][-1]['content']}", scenario)
    assert [message["content"] for message in model.requests[2]["messages"]] == ["two", "re two", "three"]


def test_tools_run_side_by_side_and_are_told_in_the_order_of_the_calls():
    """Both calls of a round have run when the model is asked again, each result under the id of its call."""
    desk = Desk()
    agent = ChatAgent("clerk", "m", tools=desk.tools)
    calls = [ToolCall("look_up", {"order": "o-7"}), ToolCall("pay", {"order": "o-8", "amount": 5})]

    async def scenario(call, model):
        assert (await agent.workflow.run("both", **call)).outputs == ["Done."]

    model = talk([calls, "Done."], scenario)
    assert sorted(desk.log) == [("look_up", "o-7", "EUR"), ("pay", "o-8", 5)]
    assert [(message["tool_call_id"], message["content"]) for message in model.requests[1]["messages"][-2:]] == [
        ("call_0_0", "30"),
        ("call_0_1", "5 paid"),
    ]
    shown = model.requests[0]["tools"][0]["function"]
    assert (shown["name"], shown["description"]) == ("look_up", "Look up what an order cost.")
    assert shown["parameters"] == {
        "type": "object",
        "properties": {"order": {"type": "string"}, "currency": {"type": "string"}},
        "required": ["order"],
        "additionalProperties": False,
    }


WRONG = [
    (ToolCall("look_up", {"order": 7}), "error: the arguments of 'look_up' do not fit: Expected `str`, got `int`"),
    (ToolCall("look_up", '{"order": '), "error: the arguments of 'look_up' do not fit: "),
    (ToolCall("look_up", {}), "error: the arguments of 'look_up' do not fit: Object missing required field `order`"),
    (ToolCall("look_up", {"order": "a", "to": 1}), "error: the arguments of 'look_up' do not fit: "),
    (ToolCall("look_up", "[" * 100_000), "error: the arguments of 'look_up' do not fit: "),
    (ToolCall("loook_up", {"order": "a"}), "error: there is no tool 'loook_up'; there are: look_up, pay"),
    (ToolCall("look_up", {"order": "lost"}), "error: LookupError: no such order"),
]


def test_what_is_wrong_with_a_call_is_told_to_the_model():
    """Wrong arguments, unknown names and tools that raise are results that say so; the model goes on."""
    desk = Desk()
    agent = ChatAgent("clerk", "m", tools=desk.tools)

    async def scenario(call, model):
        assert (await agent.workflow.run("try", **call)).outputs == ["I see."]

    model = talk([[call for call, _ in WRONG], "I see."], scenario)
    assert [text[: len(said)] for text, (_, said) in zip(told(model), WRONG, strict=True)] == [
        said for _, said in WRONG
    ]
    assert desk.log == [("look_up", "lost", "EUR")]


def test_a_tool_that_is_to_fail_the_run_is_tried_again_by_a_resume():
    """The failure names it; the model is not asked again for the round that wanted it."""
    tries = []

    @tool(on_error="raise")
    async def send(text: str) -> str:
        tries.append(text)
        if len(tries) == 1:
            raise OSError("the line is dead")
        return "sent"

    agent = ChatAgent("clerk", "m", tools=[send])

    async def scenario(call, model):
        with pytest.raises(RunFailedError, match="the line is dead") as failed:
            await agent.workflow.run("go", **call)
        assert len(model.requests) == 1
        result = await agent.workflow.run(checkpoint=failed.value.result, **call)
        assert result.outputs == ["Sent it."]

    model = talk([ToolCall("send", {"text": "hi"}), "Sent it."], scenario)
    assert (tries, len(model.requests)) == (["hi", "hi"], 2)


def test_a_tool_without_its_resource_fails_the_run():
    """What no model can correct is not told to one."""

    @tool
    async def send(text: str) -> str:
        raise MissingResourceError(("mail",))

    agent = ChatAgent("clerk", "m", tools=[send])

    async def scenario(call, model):
        with pytest.raises(RunFailedError, match="mail"):
            await agent.workflow.run("go", **call)

    assert len(talk([ToolCall("send", {"text": "hi"})], scenario).requests) == 1


def test_a_model_that_is_not_done_fails_the_run_and_a_higher_limit_goes_on():
    """The error names agent and limit; what was asked before is not asked again."""
    desk = Desk()
    again = ToolCall("look_up", {"order": "o"})

    async def scenario(call, model):
        with pytest.raises(RunFailedError, match="agent 'clerk' has asked its model 2 times") as failed:
            await ChatAgent("clerk", "m", tools=desk.tools, max_rounds=2).workflow.run("go", **call)
        assert (len(model.requests), len(desk.log)) == (2, 2)
        more = ChatAgent("clerk", "m", tools=desk.tools, max_rounds=4).workflow
        assert (await more.run(checkpoint=failed.value.result, **call)).outputs == ["At last."]

    model = talk([again, again, again, "At last."], scenario)
    assert (len(model.requests), len(desk.log)) == (4, 3)


@pytest.mark.parametrize(
    ("client", "error"), [(None, MissingResourceError), ("openai", ResourceTypeError)], ids=["none", "a text"]
)
def test_a_client_that_is_none_is_refused_before_anything_runs(client, error):
    """The resource is declared, so a call without it, or with something else, has changed nothing."""
    agent = ChatAgent("clerk", "m")
    with pytest.raises(error, match="openai"):
        agent.workflow.run_sync("hello", resources={} if client is None else {"openai": client})


def test_a_client_that_blocks_is_named():
    """The synchronous client is a usual mistake."""

    class Blocking:
        class chat:  # noqa: N801  (as clients have it)
            class completions:  # noqa: N801
                @staticmethod
                def create(**request):
                    return object()

    with pytest.raises(RunFailedError, match="the client is not asynchronous"):
        ChatAgent("clerk", quick()).workflow.run_sync("hello", resources={"openai": Blocking})


def test_a_refused_request_is_not_made_again_and_shows_no_key():
    """A wrong key fails at once; what the provider says to it is not in the error."""
    agent = ChatAgent("clerk", quick())

    async def scenario(call, model):
        with pytest.raises(RunFailedError) as failed:
            await agent.workflow.run("hello", **call)
        assert "(HTTP 401): AuthenticationError." in str(failed.value)
        assert "of the script" not in str(failed.value)
        assert isinstance(failed.value.__cause__.__cause__, ModelCallError)

    assert len(talk([ModelFailure(401)], scenario).requests) == 1


def _without_annotation(order):
    return order


def _by_position(order: str, /):
    return order


def _of_a_class(order: Desk) -> str:
    return str(order)


def _of_python(__dict__: int, __order: int) -> str:
    return str(__order)


async def _slowly(order: str) -> str:
    return order


def _in_pieces(order: str):
    yield order


class _Prompt:
    async def __call__(self, order: str) -> str:
        return order


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: tool(_without_annotation), "parameter 'order' has no annotation"),
        (lambda: tool(_by_position), "parameter 'order' cannot be given by name"),
        (lambda: tool(_of_a_class), "its arguments cannot be shown to a model"),
        (lambda: tool(len), "is not a plain function"),
        (lambda: tool(_of_python), "parameter '__dict__' begins as names of Python's own do"),
        (lambda: ChatAgent("a", "m", tools=[_slowly]), "which is no tool. Put @tool on the function"),
        (lambda: ChatAgent("a", "m", tools=[*Desk().tools, *Desk().tools]), "two tools are called 'look_up'"),
        (lambda: ChatAgent("a", "m", max_rounds=0), "max_rounds is 0"),
        (lambda: ChatAgent("a", "m", response_type=list[int]), "models give objects"),
        (
            lambda: ChatAgent("a", "m", prompt=_without_annotation),
            "prompt function has no annotation",
        ),
        (lambda: ChatAgent("a", "m", prompt=_slowly), "is asynchronous.*belongs into an executor before"),
        (lambda: ChatAgent("a", "m", prompt=_in_pieces), "prompt function is asynchronous"),
        (lambda: ChatAgent("a", "m", prompt=_Prompt()), "prompt function is asynchronous"),
        (lambda: ChatAgent("a", "m", prompt="Be kind."), "its prompt is 'Be kind.', which is no function"),
        (lambda: ChatModel("m", parameters={"model": "n"}), "model 'm': parameters has 'model'.* ChatModel\\(name\\)"),
        (lambda: ChatModel("m", parameters={"messages": []}), "parameters has 'messages'.* instructions"),
        (lambda: ChatModel("m", parameters={"stream": False}), "parameters has 'stream'.* stream=False"),
        (lambda: ChatModel("m", parameters={"stream_options": {}}), "parameters has 'stream_options'"),
        (
            lambda: ChatAgent("a", quick(parameters={"tools": []}), tools=Desk().tools),
            "'tools' is said by the agent, and by the parameters",
        ),
    ],
)
def test_a_wrong_definition_is_refused_where_it_stands(make, says):
    """Each says what is wrong with the tool or the agent."""
    with pytest.raises(ExecutorDefinitionError, match=says):
        make()
