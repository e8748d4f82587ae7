"""Tasks: what store objects ask of the thread that owns their place, and what such a place is.

Nothing here waits or does anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

_P = TypeVar("_P")


class Task(Generic[_P]):
    """One call and what came of it: a result or an error. It must not know what shares its batch.

    One that is `alone` shares none: in a database it opens transactions of its own.
    """

    __slots__ = ("alone", "error", "result", "work", "writes")

    def __init__(self, work: Callable[[_P], object], *, writes: bool, alone: bool = False) -> None:
        self.work = work
        self.writes = writes
        self.alone = alone
        self.result: object = None
        self.error: BaseException | None = None


class Place(Protocol):
    """What a worker owns: a file, or a folder of files."""

    @property
    def store(self) -> str:
        """Return its name in errors."""
        ...

    @property
    def is_over(self) -> bool:
        """Say whether it can be used no more, so that a new store object needs a new one; asked from any thread."""
        ...

    def disconnect(self) -> None:
        """Close what a fork cannot copy; the next use opens it again."""
        ...

    def close(self) -> None:
        """Close everything that belongs to this process."""
        ...

    def let_go(self) -> None:
        """Free what a place that is gone still holds, for the one that is there now."""
        ...

    def forget(self) -> None:
        """Drop, in a forked child, what the child must neither use nor close."""
        ...
