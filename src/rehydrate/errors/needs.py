"""Errors of what a call needs beside its input and was not given: resources of a workflow, and optional packages.

All of them are raised before the claim: nothing has run and nothing has changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import CallError


@dataclass(eq=False, repr=False)
class MissingResourceError(CallError):
    """A resource that is needed was not given with this call."""

    code: ClassVar[str] = "missing-resource"
    keys: tuple[str, ...]
    where: str = ""

    def text(self) -> str:
        """Name the keys."""
        return f"resource(s) {', '.join(map(repr, self.keys))} were not given with this call{self.where}."

    def action(self) -> str:
        """Say what to do next."""
        return f"Resources are never stored: pass resources={{{self.keys[0]!r}: ...}} with every call of this run."


@dataclass(eq=False, repr=False)
class ResourceTypeError(CallError, TypeError):
    """A resource has another type than the workflow declares."""

    code: ClassVar[str] = "resource-type"
    key: str
    expected: str
    given: str

    def text(self) -> str:
        """Name the resource and both types."""
        return f"resource {self.key!r} is declared as {self.expected} and a {self.given} was given."

    def action(self) -> str:
        """Say what to do next."""
        return f"Pass a {self.expected} as resources={{{self.key!r}: ...}}."


@dataclass(eq=False, repr=False)
class MissingExtraError(CallError):
    """An optional package is needed and not installed."""

    code: ClassVar[str] = "missing-extra"
    what: str
    extra: str

    def text(self) -> str:
        """Name what needs it."""
        return f"{self.what} needs a package that is not installed."

    def action(self) -> str:
        """Say what to do next."""
        return f"pip install 'rehydrate[{self.extra}]'"
