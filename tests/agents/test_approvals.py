"""Tools that a person has to agree to, in an agent that is nested in a graph."""

import pytest

from rehydrate import WorkflowBuilder, WorkflowExecutor, executor
from rehydrate.agents import ChatAgent, ToolApproval, tool
from rehydrate.errors import ExecutorDefinitionError
from rehydrate.testing import ToolCall
from tests.agents.kit import Desk, talk, told

CALLS = [ToolCall("pay", {"order": "o-7", "amount": 300}), ToolCall("look_up", {"order": "o-7"})]


@executor(id="print")
async def printed(text: str) -> str:
    return text.upper()


def office(desk):
    """An agent two levels down, whose answer is printed at the root."""
    clerk = ChatAgent("clerk", "m", tools=desk.tools)
    counter = WorkflowBuilder("counter", clerk).build()
    node = WorkflowExecutor(counter, id="counter")
    return WorkflowBuilder("office", node).add_chain([node, printed]).build()


@pytest.mark.parametrize(
    ("answer", "log", "result"),
    [
        (True, [("look_up", "o-7", "EUR"), ("pay", "o-7", 300)], "300 paid"),
        (False, [("look_up", "o-7", "EUR")], "error: a person has refused this call of 'pay'; it was not made"),
    ],
)
def test_a_person_is_asked_before_the_call_is_made(answer, log, result):
    """The other call of the round is done meanwhile, and the model waits for both; one call answers and goes on."""
    desk = Desk(approve=True)

    async def scenario(call, model):
        paused = await office(desk).run("refund o-7", **call)
        (question,) = paused.pending_requests
        assert question.path == "counter#1/clerk#1"
        assert question.data == ToolApproval("clerk", "pay", {"order": "o-7", "amount": 300})
        assert (desk.log, len(model.requests)) == ([("look_up", "o-7", "EUR")], 1)
        done = await office(desk).run(checkpoint=paused, responses=[question.answer(answer)], **call)
        assert done.outputs == ["SO BE IT."]

    model = talk([CALLS, "So be it."], scenario)
    assert desk.log == log
    assert told(model) == [result, "30"]
    assert len(model.requests) == 2


def test_a_function_of_the_arguments_says_whether_a_person_is_asked():
    """Small amounts are paid at once, large ones are a question."""
    desk = Desk(approve=lambda order, amount: amount > 100)

    async def scenario(call, model):
        paused = await office(desk).run("refund both", **call)
        assert [question.data.arguments["amount"] for question in paused.pending_requests] == [300]

    talk([[*CALLS, ToolCall("pay", {"order": "o-8", "amount": 20})]], scenario)
    assert ("pay", "o-8", 20) in desk.log
    assert ("pay", "o-7", 300) not in desk.log


def test_it_may_take_some_of_the_arguments_and_gets_the_defaults_of_the_tool():
    """What the model leaves out is there nevertheless; a function with `**` gets all."""
    asked = []

    def notes(**arguments):
        asked.append(arguments)
        return False

    @tool(approve=lambda express: express)
    async def send(order: str, express: bool = True) -> str:
        """Send it."""
        return "sent"

    @tool(approve=notes)
    async def keep(order: str, days: int = 3) -> str:
        """Keep it."""
        return "kept"

    agent = ChatAgent("clerk", "m", tools=[send, keep])

    async def scenario(call, model):
        paused = await agent.workflow.run("go", **call)
        assert [question.data.arguments for question in paused.pending_requests] == [{"order": "a"}]

    calls = [ToolCall("send", {"order": "a"}), ToolCall("send", {"order": "b", "express": False})]
    talk([[*calls, ToolCall("keep", {"order": "c"})]], scenario)
    assert asked == [{"order": "c", "days": 3}]


async def _slowly(order, amount):
    return False


class _Policy:
    async def __call__(self, amount):
        return False


@pytest.mark.parametrize(
    ("approve", "says"),
    [
        (_slowly, "its `approve` is asynchronous.* Write a plain `def`"),
        (_Policy(), "its `approve` is asynchronous"),
        (lambda amount, note: True, "takes 'note', which the tool does not.* parameters: order, amount"),
        (lambda amount, limit=100: amount > limit, "takes 'limit', which the tool does not"),
        (lambda amount, /: True, "takes 'amount' by position only"),
        (lambda *arguments: True, "takes 'arguments' by position only"),
        (bool, "does not say what it takes"),
        ("always", "its `approve` is 'always'.* Say True, False"),
    ],
)
def test_a_function_that_cannot_say_it_is_refused_where_the_tool_is_made(approve, says):
    """The error names the tool and what to do; a call is too late for it."""
    with pytest.raises(ExecutorDefinitionError, match=f"tool 'pay': .*{says}"):
        Desk(approve=approve)


def test_a_message_while_a_call_waits_for_a_person_is_a_turn_of_its_own():
    """It is answered; the conversation has each turn whole, in the order in which they ended."""
    desk = Desk(approve=True)

    def script(request):
        said = [message["content"] for message in request["messages"] if message["role"] != "assistant"]
        return CALLS[0] if said[-1] == "refund" else f"re {said[-1]}"

    agent = ChatAgent("clerk", "m", tools=desk.tools)

    async def scenario(call, model):
        paused = await agent.workflow.run("refund", **call)
        between = await agent.workflow.run("hurry up", checkpoint=paused, on_pending="keep", **call)
        assert between.outputs == ["re hurry up"]
        (question,) = between.pending_requests
        done = await agent.workflow.run(checkpoint=between, responses=[question.answer(True)], **call)
        assert done.outputs == ["re 300 paid"]
        turns = done.checkpoint.state["conversation"]
        assert [[message["role"] for message in turn] for turn in turns] == [
            ["user", "assistant"],
            ["user", "assistant", "tool", "assistant"],
        ]

    talk(script, scenario)
