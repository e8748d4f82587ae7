"""The closed list: names of classes and functions that may stand in a file of theirs.

A name that is on it is still only a name; nothing is ever looked up by it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from .inert import MAX_NAME, Refused

#: Dicts that are more than a dict, which no workflow stores: an import says what they are here.
DICTS: Final = ("collections:Counter", "collections:OrderedDict", "collections:defaultdict")
#: Values and types of the standard library, and what their bytes name to be made.
_STANDARD: Final = frozenset(
    {
        *(
            f"builtins:{name}"
            for name in (
                "bool", "bytearray", "bytes", "complex", "dict", "float", "frozenset", "getattr", "int", "list",
                "object", "range", "set", "str", "tuple", "type",
            )
        ),
        *(f"datetime:{name}" for name in ("date", "datetime", "time", "timedelta", "timezone")),
        *DICTS,
        "collections:deque",
        *(
            f"{module}:{name}"
            for module in ("pathlib", "pathlib._local")
            for name in ("PosixPath", "PurePosixPath", "PureWindowsPath", "WindowsPath")
        ),
        *(f"typing:{name}" for name in ("Any", "Optional", "Union", "Literal")),
        "decimal:Decimal",
        "uuid:UUID",
        "zoneinfo:ZoneInfo",
        "zoneinfo:ZoneInfo._unpickle",
        "types:GenericAlias",
        "types:NoneType",
        "builtins:NoneType",
        "functools:reduce",
        "_operator:or_",
        "operator:or_",
        "_operator:getitem",
        "operator:getitem",
        "msgspec._core:rebuild",
    }
)  # fmt: skip
#: So many names that are not on the list are told of a file.
_TOLD: Final = 20


class Listed:
    """The list for one import: the standard one, theirs, and the application's types.

    An application's type is `module:name`, or `:name` for one of that name in any module.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(names)
        #: Names that one file holds and that are not on the list, so that its refusal can tell all at once.
        self._strange: dict[str, None] = {}

    def begin(self) -> None:
        """Begin a file."""
        self._strange = {}

    def check(self, module: str, name: str) -> str:
        """Return the full name, and note it where it is not on the list. Raises `Refused` for one that is too long."""
        if len(module) + len(name) > MAX_NAME:  # a name is copied with each type that is called by it
            raise Refused(f"the name of a type has more than {MAX_NAME} characters")
        full = f"{module}:{name}"
        if full in _STANDARD or full in self._names or f":{name}" in self._names or is_theirs(full):
            return full
        if len(self._strange) < _TOLD:
            self._strange[full[:200]] = None
        return full

    def finish(self) -> None:
        """Raise `Refused` where the file held names that are not on the list."""
        if self._strange:
            names = ", ".join(map(repr, self._strange))
            raise Refused(f"the list of types lacks {names}: add what is yours to types")


def is_theirs(full: str) -> bool:
    """Tell whether a name belongs to the framework, one of its packages, or the client types that it stores."""
    module, _, name = full.partition(":")
    top = module.partition(".")[0]
    if top == "agent_framework" or top.startswith("agent_framework_"):
        return bool(name)
    return module == "openai.types" or module.startswith("openai.types.")
