"""A turn of a conversation as a workflow, whoever leads it: what it takes, asks and tells, and what is kept.

It must not know a model or a library of agents.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from rehydrate.api.functional import FunctionalWorkflow, workflow
from rehydrate.errors import ExecutorDefinitionError
from rehydrate.graph.annotations import UNSET, Annotations, UnresolvedError, signature_of
from rehydrate.graph.functional_context import FunctionalContext, FunctionalState
from rehydrate.graph.hints import Hint
from rehydrate.graph.reducers import add, append
from rehydrate.graph.step import AnyValue

from .conversation import CONVERSATION, USAGE, ChatMessage, TextDelta, ToolApproval, Usage
from .functions import is_async


def turn_workflow(
    agent: str,
    run: Callable[[AnyValue, FunctionalContext], Awaitable[AnyValue]],
    message: Hint,
    returns: Hint,
    resources: Mapping[str, type],
    *,
    questions: Sequence[type] = (ToolApproval,),
) -> FunctionalWorkflow[AnyValue, AnyValue]:
    """Return what an agent does with one message as a workflow."""

    async def turn(message: AnyValue, ctx: FunctionalContext) -> AnyValue:
        return await run(message, ctx)

    turn.__name__ = agent
    made = workflow(
        name=agent,
        message=message,
        returns=returns,
        types=[TextDelta, *questions, Usage],
        reducers={CONVERSATION: append, USAGE: add},
        resources=resources,
    )
    return made(turn)


def keep(state: FunctionalState, said: list[ChatMessage], usage: Usage) -> None:
    """Keep what was said in a turn that is over, and what that has used."""
    state.update(CONVERSATION, said)
    state.update(USAGE, usage)


def message_type(agent: str, prompt: Callable[[AnyValue], object] | None) -> Hint:
    """Return what an agent takes: what its prompt function takes. Raises `ExecutorDefinitionError`."""
    if prompt is None:
        return str
    fix = "Write `def prompt(claim: Claim) -> str`."
    if not callable(prompt):
        raise wrong_agent(agent, f"its prompt is {prompt!r:.100}, which is no function", fix)
    if is_async(prompt):
        problem = "its prompt function is asynchronous, and a coroutine is no text"
        raise wrong_agent(agent, problem, f"{fix} What has to wait belongs into an executor before the agent.")
    parameters = list(signature_of(prompt).parameters)
    if len(parameters) != 1:
        raise wrong_agent(agent, "its prompt function does not take one message", fix)
    try:
        hint = Annotations(prompt, None, {}).of(parameters[0])
    except UnresolvedError as error:
        raise wrong_agent(agent, f"the type of its prompt's message is not there: {error.reason}", fix) from error
    if hint is UNSET:
        raise wrong_agent(agent, "the message of its prompt function has no annotation", fix)
    return hint


def wrong_agent(agent: str, problem: str, fix: str) -> ExecutorDefinitionError:
    """Return the error of an agent that cannot be as it was described."""
    return ExecutorDefinitionError(agent, problem, fix, "agent")
