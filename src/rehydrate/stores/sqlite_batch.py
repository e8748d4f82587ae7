"""A batch: calls that waited together, done in order in one transaction.

A commit that lost its race undoes nothing but itself: it has written nothing yet, or all are done again with a
savepoint around each. When the transaction fails, all its writes fail. A task must not know what shares its
transaction, and may be done twice. Nothing is answered from here.
"""

from __future__ import annotations

import contextlib
import copy
import sqlite3
from collections.abc import Sequence
from typing import TypeAlias

from rehydrate.errors import RehydrateError, StoreBrokenError

from . import tasks as any_tasks
from .sqlite_database import Database
from .sqlite_errors import spoils_connection, translate

Task: TypeAlias = any_tasks.Task[Database]


class _HalfDoneError(Exception):
    """A task failed after it had written something, without a savepoint to undo it by."""


def serve(database: Database, tasks: Sequence[Task]) -> None:
    """Do all tasks in order, those that are alone after the others; afterwards each has its result or its error."""
    alone = [task for task in tasks if task.alone]
    if alone:
        tasks = [task for task in tasks if not task.alone]
    if tasks:
        _serve_together(database, tasks)
    for task in alone:
        try:
            task.result = task.work(database)
        except BaseException as error:  # as in `_serve_together`
            _fail(database, [task], error)


def _serve_together(database: Database, tasks: Sequence[Task]) -> None:
    if not any(task.writes for task in tasks):
        _serve_reads(database, tasks)
        return
    try:
        try:
            _write(database, tasks, apart=False)
        except _HalfDoneError:
            _write(database, tasks, apart=True)
    except BaseException as error:  # a thread hands on whatever happened: nobody else would hear of it
        _fail(database, [task for task in tasks if task.writes], error)
        # What the reads saw of the writes is not there any more.
        _serve_reads(database, [task for task in tasks if not task.writes])


def _write(database: Database, tasks: Sequence[Task], *, apart: bool) -> None:
    """Do all tasks in one transaction; savepoints cost each of them two statements, so at first there are none."""
    with database.writing():
        for task in tasks:
            task.error = None
            _do(database, task, apart=apart)


def _serve_reads(database: Database, tasks: Sequence[Task]) -> None:
    if not tasks:
        return
    try:
        with database.reading():
            for task in tasks:
                task.error = None
                _do(database, task, apart=False)
    except BaseException as error:  # as in `_serve_together`
        _fail(database, tasks, error)


def _do(database: Database, task: Task, *, apart: bool) -> None:
    changes = database.changes
    try:
        task.result = database.apart(task.work) if task.writes and apart else task.work(database)
    except BaseException as error:  # as in `_serve_together`
        # SQLite ends a transaction by itself at some errors: then the tasks before this one are undone as well.
        if not database.in_transaction or (isinstance(error, sqlite3.Error) and spoils_connection(error)):
            raise
        if not apart and database.changes != changes:
            raise _HalfDoneError from error
        task.error = _named(database, error)


def _fail(database: Database, tasks: Sequence[Task], error: BaseException) -> None:
    for task in tasks:
        task.error = _named(database, error)
    if isinstance(error, sqlite3.Error) and spoils_connection(error):
        # The next call opens another one.
        with contextlib.suppress(sqlite3.Error, RehydrateError):
            database.disconnect()


def _named(database: Database, error: BaseException) -> BaseException:
    if isinstance(error, (sqlite3.Error, UnicodeDecodeError)):
        meaning = translate(error, database.store)
        if isinstance(meaning, StoreBrokenError):
            database.breaks(meaning)
        return meaning
    return copy.copy(error) if isinstance(error, RehydrateError) else error
