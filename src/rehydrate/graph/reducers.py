"""The reducers that come with the library: how a state key takes a contribution.

Reducers are values of a definition; only the engine and the runtime apply them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, cast

from rehydrate.graph.definition import Reducer


class _Addable(Protocol):
    def __add__(self, other: object, /) -> object: ...


def _add(current: object, contribution: object) -> object:
    return contribution if current is None else cast("_Addable", current) + contribution


def _merge(current: object, contribution: object) -> object:
    return {**cast("dict[object, object]", current or {}), **cast("dict[object, object]", contribution)}


#: The contribution becomes the list's last element.
append: Final = Reducer("append")
#: The contribution is a list, whose elements are put at the end.
extend: Final = Reducer("extend")
#: `current + contribution`; the first contribution is the value.
add: Final = Reducer("add", _add)
#: The union of two dicts; the contribution's entries win.
merge: Final = Reducer("merge", _merge)


def reducer_of(value: Reducer | Callable[..., object]) -> Reducer | None:
    """Return a reducer for what a builder was given; `None` for a function without a name of its own."""
    if isinstance(value, Reducer):
        return value
    name = getattr(value, "__name__", "<lambda>")
    return None if name == "<lambda>" else Reducer(name, value)
