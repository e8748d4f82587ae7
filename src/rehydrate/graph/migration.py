"""Migrations: what a function that brings a stored run up by one version gets and may do.

Plain data and a protocol. What is stored is shown with names of types instead of classes; the code that does it stands
in the layers above. A migration is pure: it has nothing but what it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias


@dataclass(eq=False)
class PlainObject:
    """A stored object without its class: the name and version of its type, and its fields.

    Fields hold built-in values as they are, and other objects in this form.
    """

    type: str
    fields: dict[str, object]
    version: int = 1


@dataclass(frozen=True)
class PlainMessage:
    """A message that waits in a scope: for an executor or, held by a join or the end of a map, for others.

    `source` is known of what a join holds. A list that a join has handed over is a list.
    """

    executor: str
    value: object
    source: str | None = None


@dataclass(frozen=True)
class PlainRequest:
    """An open request of a scope: who asked, what, and the text of the type that it expects."""

    request_id: str
    executor: str
    data: object
    response_type: str


@dataclass(frozen=True)
class PlainScope:
    """One running workflow, as it was stored: a picture, changes are made by the calls of `MigrationView`.

    `counters` are the activations that each executor has had; `instances` what save hooks gave, by executor.
    """

    path: str
    state: Mapping[str, object] = field(default_factory=dict[str, object])
    messages: tuple[PlainMessage, ...] = ()
    held: tuple[PlainMessage, ...] = ()
    requests: tuple[PlainRequest, ...] = ()
    instances: Mapping[str, object] = field(default_factory=dict[str, object])
    counters: Mapping[str, int] = field(default_factory=dict[str, int])


#: Gets the plain fields of an object and returns those of its new form.
FieldChange: TypeAlias = Callable[[dict[str, object]], dict[str, object]]
#: Gets a plain value and returns the new one.
ValueChange: TypeAlias = Callable[[object], object]


class MigrationView(Protocol):
    """A stored run while it is brought up by one version of a workflow.

    `at` names the scopes that a call is about, from those of this workflow down: `""` is these themselves,
    `"review#*"` every execution of the sub-workflow `review`, `"review#2"` the second one, `"review#*/legal#*"` goes
    one deeper. What is wrong raises `MigrationError`, and the stored run stays as it was.
    """

    @property
    def workflow(self) -> str:
        """The workflow's name."""
        ...

    @property
    def version(self) -> int:
        """The version that is brought up by one."""
        ...

    def executors(self, at: str = "") -> tuple[str, ...]:
        """Return the ids of the executors that the workflow had."""
        ...

    def scopes(self, at: str = "") -> list[PlainScope]:
        """Return the scopes, in order."""
        ...

    def rename_executor(self, old: str, new: str, *, at: str = "") -> None:
        """Give an executor another id, with all that is stored of it. Requests keep the ids that the outside knows."""
        ...

    def drop_executor(self, name: str, *, at: str = "") -> list[str]:
        """Remove an executor with all that waits for it; returns what that was, and the turn's events list it."""
        ...

    def move_messages(self, source: str, target: str, *, at: str = "") -> int:
        """Let another executor have the messages that wait for `source`, in the next superstep; returns how many."""
        ...

    def rename_handler(self, executor: str, old: str, new: str, *, at: str = "") -> None:
        """Let answers go to a response handler that has another name now."""
        ...

    def rename_state_key(self, old: str, new: str, *, at: str = "") -> None:
        """Give a state key another name."""
        ...

    def change_state(self, key: str, change: ValueChange, *, at: str = "") -> int:
        """Replace a state key's plain value where it is set; returns in how many scopes it was."""
        ...

    def restart_passes(self, at: str = "") -> list[str]:
        """Let passes of functions that wait or are unfinished begin again from their message, with nothing remembered.

        Their questions are withdrawn, and the workflows that they have called end. Returns what that was; the turn's
        events list it, too.
        """
        ...

    def change_type(self, old: str, new: str, change: FieldChange | None = None, *, version: int | None = None) -> int:
        """Give stored objects of a type another name, other fields, another version; returns how many there were.

        A type belongs to the whole run, so this reaches every value in it, at any depth.
        """
        ...


#: Brings a stored run up by one version; what it returns does not matter.
Migration: TypeAlias = Callable[[MigrationView], object]
