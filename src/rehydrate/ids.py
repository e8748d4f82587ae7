"""Paths and names inside a run.

Types and pure functions only: making ids and reading clocks is the runtime's work. A path addresses a scope; the root
is the empty path, a child `executor#number`, a grandchild `executor#number/executor#number`.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from typing import Final

from .errors import IdError

#: Path of the root scope.
ROOT: Final = ""
#: Where the records of the root's own scope and step are listed; no executor can have this name as a path.
ABOVE_ROOT: Final = "/"
#: Deepest nesting of scopes; a definition nested in itself by mistake stops here.
MAX_DEPTH: Final = 64
MAX_ID_LENGTH: Final = 200
_NUMBERS: Final = re.compile(r"([0-9]+)")
#: State keys that were found right; they come by often.
_KEYS: Final[set[str]] = set()
_REMEMBERED: Final = 4096


def check_id(value: object, what: str) -> str:
    """Return `value` when it can be an id; raises `IdError` otherwise."""
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_ID_LENGTH:
        raise IdError(what, str(value))
    if "/" in value or "#" in value or not _printable(value):
        raise IdError(what, value)
    return value


def check_key(value: object, what: str) -> str:
    """Return `value` when it can name a state key (as an id, but `/` and `#` are allowed); raises `IdError`."""
    if isinstance(value, str) and value in _KEYS:
        return value
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_ID_LENGTH or not _printable(value):
        raise IdError(what, str(value))
    if len(_KEYS) < _REMEMBERED:
        _KEYS.add(value)
    return value


def _printable(text: str) -> bool:
    return not any(char < " " or "\x7f" <= char <= "\x9f" or "\ud800" <= char <= "\udfff" for char in text)


def child_path(parent: str, executor_id: str, number: int) -> str:
    """Return the path of scope `number` of `executor_id` in `parent`."""
    segment = f"{executor_id}#{number}"
    return f"{parent}/{segment}" if parent else segment


@lru_cache(maxsize=65536)
def slot(path: str) -> tuple[str, str]:
    """Return (path of the parent, segment) under which a scope is listed; the root stands above itself."""
    if not path:
        return ABOVE_ROOT, ""
    parent, _, segment = path.rpartition("/")
    return parent, segment


def join_slot(parent: str, segment: str) -> str:
    """Return the path that `slot` took apart."""
    if parent == ABOVE_ROOT:
        return ROOT
    return f"{parent}/{segment}" if parent else segment


def parent_of(path: str) -> str:
    """Return the enclosing scope's path; of the root, `ABOVE_ROOT`."""
    return slot(path)[0]


def scope_of(segment: str) -> tuple[str, int]:
    """Return (executor id, number of the scope) of a segment."""
    executor_id, _, number = segment.rpartition("#")
    return executor_id, int(number)


def depth_of(path: str) -> int:
    """Return how many scopes enclose this one."""
    return path.count("/") + 1 if path else 0


def ancestors(path: str) -> list[str]:
    """Return the enclosing paths from the root down, without `path` itself."""
    parts = path.split("/") if path else []
    return ["/".join(parts[:index]) for index in range(len(parts))]


def request_name(path: str, executor_id: str, activation: int, count: int) -> str:
    """Return the name of a request inside the record."""
    return f"{path}/{executor_id}#{activation}?{count}"


def outer_id(birth: str, name: str) -> str:
    """Return the id by which the outside knows `name`: a hash, so that it is one token and tells nothing."""
    return hashlib.sha256(f"{birth}\n{name}".encode()).hexdigest()[:32]


def order_key(name: str) -> tuple[tuple[int, int | str], ...]:
    """Return a sort key under which the numbers inside a name count as numbers."""
    return tuple((0, int(part)) if index % 2 else (1, part) for index, part in enumerate(_NUMBERS.split(name)))
