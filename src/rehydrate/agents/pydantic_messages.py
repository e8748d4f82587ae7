"""Messages of pydantic-ai as plain values and back, by the adapters of that library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from pydantic import TypeAdapter
from pydantic_ai import ModelMessage, ModelMessagesTypeAdapter, ModelRequest, ModelResponse, ToolReturn, ToolReturnPart

from rehydrate.graph.step import AnyValue

from .conversation import ChatMessage, Usage, sendable

_TOOL_RETURN: TypeAdapter[ToolReturn[AnyValue]] = TypeAdapter(ToolReturn)


def messages_of(plain: Sequence[object]) -> list[ModelMessage]:
    """Return messages from plain values."""
    return ModelMessagesTypeAdapter.validate_python(list(plain))


def plain_messages(messages: Sequence[ModelMessage]) -> list[ChatMessage]:
    """Return messages as plain values, without instructions and times.

    An agent gives each request the instructions of today, and those of earlier ones are read by nobody. Times differ
    whenever the turn is run over.
    """
    found = _dumped(messages)
    for message in found:
        message.pop("instructions", None)
        for holder in (message, *cast("list[ChatMessage]", message["parts"])):
            holder.pop("timestamp", None)
    return found


def usage_of(messages: Sequence[ModelMessage]) -> Usage:
    """Return what the answers among messages have used."""
    used = Usage()
    for message in messages:
        if isinstance(message, ModelResponse):
            used += Usage(1, message.usage.input_tokens, message.usage.output_tokens)
    return used


def plain_response(response: ModelResponse) -> ChatMessage:
    """Return an answer of a model as plain values."""
    return _dumped([response])[0]


def response_of(plain: ChatMessage) -> ModelResponse:
    """Return an answer of a model from plain values."""
    return cast("ModelResponse", messages_of([plain])[0])


def plain_result(value: object) -> ChatMessage:
    """Return what a tool has returned as plain values, in the form in which a model gets it."""
    if isinstance(value, ToolReturn):
        return {"whole": sendable(_TOOL_RETURN.dump_python(cast("ToolReturn[AnyValue]", value), mode="json"))}
    part = ToolReturnPart(tool_name="", content=cast("AnyValue", value), tool_call_id="")
    (message,) = _dumped([ModelRequest(parts=[part])])
    return {"content": cast("list[ChatMessage]", message["parts"])[0]["content"]}


def result_of(plain: ChatMessage) -> object:
    """Return what a tool has returned from plain values."""
    if "whole" in plain:
        return _TOOL_RETURN.validate_python(plain["whole"])
    part = ToolReturnPart(tool_name="", content=cast("AnyValue", plain["content"]), tool_call_id="")
    (message,) = messages_of(cast("list[object]", ModelMessagesTypeAdapter.dump_python([ModelRequest(parts=[part])])))
    return cast("ToolReturnPart", message.parts[0]).content


def _dumped(messages: Sequence[ModelMessage]) -> list[ChatMessage]:
    return sendable(cast("list[ChatMessage]", ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")))
