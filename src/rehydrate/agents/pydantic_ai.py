"""A pydantic-ai agent as a node of a workflow, or as a workflow of its own.

The agent runs in a functional workflow as it is; only its model and its tools are wrapped, so that each request and
each tool call is a step. It needs the extra `pydantic-ai`, and must not reach into that library's private parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from rehydrate.api.functional import FunctionalWorkflow
from rehydrate.errors import MissingExtraError
from rehydrate.graph.functional_context import FunctionalContext
from rehydrate.graph.hints import Hint
from rehydrate.graph.policies import Retry
from rehydrate.graph.step import AnyValue
from rehydrate.graph.sub_workflow import WorkflowExecutor

from .conversation import ToolApproval, ToolQuestion, check_window, earlier_messages, sendable
from .model import RETRY
from .turns import keep, message_type, turn_workflow, wrong_agent

try:
    from pydantic_ai import Agent, FunctionToolset, UsageLimits

    from .pydantic_messages import messages_of, plain_messages, usage_of
    from .pydantic_steps import ModelAsSteps, StepsOfTurn
except ImportError as error:
    raise MissingExtraError("rehydrate.agents.pydantic_ai", "pydantic-ai") from error

#: An agent with dependencies and an output of which only the user's code knows the types.
AnyAgent: TypeAlias = Agent[AnyValue, AnyValue]


@dataclass(frozen=True)
class PydanticSettings:
    """How a pydantic-ai agent is run; configuration of today, of which nothing is stored.

    `model` and `deps` are keys of the resources that are its model and its dependencies; without them it has its own
    model, and none. `retry` and `timeout` (seconds of an attempt) are of requests to the model, as those of a
    `ChatModel`; `tools` has the policies of tools by name. `window` is how many earlier turns it sees.
    """

    model: str | None = None
    deps: str | None = None
    stream: bool = True
    retry: Retry = RETRY
    timeout: float | None = None
    tools: Mapping[str, Retry] = field(default_factory=dict[str, Retry])
    window: int | None = None
    limits: UsageLimits | None = None

    def __post_init__(self) -> None:
        check_window(self.window, "PydanticSettings")

    @property
    def keys(self) -> dict[str, type]:
        """The resources that it needs."""
        return {key: object for key in (self.model, self.deps) if key is not None}


class PydanticAgent(WorkflowExecutor):
    """An executor that leads a conversation by a pydantic-ai agent.

    It takes a text, or what the annotated parameter of `prompt` names, and gives the agent's output; `response_type`
    says its type where the agent's `output_type` is no plain class. All messages that it gets in its scope are one
    conversation. `workflow` is the agent as a workflow of its own. Raises `ExecutorDefinitionError` and `IdError`.
    """

    def __init__(
        self,
        agent: AnyAgent,
        id: str | None = None,
        *,
        prompt: Callable[[AnyValue], str] | None = None,
        response_type: Hint = None,
        settings: PydanticSettings | None = None,
    ) -> None:
        name = id or agent.name
        if name is None:
            raise wrong_agent("PydanticAgent", "the agent has no name", "Give it one: id=...")
        gives = agent.output_type if response_type is None else response_type
        if response_type is None and not isinstance(gives, type):
            problem = "its output_type is no class, so it is not known what it gives"
            raise wrong_agent(name, problem, "Say it: response_type=...")
        self.agent = agent
        settings = settings or PydanticSettings()
        _check_policies(name, agent, settings.tools)
        turn = _PydanticTurn(name, agent, prompt, settings)
        super().__init__(turn.workflow(message_type(name, prompt), gives), name, isolation="shared")


def _check_policies(name: str, agent: AnyAgent, policies: Mapping[str, Retry]) -> None:
    """Raise `ExecutorDefinitionError` for a policy of a tool that an agent has not."""
    known: list[str] = []
    for toolset in agent.toolsets:
        if not isinstance(toolset, FunctionToolset):
            return  # as of a server: what is in it is known when the agent runs
        known += toolset.tools
    for tool in policies:
        if tool not in known:
            problem = f"settings.tools has {tool!r}, and the agent no such tool"
            raise wrong_agent(name, problem, f"Name one that it has by now: {', '.join(known) or 'there is none'}.")


class _PydanticTurn:
    """What an agent does with one message."""

    def __init__(
        self,
        name: str,
        agent: AnyAgent,
        prompt: Callable[[AnyValue], str] | None,
        settings: PydanticSettings,
    ) -> None:
        self._name = name
        self._agent = agent
        self._prompt = prompt
        self._settings = settings

    def workflow(self, message: Hint, gives: Hint) -> FunctionalWorkflow[AnyValue, AnyValue]:
        """Return it as a workflow."""
        questions = (ToolApproval, ToolQuestion)
        return turn_workflow(self._name, self.run, message, gives, self._settings.keys, questions=questions)

    async def run(self, message: AnyValue, ctx: FunctionalContext) -> AnyValue:
        """Run the agent, and keep what was said."""
        settings = self._settings
        steps = StepsOfTurn(self._name, ctx, settings.tools)
        own = self._agent.model if settings.model is None else ctx.resources[settings.model]
        if own is None:
            problem = "neither the agent nor settings.model names a model"
            raise wrong_agent(self._name, problem, "Give the agent one.")
        model = ModelAsSteps(own, self._name, settings.retry, settings.timeout, stream=settings.stream)
        result = await self._agent.run(
            sendable(message if self._prompt is None else self._prompt(message)),
            model=model,
            message_history=messages_of(earlier_messages(ctx.state, settings.window)),
            deps=None if settings.deps is None else ctx.resources[settings.deps],
            usage_limits=settings.limits,
            capabilities=[steps],
            infer_name=False,
            run_id=str(ctx.uuid()),
            conversation_id=f"{ctx.run_id}/{ctx.path}",
        )
        said = result.new_messages()
        keep(ctx.state, plain_messages(said), usage_of(said))
        return result.output
