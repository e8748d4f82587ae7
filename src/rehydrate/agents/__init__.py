"""Agents: chat models with tools as nodes of a workflow, whose rounds and tool calls survive a crash.

Nothing here imports a client of a model: it comes as a resource. `PydanticAgent` is in `rehydrate.agents.pydantic_ai`,
which needs an extra.
"""

from __future__ import annotations

from .chat import ChatAgent
from .conversation import TextDelta, ToolApproval, ToolQuestion, Usage
from .model import ChatClient, ChatModel
from .tools import Tool, tool

__all__ = [
    "ChatAgent",
    "ChatClient",
    "ChatModel",
    "TextDelta",
    "Tool",
    "ToolApproval",
    "ToolQuestion",
    "Usage",
    "tool",
]
