"""Answers that end in the middle, or are none, and what is asked again, by agents of both kinds."""

import pytest
from pydantic_ai import Agent
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from rehydrate import Retry, RunFailedError
from rehydrate.agents import ChatAgent, ChatModel
from rehydrate.agents.pydantic_ai import PydanticAgent, PydanticSettings
from rehydrate.errors import ModelCallError, ModelReplyError, ModelUnavailableError, StepFailedError
from rehydrate.testing import ModelFailure
from tests.agents.kit import HTML, QUICK, RawModel, quick, streamed, talk, whole

#: Whether pydantic-ai lets it be seen that an answer in one piece has no finish reason; older ones say "stop" there.
TELLS_NO_REASON = hasattr(OpenAIChatModel, "_missing_finish_reason")
END = ({}, "stop")
HALF = ({"content": "half"}, None)
GOOD = streamed(({"content": "good"}, None), END, rest=b"data: [DONE]\n\n")


def chat(call, stream, retry=QUICK):
    """A chat agent, and what a call of it needs."""
    return ChatAgent("clerk", ChatModel("scripted", stream=stream, retry=retry)).workflow, call


def pydantic(call, stream, retry=QUICK):
    """An agent of pydantic-ai with the same client."""
    model = OpenAIChatModel("scripted", provider=OpenAIProvider(openai_client=call["resources"]["openai"]))
    settings = PydanticSettings(model="model", retry=retry, stream=stream)
    node = PydanticAgent(Agent(None, name="clerk"), settings=settings)
    return node.workflow, {**call, "resources": {"model": model}}


def outcome(make, model, stream=True, client=None, **options):
    """What an agent gives, or the error by which its model's step has failed."""
    found = []

    async def scenario(call, _):
        flow, whole_call = make(call, stream, **options)
        try:
            found.append((await flow.run("hello", **whole_call)).output)
        except RunFailedError as error:
            step = error.__cause__
            assert isinstance(step, StepFailedError)
            found.append(step.__cause__)

    talk(model, scenario, **client or {})
    return found[0]


@pytest.mark.parametrize("make", [chat, pydantic])
@pytest.mark.parametrize(
    "first",
    [
        streamed(HALF),
        streamed(HALF, rest=b'data: {"id": "x", "cho'),
        streamed(HALF, rest=b'data: {"id": "x", "cho\n\n'),
        streamed(HALF, rest='data: {"id": "\u00e9'.encode()[:-1]),
        streamed(HALF, ({}, "error")),
        HTML,
    ],
    ids=["end", "line", "event", "character", "error", "html"],
)
def test_a_stream_that_breaks_off_is_asked_for_again(make, first):
    """Wherever it is cut: between two events, in a line, in JSON or in a character; and a page that is no answer."""
    model = RawModel(first, GOOD)
    assert (outcome(make, model), len(model.requests)) == ("good", 2)


@pytest.mark.parametrize("make", [chat, pydantic])
@pytest.mark.parametrize(
    "first",
    [
        (whole("whole")[0], whole("whole")[1][:60]),
        ("application/json", b""),
        ("application/json", b'{"error": {"message": "overloaded"}}'),
        HTML,
        pytest.param(
            whole("half", None), marks=pytest.mark.skipif(not TELLS_NO_REASON, reason="an older pydantic-ai hides it")
        ),
    ],
    ids=["cut", "empty", "error", "html", "null"],
)
def test_an_answer_in_one_piece_that_is_none_is_asked_for_again(make, first):
    """A client reports some by errors of its decoder."""
    model = RawModel(first, whole("good"))
    assert (outcome(make, model, stream=False), len(model.requests)) == ("good", 2)


def test_an_answer_that_a_strict_client_refuses_to_read_is_asked_for_again():
    """Its error has a status, 200, by which nobody has refused the request."""
    model = RawModel(HTML, whole("good"))
    assert outcome(chat, model, stream=False, client={"_strict_response_validation": True}) == "good"


@pytest.mark.parametrize("make", [chat, pydantic])
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("given", "says"),
    [
        (ModelFailure(then="Too lo", finish_reason="length"), "cut off at the limit of its length"),
        (ModelFailure(then="A se", finish_reason="content_filter"), "its provider has filtered it"),
    ],
    ids=["length", "filter"],
)
def test_an_answer_that_is_cut_off_at_its_end_fails_the_run(make, stream, given, says):
    """The next one would end like it, so it is asked once."""
    error = outcome(make, [given], stream)
    assert isinstance(error, ModelReplyError)
    assert says in str(error)


#: Policies that say how often, and of which the last says after what, too.
OFTEN = Retry(attempts=3, delay=0.0)
AFTER_ALL = Retry(attempts=3, delay=0.0, on=(Exception,))


@pytest.mark.parametrize("make", [chat, pydantic])
@pytest.mark.parametrize(
    ("given", "retry", "requests"),
    [
        (ModelFailure(401, times=9), OFTEN, 1),
        (ModelFailure(then="Too lo", finish_reason="length"), OFTEN, 1),
        (ModelFailure(503, times=9), OFTEN, 3),
        (ModelFailure(401, times=9), AFTER_ALL, 3),
        (ModelFailure(then="Too lo", finish_reason="length"), AFTER_ALL, 3),
    ],
    ids=["key", "length", "busy", "key-on", "length-on"],
)
def test_a_policy_that_says_how_often_repeats_only_what_may_succeed_later(make, given, retry, requests):
    """What cannot is repeated where the policy says so: `on=`."""
    asked = []

    def script(request):
        asked.append(request)
        return given

    assert isinstance(outcome(make, script, retry=retry), ModelCallError | ModelReplyError)
    assert len(asked) == requests


@pytest.mark.parametrize("make", [chat, pydantic])
def test_a_refusal_is_told_with_its_words(make):
    """It is no text of the answer."""
    error = outcome(make, RawModel(streamed(({"refusal": "I will not"}, None), END)))
    assert isinstance(error, ModelReplyError)
    assert "the model refuses: I will not" in str(error)


def test_a_stream_that_breaks_off_each_time_fails_the_run():
    """After the attempts of its policy, by an error that names what happened."""
    model = RawModel(*[streamed(HALF)] * 3)
    error = outcome(pydantic, model)
    assert isinstance(error, ModelUnavailableError)
    assert "could not answer: its answer broke off" in str(error)
    assert len(model.requests) == 3


def test_a_model_that_falls_back_on_others_is_judged_by_all_of_them():
    """Half an answer of the second is none either; what all have raised is tried again where one may pass."""

    def falling_back(call, stream):
        flow, given = pydantic(call, stream)
        model = given["resources"]["model"]
        return flow, {**given, "resources": {"model": FallbackModel(model, model)}}

    assert outcome(falling_back, RawModel(streamed(HALF), GOOD)) == "good"
    assert outcome(falling_back, [ModelFailure(503, "good", times=2)]) == "good"
    refused = outcome(falling_back, [ModelFailure(401, times=2)])
    assert type(refused) is ModelCallError
    assert str(refused).startswith("model 'fallback:scripted,scripted' could not be asked: FallbackExceptionGroup.")
    assert refused.__cause__ is None


def test_a_model_in_this_process_need_not_say_why_it_ends():
    """A function that stands in for a model gives no reasons."""

    async def give(messages, info):
        yield "good"

    def functional(call, stream):
        flow, given = pydantic(call, stream)
        return flow, {**given, "resources": {"model": FunctionModel(stream_function=give)}}

    assert outcome(functional, []) == "good"


def test_only_a_model_that_has_refused_is_said_to_have_refused():
    """A request that cannot be sent has never reached one."""

    def unsendable(call, stream):
        return ChatAgent("clerk", quick(stream=stream, parameters={"temperature": object()})).workflow, call

    error = outcome(unsendable, ["hello"])
    assert type(error) is ModelCallError
    assert str(error).startswith("model 'scripted' could not be asked: TypeError: ")
