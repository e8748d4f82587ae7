"""A chat model: how it is asked through a client that comes as a resource, and again by which policy.

One round is one step, so what it gave is remembered before anything is done with it. It must not import a client.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterable, Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Final, Protocol, TypeAlias, cast, runtime_checkable

from rehydrate.errors import (
    ExecutorDefinitionError,
    InvocationTimeoutError,
    ModelCallError,
    ModelReplyError,
    ModelUnavailableError,
)
from rehydrate.graph.policies import Retry
from rehydrate.graph.step import AnyValue, Step, step
from rehydrate.runtime.step_run import current_step

from .conversation import ChatMessage, Reply, TextDelta, check_window, sendable, system_message
from .failures import check_end, errors_of
from .replies import ReplyParts

#: What `create` of a client returns; clients have types of their own for it.
AnyReply: TypeAlias = AnyValue


class Completions(Protocol):
    """The part of a client that completes chats."""

    @property
    def create(self) -> Callable[..., Awaitable[AnyReply]]:
        """Ask for a completion, by the keyword arguments of the protocol."""
        ...


class Chat(Protocol):
    """The part of a client that is about chats."""

    @property
    def completions(self) -> Completions:
        """What completes them."""
        ...


@runtime_checkable
class ChatClient(Protocol):
    """A client that speaks the chat-completions protocol: `openai.AsyncOpenAI`, or any with the same calls."""

    @property
    def chat(self) -> Chat:
        """What is about chats."""
        ...


#: How often a request is made that may succeed later.
RETRY: Final = Retry(attempts=4, on=(ModelUnavailableError, InvocationTimeoutError))


def request_policy(given: Retry) -> Retry:
    """Return a policy for requests: where it does not say after which errors (`on`), after those that may pass."""
    # By identity, since who writes `on=(Exception,)` has said it.
    return replace(given, on=RETRY.on) if given.on is Retry.on else given


#: What cannot be a parameter, as each request has it from elsewhere, and where it is said instead.
_NO_PARAMETERS: Final[Mapping[str, str]] = {
    "model": "Give it as the name: ChatModel(name).",
    "messages": "Say what comes first in the agent's instructions, and the rest in its messages.",
    "stream": "Say it to the model: ChatModel(name, stream=False).",
    "stream_options": "Leave it out: usage is asked for with each stream.",
}


@dataclass(frozen=True)
class ChatModel:
    """How a model is asked; configuration of today, of which nothing is stored.

    `client` is the key of the resource, `parameters` go into every request (`temperature`, `max_completion_tokens`).
    `window` is how many earlier turns of the conversation the model sees; all of them where it is not given. `timeout`
    is seconds of an attempt. A request that may succeed later is made again by `retry`, and another one only where its
    `on` says so. Raises `PolicyError`, and `ExecutorDefinitionError` for parameters that an agent says itself.
    """

    name: str
    client: str = "openai"
    parameters: Mapping[str, object] = field(default_factory=dict[str, object])
    window: int | None = None
    stream: bool = True
    timeout: float | None = None
    retry: Retry = RETRY

    def __post_init__(self) -> None:
        check_window(self.window, "ChatModel")
        for key, fix in _NO_PARAMETERS.items():
            if key in self.parameters:
                raise ExecutorDefinitionError(self.name, f"parameters has {key!r}, which an agent says", fix, "model")


#: What one round sends beside its settings; the step finds it here, as its arguments would be compared for ever.
_MESSAGES: Final[ContextVar[Sequence[ChatMessage]]] = ContextVar("rehydrate_asked_model")


class Asker:
    """Asks a model for one agent; `fixed` are the parts of its requests that the agent says, such as tools."""

    def __init__(self, agent: str, model: ChatModel, instructions: str, fixed: dict[str, object]) -> None:
        self.model = model
        self._agent = agent
        self._first = [system_message(instructions)] if instructions else []
        self._fixed = {**model.parameters, **sendable(fixed)}
        self._step = self._as_step()

    async def ask(self, number: int, messages: Sequence[ChatMessage]) -> Reply:
        """Ask for what comes after these messages; a round that is remembered by its number is not asked again.

        Raises `StepFailedError` from what `ModelCallError` and `ModelReplyError` say.
        """
        token = _MESSAGES.set(messages)
        try:
            return await self._step(number)
        finally:
            _MESSAGES.reset(token)

    def _as_step(self) -> Step[[int], Reply]:
        @step(name="model", retry=request_policy(self.model.retry), timeout=self.model.timeout)
        async def ask_model(number: int) -> Reply:
            run = current_step()
            create = cast("ChatClient", run.resources[self.model.client]).chat.completions.create
            request = self._request(_MESSAGES.get(), run.effect_key)
            parts = ReplyParts()
            with errors_of(self.model.name):
                given = await asynchronous(create(**request), self.model.name)
                if not self.model.stream:
                    added(parts, given, self.model.name)
                else:
                    await self._stream(number, parts, given)
            check_end(self.model.name, parts.finish_reason, parts.refusal)
            if parts.is_empty:
                raise ModelReplyError(self.model.name, "it has neither text nor tool calls")
            return Reply(parts.message(number), parts.usage)

        return ask_model

    async def _stream(self, number: int, parts: ReplyParts, given: AnyReply) -> None:
        """Take a streamed answer piece by piece, and tell its text as it comes."""
        run = current_step()
        try:
            async for piece in cast("AsyncIterable[object]", given):
                if text := added(parts, piece, self.model.name):
                    run.emit(TextDelta(self._agent, number, run.attempt, text))
        finally:
            # One that is left in the middle would hold its connection for as long as the error is kept.
            await _closed(given)

    def _request(self, messages: Sequence[ChatMessage], key: str) -> dict[str, object]:
        headers = cast("Mapping[str, object]", self._fixed.get("extra_headers") or {})
        request: dict[str, object] = {
            **self._fixed,
            "model": self.model.name,
            "messages": [*self._first, *messages],
            # The same for all attempts of a round: for gateways that know an answer again.
            "extra_headers": {**headers, "Idempotency-Key": key},
        }
        if self.model.stream:
            request |= {"stream": True, "stream_options": {"include_usage": True}}
        return request


def asynchronous(given: Awaitable[AnyReply], model: str) -> Awaitable[AnyReply]:
    """Return what a client gave to await. Raises `ModelCallError` where it did not wait for that."""
    if not inspect.isawaitable(cast("object", given)):
        raise ModelCallError(model, None, "the client is not asynchronous; give one that is, such as AsyncOpenAI")
    return given


async def _closed(stream: AnyReply) -> None:
    """Close a streamed answer: that of a client by its `close`, a plain generator by its `aclose`."""
    close = getattr(stream, "close", None) or getattr(stream, "aclose", None)
    if close is not None and inspect.isawaitable(closing := close()):
        await closing


def added(parts: ReplyParts, piece: object, model: str) -> str:
    """Take a piece of an answer and return what it adds to the text. Raises `ModelReplyError` for one that has another
    form than that of the protocol, as where a text is a list."""
    try:
        return parts.add(piece)
    except (TypeError, AttributeError, ValueError) as error:
        raise ModelReplyError(model, f"it has not the form of the protocol: {error!s:.500}") from error
