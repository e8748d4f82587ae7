"""What agents keep, ask and tell: usage, approvals of tool calls, and pieces of text as they come.

Messages of a conversation are plain dicts in the form of the chat-completions protocol. Nothing here talks to a model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, TypeVar, cast

from rehydrate.codecs import checkpointable
from rehydrate.errors import PolicyError
from rehydrate.graph.functional_context import FunctionalState
from rehydrate.graph.step import AnyValue

#: A message in the form of the protocol: a dict of plain values with `role` and `content`.
ChatMessage: TypeAlias = dict[str, object]
Plain = TypeVar("Plain")
#: The state key under which each turn of a conversation is one element, a list of messages.
CONVERSATION: Final = "conversation"
#: The state key of what all turns have used.
USAGE: Final = "usage"


@checkpointable(name="rehydrate.agents.Usage")
@dataclass(frozen=True)
class Usage:
    """How often a model was asked, and what its provider counted. What was asked and not recorded is not in it."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.requests + other.requests,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
        )


@checkpointable(name="rehydrate.agents.ToolApproval")
@dataclass(frozen=True)
class ToolApproval:
    """The question whether a tool may be called as the model wants it; the answer is `True` or `False`."""

    agent: str
    tool: str
    arguments: dict[str, object]


@checkpointable(name="rehydrate.agents.ToolQuestion")
@dataclass(frozen=True)
class ToolQuestion:
    """The question what a tool gives whose calls are made outside; the answer is text for the model."""

    agent: str
    tool: str
    arguments: dict[str, object]


@checkpointable(name="rehydrate.agents.TextDelta")
@dataclass(frozen=True)
class TextDelta:
    """A piece of the model's text, told as it comes and not kept.

    With a higher `attempt` the text of this `round` begins again.
    """

    agent: str
    round: int
    attempt: int
    text: str


@checkpointable(name="rehydrate.agents.Reply")
@dataclass(frozen=True)
class Reply:
    """What a model gave in one round, as the step that asked it remembers it."""

    message: ChatMessage
    usage: Usage = field(default_factory=Usage)


def system_message(instructions: str) -> ChatMessage:
    """Return what an agent is told to be."""
    return {"role": "system", "content": sendable(instructions)}


def user_message(content: str | list[ChatMessage]) -> ChatMessage:
    """Return what a person says."""
    return {"role": "user", "content": sendable(content)}


def tool_message(call_id: str, content: str) -> ChatMessage:
    """Return what came of a tool call."""
    return {"role": "tool", "tool_call_id": call_id, "content": sendable(content)}


def sendable(value: Plain) -> Plain:
    """Return text, or plain values with texts in them, that UTF-8 can say.

    Halves of a character that came apart are one again, others are replaced. Whatever goes to a model or into the
    record of a conversation passes here.
    """
    return cast("Plain", _sendable(value))


def _sendable(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, list | tuple):
        return [_sendable(item) for item in cast("Sequence[object]", value)]
    if isinstance(value, dict):
        return {_sendable(key): _sendable(item) for key, item in cast("dict[object, object]", value).items()}
    return value


def earlier_messages(state: FunctionalState, window: int | None) -> list[AnyValue]:
    """Return what was said in so many earlier turns, or in all."""
    if window == 0:  # which as a start would be all
        return []
    turns: list[list[AnyValue]] = state.get(CONVERSATION, [], start=None if window is None else -window)
    return [said for turn in turns for said in turn]


def check_window(window: int | None, where: str) -> None:
    """Raise `PolicyError` for a number of turns that makes no sense."""
    if window is not None and (type(window) is not int or window < 0):
        raise PolicyError(f"{where}(window={window!r:.100})", "Use a whole number of turns, or None for all.")
