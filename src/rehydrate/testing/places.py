"""A place where a process holds a value, and what stood there first.

Must not know what it is a place of.
"""

from __future__ import annotations

import copy
import itertools
import random
import re
import warnings
from collections import deque
from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass
from types import CellType
from typing import Final, cast

_SCALARS: Final = (int, float, complex, str, bytes, bool, type(None))
_CONTAINERS: Final = (list, dict, set, deque, bytearray)
#: Things of the standard library that count or draw, and can be copied.
_DRAWING: Final = (itertools.count, random.Random)
_ADDRESS: Final = re.compile(r"0x[0-9a-f]+")


def is_scalar(value: object) -> bool:
    """Tell whether a value cannot change."""
    return isinstance(value, _SCALARS)


def is_container(value: object) -> bool:
    """Tell whether a value can be emptied and filled."""
    return isinstance(value, _CONTAINERS)


def can_be_copied(value: object) -> bool:
    """Tell whether a copy of a value stands for it."""
    return isinstance(value, (*_CONTAINERS, *_DRAWING))


@dataclass(frozen=True)
class Held:
    """A name that a value is held by: in a mapping, as an attribute of a class, or in a cell of a function."""

    name: str
    holder: MutableMapping[str, object] | type | CellType
    key: str

    def read(self) -> object:
        """Return the value; `None` where there is none any more."""
        if isinstance(self.holder, CellType):
            return cast("object", self.holder.cell_contents)
        if isinstance(self.holder, type):
            return cast("object", vars(self.holder).get(self.key))
        return self.holder.get(self.key)

    def write(self, value: object) -> None:
        """Put a value there."""
        if isinstance(self.holder, CellType):
            self.holder.cell_contents = value
        elif isinstance(self.holder, type):
            setattr(self.holder, self.key, value)
        else:
            self.holder[self.key] = value


def copied(value: object) -> object | None:
    """Return a deep copy; `None` for what cannot be copied."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # counters of itertools can be copied up to Python 3.13
            return copy.deepcopy(value)
    except Exception:  # a value of the user's that refuses, or that holds a lock or a socket
        return None


@dataclass(frozen=True)
class Place:
    """A held value: the object that stood there first, and a copy of it as it was."""

    held: Held
    first: object
    before: object

    def change(self) -> str | None:
        """Say how the value differs from what stood there first; `None` where it does not."""
        now = self.held.read()
        if now is self.before:
            return None
        one, other = _ADDRESS.sub("", repr(self.before)), _ADDRESS.sub("", repr(now))
        return None if one == other else f"{self.held.name}: {one:.80} became {other:.80}"

    def reset(self) -> None:
        """Put back what stood there first: a container is the same object and holds what it held."""
        value = self.first
        if self.before is not self.first:
            fresh = copied(self.before)
            value = _refilled(self.first, fresh) if is_container(self.first) else fresh
        if self.held.read() is not value:
            self.held.write(value)


def _refilled(container: object, content: object) -> object:
    """Return the container with another content."""
    if isinstance(container, dict):
        known = cast("dict[object, object]", container)
        known.clear()
        known.update(cast("dict[object, object]", content))
        return known
    if isinstance(container, set):
        members = cast("set[object]", container)
        members.clear()
        members.update(cast("set[object]", content))
        return members
    items = cast("list[object]", container)  # a deque or a bytearray has the same two methods
    items.clear()
    items.extend(cast("Iterable[object]", content))
    return items
