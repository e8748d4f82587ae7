"""A pydantic-ai agent in a workflow: its requests and tool calls are steps, and it is asked as it is."""

import asyncio
import subprocess
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, CallDeferred, FunctionToolset, ModelRetry, RunContext, ToolReturn
from pydantic_ai.capabilities import ProcessEventStream
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from rehydrate import InMemoryCheckpointStorage, RunFailedError, WorkflowBuilder, current_step, executor
from rehydrate.agents import TextDelta, ToolApproval
from rehydrate.agents.conversation import ToolQuestion
from rehydrate.agents.pydantic_ai import PydanticAgent, PydanticSettings
from rehydrate.errors import ExecutorDefinitionError, MissingExtraError, PolicyError
from rehydrate.model.events import AttemptFailed, Emitted
from rehydrate.testing import Fault, FaultyStorage, ModelFailure, ScriptedModel, ToolCall, assert_resumable
from tests.agents.kit import QUICK, client_of, told


class Verdict(BaseModel):
    text: str
    amount: int


@dataclass
class Shop:
    prices: dict[str, int]


def clerk(log):
    """An agent whose tools note their calls; its model and its shop are resources."""
    agent = Agent(None, name="clerk", output_type=Verdict, deps_type=Shop, instructions="Be kind.")

    @agent.tool
    async def look_up(ctx: RunContext[Shop], order: str) -> int:
        log.append(("look_up", order, len(current_step().effect_key)))
        if order not in ctx.deps.prices:
            raise ModelRetry("no such order")
        return ctx.deps.prices[order]

    @agent.tool_plain(requires_approval=True)
    def pay(order: str, amount: int) -> str:
        log.append(("pay", order, amount))
        return f"{amount} paid"

    return PydanticAgent(agent, settings=PydanticSettings(model="model", deps="shop", retry=QUICK))


@asynccontextmanager
async def resources(model):
    """A model of pydantic-ai with the real client, and a shop."""
    async with client_of(model) as client:
        asked = OpenAIChatModel("m", provider=OpenAIProvider(openai_client=client))
        yield {"model": asked, "shop": Shop({"o-7": 40})}


def talk(script, scenario):
    """Run `scenario(call, model)`, where `call` has the resources and a store in memory."""

    async def with_resources(model):
        async with resources(model) as found:
            await scenario({"resources": found, "checkpoint_storage": InMemoryCheckpointStorage()}, model)

    with ScriptedModel(script) as model:
        asyncio.run(with_resources(model))
    return model


VERDICT = ToolCall("final_result", {"text": "fine", "amount": 3})
SCRIPT = [
    [ToolCall("look_up", {"order": "o-7"}), ToolCall("look_up", {"order": "o-9"})],
    ToolCall("pay", {"order": "o-7", "amount": 40}),
    VERDICT,
    ToolCall("final_result", {"text": "again", "amount": 4}),
]


@executor(id="after")
async def after(verdict: Verdict) -> str:
    return f"{verdict.text} for {verdict.amount}"


def test_it_pauses_for_a_person_and_goes_on_where_it_was():
    """Nothing that was done or asked before the pause is done again; the next message continues the conversation."""
    log = []

    def office():
        agent = clerk(log)
        return WorkflowBuilder("office", agent).add_chain([agent, after]).build()

    async def scenario(call, model):
        paused = await office().run("refund", **call)
        (question,) = paused.pending_requests
        assert question.path == "clerk#1"
        assert question.data == ToolApproval("clerk", "pay", {"order": "o-7", "amount": 40})
        assert (log, len(model.requests)) == ([("look_up", "o-7", 32), ("look_up", "o-9", 32)], 2)
        done = await office().run(checkpoint=paused, responses=[question.answer(True)], **call)
        assert done.outputs == ["fine for 3"]
        assert (await office().run("next", checkpoint=done, **call)).outputs == ["again for 4"]

    model = talk(SCRIPT, scenario)
    assert log[2:] == [("pay", "o-7", 40)]
    assert len(model.requests) == 4
    assert [text.count("no such order") for text in told(model, 1)] == [0, 1]
    assert [message["content"] for message in model.requests[-1]["messages"] if message["role"] == "user"] == [
        "refund",
        "next",
    ]


def test_a_refused_call_is_told_to_the_model():
    """It is not made."""
    log = []

    async def scenario(call, model):
        paused = await clerk(log).workflow.run("refund", **call)
        answers = [paused.pending_requests[0].answer(False)]
        assert (await clerk(log).workflow.run(checkpoint=paused, responses=answers, **call)).output.text == "fine"

    model = talk([SCRIPT[1], VERDICT], scenario)
    assert (log, told(model)[0].count("A person has refused this call.")) == ([], 1)


def test_it_goes_on_from_every_checkpoint():
    """Each restart ends as the uninterrupted run, with the same conversation in state."""
    log = []

    async def scenario(model):
        async with resources(model) as found:
            driven = await assert_resumable(
                lambda: clerk(log).workflow, ["refund"], answers=lambda _: True, resources=found, keep=[log]
            )
            assert [output.text for output in driven.outputs] == ["fine"]
            assert driven.crashes > 8

    with ScriptedModel(SCRIPT) as model:
        asyncio.run(scenario(model))


def test_its_text_is_streamed_and_a_busy_model_is_asked_again():
    """The events are those of a chat agent; usage is counted."""
    plain = PydanticAgent(Agent(None, name="plain"), settings=PydanticSettings(model="model", retry=QUICK))

    async def scenario(call, model):
        stream = plain.workflow.run("hello", stream=True, **call)
        events = [event async for event in stream if isinstance(event, Emitted | AttemptFailed)]
        assert [event.data for event in events[1:]] == [
            TextDelta("plain", 1, 2, "Good"),
            TextDelta("plain", 1, 2, " day"),
        ]
        assert "(HTTP 503)" in events[0].failure.text
        result = await stream.result()
        assert result.outputs == ["Good day"]
        assert result.checkpoint.state["usage"]["output_tokens"] == 2

    assert len(talk([ModelFailure(503, "Good day")], scenario).requests) == 2


def test_a_turn_costs_what_it_says_and_instructions_are_those_of_today():
    """They are in no record, and a turn after many writes as many bytes as the second; a resumed run sends new ones."""
    written = []

    def note(commit):
        written.append(b"".join(put.data for put in commit.puts))
        return False

    def flow(rules):
        agent = Agent(None, name="plain", instructions=rules)

        @agent.tool_plain(requires_approval=True)
        def pay(order: str) -> str:
            return f"{order} paid"

        return PydanticAgent(agent, settings=PydanticSettings(model="model")).workflow

    async def scenario(call, model):
        call["checkpoint_storage"] = FaultyStorage(InMemoryCheckpointStorage(), Fault("fails", when=note))
        result, costs = None, []
        for _ in range(8):
            written.clear()
            result = await flow("Old rules." * 500).run("hello", checkpoint=result, **call)
            costs.append(sum(map(len, written)))
            assert not any(b"Old rules" in data for data in written)
        assert max(costs[2:]) < 1.1 * costs[1]
        assert max(costs) < 5000
        paused = await flow("Old rules.").run("pay", checkpoint=result, **call)
        answers = [paused.pending_requests[0].answer(True)]
        assert (await flow("New rules.").run(checkpoint=paused, responses=answers, **call)).outputs == ["Paid."]

    model = talk([*["hi"] * 8, ToolCall("pay", {"order": "o-7"}), "Paid."], scenario)
    sent = [[(said["role"], said["content"]) for said in request["messages"]] for request in model.requests]
    assert [said[0] for said in sent[:2]] == [("system", "Old rules." * 500)] * 2
    assert sent[1][1:] == [("user", "hello"), ("assistant", "hi"), ("user", "hello")]
    assert sent[-1][0] == ("system", "New rules.")
    assert [role for role, _ in sent[-1]].count("system") == 1
    assert sent[-1][-3:] == [("user", "pay"), ("assistant", None), ("tool", "o-7 paid")]


def test_a_tool_may_leave_its_work_to_the_outside_and_may_return_more_than_a_value():
    """What is deferred is a question, whose answer is the result; a `ToolReturn` keeps its parts."""
    agent = Agent(None, name="plain")

    @agent.tool_plain
    def ask_bank(account: str) -> str:
        raise CallDeferred

    @agent.tool_plain
    def look() -> ToolReturn:
        return ToolReturn(return_value={"seen": 1}, content="What I saw.")

    node = PydanticAgent(agent, settings=PydanticSettings(model="model"))

    async def scenario(call, model):
        paused = await node.workflow.run("hello", **call)
        (question,) = paused.pending_requests
        assert question.data == ToolQuestion("plain", "ask_bank", {"account": "a"})
        done = await node.workflow.run(checkpoint=paused, responses=[question.answer("it is open")], **call)
        assert done.outputs == ["Thanks."]

    model = talk([[ToolCall("ask_bank", {"account": "a"}), ToolCall("look", {})], "Thanks."], scenario)
    assert sorted(told(model)) == ["it is open", '{"seen":1}']
    assert "What I saw." in [message["content"] for message in model.requests[1]["messages"]]


def test_halves_of_a_character_are_whole_or_replaced():
    """In the message, in what the model says and in what a tool returns, as in a chat agent."""
    agent = Agent(None, name="plain")

    @agent.tool_plain
    def look() -> list[str]:
        return ["\ud83d"]

    node = PydanticAgent(agent, settings=PydanticSettings(model="model"))

    async def scenario(call, model):
        assert (await node.workflow.run("go \udc80", **call)).outputs == ["\U0001f600 \ufffd"]

    model = talk([ToolCall("look", {}), "\ud83d\ude00 \ud83d"], scenario)
    assert told(model) == ['["\ufffd"]']
    assert model.requests[0]["messages"] == [{"role": "user", "content": "go \ufffd"}]


def test_a_tool_that_raises_fails_the_run_and_a_resume_tries_it_again():
    """As in pydantic-ai itself it is no matter of the model's; earlier rounds are kept."""
    agent, tries = Agent(None, name="plain"), []

    @agent.tool_plain
    def send() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise OSError("the line is dead")
        return "sent"

    node = PydanticAgent(agent, settings=PydanticSettings(model="model"))

    async def scenario(call, model):
        with pytest.raises(RunFailedError, match="the line is dead") as failed:
            await node.workflow.run("hello", **call)
        assert (await node.workflow.run(checkpoint=failed.value.result, **call)).outputs == ["Sent it."]

    assert len(talk([ToolCall("send", {}), "Sent it."], scenario).requests) == 2
    assert len(tries) == 2


def test_a_wrong_definition_is_refused():
    """An agent needs a name, and a type of its output that is known."""
    with pytest.raises(ExecutorDefinitionError, match="the agent has no name"):
        PydanticAgent(Agent(None))
    with pytest.raises(PolicyError, match=r"PydanticSettings\(window=-1\)"):
        PydanticSettings(window=-1)
    with pytest.raises(ExecutorDefinitionError, match="output_type is no class"):
        PydanticAgent(Agent(None, name="a", output_type=[int, str]))

    async def slowly(order: str) -> str:
        return order

    with pytest.raises(ExecutorDefinitionError, match="prompt function is asynchronous"):
        PydanticAgent(Agent(None, name="a"), prompt=slowly)


def test_a_policy_of_a_tool_that_is_not_there_is_refused():
    """Where all tools are functions; of a toolset that is asked only when the agent runs nobody can tell."""
    settings = PydanticSettings(tools={"look": QUICK, "lok": QUICK})

    def look() -> str:
        return "seen"

    agent = Agent(None, name="a", tools=[look])
    with pytest.raises(ExecutorDefinitionError, match=r"has 'lok', and the agent no such tool.* by now: look\."):
        PydanticAgent(agent, settings=settings)
    PydanticAgent(agent, settings=PydanticSettings(tools={"look": QUICK}))
    filtered = FunctionToolset([look]).filtered(lambda *_: True)
    PydanticAgent(Agent(None, name="a", toolsets=[filtered]), settings=settings)


def test_a_capability_that_streams_the_answers_past_the_steps_is_refused():
    """The model is not asked: nothing would remember what it gave."""

    async def watch(ctx, events):
        async for _ in events:
            pass

    agent = Agent(None, name="plain", capabilities=[ProcessEventStream(watch)])
    node = PydanticAgent(agent, settings=PydanticSettings(model="model"))

    async def scenario(call, model):
        with pytest.raises(RunFailedError, match="no step would remember"):
            await node.workflow.run("hello", **call)

    assert talk(["hello"], scenario).requests == []


def test_without_the_library_an_error_names_the_extra(monkeypatch):
    """It says what to install; chat agents work without it."""
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    monkeypatch.delitem(sys.modules, "rehydrate.agents.pydantic_ai")
    with pytest.raises(MissingExtraError, match=r"pip install 'rehydrate\[pydantic-ai\]'"):
        import rehydrate.agents.pydantic_ai  # noqa: F401, PLC0415


def test_chat_agents_load_no_client():
    """Neither a client nor pydantic-ai is imported with them."""
    shown = "import sys, rehydrate.agents; print(*({'openai', 'pydantic_ai', 'httpx', 'httpx2'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", shown], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []
