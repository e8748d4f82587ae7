"""The root of every error that rehydrate raises.

An error is a dataclass: its fields say what happened, `code` is stable across releases, and its text ends with the
next action. Nothing here may depend on any other part of the package.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar


@dataclass(eq=False, repr=False)
class RehydrateError(Exception):
    """Base of all errors of this library; never raised itself."""

    code: ClassVar[str] = "rehydrate"

    def text(self) -> str:
        """Return what happened, in one or two sentences."""
        return self.__class__.__name__

    def action(self) -> str:
        """Return what the reader can do next."""
        return ""

    def __str__(self) -> str:
        return f"{self.text()} {self.action()}".strip()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __reduce__(self) -> tuple[type[RehydrateError], tuple[object, ...]]:
        return type(self), tuple(getattr(self, field.name) for field in fields(self))


@dataclass(eq=False, repr=False)
class DefinitionError(RehydrateError):
    """A workflow, an executor or a type is defined wrongly."""

    code: ClassVar[str] = "definition"


@dataclass(eq=False, repr=False)
class CallError(RehydrateError):
    """A call cannot be carried out as it was made; nothing has run and nothing has changed."""

    code: ClassVar[str] = "call"


@dataclass(eq=False, repr=False)
class RunError(RehydrateError):
    """A run, or something inside it, failed."""

    code: ClassVar[str] = "run"


@dataclass(eq=False, repr=False)
class StoreError(RehydrateError):
    """A store could not do what was asked of it."""

    code: ClassVar[str] = "store"


@dataclass(eq=False, repr=False)
class WorkflowCheckpointException(RehydrateError):  # noqa: N818  (the field's name for it)
    """A checkpoint cannot be captured or restored; nothing has run and nothing has changed."""

    code: ClassVar[str] = "checkpoint"
