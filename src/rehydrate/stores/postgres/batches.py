"""A batch: writes that waited together, done in as few transactions as can be; and what is done alone.

Whatever happens becomes the result or the error of a call; nothing is raised from here, and nothing is answered.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from rehydrate.errors import RehydrateError
from rehydrate.model.checkpoint import Commit

from .connections import Link
from .session import Session
from .writing import Outcome, Renewal, renew_leases, write_commits

#: The time of a store's own clock; `None` where the server's is to be taken.
Now: TypeAlias = Callable[[], float | None]


class Save(NamedTuple):
    """A commit to write."""

    commit: Commit


class Single(NamedTuple):
    """Something to read, or to write in a transaction of its own: `work(session, again)`; see `Link.do`."""

    work: Callable[[Session, bool], object]
    writes: bool


#: What is done together with others.
Write: TypeAlias = Save | Renewal


class Task(Protocol):
    """What a batch sees of a call."""

    work: Single | Write
    result: object
    error: BaseException | None


def size_of(work: Write) -> int:
    """Return how many bytes of records and events a write holds."""
    if isinstance(work, Renewal):
        return 0
    return sum(len(put.data) for put in work.commit.puts) + sum(map(len, work.commit.events))


def do_single(link: Link, task: Task, single: Single) -> None:
    """Do something that is done alone."""
    try:
        task.result = link.do(single.work, writes=single.writes)
    except BaseException as error:  # a thread hands on whatever happened: nobody else would hear of it
        task.error = error


def do_writes(link: Link, tasks: Sequence[Task], now: Now) -> None:
    """Do writes of different runs: all commits in one transaction, and all renewals in one."""
    saves = [(task, task.work.commit) for task in tasks if isinstance(task.work, Save)]
    renewals = [(task, task.work) for task in tasks if isinstance(task.work, Renewal)]
    if saves:
        commits = [commit for _, commit in saves]
        _do_all(link, [task for task, _ in saves], lambda s, again: write_commits(s, commits, now(), again=again))
    if renewals:
        leases = [renewal for _, renewal in renewals]
        _do_all(link, [task for task, _ in renewals], lambda s, _: renew_leases(s, leases, now()))


def _do_all(link: Link, tasks: Sequence[Task], work: Callable[[Session, bool], Sequence[Outcome]]) -> None:
    try:
        for task, error in zip(tasks, link.do(work, writes=True), strict=True):
            task.error = error
    except BaseException as error:  # as in `do_single`
        for task in tasks:
            task.error = copy.copy(error) if isinstance(error, RehydrateError) else error
