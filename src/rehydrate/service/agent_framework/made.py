"""What stored bytes say to call or to fill, as descriptions: the closed list of calls.

The only code that runs for them makes texts and numbers of dates and the like; all else stays a name and its arguments.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Final, cast

from .inert import MAX_NUMBER, Group, GroupKind, Made, Named, Refused, Scalar
from .listed import DICTS, Listed

_DATETIME: Final = 10
_TIME: Final = 6
_DATE: Final = 4
#: The high bit of the first byte of a time, and of the third of a date with time, is its fold.
_FOLD: Final = 0x80


def called(function: object, args: object, listed: Listed) -> object:
    """Return what a call stands for. Raises `Refused` for one that is not on the list."""
    if not isinstance(function, Named) or not isinstance(args, Group) or args.kind != "tuple":
        raise Refused("a stored object calls what is no name")
    module, _, name = function.name.partition(":")
    items = args.items
    make = _CALLS.get("pathlib:" + name if module == "pathlib._local" else function.name)
    if make is not None:
        return make(items)
    if name == "getattr" and module == "builtins":
        return _attribute(items, listed)
    if name == "reduce" and module == "functools":
        return _union(items)
    if name == "getitem":
        return _parameters(items)
    if module in _NEVER_CALLED:
        raise Refused(f"a stored object calls {function.name!r} in a way that is not read")
    return Made(function.name, list(items))


#: Modules of what is on the list as a type only, or handled above.
_NEVER_CALLED: Final = frozenset(
    {"builtins", "typing", "operator", "_operator", "functools", "zoneinfo", "types", "pathlib", "datetime", "uuid"}
)


def filled(made: object, state: object) -> object:
    """Return an object with what it was filled with. Raises `Refused` for what is no object."""
    if not isinstance(made, Made) or made.state is not None:
        raise Refused("a stored object fills what is no object")
    if made.name == "uuid:UUID":
        return _uuid(state)
    made.state = state
    return made


def _attribute(items: list[object], listed: Listed) -> object:
    """A nested class, or a member of an enum, is stored as an attribute of a class on the list."""
    match items:
        case [Named(name), str(attribute)]:
            module, _, outer = name.partition(":")
            return Named(listed.check(module, f"{outer}.{attribute}"))
        case _:
            raise Refused("a stored object takes an attribute in a way that is not read")


def _union(items: list[object]) -> object:
    match items:
        case [Named(name), Group(kind="tuple", items=arms)] if name.endswith("operator:or_"):
            return Made("typing:Union", list(arms))
        case _:
            raise Refused("a stored object reduces in a way that is not read")


def _parameters(items: list[object]) -> object:
    match items:
        case [Named(name), Group(kind="tuple", items=arms)] if name.startswith("typing:"):
            return Made(name, list(arms))
        case [Named(name), arm] if name.startswith("typing:"):
            return Made(name, [arm])
        case _:
            raise Refused("a stored object takes an element in a way that is not read")


def _uuid(state: object) -> Scalar:
    match state:
        case Group(kind="dict", items=["int", int(number)]) if 0 <= number < 1 << 128:
            return Scalar("uuid", [f"{number:032x}"])
        case _:
            raise Refused("a stored UUID is none")


def _date(items: list[object]) -> Scalar:
    match items:
        case [bytes(raw)] if len(raw) == _DATE:
            return Scalar("date", [dt.date(int.from_bytes(raw[:2], "big"), raw[2], raw[3]).isoformat()])
        case _:
            raise Refused("a stored date is none")


def _moment(items: list[object]) -> Scalar:
    match items:
        case [bytes(raw), *zone] if len(raw) == _DATETIME and len(zone) <= 1:
            fold, month = divmod(raw[2], _FOLD)
            year = int.from_bytes(raw[:2], "big")
            micro = int.from_bytes(raw[7:], "big")
            made = dt.datetime(year, month, raw[3], raw[4], raw[5], raw[6], micro)  # noqa: DTZ001  (its zone is beside it)
            return Scalar("datetime", [made.isoformat(), fold, *zone])
        case _:
            raise Refused("a stored date with time is none")


def _time(items: list[object]) -> Scalar:
    match items:
        case [bytes(raw), *zone] if len(raw) == _TIME and len(zone) <= 1:
            fold, hour = divmod(raw[0], _FOLD)
            made = dt.time(hour, raw[1], raw[2], int.from_bytes(raw[3:], "big"))
            return Scalar("time", [made.isoformat(), fold, *zone])
        case _:
            raise Refused("a stored time is none")


def _span(items: list[object]) -> Scalar:
    match items:
        case [int(days), int(seconds), int(micro)]:
            dt.timedelta(days, seconds, micro)
            return Scalar("timedelta", [days, seconds, micro])
        case _:
            raise Refused("a stored timedelta is none")


def _zone(items: list[object]) -> Scalar:
    match items:
        case [Scalar(kind="timedelta") as offset]:
            return Scalar("timezone", list(offset.parts))
        case [Scalar(kind="timedelta") as offset, str(name)]:
            return Scalar("timezone", [*offset.parts, name])
        case _:
            raise Refused("a stored time zone is none")


def _zone_by_name(items: list[object]) -> Scalar:
    match items:
        case [str(key), *_]:
            return Scalar("zone", [key])
        case _:
            raise Refused("a stored time zone has no name")


def _decimal(items: list[object]) -> Scalar:
    match items:
        case [str(text)] if len(text) <= MAX_NUMBER:
            return Scalar("decimal", [text])
        case _:
            raise Refused("a stored Decimal is none")


def _complex(items: list[object]) -> Scalar:
    match items:
        case [float(real), float(imaginary)]:
            return Scalar("complex", [real, imaginary])
        case _:
            raise Refused("a stored complex number is none")


def _range(items: list[object]) -> Scalar:
    match items:
        case [int(), int(), int(step)] if step:
            return Scalar("range", list(items))
        case _:
            raise Refused("a stored range is none")


def _of_type(items: list[object]) -> Named:
    match items:
        case [None]:
            return Named("builtins:NoneType")
        case _:
            raise Refused("a stored object asks for a type in a way that is not read")


def _path(kind: str) -> Callable[[list[object]], Scalar]:
    def make(items: list[object]) -> Scalar:
        if not all(isinstance(part, str) for part in items):
            raise Refused("a stored path is none")
        return Scalar(kind, list(items))

    return make


def _dict(name: str) -> Callable[[list[object]], Group]:
    """Make a dict of a class that is more than one: its name is kept, so that nothing takes it for a plain one."""

    def make(items: list[object]) -> Group:
        match items:
            case []:
                return Group("dict", name=name)
            case [Named() | None]:  # the factory of a defaultdict
                return Group("dict", name=name)
            case [Group(kind="dict") as whole]:
                return Group("dict", list(whole.items), name)
            case _:
                raise Refused("a stored dict is none")

    return make


def _deque(items: list[object]) -> Group:
    match items:
        case [] | [Group(kind="tuple", items=[])] | [Group(kind="tuple", items=[]), None]:
            return Group("deque", [None])
        case [Group(kind="tuple", items=[]), int(limit)]:
            return Group("deque", [limit])
        case _:
            raise Refused("a stored deque is none")


def _collected(kind: GroupKind) -> Callable[[list[object]], Group]:
    def make(items: list[object]) -> Group:
        match items:
            case []:
                return Group(kind)
            case [Group(kind="list" | "tuple", items=values)]:
                return Group(kind, list(values))
            case _:
                raise Refused(f"a stored {kind} is none")

    return make


def _bytearray(items: list[object]) -> Scalar:
    match items:
        case [] | [bytes()]:
            return Scalar("bytearray", list(items) or [b""])
        case _:
            raise Refused("a stored bytearray is none")


def _alias(items: list[object]) -> Made:
    match items:
        case [Named() as origin, Group(kind="tuple", items=arguments)]:
            return Made("types:GenericAlias", [origin, *arguments])
        case _:
            raise Refused("a stored type is none")


def _struct(items: list[object]) -> Made:
    match items:
        case [Named(name), Group(kind="dict") as fields]:
            return Made(name, state=fields)
        case _:
            raise Refused("a stored struct is none")


_CALLS: Final = cast(
    "dict[str, Callable[[list[object]], object]]",
    {
        "datetime:date": _date,
        "datetime:datetime": _moment,
        "datetime:time": _time,
        "datetime:timedelta": _span,
        "datetime:timezone": _zone,
        "zoneinfo:ZoneInfo._unpickle": _zone_by_name,
        "decimal:Decimal": _decimal,
        "builtins:complex": _complex,
        "builtins:range": _range,
        "builtins:type": _of_type,
        "builtins:set": _collected("set"),
        "builtins:frozenset": _collected("frozenset"),
        "builtins:bytearray": _bytearray,
        **{name: _dict(name) for name in DICTS},
        "collections:deque": _deque,
        "pathlib:PosixPath": _path("path"),
        "pathlib:WindowsPath": _path("path"),
        "pathlib:PurePosixPath": _path("purepath"),
        "pathlib:PureWindowsPath": _path("purewindowspath"),
        "types:GenericAlias": _alias,
        "msgspec._core:rebuild": _struct,
    },
)
