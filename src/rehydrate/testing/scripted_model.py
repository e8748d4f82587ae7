"""`ScriptedModel`: a chat model that answers from a list, as a server that speaks the chat-completions protocol.

Real clients talk to it over HTTP on this machine. What it gives depends on the conversation alone, so that a restored
run gets the same; what it was asked is in the test's hands.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar, Final, Self, TypeAlias, cast

from rehydrate.graph.step import AnyValue

#: A message, or a request, in the form of the protocol.
Plain: TypeAlias = dict[str, AnyValue]
#: How often its thread looks whether it is to end, in seconds.
_POLL: Final = 0.05


@dataclass(frozen=True)
class ToolCall:
    """The model wants a tool to be called; `arguments` may be a text, which need not be JSON."""

    name: str
    arguments: Mapping[str, object] | str = "{}"


@dataclass(frozen=True)
class ModelFailure:
    """The model fails so many `times` for each request, and then gives `then`.

    It fails with a status of HTTP, or, where that is 0, by breaking off in the middle of its answer. With another
    `finish_reason` it does not fail and ends for that reason.
    """

    status: int = 503
    then: str | ToolCall | Sequence[ToolCall] = ""
    times: int = 1
    finish_reason: str = ""


Given: TypeAlias = str | ToolCall | Sequence[ToolCall] | ModelFailure
Script: TypeAlias = Sequence[Given] | Callable[[Plain], Given]


class ScriptedModel:
    """Answers with `script[n]` where the conversation that it is sent holds n answers already, or with what a function
    of the request returns. With a mapping each model has a script by its name.

    A text is an answer; a `ToolCall`, or a list of them, wants tools called; a `ModelFailure` fails first. `url` is the
    base URL while its `with` block runs, `requests` all that it was sent, as they came. Threads of its own serve it.
    """

    def __init__(self, script: Script | Mapping[str, Script]) -> None:
        self._scripts = script
        self.requests: list[Plain] = []
        #: The headers of each request, with names in lower case.
        self.headers: list[dict[str, str]] = []
        self._lock = threading.Lock()
        self._failed: dict[str, int] = {}
        self._server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        """The base URL for a client."""
        if self._server is None:
            raise AssertionError("the scripted model is served inside of its `with` block only")
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(_POLL,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def answer(self, request: Plain, headers: Mapping[str, str]) -> Given:
        """Note a request and return what to give. Raises `AssertionError` where the script has nothing for it."""
        with self._lock:
            self.requests.append(request)
            self.headers.append({name.lower(): value for name, value in headers.items()})
            found = self._found(request)
            if not isinstance(found, ModelFailure) or found.finish_reason:
                return found
            asked = json.dumps([request["model"], request["messages"]])
            failed = self._failed[asked] = self._failed.get(asked, 0) + 1
            return found if failed <= found.times else found.then

    def _found(self, request: Plain) -> Given:
        script = self._scripts
        if isinstance(script, Mapping):
            by_name = cast("Mapping[str, Script]", script)
            if request["model"] not in by_name:
                raise AssertionError(f"there is no script for model {request['model']!r}")
            script = by_name[request["model"]]
        if callable(script):
            return script(request)
        number = _answers(request)
        if number >= len(script):
            raise AssertionError(f"the conversation has {number} answers already, and the script no further one")
        return script[number]


class _Handler(BaseHTTPRequestHandler):
    """Serves one connection."""

    timeout: ClassVar[float | None] = 30.0

    def __init__(self, model: ScriptedModel, *args: AnyValue) -> None:
        self._model = model
        super().__init__(*args)

    def do_POST(self) -> None:
        """Answer a request."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            given = self._model.answer(request, dict(self.headers.items()))
        except AssertionError as error:
            given, text = ModelFailure(400), str(error)
        except Exception as error:  # user code: a function that is the script
            given, text = ModelFailure(400), f"the script raised {type(error).__name__}: {error}"
        else:
            text = "a failure of the script"
        if isinstance(given, ModelFailure) and given.status and not given.finish_reason:
            self._send(given.status, "application/json", json.dumps({"error": {"message": text}}).encode())
            return
        breaks = isinstance(given, ModelFailure) and not given.finish_reason
        reason = given.finish_reason if isinstance(given, ModelFailure) else ""
        message = _message(given.then if isinstance(given, ModelFailure) else given, _answers(request))
        whole = _Answer(request, message, reason or ("tool_calls" if "tool_calls" in message else "stop"))
        if request.get("stream"):
            chunks = list(whole.chunks())
            lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in (chunks[:2] if breaks else chunks)]
            self._send(200, "text/event-stream", "".join([*lines, *([] if breaks else ["data: [DONE]\n\n"])]).encode())
        elif not breaks:  # else the connection ends without an answer
            self._send(200, "application/json", json.dumps(whole.completion()).encode())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def _answers(request: Plain) -> int:
    """Return how many answers a conversation holds."""
    return sum(message["role"] == "assistant" for message in request["messages"])


def _message(given: str | ToolCall | Sequence[ToolCall], answers: int) -> Plain:
    if isinstance(given, str):
        return {"role": "assistant", "content": given}
    calls = [given] if isinstance(given, ToolCall) else given
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [_call(f"call_{answers}_{i}", call) for i, call in enumerate(calls)],
    }


def _call(call_id: str, call: ToolCall) -> Plain:
    text = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
    return {"id": call_id, "type": "function", "function": {"name": call.name, "arguments": text}}


class _Answer:
    """An answer in the forms of the protocol. It counts each message as a token, and each word."""

    def __init__(self, request: Plain, message: Plain, reason: str) -> None:
        self._request = request
        self._message = message
        self._reason = reason
        said = len((message["content"] or "").split()) + len(message.get("tool_calls", ()))
        asked = len(request["messages"])
        self._usage = {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}

    def completion(self) -> Plain:
        """Return it whole."""
        choice = {"index": 0, "message": self._message, "finish_reason": self._reason}
        return {**self._head("chat.completion"), "choices": [choice], "usage": self._usage}

    def chunks(self) -> Iterator[Plain]:
        """Give it in pieces: a word each, and the arguments of each call in two."""
        for delta in self._deltas():
            yield {**self._head("chat.completion.chunk"), "choices": [_choice(delta, None)]}
        yield {**self._head("chat.completion.chunk"), "choices": [_choice({}, self._reason)]}
        if self._request.get("stream_options", {}).get("include_usage"):
            yield {**self._head("chat.completion.chunk"), "choices": [], "usage": self._usage}

    def _deltas(self) -> Iterator[Plain]:
        yield {"role": "assistant", "content": None}
        words = (self._message["content"] or "").split(" ")
        for number, word in enumerate(words):
            if word or len(words) > 1:
                yield {"content": word if number == 0 else f" {word}"}
        for index, call in enumerate(self._message.get("tool_calls", ())):
            function = call["function"]
            half = len(function["arguments"]) // 2
            begun = {**call, "index": index, "function": {**function, "arguments": function["arguments"][:half]}}
            yield {"tool_calls": [begun]}
            yield {"tool_calls": [{"index": index, "function": {"arguments": function["arguments"][half:]}}]}

    def _head(self, kind: str) -> Plain:
        return {"id": "chatcmpl-scripted", "object": kind, "created": 0, "model": self._request["model"]}


def _choice(delta: Plain, reason: str | None) -> Plain:
    return {"index": 0, "delta": delta, "finish_reason": reason}
