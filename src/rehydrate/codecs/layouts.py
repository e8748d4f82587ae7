"""Layouts: how the instances of one class are taken apart into fields and put together without its constructor.

Exact or refused: what an instance holds beside its fields makes `take` refuse. Names and versions are not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from types import BuiltinFunctionType, GetSetDescriptorType, MemberDescriptorType
from typing import Final, Generic, TypeAlias, cast

#: Fields by name. Keys that begin with `!` hold what belongs to an instance and is no field.
State: TypeAlias = dict[str, object]

#: Names of fields that the instance does not have, as those with `init=False` that nothing has set.
MISSING: Final = "!missing"

#: Makes an instance without any code of its class.
new_bare: Final = cast("Callable[[type], object]", object.__new__)

_HEAP_TYPE: Final = 1 << 9
#: What `typing` puts into instances of `Box[int](...)`: nothing that belongs to the value.
_OF_TYPING: Final = "__orig_class__"


class Refusal(Exception):  # noqa: N818  (never leaves the codec)
    """A value cannot be stored, and why."""


class FieldsDiffer(Exception):  # noqa: N818  (never leaves the codec)
    """Stored fields are not those of the class, and how."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The fields of a class; `take` raises `Refusal`, `build` raises `FieldsDiffer`.

    What `take` returns belongs to the instance and must not be changed; what `build` gets is used up.
    """

    fields: tuple[str, ...]
    take: Callable[..., State]
    build: Callable[[State], object]


def unstorable(why: str) -> Layout:
    """Return the layout of a class whose instances cannot be stored."""

    def take(_value: object) -> State:
        raise Refusal(why)

    def build(_fields: State) -> object:
        raise FieldsDiffer(f"it cannot be stored any more: {why}")

    return Layout((), take, build)


def foreign_base(cls: type, allowed: tuple[type, ...] = ()) -> str | None:
    """Return why instances hold state that Python code does not see, or `None`."""
    for base in cls.__mro__:
        if base in {object, Generic, *allowed}:
            continue
        if not base.__flags__ & _HEAP_TYPE or isinstance(base.__dict__.get("__new__"), BuiltinFunctionType):
            return f"its base {base.__name__} keeps state of its own"
    return None


def extra_state(value: object, fields: Sequence[str] = ()) -> str | None:
    """Return the name of an attribute that is set and neither a field nor a cached property, or `None`."""
    cls = type(value)
    names = [*getattr(value, "__dict__", ())]
    names.extend(name for name, slot in slots_of(cls).items() if _is_set(slot, value))
    for name in names:
        if name not in fields and name != _OF_TYPING and not _is_cached(cls, name):
            return name
    return None


def no_field(name: str) -> Refusal:
    """Return the refusal of an instance that has an attribute beside its fields."""
    return Refusal(f"its attribute {name!r} is no field, so it would be lost")


def differing(fields: State, names: Sequence[str]) -> FieldsDiffer:
    """Return the error that says which fields are missing and which are not known."""
    missing = [name for name in names if name not in fields]
    unknown = [name for name in fields if name not in names and name[:1] != "!"]
    parts = [f"it has no {', '.join(missing)}"] if missing else []
    parts += [f"nothing takes its {', '.join(map(str, unknown))}"] if unknown else []
    return FieldsDiffer(" and ".join(parts) or "its fields do not fit")


def of_attributes(cls: type, names: tuple[str, ...]) -> Layout:
    """Return the layout of a class whose fields are attributes: a dataclass or an attrs class."""
    why = foreign_base(cls)
    if why:
        return unstorable(why)
    slots = slots_of(cls)
    general = _Attributes(cls, names, slots)
    if not slots and cls.__dictoffset__:
        return _in_dict(cls, names, general)
    plain_slots = set(slots) == set(names) and all(getattr(cls, name, None) is slots[name] for name in names)
    if names and plain_slots and not cls.__dictoffset__:
        return _in_slots(cls, names, slots, general)
    return Layout(names, general.take, general.build)


class _Attributes:
    """Any mix of slots and `__dict__`, with fields that are not set: the careful way."""

    def __init__(self, cls: type, names: tuple[str, ...], slots: dict[str, MemberDescriptorType]) -> None:
        self._cls = cls
        self._names = names
        self._slots = slots

    def take(self, value: object) -> State:
        extra = extra_state(value, self._names)
        if extra is not None:
            raise no_field(extra)
        inside: State = getattr(value, "__dict__", {})
        state: State = {}
        for name in self._names:
            slot = self._slots.get(name)
            if slot is not None and _is_set(slot, value):
                state[name] = slot.__get__(value)
            elif slot is None and name in inside:
                state[name] = inside[name]
        missing = [name for name in self._names if name not in state]
        if missing:
            state[MISSING] = missing
        return state

    def build(self, fields: State) -> object:
        missing = fields.pop(MISSING, [])
        absent = cast("list[object]", missing) if isinstance(missing, list) else []
        if {*fields, *absent} != {*self._names} or len(fields) + len(absent) != len(self._names):
            raise differing(fields, self._names)
        made = new_bare(self._cls)
        inside: State = {}
        for name, value in fields.items():
            slot = self._slots.get(name)
            if slot is None:
                inside[name] = value
            else:
                slot.__set__(made, value)
        if inside:
            set_dict(self._cls)(made, inside)
        return made


def _in_dict(cls: type, names: tuple[str, ...], general: _Attributes) -> Layout:
    ordered = [*names]
    wanted = frozenset(names)
    fill = set_dict(cls)

    def take(value: object) -> State:
        state: State = value.__dict__
        return state if [*state] == ordered else general.take(value)

    def build(fields: State) -> object:
        if [*fields] != ordered and fields.keys() != wanted:
            return general.build(fields)
        made = new_bare(cls)
        fill(made, fields)
        return made

    return Layout(names, take, build)


def _in_slots(
    cls: type, names: tuple[str, ...], slots: dict[str, MemberDescriptorType], general: _Attributes
) -> Layout:
    ordered = [*names]
    setters = [slots[name].__set__ for name in names]
    get = attrgetter(*names)
    several = len(names) > 1

    def take(value: object) -> State:
        try:
            values = get(value)
        except AttributeError:
            return general.take(value)
        return dict(zip(names, values if several else (values,), strict=True))

    def build(fields: State) -> object:
        if [*fields] != ordered:
            return general.build(fields)
        made = new_bare(cls)
        for fill, value in zip(setters, fields.values(), strict=True):
            fill(made, value)
        return made

    return Layout(names, take, build)


def set_dict(cls: type) -> Callable[[object, State], None]:
    """Return the function that gives an instance its `__dict__`, whatever `__setattr__` says."""
    for base in cls.__mro__:
        found = base.__dict__.get("__dict__")
        if isinstance(found, GetSetDescriptorType):
            return found.__set__
    raise TypeError(f"instances of {cls.__name__} have no __dict__")


def slots_of(cls: type) -> dict[str, MemberDescriptorType]:
    """Return the slots of a class and its bases by name."""
    found: dict[str, MemberDescriptorType] = {}
    for base in cls.__mro__:
        for name, attribute in base.__dict__.items():
            if isinstance(attribute, MemberDescriptorType) and base.__flags__ & _HEAP_TYPE:
                found.setdefault(name, attribute)
    return found


def _is_set(slot: MemberDescriptorType, value: object) -> bool:
    try:
        slot.__get__(value)
    except AttributeError:
        return False
    return True


def _is_cached(cls: type, name: str) -> bool:
    """Tell whether an attribute only remembers what can be computed again."""
    for base in cls.__mro__:
        if name in base.__dict__:
            made_by_attrs = "__attrs_attrs__" in base.__dict__ and name != "_attrs_cached_hash"
            found = base.__dict__[name]
            return isinstance(found, cached_property) or (made_by_attrs and isinstance(found, MemberDescriptorType))
    return False
