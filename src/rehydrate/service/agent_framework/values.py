"""Values of theirs as values of the workflow here: types are found by name among those that the workflow stores.

Objects are put together as a restore does it, without constructors. What has no type here is an error that names it.
"""

from __future__ import annotations

import base64
import datetime as dt
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from enum import Enum, Flag
from pathlib import Path, PurePosixPath, PureWindowsPath
from types import GenericAlias
from typing import Final, Optional, TypeAlias, Union, cast
from uuid import UUID

from rehydrate.codecs import ValueCodec
from rehydrate.codecs.layouts import FieldsDiffer
from rehydrate.codecs.registry import Entry
from rehydrate.codecs.writer import CROWDED, is_crowded
from rehydrate.codecs.zones import zone_of
from rehydrate.errors import UnknownZoneError

from .early import fitted, new_tuple
from .inert import Refused
from .listed import DICTS, is_theirs
from .trees import Node, fields_of

#: What a type of theirs stands for: a type here, a function that makes a value of its fields, or `None` for the fields
#: themselves.
TypeMap: TypeAlias = Mapping[str, type | Callable[[dict[str, object]], object] | None]

_TYPES: Final[Mapping[str, object]] = {
    **{
        f"builtins:{kind.__name__}": kind
        for kind in (bool, bytearray, bytes, complex, dict, float, frozenset, int, list, object, range, set, str, tuple)
    },
    **{f"datetime:{kind.__name__}": kind for kind in (dt.date, dt.datetime, dt.time, dt.timedelta, dt.timezone)},
    "builtins:NoneType": type(None),
    "types:NoneType": type(None),
    "typing:Any": object,
    "decimal:Decimal": Decimal,
    "uuid:UUID": UUID,
    "collections:deque": deque,
}


class Values:
    """Makes values for one workflow. `texts`: fields of unknown types were kept as texts, as early releases did."""

    def __init__(self, codec: ValueCodec, types: TypeMap, *, texts: bool = False) -> None:
        self._types = types
        self._texts = texts
        registry = codec.registry.joined_by(*(kind for kind in types.values() if isinstance(kind, type)))
        self._entries: dict[type, Entry] = {entry.type: entry for entry in registry}
        self._named = {entry.name: entry for entry in registry}

    @property
    def names(self) -> list[str]:
        """Names of types that files may hold, for the closed list."""
        return [*(f":{name}" for name in self._named), *self._types]

    def value(self, node: Node) -> object:
        """Return the value of a node. Raises `Refused`."""
        if not isinstance(node, list):
            return node
        match node:
            case ["o", str(name), bool(is_tuple), ["l", *args], state]:
                return self._object(name, args, state, is_tuple=is_tuple)
            case ["v", str(kind), *parts]:
                return self._scalar(kind, parts)
            case ["c", str(name)]:
                raise Refused(f"it holds the class {name!r} as a value")
            case [str(letter), *items]:
                return self._container(letter, items)
            case _:
                raise Refused("a value has no form")

    def _container(self, letter: str, items: list[Node]) -> object:
        if letter == "b":
            return base64.b64decode(str(items[0]))
        if letter == "i":
            return int(str(items[0]), 16)
        if letter == "r":
            return float(str(items[0]))
        made = [self.value(item) for item in items]
        try:
            if letter in _HASHED and is_crowded(made[:: _HASHED[letter]]):
                raise Refused(f"a set or dict cannot be made: {CROWDED}")
            return _CONTAINERS[letter](made)
        except TypeError as error:
            raise Refused(f"a set or dict holds what has no hash ({error})") from error
        except (ValueError, OverflowError) as error:
            raise Refused(f"a deque has a limit that is none ({error})") from error

    def type_of(self, node: Node) -> object:
        """Return the type that a node names: a class, or one with parameters. Raises `Refused`."""
        match node:
            case str(name):  # of early releases, with a point between module and class
                module, _, cls = name.rpartition(".")
                return self._named_type(f"{module}:{cls}")
            case ["c", str(name)]:
                return self._named_type(name)
            case ["o", "types:GenericAlias", _, ["l", origin, *arms], None]:
                return GenericAlias(cast("type", self.type_of(origin)), tuple(self.type_of(arm) for arm in arms))
            case ["o", "typing:Union", _, ["l", *arms], None] if arms:
                return Union[tuple(self.type_of(arm) for arm in arms)]  # noqa: UP007  (not written out)
            case ["o", "typing:Optional", _, ["l", arm], None]:
                return Optional[self.type_of(arm)]  # noqa: UP045
            case _:
                raise Refused("the type of an answer has a form that is not read")

    def _named_type(self, name: str) -> object:
        given = self._types.get(name)
        if isinstance(given, type):
            return given
        if given is not None:
            return _made_by(given, name)
        found = _TYPES.get(name)
        if found is not None:
            return found
        entry = self._named.get(name.rpartition(":")[2])
        if entry is None:
            raise Refused(f"the workflow has no type for {name!r}")
        return entry.type

    def _object(self, name: str, args: list[Node], state: Node, *, is_tuple: bool) -> object:
        if name in DICTS:
            return self._dict(name, self.value(state))
        if name in self._types:
            target = self._types[name]
            if not isinstance(target, type):
                fields = self._plain(args, state)
                return fields if target is None else _made(target, fields, name)
        else:
            entry = self._named.get(name.rpartition(":")[2])
            if entry is None and is_theirs(name):
                return self._plain(args, state)
            target = entry.type if entry is not None else None
        if target is None:
            raise Refused(f"the workflow has no type for {name!r}")
        return self._typed(target, name, args, state, is_tuple=is_tuple)

    def _dict(self, name: str, made: object) -> object:
        """Return a dict that was more than one as what `types` says."""
        target = self._types.get(name)
        if name not in self._types or isinstance(target, type):
            raise Refused(f"no workflow stores a {name!r}: map it in types, to None for a dict, or to a function of it")
        return made if target is None else _made(target, made, name)

    def _typed(self, target: type[object], name: str, args: list[Node], state: Node, *, is_tuple: bool) -> object:
        if issubclass(target, Enum):
            return self._member(target, [self.value(arg) for arg in args], name)
        if tuple in target.__mro__:
            return self._tuple(target, [self.value(arg) for arg in args], is_tuple=is_tuple)
        if args:
            raise Refused(f"an object of {name!r} was made with arguments, which are not read")
        return self._instance(target, state, name)

    def _member(self, target: type[Enum], args: list[object], name: str) -> object:
        if len(args) == 1 and issubclass(target, Flag):  # combined flags are members, too, and no list has them
            return self._built(self._entry(target, name), {"value": args[0]}, name)
        return _member(target, args)

    def _entry(self, target: type, name: str) -> Entry:
        entry = self._entries.get(target)
        if entry is None:
            raise Refused(f"{target.__name__}, for {name!r}, is no type that the workflow stores")
        return entry

    def _built(self, entry: Entry, fields: dict[str, object], name: str) -> object:
        try:
            return entry.layout.build(fields)
        except FieldsDiffer as error:
            raise Refused(f"an object of {name!r} does not fit {entry.type.__name__}: {error}") from error

    def _instance(self, target: type, state: Node, name: str) -> object:
        """Put an instance together from its fields."""
        entry = self._entry(target, name)
        match state:
            case ["l" | "t", *items] if not _has_slots(state):  # of a frozen class with slots
                if len(items) != len(entry.layout.fields):
                    raise Refused(f"an object of {name!r} has {len(items)} fields, and {target.__name__} has others")
                fields = {key: self.value(item) for key, item in zip(entry.layout.fields, items, strict=True)}
            case _:
                fields = self._fields(state, name)
        if self._texts:
            fields = fitted(target, fields)
        return self._built(entry, fields, name)

    def _fields(self, state: Node, name: str) -> dict[str, object]:
        if state is None:
            return {}
        fields = fields_of(["o", name, False, ["l"], state], f"an object of {name!r}")
        if "__pydantic_fields_set__" not in fields:
            return {key: self.value(item) for key, item in fields.items()}
        made = {key: self.value(item) for key, item in fields_of(fields.get("__dict__"), name).items()}
        given = self.value(fields.get("__pydantic_fields_set__"))
        if not isinstance(given, set) or not all(isinstance(key, str) for key in cast("set[object]", given)):
            raise Refused(f"an object of {name!r} does not say which of its fields were set")
        made["!set"] = given
        for key, beside in (("!extra", "extra"), ("!private", "private")):
            node = fields.get(f"__pydantic_{beside}__")
            if node is not None:
                made[key] = {part: self.value(item) for part, item in fields_of(node, name).items()}
        return made

    def _tuple(self, target: type, items: list[object], *, is_tuple: bool) -> object:
        names = cast("tuple[str, ...]", getattr(target, "_fields", ()))
        if not is_tuple or len(items) != len(names):
            raise Refused(f"a tuple has {len(items)} items, and {target.__name__} has {len(names)} fields")
        return new_tuple(target, items)

    def _plain(self, args: list[Node], state: Node) -> object:
        """Return an object without a type here as the dict of its fields, or what it was made of."""
        if state is None:
            made = [self.value(arg) for arg in args]
            return made[0] if len(made) == 1 else made
        if args:
            raise Refused("an object was made with arguments and filled, too, which is not read")
        if isinstance(state, list) and state[0] in {"l", "t"} and not _has_slots(state):
            return [self.value(item) for item in state[1:]]
        fields = fields_of(["o", "", False, ["l"], state], "an object")
        made = {key.lstrip("_"): self.value(item) for key, item in fields.items()}
        if len(made) != len(fields):
            raise Refused(f"an object has fields that differ by underscores only ({', '.join(sorted(fields))})")
        return made

    def _scalar(self, kind: str, parts: list[Node]) -> object:
        try:
            return _SCALARS[kind]([self.value(part) for part in parts])
        except (ValueError, TypeError, ArithmeticError, UnknownZoneError, OSError) as error:  # of the file of a zone
            raise Refused(f"a stored {kind} is none ({error})") from error


def _has_slots(state: list[Node]) -> bool:
    """Tell whether what an object was filled with is a pair of dicts, of its attributes and of its slots."""
    return state[0] == "t" and len(state) == 3 and isinstance(state[2], list) and state[2][0] == "d"


def _made(make: Callable[[dict[str, object]], object], fields: object, name: str) -> object:
    given = cast("dict[str, object]", fields) if isinstance(fields, dict) else {"value": fields}
    try:
        return make(given)
    except Exception as error:  # user code
        raise Refused(f"types[{name!r}] raised {type(error).__name__}: {error}") from error


def _made_by(make: Callable[[dict[str, object]], object], name: str) -> object:
    """Return the type of what a function makes, by its annotation."""
    found: object = getattr(make, "__annotations__", {}).get("return")
    if not isinstance(found, type):
        raise Refused(f"an answer is a {name!r}, and types[{name!r}] does not say what it returns (-> TYPE)")
    return found


def _member(kind: type[Enum], args: list[object]) -> object:
    for member in kind:
        if len(args) == 1 and type(member.value) is type(args[0]) and member.value == args[0]:
            return member
    value = args[0] if args else None
    said = hex(value) if isinstance(value, int) else repr(value)  # a long number has no text in digits
    raise Refused(f"{kind.__name__} has no member of value {said:.80}")


def _moment(parts: list[object]) -> dt.datetime:
    text, fold, *zone = parts
    made = dt.datetime.fromisoformat(cast("str", text))
    return made.replace(fold=cast("int", fold), tzinfo=cast("dt.tzinfo | None", zone[0] if zone else None))


def _time(parts: list[object]) -> dt.time:
    text, fold, *zone = parts
    made = dt.time.fromisoformat(cast("str", text))
    return made.replace(fold=cast("int", fold), tzinfo=cast("dt.tzinfo | None", zone[0] if zone else None))


def _span(parts: list[object]) -> dt.timedelta:
    days, seconds, micro = cast("list[int]", parts[:3])
    return dt.timedelta(days, seconds, micro)


def _zone(parts: list[object]) -> dt.timezone:
    if parts[3:]:
        return dt.timezone(_span(parts), cast("str", parts[3]))
    offset = _span(parts)
    return dt.timezone(offset) if offset else dt.UTC


def _pairs(items: list[object]) -> Iterator[tuple[object, object]]:
    return zip(items[::2], items[1::2], strict=True)


#: Containers that are made by hashes, and which of their items these are of.
_HASHED: Final = {"s": 1, "f": 1, "d": 2}
_CONTAINERS: Final[Mapping[str, Callable[[list[object]], object]]] = {
    "l": lambda items: items,
    "t": tuple,
    "s": set,
    "f": frozenset,
    "q": lambda items: deque(items[1:], cast("int | None", items[0])),
    "d": lambda items: dict(_pairs(items)),
}
_SCALARS: Final[Mapping[str, Callable[[list[object]], object]]] = {
    "date": lambda parts: dt.date.fromisoformat(cast("str", parts[0])),
    "datetime": _moment,
    "time": _time,
    "timedelta": _span,
    "timezone": _zone,
    "zone": lambda parts: zone_of(cast("str", parts[0])),
    "decimal": lambda parts: Decimal(cast("str", parts[0])),
    "uuid": lambda parts: UUID(cast("str", parts[0])),
    "complex": lambda parts: complex(*cast("list[float]", parts)),
    "range": lambda parts: range(*cast("list[int]", parts)),
    "bytearray": lambda parts: bytearray(cast("bytes", parts[0])),
    "path": lambda parts: Path(*cast("list[str]", parts)),
    "purepath": lambda parts: PurePosixPath(*cast("list[str]", parts)),
    "purewindowspath": lambda parts: PureWindowsPath(*cast("list[str]", parts)),
}
