"""Errors of a definition: found while executors are declared or a workflow is built.

They must not be raised by a running workflow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from .base import DefinitionError


class BuildProblem(str):
    """One problem of a workflow: a sentence that says where it is, what is wrong and what to do next.

    `code` is stable across releases; `place` names the executor, the edge or the argument.
    """

    code: str
    place: str
    action: str

    def __new__(cls, sentence: str, code: str, place: str, action: str) -> Self:
        """Make a problem; its sentence ends with the action."""
        self = super().__new__(cls, sentence)
        self.code, self.place, self.action = code, place, action
        return self

    @classmethod
    def of(cls, error: DefinitionError, place: str) -> Self:
        """Return the problem that an error tells."""
        return cls(str(error), error.code, place, error.action())

    def __reduce__(self) -> tuple[type[Self], tuple[str, str, str, str]]:
        return type(self), (str(self), self.code, self.place, self.action)


@dataclass(eq=False, repr=False)
class WorkflowBuildError(DefinitionError):
    """`build()` found problems; all of them are listed."""

    code: ClassVar[str] = "workflow-build"
    workflow: str
    problems: tuple[BuildProblem, ...]

    def text(self) -> str:
        """Return every problem, one a line."""
        lines = "".join(f"\n  - {problem}" for problem in self.problems)
        number = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        return f"workflow {self.workflow!r} cannot be built, {number}:{lines}"

    def action(self) -> str:
        """Say what to do next."""
        return "Correct this and build again." if len(self.problems) == 1 else "Correct these and build again."

    def __str__(self) -> str:
        return f"{self.text()}\n{self.action()}"


@dataclass(eq=False, repr=False)
class ExecutorDefinitionError(DefinitionError):
    """A handler, a step or a function is declared wrongly; `kind` is the word for what `executor` names."""

    code: ClassVar[str] = "executor-definition"
    executor: str
    problem: str
    fix: str
    kind: str = "executor"

    def text(self) -> str:
        """Name what it is and the problem."""
        return f"{self.kind} {self.executor!r}: {self.problem}."

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
