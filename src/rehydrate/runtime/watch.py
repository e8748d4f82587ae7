"""Watching the commands of a turn as they are obeyed, so that a test can let its process end at any of them.

Whoever watches is told before and after each and may raise. Nothing of the product watches.
"""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

CommandKind: TypeAlias = Literal[
    "commit", "publish", "start", "tell", "look", "route", "merge", "start timer", "stop timer", "stop scope"
]
Moment: TypeAlias = Literal["before", "after"]


class Watched(Protocol):
    """The turn whose commands are watched."""

    @property
    def claimed(self) -> bool:
        """Whether the turn's input is saved; at its claim it is not."""
        ...

    def break_off(self, error: BaseException) -> None:
        """End as if the process had ended: nothing more is saved or told."""
        ...


class Watch(Protocol):
    """Is told of each command; what it raises ends the turn there."""

    def __call__(self, kind: CommandKind, moment: Moment, turn: Watched) -> None:
        """Take note of a command."""
        ...
