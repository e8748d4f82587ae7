"""Errors of a definition: found while executors are declared or a workflow is built.

They must not be raised by a running workflow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import DefinitionError


@dataclass(eq=False, repr=False)
class WorkflowBuildError(DefinitionError):
    """`build()` found problems; all of them are listed."""

    code: ClassVar[str] = "workflow-build"
    workflow: str
    problems: tuple[str, ...]

    def text(self) -> str:
        """Return every problem, one a line."""
        lines = "\n".join(f"  - {problem}" for problem in self.problems)
        return f"workflow {self.workflow!r} cannot be built ({len(self.problems)} problem(s)):\n{lines}\n"

    def action(self) -> str:
        """Say what to do next."""
        return "Correct these and build again."


@dataclass(eq=False, repr=False)
class ExecutorDefinitionError(DefinitionError):
    """An executor class or function is declared wrongly."""

    code: ClassVar[str] = "executor-definition"
    executor: str
    problem: str
    fix: str

    def text(self) -> str:
        """Name the executor and the problem."""
        return f"executor {self.executor!r}: {self.problem}."

    def action(self) -> str:
        """Say what to do next."""
        return self.fix


@dataclass(eq=False, repr=False)
class FrozenExecutorError(DefinitionError):
    """An attribute of an executor was assigned after `build()`."""

    code: ClassVar[str] = "frozen-executor"
    executor: str
    attribute: str

    def text(self) -> str:
        """Name the executor and the attribute."""
        return (
            f"executor {self.executor!r} is part of a built workflow and shared by all runs, so its attribute"
            f" {self.attribute!r} cannot be assigned: the value would leak into other runs and be lost on a restore."
        )

    def action(self) -> str:
        """Say what to do next."""
        return (
            "Keep it in run state (ctx.set_state), or override on_checkpoint_save and on_checkpoint_restore to get an"
            " instance per scope, or use functools.cached_property for a client."
        )


@dataclass(eq=False, repr=False)
class PolicyError(DefinitionError, ValueError):
    """A policy of an executor (`retry=`, `timeout=`) has a value that makes no sense."""

    code: ClassVar[str] = "policy"
    what: str
    fix: str

    def text(self) -> str:
        """Name the value."""
        return f"{self.what} is not allowed."

    def action(self) -> str:
        """Say what to do next."""
        return self.fix


@dataclass(eq=False, repr=False)
class IdError(DefinitionError, ValueError):
    """A name or id has a form that is not allowed."""

    code: ClassVar[str] = "id"
    what: str
    value: str

    def text(self) -> str:
        """Name the id."""
        return f"{self.what} {self.value!r:.250} is not allowed."

    def action(self) -> str:
        """Say what to do next."""
        return "Use 1 to 200 characters without '/', '#' and control characters."
