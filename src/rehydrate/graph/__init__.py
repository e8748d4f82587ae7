"""The definition of a workflow: executors and edges, what they are checked for, and what is made of them.

Frozen data and pure functions; it runs nothing and does no I/O. The decorator `executor` is imported from its module,
which it would hide here.
"""

from __future__ import annotations

from rehydrate.graph.context import WorkflowContext
from rehydrate.graph.definition import Definition, Join, Reducer
from rehydrate.graph.executor import Executor, FunctionExecutor
from rehydrate.graph.handlers import HandlerSpec, ResponseHandlerSpec, handler, response_handler
from rehydrate.graph.reducers import add, append, extend, merge
from rehydrate.graph.sub_workflow import HasDefinition, WorkflowExecutor

__all__ = [
    "Definition",
    "Executor",
    "FunctionExecutor",
    "HandlerSpec",
    "HasDefinition",
    "Join",
    "Reducer",
    "ResponseHandlerSpec",
    "WorkflowContext",
    "WorkflowExecutor",
    "add",
    "append",
    "extend",
    "handler",
    "merge",
    "response_handler",
]
