"""What tests of agents share: a scripted model, the real client, and tools that note their calls."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from openai import AsyncOpenAI

from rehydrate import InMemoryCheckpointStorage, Retry
from rehydrate.agents import ChatModel, tool
from rehydrate.errors import ModelUnavailableError
from rehydrate.testing import ScriptedModel

KEY = "sk-secret-of-the-provider"
#: Tries again at once.
QUICK = Retry(attempts=3, delay=0.0, on=(ModelUnavailableError,))


def quick(name="scripted", **options):
    """A model whose failures are tried again at once."""
    return ChatModel(name, retry=QUICK, **options)


@asynccontextmanager
async def client_of(model, **options):
    """The real client of a scripted model; it repeats nothing by itself unless told to."""
    async with AsyncOpenAI(base_url=model.url, api_key=KEY, **{"max_retries": 0, **options}) as client:
        yield client


class RawModel:
    """A server that answers request n with `answers[n]`, a content type and bytes as they are, and hangs up."""

    def __init__(self, *answers):
        self.requests = []
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                model.requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                kind, body = answers[len(model.requests) - 1]
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format, *args):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


HTML = ("text/html", b"<html>Bad gateway</html>")


def streamed(*choices, rest=b""):
    """A streamed answer of these choices, each a delta and a finish reason, and then of these bytes."""
    chunks = [{"index": 0, "delta": delta, "finish_reason": reason} for delta, reason in choices]
    lines = "".join(f"data: {json.dumps(_envelope('chat.completion.chunk', choice))}\n\n" for choice in chunks)
    return "text/event-stream", lines.encode() + rest


def whole(content, reason="stop"):
    """An answer in one piece."""
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return "application/json", json.dumps(_envelope("chat.completion", choice)).encode()


def _envelope(kind, choice):
    return {"id": "x", "object": kind, "created": 0, "model": "m", "choices": [choice]}


def talk(script, scenario: Callable[..., Awaitable[object]], **options):
    """Run `scenario(call, model)`, where `call` has the client and a store in memory; return the model, which is one of
    a script, or the given raw one."""

    async def with_client(model):
        async with client_of(model, **options) as client:
            store = InMemoryCheckpointStorage()
            await scenario({"resources": {"openai": client}, "checkpoint_storage": store}, model)

    with script if isinstance(script, RawModel) else ScriptedModel(script) as model:
        asyncio.run(with_client(model))
    return model


class Desk:
    """Tools that note what they were called with."""

    def __init__(self, **options):
        self.log = []

        @tool
        async def look_up(order: str, currency: str = "EUR") -> int:
            """Look up what an order cost."""
            self.log.append(("look_up", order, currency))
            if order == "lost":
                raise LookupError("no such order")
            return len(order) * 10

        @tool(**options)
        def pay(order: str, amount: int) -> str:
            """Pay money back."""
            self.log.append(("pay", order, amount))
            return f"{amount} paid"

        self.tools = [look_up, pay]


def told(model, number=-1):
    """What a request told the model of tool calls."""
    return [message["content"] for message in model.requests[number]["messages"] if message["role"] == "tool"]
