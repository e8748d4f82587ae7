"""Messages of theirs that were on their way, and those that joins held, as messages of a legacy run.

A question that a sub-workflow hands to its parent is no message here: it stands where it was asked.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Final, cast

from rehydrate.graph.definition import Definition
from rehydrate.runtime.legacy import LegacyMessage

from .inert import Refused
from .placing import Placing
from .saved import Message, Saved, message_of, passed_on
from .trees import Node, fields_of, items_of

#: What the sources of messages from outside and of answers begin with.
_INTERNAL: Final = "internal:"


def messages_of(
    saved: Saved, graph: Definition, placing: Placing, value: Callable[[Node], object]
) -> list[LegacyMessage]:
    """Return what the outermost workflow had on its way; `value` makes values of nodes. Raises `Refused`."""
    placement = placing.placement
    found: list[LegacyMessage] = []
    answered: set[str] = set(placement.questions)
    for message in saved.messages:
        if message.answers is not None:
            if message.answers.request_id in answered:
                raise Refused(f"question {message.answers.request_id!r} is answered, and open or answered once more")
            answered.add(message.answers.request_id)
        if passed_on(message.data) in placement.questions:
            continue
        what = f"a message from {message.source.removeprefix(_INTERNAL)!r}"
        found += placement.kept("messages", "messages", what, partial(_message, message, graph, placing, value))
    for key, node in (saved.joins or {}).items():
        for held in placement.kept("joins", "joins", "what joins held", partial(_held, key, node, value)):
            found += held
    if saved.joins is None and graph.joins:
        placement.left_out.append("what joins held, if anything: the file does not say")
    if saved.kwargs:
        placement.left_out.append(f"arguments of the run ({', '.join(saved.kwargs)}): give run_args= with the call")
    return found


def _message(message: Message, graph: Definition, placing: Placing, value: Callable[[Node], object]) -> LegacyMessage:
    answered = message.answers
    if answered is not None:
        if answered.executor_id not in graph.executors or answered.executor_id in graph.children:
            raise Refused(f"it is an answer to {answered.executor_id!r}, which asks nothing here itself")
        return LegacyMessage(value(message.data), answers=placing.request(answered, graph))
    if message.source.startswith(_INTERNAL):
        target = message.target or message.source.removeprefix(_INTERNAL)
        return LegacyMessage(value(message.data), target=target)
    if message.source not in graph.executors:
        raise Refused(f"the workflow has no executor {message.source!r}")
    return LegacyMessage(value(message.data), message.source, message.target or "")


def _held(key: str, node: Node, value: Callable[[Node], object]) -> list[LegacyMessage]:
    """Return what one join held; its key names its edges."""
    kind, _, text = key.partition(":")
    edges = _edges(text)
    buffer = fields_of(node, "what a join held").get("buffer")
    if kind != "FanInEdgeGroup" or not edges or buffer is None:
        raise Refused(f"{key!r:.200} is no join")
    found: list[LegacyMessage] = []
    for source, each in fields_of(buffer, "what a join held").items():
        for item in items_of(each, "what a join held"):
            found.append(LegacyMessage(value(message_of(item, source).data), source, edges[0][1]))  # noqa: PERF401
    return found


def _edges(text: str) -> list[list[str]]:
    try:
        found: object = json.loads(text)
    except ValueError as error:
        raise Refused("a join is named by what is no JSON") from error
    edges = cast("list[object]", found) if isinstance(found, list) else []
    if not all(isinstance(edge, list) and len(cast("list[object]", edge)) == 2 for edge in edges):
        raise Refused("a join is named by what are no edges")
    return [[str(end) for end in cast("list[object]", edge)] for edge in edges]
