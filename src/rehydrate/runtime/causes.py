"""Exceptions of user code as text: what is recorded and shown of them.

User code may raise anything, also what cannot be printed or stored; nothing here lets that through.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, cast

from rehydrate.errors import RehydrateError
from rehydrate.model.effects import Failure, FailureKind

_TEXT: Final = 2000
_TRACE: Final = 8000
#: Of a group of exceptions so many are named.
_OF_GROUP: Final = 5
#: With so many letters each, so that none is lost for the others.
_OF_ONE: Final = 300


def told(error: BaseException) -> str:
    """Return an exception's class and text; of an error of this library without the next action, which is told once."""
    return f"{type(error).__name__}: {safe_text(lambda: _said(error), _TEXT)}"


def _said(error: BaseException) -> str:
    if isinstance(error, RehydrateError):
        return error.text()
    if not isinstance(error, BaseExceptionGroup):
        return str(error)
    # What a task group raises says by itself only how many there are.
    group = cast("BaseException", error)
    named = [told(each)[:_OF_ONE] for each in islice(leaves(group), _OF_GROUP)]
    return f"{str(group)[:_OF_ONE]}: {'; '.join(named)}"


def leaves(error: BaseException) -> Iterator[BaseException]:
    """Give an exception, or those in a group and in groups in it, in their order."""
    waiting: list[BaseException] = [error]
    while waiting:
        found = waiting.pop()
        if isinstance(found, BaseExceptionGroup):
            waiting += reversed(cast("BaseExceptionGroup[BaseException]", found).exceptions)
        else:
            yield found


def failure_of(error: BaseException, kind: FailureKind) -> Failure:
    """Return an exception as it is recorded."""
    trace = safe_text(lambda: "".join(traceback.format_exception(error, limit=-8)), _TRACE)
    return Failure(kind, type(error).__name__, safe_text(lambda: _said(error), _TEXT), trace)


def safe_text(make: Callable[[], str], limit: int) -> str:
    """Return the end of a text that user code makes, or what that raised."""
    try:
        text = make()
    except Exception as problem:  # user code: its own __str__
        text = f"<its text could not be made: {type(problem).__name__}>"
    return text[-limit:].encode("utf-8", "backslashreplace").decode()
