"""A workflow as a node of another one.

Only what the definition needs: what goes in and out. Running its scopes is the engine's and the runtime's work.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, Self, TypeVar, cast

from rehydrate.errors import ExecutorDefinitionError
from rehydrate.graph.definition import Definition
from rehydrate.graph.executor import Executor
from rehydrate.graph.nesting import (
    ForwardOutputs,
    Isolation,
    Nesting,
    Requests,
    check_choice,
    check_mapping,
    check_timeout,
)


class HasDefinition(Protocol):
    """Anything built: a `Workflow`, for one."""

    @property
    def definition(self) -> Definition:
        """The validated graph."""
        ...


class HasExecutorStates(Protocol):
    """A checkpoint, as far as its sub-workflows are concerned."""

    @property
    def executor_states(self) -> Mapping[str, Mapping[str, object]]:
        """What executors keep, by id."""
        ...

    def with_executor_state(self, executor_id: str, state: Mapping[str, object]) -> Self:
        """Return a checkpoint with another state of one executor."""
        ...


Checkpoint = TypeVar("Checkpoint", bound=HasExecutorStates)


class WorkflowExecutor(Executor):
    """Runs a workflow as a node: each message that it receives starts a scope of its own.

    It takes what the workflow's start executor takes and sends what the workflow yields. The id is the workflow's name
    unless given.

    `requests="intercept"` sends what is asked in it to an executor of the parent. `isolation="shared"` keeps one scope,
    which takes each message as a further input. `inputs` copies state of the parent to the scope when it starts, by
    `{parent key: child key}`; `outputs` copies state back when it ends, by `{child key: parent key}`. `forward_outputs`
    says whether what the workflow yields becomes messages along the edges or outputs of the parent. `timeout` is how
    many seconds a scope may be busy. Raises `ExecutorDefinitionError` for something that is not a built workflow, for
    arguments that mean nothing, and for `retry`.
    """

    def __init__(
        self,
        workflow: HasDefinition,
        id: str | None = None,
        *,
        inputs: Mapping[str, str] | None = None,
        outputs: Mapping[str, str] | None = None,
        requests: Requests = "propagate",
        isolation: Isolation = "isolated",
        forward_outputs: ForwardOutputs | None = None,
        timeout: float | None = None,
        retry: None = None,
    ) -> None:
        definition = cast("object", getattr(workflow, "definition", None))
        if not isinstance(definition, Definition):
            raise ExecutorDefinitionError(
                id or type(self).__name__,
                f"was given a {type(workflow).__name__}, which is not a built workflow",
                "Pass what WorkflowBuilder.build() returned.",
            )
        super().__init__(definition.name if id is None else id)
        if cast("object", retry) is not None:
            raise ExecutorDefinitionError(
                self.id,
                "a sub-workflow has no retry= of its own: what failed in it is tried again where it failed",
                "Give retry= to executors of the inner workflow.",
            )
        self.workflow = workflow
        self.definition = definition
        check_choice(self.id, "requests", requests, Requests)
        check_choice(self.id, "isolation", isolation, Isolation)
        if forward_outputs is not None:
            check_choice(self.id, "forward_outputs", forward_outputs, ForwardOutputs)
        self.nesting = Nesting(
            inputs=check_mapping(self.id, "inputs", inputs),
            outputs=check_mapping(self.id, "outputs", outputs),
            intercepts=requests == "intercept",
            shared=isolation == "shared",
            forwards=forward_outputs,
            timeout=check_timeout(self.id, timeout),
        )

    @property
    def has_instance_state(self) -> bool:
        """Never: its scopes are in the records."""
        return False

    # The base class's hooks are about an instance; this executor has none, and its state is a view of a checkpoint.
    def on_checkpoint_save(self, checkpoint: HasExecutorStates) -> Mapping[str, object]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return this sub-workflow's part of a checkpoint: `{"sub_workflow_checkpoint": {number: checkpoint}}`, or the
        checkpoint itself where its scope is shared and has begun."""
        return checkpoint.executor_states.get(self.id, {"sub_workflow_checkpoint": {}})

    def on_checkpoint_restore(self, state: Mapping[str, object], checkpoint: Checkpoint) -> Checkpoint:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the checkpoint with this sub-workflow as `on_checkpoint_save` gave it. Raises
        `CheckpointCorruptError` where `state` has another form."""
        return checkpoint.with_executor_state(self.id, state)

    def can_take(self, value: object) -> bool:
        """Tell whether the workflow's start executor can take a message of this value."""
        return self.definition.executors[self.definition.start].can_take(value)
