"""Models and clients that give what they should not: it ends in words for the model or in an error, never in a
conversation that no provider takes, and the provider's words about a key are in no record."""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace as Given
from typing import Any

import pytest

from rehydrate import InMemoryCheckpointStorage, RunFailedError, SqliteCheckpointStorage
from rehydrate.agents import ChatAgent, ChatModel, tool
from rehydrate.agents.model import RETRY
from rehydrate.errors import InvocationTimeoutError, PolicyError
from tests.agents.kit import KEY, quick


class Client:
    """Gives these answers, or raises them; a request has to be text that can be sent."""

    def __init__(self, *gives):
        self.chat = self.completions = self
        self.gives = list(gives)
        self.requests = []

    async def create(self, **request):
        json.dumps(request["messages"], ensure_ascii=False).encode()
        self.requests.append(request)
        given = self.gives.pop(0)
        if isinstance(given, BaseException):
            raise given
        return given


def whole(content=None, *calls, reason="stop"):
    message = Given(content=content, tool_calls=[Given(id=i, function=Given(**function)) for i, function in calls])
    return Given(choices=[Given(index=0, message=message, finish_reason=reason)], usage=None)


def calls_of(name, arguments, *ids):
    return whole(None, *[(i, {"name": name, "arguments": arguments}) for i in ids])


@dataclass(frozen=True)
class Order:
    number: int

    def __post_init__(self):
        if self.number == 13:
            raise LookupError("there is no such order")


@dataclass(frozen=True)
class Noted:
    data: Any


@tool
async def look_up(order: Order) -> str:
    """Look an order up."""
    return f"\udc80{order.number}"


@tool
async def where_is(order: Order) -> Path:
    """Say where an order is kept."""
    return Path(f"/orders/{order.number}")


def ask(*gives, **options):
    """Ask an agent once whose model gives this; return the output and the requests."""
    client = Client(*gives)
    agent = ChatAgent("clerk", quick(stream=False, **options), tools=[look_up, where_is])
    return agent.workflow.run_sync("go", resources={"openai": client}).output, client.requests


@pytest.mark.parametrize("status", [401, 403])
def test_what_a_provider_says_to_a_key_is_in_no_record(tmp_path, status):
    """Neither in the error nor in the trace of its causes, which is stored with a failure."""

    class RefusedError(Exception):
        status_code = status

    async def scenario():
        async with SqliteCheckpointStorage(tmp_path / "runs.db") as store:
            call = {"resources": {"openai": Client(RefusedError(f"wrong key: {KEY}"))}, "checkpoint_storage": store}
            with pytest.raises(RunFailedError, match="RefusedError"):
                await ChatAgent("clerk", quick()).workflow.run("hello", **call)

    asyncio.run(scenario())
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"RefusedError" in stored
    assert KEY.encode() not in stored


def test_calls_under_one_id_get_ids_of_their_own():
    """Each result has the id of its call, as the next request has to have it."""
    output, requests = ask(calls_of("look_up", '{"order": {"number": 7}}', "a", "a", None, "a_1", 5), whole("done"))
    said, *results = requests[1]["messages"][1:]
    ids = [call["id"] for call in said["tool_calls"]]
    assert (output, ids) == ("done", ["a", "a_1", "call_1_2", "a_1_3", "5"])
    assert [result["tool_call_id"] for result in results] == ids


def test_characters_that_came_apart_are_one_again_and_others_are_replaced():
    """What UTF-8 cannot say is in no message, so no later request fails by it: text, arguments and results."""
    assert ask(whole("\ud83d\ude00 \ud83d"))[0] == "\U0001f600 \ufffd"
    broken = calls_of("look_up", '{"order": "\ud83d"}', "a")
    _, requests = ask(broken, calls_of("look_up", '{"order": {"number": 7}}', "b"), whole("done"))
    assert requests[2]["messages"][-1]["content"] == "\ufffd7"


def test_what_the_check_of_a_type_raises_is_told_to_the_model():
    """Whatever it is."""
    _, requests = ask(calls_of("look_up", '{"order": {"number": 13}}', "a"), whole("done"))
    told = requests[1]["messages"][-1]["content"]
    assert told == "error: the arguments of 'look_up' do not fit: LookupError: there is no such order"


@tool(approve=True)
async def note_down(data: Any) -> str:
    """Note something down."""
    return "noted"


@pytest.mark.parametrize("levels", [101, 300, 100_000])
def test_what_is_nested_too_deep_to_be_kept_is_told_to_the_model(levels):
    """The reply is recorded already, so a run that failed by it could never go on: call, question or answer."""
    deep = f'{{"data": {"[" * levels}{"]" * levels}}}'
    client = Client(calls_of("note_down", deep, "a"), whole(deep), whole('{"data": 1}'))
    agent = ChatAgent("clerk", quick(stream=False), tools=[note_down], response_type=Noted)
    assert agent.workflow.run_sync("go", resources={"openai": client}).output == Noted(1)
    told = [message["content"] for message in client.requests[-1]["messages"] if message["role"] != "assistant"]
    assert told[1:] == [
        "error: the arguments of 'note_down' do not fit: it is nested too deep",
        "error: your answer does not fit its JSON schema: it is nested too deep",
    ]


def test_what_may_be_that_deep_can_be_asked_and_kept():
    """At the limit itself the question and the call are as others."""
    deep = f'{{"data": {"[" * 99}{"]" * 99}}}'
    client = Client(calls_of("note_down", deep, "a"), whole("done"))
    agent = ChatAgent("clerk", quick(stream=False), tools=[note_down])

    async def scenario():
        call = {"resources": {"openai": client}, "checkpoint_storage": InMemoryCheckpointStorage()}
        paused = await agent.workflow.run("go", **call)
        answers = [paused.pending_requests[0].answer(True)]
        assert (await agent.workflow.run(checkpoint=paused, responses=answers, **call)).output == "done"

    asyncio.run(scenario())


def test_a_result_that_cannot_be_told_names_the_tool():
    """The error is one of the library, with what to do."""
    with pytest.raises(RunFailedError, match="tool 'where_is': its result cannot be told to a model: a PosixPath"):
        ask(calls_of("where_is", '{"order": {"number": 7}}', "a"))


@pytest.mark.parametrize("given", [whole(["a part"]), calls_of("look_up", {"order": {}}, "a")], ids=["text", "call"])
def test_an_answer_of_another_form_is_not_a_refused_request(given):
    """It was the answer that was wrong."""
    with pytest.raises(RunFailedError, match="cannot be used: it has not the form of the protocol"):
        ask(given)


@pytest.mark.parametrize("close", ["close", "aclose"])
def test_a_stream_that_is_left_in_the_middle_is_closed(close):
    """Its connection is not kept for as long as somebody keeps the error."""
    closed = []

    class Stream:
        async def __aiter__(self):
            yield Given(choices=[Given(index=0, delta=Given(content=["a part"]), finish_reason=None)])

    async def note(self):
        closed.append(close)

    setattr(Stream, close, note)
    with pytest.raises(RunFailedError, match="cannot be used: it has not the form of the protocol"):
        ChatAgent("clerk", quick()).workflow.run_sync("go", resources={"openai": Client(Stream())})
    assert closed == [close]


def test_an_answer_that_ends_by_an_error_is_asked_for_again():
    """Gateways end so what broke off; half an answer is not taken for a whole one."""
    assert ask(whole("Ha", reason="error"), whole("Half"))[0] == "Half"


def test_an_attempt_that_took_too_long_is_followed_by_another():
    """By the policy that a model has if none is given."""
    assert RETRY.covers(InvocationTimeoutError("clerk", 1.0, "model"))


def test_headers_of_the_parameters_are_sent():
    """Beside the one that the agent sends."""
    _, (request,) = ask(whole("done"), parameters={"extra_headers": {"X-Title": "desk"}})
    assert set(request["extra_headers"]) == {"X-Title", "Idempotency-Key"}


def test_a_window_of_no_turns_shows_none():
    """All is kept nevertheless."""

    async def scenario():
        store, result = InMemoryCheckpointStorage(), None
        for text in ("one", "two"):
            client = Client(whole("fine"))
            call = {"resources": {"openai": client}, "checkpoint_storage": store, "checkpoint": result}
            result = await ChatAgent("clerk", quick(stream=False, window=0)).workflow.run(text, **call)
        assert [message["content"] for message in client.requests[0]["messages"]] == ["two"]
        assert len(result.checkpoint.state["conversation"]) == 2

    asyncio.run(scenario())
    for wrong in (-1, True, 1.5):
        with pytest.raises(PolicyError, match="window="):
            ChatModel("m", window=wrong)
