"""Branches of a pass: which one a call belongs to, by what name it is known, and whether the branch waits.

The function is the first branch; each awaitable of a `ctx.gather` is one by its number, and each further task that
calls anything is one by its first call. Nothing here runs or records anything.
"""

from __future__ import annotations

import asyncio
import hashlib
from contextvars import ContextVar
from typing import Final

#: The branch that code runs in.
BRANCH: Final[ContextVar[Branch | None]] = ContextVar("rehydrate_branch", default=None)
#: Numbers of called scopes below this are plain; those of branches are longer.
_PLAIN: Final = 1000
_LARGEST: Final = 1 << 62


class Branches:
    """How many of the branches of a pass go on as far as is seen, and how many do not wait in their own task."""

    __slots__ = ("going", "handing")

    def __init__(self) -> None:
        self.going = self.handing = 0


class Branch:
    """One line of calls in a pass: their order in it is checked."""

    __slots__ = (
        "_calls", "_gathers", "_seeds", "_tasks", "all", "below", "name", "over", "own", "parent", "position", "task",
    )  # fmt: skip

    def __init__(self, name: str, parent: Branch | None, task: asyncio.Task[object] | None = None) -> None:
        self.name = name
        self.parent = parent
        #: Those of the same pass. (Were the first branch kept here, it would keep itself.)
        self.all: Branches = Branches() if parent is None else parent.all
        self.all.going += 1
        self.all.handing += 1
        self.task = task
        self.position = 0
        #: Waits of its own task, and of tasks that it has made.
        self.own = self.below = 0
        self.over = False
        self._gathers = self._seeds = 0
        self._tasks: dict[str, int] = {}
        self._calls: dict[str, int] = {}

    def next_name(self) -> str:
        """Return the name of its next call."""
        self.position += 1
        return f"{self.name}:{self.position}" if self.name else str(self.position)

    def next_seed(self) -> str:
        """Return what tells its next random value from all others."""
        self._seeds += 1
        return f"{self.name}!{self._seeds}"

    def next_gather(self) -> str:
        """Return what the names of the branches of its next `ctx.gather` begin with."""
        self._gathers += 1
        return f"{self.name},g{self._gathers}" if self.name else f"g{self._gathers}"

    def of_task(self, task: asyncio.Task[object], first: str) -> Branch:
        """Return the branch of a task that it made, named by the first call that it makes."""
        number = self._tasks[first] = self._tasks.get(first, 0) + 1
        name = f"{self.name},t{first}.{number}" if self.name else f"t{first}.{number}"
        return Branch(name, self, task)

    def next_called(self, pass_number: int, callee: str) -> int:
        """Return the number of the next scope of a workflow that is called here: the same in every pass over it."""
        occurrence = self._calls[callee] = self._calls.get(callee, 0) + 1
        return called_number(pass_number, self.name, occurrence)

    def count(self, task: asyncio.Task[object] | None, change: int) -> None:
        """Note that a task begins or ends to wait on its behalf."""
        own = change if task is self.task else 0
        self._count(own, change - own)
        above = self.parent
        while above is not None:
            above._count(0, change)
            above = above.parent

    def end(self) -> None:
        """Note that its task is over: it keeps nobody from waiting any more."""
        self._count_in_all(-1)
        self.over = True

    def _count(self, own: int, below: int) -> None:
        self._count_in_all(-1)
        self.own += own
        self.below += below
        self._count_in_all(1)

    def _count_in_all(self, change: int) -> None:
        if self.over or self.own:
            return
        self.all.handing += change
        if not self.below:
            self.all.going += change


def called_number(pass_number: int, branch: str, occurrence: int) -> int:
    """Return the number of a called scope: it follows from its place alone, and keeps the order of places.

    The first pass's own calls are counted; others have the digits of each part of their place, with their number before
    them, so that no two places have the same. What gets too long is hashed.
    """
    if pass_number == 1 and not branch and occurrence < _PLAIN:
        return occurrence
    numbers = [pass_number]
    for part in branch.split(",") if branch else ():
        if not part.startswith("g"):
            return _hashed(pass_number, branch, occurrence)
        numbers += [int(number) for number in part[1:].split(".")]
    text = "".join(f"{len(str(number))}{number}" for number in [*numbers, occurrence])
    number = int(text) if len(text) < len(str(_LARGEST)) else 0
    return number or _hashed(pass_number, branch, occurrence)


def _hashed(pass_number: int, branch: str, occurrence: int) -> int:
    digest = hashlib.sha256(f"{pass_number} {branch} {occurrence}".encode()).digest()
    return _LARGEST + int.from_bytes(digest[:7], "big")
