"""The model and the tools of a pydantic-ai agent as steps, for one turn.

What a step gives is plain: the answer of the model, or what a tool returned, or asked of the agent by raising. It must
not know how the conversation is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Never, TypeAlias, cast

from pydantic_ai import (
    AbstractToolset,
    ApprovalRequired,
    CallDeferred,
    DeferredToolRequests,
    DeferredToolResults,
    ModelMessage,
    ModelResponse,
    ModelRetry,
    ModelSettings,
    PartDeltaEvent,
    PartStartEvent,
    RunContext,
    TextPart,
    TextPartDelta,
    ToolDenied,
    WrapperToolset,
)
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.toolsets import ToolsetTool

from rehydrate.graph.functional_context import FunctionalContext
from rehydrate.graph.policies import Retry
from rehydrate.graph.step import AnyValue, step
from rehydrate.runtime.step_run import current_step

from .conversation import ChatMessage, TextDelta, ToolApproval, ToolQuestion
from .failures import errors_of
from .model import request_policy
from .pydantic_answers import check_whole
from .pydantic_messages import plain_response, plain_result, response_of, result_of
from .turns import wrong_agent

AnyRun: TypeAlias = RunContext[AnyValue]


class ModelAsSteps(WrapperModel):
    """A model whose requests are steps, told apart by their number in the turn."""

    def __init__(self, wrapped: Model | str, agent: str, retry: Retry, timeout: float | None, *, stream: bool) -> None:
        super().__init__(wrapped)
        self._agent = agent
        self._retry = request_policy(retry)
        self._timeout = timeout
        self._stream = stream
        self._requests = 0

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Ask the model, once for its place in the turn."""
        given = (messages, model_settings, model_request_parameters)

        @step(name="model", retry=self._retry, timeout=self._timeout)
        async def ask_model(number: int) -> dict[str, object]:
            with errors_of(self.wrapped.model_name):
                response = await (self._streamed(number, *given) if self._stream else self.wrapped.request(*given))
            check_whole(response, self.wrapped)
            return plain_response(response)

        self._requests += 1
        return response_of(await ask_model(self._requests))

    def request_stream(self, *_: AnyValue, **__: AnyValue) -> Never:
        """Refuse what would ask the model past the steps, as a capability does that handles its stream."""
        problem = "a capability or hook of it streams the model's answers itself, so that no step would remember them"
        fix = "Remove it, and read the run's TextDelta events instead: run(..., stream=True)."
        raise wrong_agent(self._agent, problem, fix)

    async def _streamed(
        self,
        number: int,
        messages: list[ModelMessage],
        settings: ModelSettings | None,
        parameters: ModelRequestParameters,
    ) -> ModelResponse:
        run = current_step()
        async with self.wrapped.request_stream(messages, settings, parameters) as stream:
            async for event in stream:
                match event:
                    case (
                        PartStartEvent(part=TextPart(content=text))
                        | PartDeltaEvent(delta=TextPartDelta(content_delta=text))
                    ):
                        if text:
                            run.emit(TextDelta(self._agent, number, run.attempt, text))
                    case _:
                        pass
            return stream.get()


@dataclass
class _ToolsAsSteps(WrapperToolset[AnyValue]):
    """Tools whose calls are steps, told apart by the model's ids of them."""

    policies: Mapping[str, Retry]

    async def call_tool(
        self, name: str, tool_args: dict[str, AnyValue], ctx: AnyRun, tool: ToolsetTool[AnyValue]
    ) -> AnyValue:
        """Call a tool, once for its place in the turn."""
        wrapped = self.wrapped

        @step(name=name, retry=self.policies.get(name))
        async def call(call_id: str) -> dict[str, object]:
            del call_id  # by which the calls of a round are told apart
            try:
                return plain_result(await wrapped.call_tool(name, tool_args, ctx, tool))
            except (ModelRetry, ToolFailed) as error:
                return {"raised": type(error).__name__, "message": error.message}
            except (ApprovalRequired, CallDeferred) as error:
                return {"raised": type(error).__name__, "metadata": error.metadata}

        return _returned(await call(f"{ctx.tool_call_id}"))


def _returned(plain: ChatMessage) -> object:
    """Return what a tool has returned, or raise what it has asked for by raising."""
    match plain.get("raised"):
        case "ModelRetry":
            raise ModelRetry(str(plain["message"]))
        case "ToolFailed":
            raise ToolFailed(str(plain["message"]))
        case "ApprovalRequired":
            raise ApprovalRequired(cast("dict[str, AnyValue] | None", plain["metadata"]))
        case "CallDeferred":
            raise CallDeferred(cast("dict[str, AnyValue] | None", plain["metadata"]))
        case _:
            return result_of(plain)


class StepsOfTurn(AbstractCapability[AnyValue]):
    """Makes tool calls steps, and asks people about those that wait for one."""

    def __init__(self, agent: str, ctx: FunctionalContext, policies: Mapping[str, Retry]) -> None:
        self._agent = agent
        self._ctx = ctx
        self._policies = policies

    def get_wrapper_toolset(self, toolset: AbstractToolset[AnyValue]) -> AbstractToolset[AnyValue]:
        """Make the calls of all tools steps."""
        return _ToolsAsSteps(toolset, self._policies)

    async def handle_deferred_tool_calls(self, ctx: AnyRun, *, requests: DeferredToolRequests) -> DeferredToolResults:
        """Ask whether calls may be made, and for the results of those that are made elsewhere."""
        del ctx
        approvals = [
            self._ctx.request_info(ToolApproval(self._agent, call.tool_name, call.args_as_dict()), response_type=bool)
            for call in requests.approvals
        ]
        questions = [
            self._ctx.request_info(ToolQuestion(self._agent, call.tool_name, call.args_as_dict()), response_type=str)
            for call in requests.calls
        ]
        approved, told = await self._ctx.gather(self._ctx.gather(*approvals), self._ctx.gather(*questions))
        results = DeferredToolResults()
        for call, approves in zip(requests.approvals, approved, strict=True):
            results.approvals[call.tool_call_id] = approves or ToolDenied("A person has refused this call.")
        for call, answer in zip(requests.calls, told, strict=True):
            results.calls[call.tool_call_id] = answer
        return results
