"""The registry: the closed set of types that one workflow tree stores, by stable names.

Filled when it is made and never changed; nothing is imported, and outside of it only marked classes have names.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Final

from rehydrate.errors.codec import NotStorableError, TypeNameConflictError, UnknownTypeError
from rehydrate.graph.hints import Hint, describe, qualified_name

from .classes import layout_of
from .layouts import Layout
from .marks import UNMARKED, Upcast, mark_of, stored_name
from .reach import Reach
from .scalars import SCALARS

#: Types that MessagePack writes exactly by itself, apart from ints beyond 64 bits and lone surrogates.
LEAVES: Final = frozenset({NoneType, bool, int, float, str, bytes})

#: Built-in types by their names; they need no registration.
BUILT_IN: Final[Mapping[type, str]] = {
    NoneType: "None",
    **{cls: cls.__name__ for cls in (bool, int, float, str, bytes, list, tuple, dict, set, frozenset, deque)},
    **{scalar.type: scalar.name for scalar in SCALARS},
}


@dataclass(frozen=True, slots=True)
class Entry:
    """A registered class: its stored name and version, how older versions are read, and its layout."""

    type: type
    name: str
    version: int
    upcast: Upcast | None
    layout: Layout


class TypeRegistry:
    """The storable types of one workflow tree.

    Takes types and type hints and finds all types that their parameters and fields lead to, and the marked subclasses
    of those. Raises `TypeNameConflictError` and `UnresolvedTypeError`.
    """

    def __init__(self, types: Iterable[object] = ()) -> None:
        self._given = tuple(types)
        types = self._given
        reach = Reach(BUILT_IN)
        reach.add(types)
        self._entries: dict[type, Entry] = {}
        self._types: dict[str, type] = {name: cls for cls, name in BUILT_IN.items()}
        for cls in reach.classes:
            self._enter(cls)
        self._names: dict[type, str] = {**BUILT_IN, **{cls: entry.name for cls, entry in self._entries.items()}}

    def _enter(self, cls: type) -> None:
        name = stored_name(cls)
        other = self._types.setdefault(name, cls)
        if other is not cls:
            raise TypeNameConflictError(name, *sorted((_full_name(cls), _full_name(other))))
        mark = mark_of(cls) or UNMARKED
        self._entries[cls] = Entry(cls, name, mark.version, mark.upcast, layout_of(cls))

    def joined_by(self, *types: object) -> TypeRegistry:
        """Return a registry that also has some types and what their fields lead to; raises as the constructor."""
        return TypeRegistry((*self._given, *types))

    def knows(self, types: Iterable[object]) -> bool:
        """Tell whether all of some types, and what their parameters lead to, are registered."""
        reach = Reach(BUILT_IN)
        reach.add(tuple(types))
        return all(cls in self._entries for cls in reach.classes)

    def name_of(self, type_: type) -> str:
        """Return the stored name of a type; raises `NotStorableError` for one that is not registered."""
        name = self._names.get(type_)
        if name is None:
            raise NotStorableError(qualified_name(type_), "", "its type is not registered")
        return name

    def type_of(self, name: str) -> type:
        """Return the type of a stored name; raises `UnknownTypeError`."""
        found = self._types.get(name)
        if found is None:
            raise UnknownTypeError(name)
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._types

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def names(self) -> tuple[str, ...]:
        """Return the names of the registered types, sorted, without the built-in ones."""
        return tuple(sorted(entry.name for entry in self._entries.values()))


def type_name(hint: Hint) -> str:
    """Return the canonical text of a type hint: stored names without modules, members of unions sorted."""
    return describe(hint, stored_name)


def _full_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
