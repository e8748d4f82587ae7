"""Errors of the codec: values that cannot be stored, types that cannot be named, stored values that fit no type.

Damaged bytes are `CheckpointCorruptError` and newer ones `CheckpointFormatError`; they are not repeated here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import CallError, DefinitionError, WorkflowCheckpointException


@dataclass(eq=False, repr=False)
class NotStorableError(CallError, TypeError):
    """A value cannot be stored exactly; raised at the line that would have stored it."""

    code: ClassVar[str] = "not-storable"
    type: str
    where: str
    why: str

    def text(self) -> str:
        """Name the type, the place inside the value and the reason."""
        place = f" (at {self.where})" if self.where not in {"", self.type} else ""
        return f"a value of type {self.type}{place} cannot be stored: {self.why}."

    def action(self) -> str:
        """Say what to do next."""
        return (
            "Store dataclasses, pydantic models, msgspec structs, attrs classes, enums and built-in values, registered"
            " by a handler's annotation, a function's types=, or @checkpointable, and keep live objects in resources."
        )


@dataclass(eq=False, repr=False)
class TypeNameConflictError(DefinitionError):
    """Two types of one workflow tree would have one name in its records."""

    code: ClassVar[str] = "type-name-conflict"
    name: str
    first: str
    second: str

    def text(self) -> str:
        """Name both types."""
        return f"{self.first} and {self.second} would both be stored as {self.name!r}."

    def action(self) -> str:
        """Say what to do next."""
        return "Give one of them a name of its own with @checkpointable(name=...)."


@dataclass(eq=False, repr=False)
class UnresolvedTypeError(DefinitionError):
    """A type hint names something that does not exist at run time."""

    code: ClassVar[str] = "unresolved-type"
    where: str
    problem: str

    def text(self) -> str:
        """Name the place and what is missing."""
        return f"a type hint of {self.where} cannot be resolved: {self.problem}."

    def action(self) -> str:
        """Say what to do next."""
        return (
            "Import the name at run time instead of under TYPE_CHECKING, define it at module level, or pass the type"
            " itself instead of its name."
        )


@dataclass(eq=False, repr=False)
class MarkError(DefinitionError, ValueError):
    """`@checkpointable` was used with arguments that do not go together."""

    code: ClassVar[str] = "checkpointable"
    type: str
    problem: str
    fix: str

    def text(self) -> str:
        """Name the type and the problem."""
        return f"@checkpointable on {self.type}: {self.problem}."

    def action(self) -> str:
        """Say what to do next."""
        return self.fix


@dataclass(eq=False, repr=False)
class UnknownTypeError(WorkflowCheckpointException):
    """A stored value has a type that this workflow does not know."""

    code: ClassVar[str] = "unknown-type"
    name: str

    def text(self) -> str:
        """Name the type."""
        return f"the stored type {self.name!r} is not registered in this workflow."

    def action(self) -> str:
        """Say what to do next."""
        return (
            "Import the module that defines it before the workflow is built; if it was renamed, keep its stored name"
            " with @checkpointable(name=...); if it is gone, keep the class until no run holds it."
        )


@dataclass(eq=False, repr=False)
class TypeChangedError(WorkflowCheckpointException):
    """A stored value does not fit its type of today."""

    code: ClassVar[str] = "type-changed"
    name: str
    problem: str

    def text(self) -> str:
        """Name the type and what differs."""
        return f"a stored value of type {self.name!r} does not fit today's definition: {self.problem}."

    def action(self) -> str:
        """Say what to do next."""
        return "Raise the type's version and convert old values with @checkpointable(version=..., upcast=...)."


@dataclass(eq=False, repr=False)
class UnknownZoneError(WorkflowCheckpointException):
    """A stored time is in a zone that this machine does not have."""

    code: ClassVar[str] = "unknown-zone"
    zone: str

    def text(self) -> str:
        """Name the zone."""
        return f"a stored value is in the time zone {self.zone!r}, which this machine does not know."

    def action(self) -> str:
        """Say what to do next."""
        return "Install the system's time zone data or the tzdata package."
