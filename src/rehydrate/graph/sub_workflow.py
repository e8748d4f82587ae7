"""A workflow as a node of another one.

Only what the definition needs: what goes in and out. Running its scopes is the engine's and the runtime's work.
"""

from __future__ import annotations

from typing import Protocol, cast

from rehydrate.errors import ExecutorDefinitionError
from rehydrate.graph.definition import Definition
from rehydrate.graph.executor import Executor


class HasDefinition(Protocol):
    """Anything built: a `Workflow`, for one."""

    @property
    def definition(self) -> Definition:
        """The validated graph."""
        ...


class WorkflowExecutor(Executor):
    """Runs a workflow as a node: each message that it receives starts a scope of its own.

    It takes what the workflow's start executor takes and sends what the workflow yields. The id is the workflow's name
    unless given. Raises `ExecutorDefinitionError` for something that is not a built workflow.
    """

    def __init__(self, workflow: HasDefinition, id: str | None = None) -> None:
        definition = cast("object", getattr(workflow, "definition", None))
        if not isinstance(definition, Definition):
            raise ExecutorDefinitionError(
                id or type(self).__name__,
                f"was given a {type(workflow).__name__}, which is not a built workflow",
                "Pass what WorkflowBuilder.build() returned.",
            )
        super().__init__(definition.name if id is None else id)
        self.workflow = workflow
        self.definition = definition

    @property
    def has_instance_state(self) -> bool:
        """Never: its scopes are in the records."""
        return False

    def can_take(self, value: object) -> bool:
        """Tell whether the workflow's start executor can take a message of this value."""
        return self.definition.executors[self.definition.start].can_take(value)
