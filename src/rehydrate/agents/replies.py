"""Replies of a chat model, whole or in pieces, as messages in the form of the protocol.

Clients of every make give objects with the same attributes; what a provider leaves out is borne where it can be. It
must not import a client, nor judge what the model says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias, cast

from rehydrate.graph.step import AnyValue

from .conversation import ChatMessage, Usage, sendable

#: An object of a client of which only its attributes are known.
Given: TypeAlias = AnyValue


class _Call:
    """A tool call that comes in pieces."""

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments = ""
        #: What a provider adds and wants to see again.
        self.extra: dict[str, object] = {}

    def add(self, piece: Given) -> None:
        function = getattr(piece, "function", None)
        self.id = self.id or getattr(piece, "id", None) or ""
        name = getattr(function, "name", None) or ""
        if name != self.name:  # most give it once and some in parts, but some say the whole again in each piece
            self.name += name
        self.arguments += getattr(function, "arguments", None) or ""
        self.extra |= cast("Mapping[str, object]", getattr(piece, "model_extra", None) or {})

    def message(self, call_id: str) -> ChatMessage:
        function = {"name": self.name, "arguments": self.arguments}
        return sendable({**self.extra, "id": call_id, "type": "function", "function": function})


class ReplyParts:
    """A reply as far as it has come."""

    def __init__(self) -> None:
        self.text = ""
        self.refusal = ""
        self.finish_reason = ""
        self.usage = Usage(1)
        self._calls: list[_Call] = []
        self._by_index: dict[object, _Call] = {}

    def add(self, piece: Given) -> str:
        """Take a whole completion or a chunk of a streamed one, and return what it adds to the text."""
        usage = getattr(piece, "usage", None)
        if usage is not None:
            self.usage = Usage(1, _count(usage, "prompt_tokens"), _count(usage, "completion_tokens"))
        added = ""
        for choice in cast("Iterable[Given]", getattr(piece, "choices", None) or ()):
            if getattr(choice, "index", 0):  # one was asked for
                continue
            self.finish_reason = getattr(choice, "finish_reason", None) or self.finish_reason
            said = getattr(choice, "delta", None) or getattr(choice, "message", None)
            added += getattr(said, "content", None) or ""
            self.refusal += getattr(said, "refusal", None) or ""
            for call in cast("Iterable[Given]", getattr(said, "tool_calls", None) or ()):
                self._call_of(call, is_whole=getattr(choice, "delta", None) is None).add(call)
        self.text += added
        return added

    def _call_of(self, piece: Given, *, is_whole: bool) -> _Call:
        """Return the call that a piece belongs to. Some providers give all one index, or none, and tell them by id."""
        index, given = getattr(piece, "index", None), getattr(piece, "id", None)
        found = self._by_index.get(index)
        if found is None or is_whole or (given and found.id and given != found.id):
            found = self._by_index[index] = _Call()
            self._calls.append(found)
        return found

    def message(self, round_number: int) -> ChatMessage:
        """Return the reply as a message."""
        message: ChatMessage = {"role": "assistant", "content": sendable(self.text) or None}
        if self._calls:
            message["tool_calls"] = [
                call.message(call_id) for call, call_id in zip(self._calls, self._ids(round_number), strict=True)
            ]
        return message

    def _ids(self, round_number: int) -> list[str]:
        """Return an id of its own for each call: a provider that gave none, or one twice, refuses to see that again."""
        ids: dict[str, None] = {}
        for number, call in enumerate(self._calls):
            found = sendable(str(call.id or f"call_{round_number}_{number}"))
            while found in ids:
                found = f"{found}_{number}"
            ids[found] = None
        return list(ids)

    @property
    def is_empty(self) -> bool:
        """Whether it has neither text nor tool calls."""
        return not self.text and not self._calls


def _count(usage: Given, name: str) -> int:
    found = getattr(usage, name, 0)
    return found if isinstance(found, int) else 0
