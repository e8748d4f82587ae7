"""Two agents and a person: a clerk reads mail, a treasurer one level down pays, and a person agrees to large sums.

    pip install openai
    python examples/agents_and_a_person.py        # scripted models, served on this machine: no network, no key

    OPENAI_API_KEY=... OPENAI_MODEL=gpt-5-mini python examples/agents_and_a_person.py
                                                  # a real model; OPENAI_BASE_URL names another provider

The first call pauses with the person's question. The second, with everything made anew as in another process, restores
the run, answers the question and brings the next mail.
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI

from rehydrate import (
    CheckpointStorage,
    RunStream,
    SqliteCheckpointStorage,
    Workflow,
    WorkflowBuilder,
    WorkflowExecutor,
    WorkflowRunResult,
    current_step,
)
from rehydrate.agents import ChatAgent, ChatModel, TextDelta, ToolApproval, tool
from rehydrate.model.events import Emitted, RequestOpened, StepStarted
from rehydrate.testing import ScriptedModel, ToolCall

ORDERS = {"o-7": 300, "o-8": 40}
KEY = os.environ.get("OPENAI_API_KEY")


@tool
async def look_up(order: str) -> int:
    """Say what an order cost."""
    return ORDERS[order]


@tool(approve=lambda order, amount: amount > 100)
def pay_back(order: str, amount: int) -> str:
    """Pay money for an order back."""
    key = current_step().effect_key  # the bank gets it: however often this is tried, it pays once
    return f"{amount} paid under a key of {len(key)} characters"


def build(store: CheckpointStorage) -> Workflow:
    """Build the tree: the clerk, and the treasurer in a workflow of its own."""

    def model(agent: str) -> ChatModel:
        return ChatModel(os.environ.get("OPENAI_MODEL", "gpt-5-mini") if KEY else agent)

    clerk = ChatAgent(
        "clerk",
        model("clerk"),
        "You read mail of customers. Look up what their order cost; then write one line as this:"
        " 'Refund AMOUNT for order ORDER: REASON.'",
        tools=[look_up],
    )
    treasurer = ChatAgent(
        "treasurer",
        model("treasurer"),
        "You are told of one refund. Pay it back by your tool, once, and say in one line what you did.",
        tools=[pay_back],
    )
    office = WorkflowExecutor(WorkflowBuilder("office", treasurer).build(), id="office")
    return WorkflowBuilder("refunds", clerk, checkpoint_storage=store).add_chain([clerk, office]).build()


async def watch(stream: RunStream) -> None:
    """Print what happens as it comes."""
    text = False
    async for event in stream:
        match event:
            case Emitted(data=TextDelta(text=piece)):
                print(piece if text else f"  {event.path}: {piece}", end="", flush=True)
                text = True
                continue
            case StepStarted(step=step):
                line = "asks its model" if step == "model" else f"calls {step}"
            case RequestOpened(data=ToolApproval() as asked):
                line = f"asks a person: {asked.tool} with {asked.arguments}?"
            case _:
                continue
        print(("\n" if text else "") + f"  {event.path} {line}")
        text = False
    if text:
        print()


async def call(path: Path, url: str | None, mail: str, answers: dict[str, bool] | None = None) -> WorkflowRunResult:
    """Make one call with everything made anew, as another process would; with answers it restores the run."""
    # Attempts are the agent's, which are recorded; so the client makes none of its own.
    client = AsyncOpenAI(base_url=url, api_key=KEY or "none", max_retries=0)
    async with client, SqliteCheckpointStorage(path) as store:
        restored: dict[str, Any] = {"checkpoint": "latest", "responses": answers} if answers else {}
        options = {"run_id": "desk", "resources": {"openai": client}, **restored}
        stream = build(store).run(mail, stream=True, **options)
        await watch(stream)
        return await stream.result()


def scripted(request: dict[str, Any]) -> str | ToolCall:
    """Do what a model would: call the tool, and say in a line what came of it."""
    said = [message for message in request["messages"] if message["role"] != "assistant"]
    words = re.findall(r"o-\d+|\d+", said[-2 if said[-1]["role"] == "tool" else -1]["content"])
    order = next(word for word in words if word.startswith("o-"))
    if request["model"] == "clerk":
        if said[-1]["role"] != "tool":
            return ToolCall("look_up", {"order": order})
        return f"Refund {said[-1]['content']} for order {order}: it was broken."
    if said[-1]["role"] != "tool":
        return ToolCall("pay_back", {"order": order, "amount": int(words[0])})
    return f"{order}: {said[-1]['content']}."


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder, ScriptedModel(scripted) as model:
        path, url = Path(folder) / "runs.db", None if KEY else model.url
        print("The first mail:")
        paused = await call(path, url, "My order o-7 came in pieces.")
        (question,) = paused.pending_requests
        print("One call: the person agrees, and here is the next mail:")
        result = await call(path, url, "My order o-8 came in pieces, too.", {question.request_id: True})
        for output in result.outputs:
            print(f"- {output}")
        if not KEY:
            assert result.outputs == [
                "o-7: 300 paid under a key of 32 characters.",
                "o-8: 40 paid under a key of 32 characters.",
            ]
            assert len(model.requests) == 8  # two rounds of each agent for each mail: nothing was asked twice


if __name__ == "__main__":
    asyncio.run(main())
