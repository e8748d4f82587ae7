"""What stored bytes of theirs become in the reading process: inert values, and what may not be read.

Standard library only, as in every module that the reading process loads. Nothing here can call or make anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

#: So much is read, whatever it says: bytes of a file, steps of a stack machine, values of a file as a tree, its depth,
#: and bytes of what is handed on.
MAX_FILE: Final = 32 * 1024 * 1024
MAX_STEPS: Final = 2_000_000
MAX_NODES: Final = 1_000_000
MAX_DEPTH: Final = 100
MAX_OUT: Final = 64 * 1024 * 1024
#: Bytes of one whole number, and characters of one name.
MAX_NUMBER: Final = 4096
MAX_NAME: Final = 1000


class Refused(Exception):  # noqa: N818  (it ends as a sentence in a report)
    """Bytes that are not read, and why."""


GroupKind: TypeAlias = Literal["list", "tuple", "set", "frozenset", "dict", "deque"]


@dataclass(eq=False, slots=True)
class Group:
    """A container; of a dict, keys and values take turns. It may contain itself, which nothing here follows.

    `name` is the class of a dict that is more than one.
    """

    kind: GroupKind
    items: list[object] = field(default_factory=list[object])
    name: str = ""


@dataclass(eq=False, slots=True)
class Named:
    """The name of a class or function, `module:qualified name`."""

    name: str


@dataclass(eq=False, slots=True)
class Made:
    """An object as it was taken apart: its class, what that was called with, and what it was filled with."""

    name: str
    args: list[object] = field(default_factory=list[object])
    state: object = None
    #: Whether `args` are the fields in their order, as of a named tuple.
    is_tuple: bool = False


@dataclass(eq=False, slots=True)
class Scalar:
    """A value of the standard library as texts and numbers, such as a date."""

    kind: str
    parts: list[object]


#: `object` stands for these, and for None, bool, int, float, str, bytes and bytearray.
Inert: TypeAlias = Group | Named | Made | Scalar
