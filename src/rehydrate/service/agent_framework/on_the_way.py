"""Messages of theirs that were on their way, and those that joins held, as messages of a legacy run.

A question that a sub-workflow hands to its parent is no message here: it stands where it was asked. An answer that a
parent hands on goes there, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Final, cast

from rehydrate.graph.definition import Definition
from rehydrate.runtime.legacy_messages import LegacyMessage, LegacyRequest
from rehydrate.runtime.requests import fits

from .inert import Refused
from .placement import AnswerBelow, Placement, where
from .saved import Asked, Message, Saved, message_of, passed_on
from .trees import Node, fields_of, has_class, items_of

#: What the sources of messages from outside and of answers begin with.
_INTERNAL: Final = "internal:"


class OnTheWay:
    """Takes in messages of one checkpoint; `value` makes values of nodes, `request` questions here of those there."""

    def __init__(
        self,
        placement: Placement,
        value: Callable[[Node], object],
        request: Callable[[Asked, Definition], LegacyRequest],
    ) -> None:
        self._placement = placement
        self._value = value
        self._request = request

    def note_answers_below(self, saved: Saved, graph: Definition, path: str) -> None:
        """Take out the answers that go to questions of sub-workflows, before these are placed. Raises `Refused`."""
        placement = self._placement
        for message in saved.messages:
            request_id, data = _goes_below(message, graph)
            if request_id is None:
                continue
            make = partial(self._noted, request_id, saved)
            for _ in placement.kept("messages", "messages", _said(message, path), make):
                placement.below[request_id] = AnswerBelow(data, _said(message, path))
        for asked in saved.asked:  # one that is passed on itself: its answer goes further down
            if asked.inner is not None and asked.request_id in placement.below:
                placement.answer(asked.inner)
                placement.below[asked.inner] = placement.below.pop(asked.request_id)

    def _noted(self, request_id: str, saved: Saved) -> None:
        self._placement.answer(request_id, is_open=any(asked.request_id == request_id for asked in saved.asked))

    def answers(self, asked: Asked, request: LegacyRequest) -> list[LegacyMessage]:
        """Return the answer that is on its way to a question, if there is one. Raises `Refused`."""
        answer = self._placement.below.pop(asked.request_id, None)
        if answer is None:
            return []
        make = partial(self._answer, answer.data, asked, request)
        return self._placement.kept("messages", "messages", answer.what, make)

    def check_answers_arrived(self) -> None:
        """Raise `Refused` for an answer whose question is nowhere."""
        for request_id, answer in self._placement.below.items():
            self._placement.kept("messages", "messages", answer.what, partial(_lost, request_id))

    def messages(self, saved: Saved, graph: Definition, path: str) -> list[LegacyMessage]:
        """Return what one running workflow had on its way, and what its joins held. Raises `Refused`."""
        placement = self._placement
        found: list[LegacyMessage] = []
        for message in saved.messages:
            if _goes_below(message, graph)[0] is not None or passed_on(message.data) in placement.questions:
                continue
            make = partial(self._message, message, graph, path)
            found += placement.kept("messages", "messages", _said(message, path), make)
        what = f"what joins held{where(path)}"
        for key, node in (saved.joins or {}).items():
            for held in placement.kept("joins", "joins", what, partial(self._held, key, node)):
                found += held
        if saved.joins is None and graph.joins:
            placement.left_out.append(f"{what}, if anything: the file does not say")
        return found

    def _message(self, message: Message, graph: Definition, path: str) -> LegacyMessage:
        answered = message.answers
        if answered is not None:
            if answered.executor_id not in graph.executors:
                raise Refused(f"it is an answer to {answered.executor_id!r}, which is not here")
            self._placement.answer(answered.request_id)
            return self._answer(message.data, answered, self._request(answered, graph))
        if message.source.startswith(_INTERNAL):
            target = message.target or message.source.removeprefix(_INTERNAL)
            return LegacyMessage(self._value(message.data), target=target)
        if message.source not in graph.executors:
            raise Refused(f"{path or 'the workflow'} has no executor {message.source!r}")
        return LegacyMessage(self._value(message.data), message.source, message.target or "")

    def _answer(self, data: Node, asked: Asked, request: LegacyRequest) -> LegacyMessage:
        given = self._value(data)
        if not fits(given, request.response_type):
            raise Refused(
                f"question {asked.request_id!r} of {asked.executor_id!r} is answered with a {type(given).__name__},"
                f" and asks for {request.response_type}"
            )
        return LegacyMessage(given, answers=request)

    def _held(self, key: str, node: Node) -> list[LegacyMessage]:
        """Return what one join held; its key names its edges."""
        kind, _, text = key.partition(":")
        edges = _edges(text)
        buffer = fields_of(node, "what a join held").get("buffer")
        if kind != "FanInEdgeGroup" or not edges or buffer is None:
            raise Refused(f"{key!r:.200} is no join")
        return [
            LegacyMessage(self._value(message_of(item, source).data), source, edges[0][1])
            for source, each in fields_of(buffer, "what a join held").items()
            for item in items_of(each, "what a join held")
        ]


def _goes_below(message: Message, graph: Definition) -> tuple[str | None, Node]:
    """Return the question of a sub-workflow that a message is the answer to, and the answer."""
    asked = message.answers
    if asked is not None:
        passes_on = asked.request_id if asked.executor_id in graph.children else None
        return asked.inner or passes_on, message.data
    if has_class(message.data, "SubWorkflowResponseMessage"):
        fields = fields_of(message.data, "an answer")
        event = fields.get("source_event")
        return passed_on(event), fields.get("data")
    return None, None


def _said(message: Message, path: str) -> str:
    return f"a message from {message.source.removeprefix(_INTERNAL)!r}{where(path)}"


def _lost(request_id: str) -> None:
    raise Refused(f"it is the answer to question {request_id!r} of a sub-workflow, which is not in the file")


def _edges(text: str) -> list[list[str]]:
    try:
        found: object = json.loads(text)
    except ValueError as error:
        raise Refused("a join is named by what is no JSON") from error
    edges = cast("list[object]", found) if isinstance(found, list) else []
    if not all(isinstance(edge, list) and len(cast("list[object]", edge)) == 2 for edge in edges):
        raise Refused("a join is named by what are no edges")
    return [[str(end) for end in cast("list[object]", edge)] for edge in edges]
