"""Marks: what `@checkpointable` says of a class.

The mark lives in the class itself. Marked classes are also known by their place in the code, as long as they live: a
stored name is looked up among them and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar, cast, overload
from weakref import WeakValueDictionary

from rehydrate.errors.codec import MarkError
from rehydrate.graph.hints import qualified_name

Class = TypeVar("Class", bound=type)
#: Given the stored version and the stored fields by name, returns the fields of today.
Upcast: TypeAlias = Callable[[int, dict[str, object]], dict[str, object]]

_ATTRIBUTE: Final = "__rehydrate_mark__"


@dataclass(frozen=True, slots=True)
class Mark:
    """A class's stored name (`None`: its own), version, and the function that brings older fields up to date."""

    name: str | None = None
    version: int = 1
    upcast: Upcast | None = None


UNMARKED: Final = Mark()
#: Marked classes by module and qualified name; of two at one place the newer is meant.
_MARKED: Final[WeakValueDictionary[tuple[str, str], type]] = WeakValueDictionary()


@overload
def checkpointable(cls: Class) -> Class: ...
@overload
def checkpointable(
    *, name: str | None = None, version: int = 1, upcast: Upcast | None = None
) -> Callable[[Class], Class]: ...
def checkpointable(
    cls: Class | None = None, *, name: str | None = None, version: int = 1, upcast: Upcast | None = None
) -> Class | Callable[[Class], Class]:
    """Mark a class as storable: with a stored name of its own, a version, and a way to read older versions.

    A marked subclass is registered wherever one of its bases is. `upcast(version, fields)` gets the stored version and
    the stored fields and returns the fields of this version. Raises `MarkError`.
    """

    def mark(marked: Class) -> Class:
        _check(marked, name, version, upcast)
        setattr(marked, _ATTRIBUTE, Mark(name, version, upcast))
        _MARKED[marked.__module__, marked.__qualname__] = marked
        return marked

    return mark if cls is None else mark(cls)


def mark_of(cls: type) -> Mark | None:
    """Return the class's own mark; one of a base class does not count."""
    return cast("Mark | None", cls.__dict__.get(_ATTRIBUTE))


def marked_classes() -> list[type]:
    """Return all marked classes."""
    return list(_MARKED.values())


def marked_as(name: str) -> list[type]:
    """Return the marked classes of a stored name."""
    return [cls for cls in marked_classes() if stored_name(cls) == name]


def stored_name(cls: type) -> str:
    """Return the name that a class has in records: the one given, else its qualified name without `<locals>`."""
    return (mark_of(cls) or UNMARKED).name or qualified_name(cls)


def _check(marked: type, name: str | None, version: int, upcast: Upcast | None) -> None:
    shown = qualified_name(marked)
    if name is not None and not (1 <= len(name) <= 200 and name.isprintable()):
        raise MarkError(shown, f"the name {name!r:.250} is not allowed", "Use 1 to 200 printable characters.")
    if version < 1:
        raise MarkError(shown, f"the version {version} is not allowed", "Count versions from 1.")
    if upcast is not None and version == 1:
        raise MarkError(shown, "upcast= has nothing to read at version 1", "Raise version= with each change.")
