"""What the thread of a file store does with a task: look that the store can be used, lock where it writes, name errors.

Nothing is answered from here. Each commit is made to last on its own.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

from rehydrate.errors import RehydrateError

from .file_disk import SyncError, translated
from .file_place import FilePlace
from .file_undo import take_back
from .tasks import Task


def serve(place: FilePlace, tasks: Sequence[Task[FilePlace]]) -> None:
    """Do all tasks in order; afterwards each has its result or its error."""
    for task in tasks:
        try:
            place.check_usable()
            task.result = _written(place, task) if task.writes else task.work(place)
        except BaseException as error:  # a thread hands on whatever happened: nobody else would hear of it
            place.note(error)
            task.error = _named(place, error)


def _written(place: FilePlace, task: Task[FilePlace]) -> object:
    with place.writing():
        take_back(place)
        return task.work(place)


def _named(place: FilePlace, error: BaseException) -> BaseException:
    if isinstance(error, (OSError, SyncError)):
        return translated(error, place.store)
    return copy.copy(error) if isinstance(error, RehydrateError) else error
