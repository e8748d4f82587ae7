"""A chat model with tools as a node of a workflow, or as a workflow of its own.

A turn of the conversation is a pass of a functional workflow: each round of the model and each tool call is a step, and
what was said becomes state when the turn is over. It must not know how a client works.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, cast

from rehydrate.api.functional import FunctionalWorkflow
from rehydrate.errors import RoundLimitError
from rehydrate.graph.functional_context import FunctionalContext
from rehydrate.graph.hints import Hint, describe
from rehydrate.graph.step import AnyValue
from rehydrate.graph.sub_workflow import WorkflowExecutor

from .conversation import ChatMessage, Usage, earlier_messages, user_message
from .model import Asker, ChatClient, ChatModel
from .schemas import SchemaError, parsed, schema_of
from .tools import AnyTool, Toolbox
from .turns import keep, message_type, turn_workflow, wrong_agent

#: What a prompt function gives: text, or parts of a message in the form of the protocol (text and pictures).
Content: TypeAlias = str | list[ChatMessage]


class ChatAgent(WorkflowExecutor):
    """An executor that leads a conversation with a chat model, and does what the model asks of its tools.

    It takes a text, or what the annotated parameter of `prompt` names, and gives the model's last text, or a value of
    `response_type`. All messages that it gets in its scope are one conversation. `model` is a name or a `ChatModel`,
    whose client is a resource; `instructions` are today's and not stored. A model that is not done after `max_rounds`
    rounds fails the run with `RoundLimitError`. `workflow` is the agent as a workflow of its own. Raises
    `ExecutorDefinitionError` and `IdError`.
    """

    def __init__(
        self,
        id: str,
        model: str | ChatModel,
        instructions: str = "",
        *,
        tools: Sequence[AnyTool] = (),
        prompt: Callable[[AnyValue], Content] | None = None,
        response_type: Hint = str,
        max_rounds: int = 20,
    ) -> None:
        if type(max_rounds) is not int or max_rounds < 1:
            raise wrong_agent(id, f"max_rounds is {max_rounds!r:.100}", "Use a whole number from 1 on.")
        self.chat_model = model if isinstance(model, ChatModel) else ChatModel(model)
        toolbox = Toolbox(id, tools)
        fixed = _fixed_parts(id, toolbox, response_type)
        for key in fixed.keys() & self.chat_model.parameters.keys():
            problem = f"{key!r} is said by the agent, and by the parameters of its model too"
            raise wrong_agent(id, problem, "Take it out of the parameters.")
        asker = Asker(id, self.chat_model, instructions, fixed)
        turn = _Turn(id, asker, toolbox, prompt, response_type, max_rounds)
        super().__init__(turn.workflow(message_type(id, prompt)), id, isolation="shared")


class _Turn:
    """What an agent does with one message."""

    def __init__(
        self,
        agent: str,
        asker: Asker,
        tools: Toolbox,
        prompt: Callable[[AnyValue], Content] | None,
        response_type: Hint,
        max_rounds: int,
    ) -> None:
        self._agent = agent
        self._asker = asker
        self._tools = tools
        self._prompt = prompt
        self._response_type = response_type
        self._max_rounds = max_rounds

    def workflow(self, message: Hint) -> FunctionalWorkflow[AnyValue, AnyValue]:
        """Return it as a workflow."""
        resources: dict[str, type] = {self._asker.model.client: ChatClient}
        return turn_workflow(self._agent, self.run, message, self._response_type, resources)

    async def run(self, message: AnyValue, ctx: FunctionalContext) -> AnyValue:
        """Lead the conversation until the model is done, and keep what was said."""
        earlier: list[ChatMessage] = earlier_messages(ctx.state, self._asker.model.window)
        said = [user_message(message if self._prompt is None else self._prompt(message))]
        usage = Usage()
        for number in range(1, self._max_rounds + 1):
            reply = await self._asker.ask(number, [*earlier, *said])
            said.append(reply.message)
            usage += reply.usage
            calls = cast("list[ChatMessage]", reply.message.get("tool_calls", []))
            if calls:
                said += await ctx.gather(*[self._tools.run(call, ctx) for call in calls])
                continue
            try:
                value = self._value(cast("str", reply.message["content"]))
            except SchemaError as error:
                said.append(user_message(f"error: your answer does not fit its JSON schema: {error}"))
                continue
            keep(ctx.state, said, usage)
            return value
        raise RoundLimitError(self._agent, self._max_rounds)

    def _value(self, text: str) -> AnyValue:
        return text if self._response_type is str else parsed(text, self._response_type)


#: The name under which a response's schema is sent; providers ask for one.
_RESPONSE: Final = "response"


def _fixed_parts(agent: str, tools: Toolbox, response: Hint) -> dict[str, object]:
    """Return what each request says beside its messages."""
    schemas = tools.schemas
    fixed: dict[str, object] = {"tools": schemas} if schemas else {}
    if response is not str:
        fixed["response_format"] = _response_format(agent, response)
    return fixed


def _response_format(agent: str, hint: Hint) -> ChatMessage:
    try:
        schema = schema_of(hint)
    except SchemaError as error:
        raise wrong_agent(agent, f"its response cannot be shown to a model: {error}", "Use another type.") from error
    if schema.get("type") != "object":
        problem = f"its response is a {describe(hint)}, and models give objects"
        raise wrong_agent(agent, problem, "Put it into a field of a dataclass.")
    return {"type": "json_schema", "json_schema": {"name": _RESPONSE, "schema": schema}}
