"""What tests of agents share: a scripted model, the real client, and tools that note their calls."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager

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


def talk(script, scenario: Callable[..., Awaitable[object]], **options):
    """Run `scenario(call, model)`, where `call` has the client and a store in memory; return the scripted model."""

    async def with_client(model):
        async with client_of(model, **options) as client:
            store = InMemoryCheckpointStorage()
            await scenario({"resources": {"openai": client}, "checkpoint_storage": store}, model)

    with ScriptedModel(script) as model:
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
