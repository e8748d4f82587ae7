"""The layouts of classes that are no plain dataclasses: enums, named tuples, subclasses of built-in types.

Also the one place that decides which layout a class has. Must not import any library for models.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from enum import Enum, Flag
from typing import Final, cast

from .layouts import (
    FieldsDiffer,
    Layout,
    Refusal,
    State,
    differing,
    extra_state,
    foreign_base,
    no_field,
    of_attributes,
    unstorable,
)
from .models import attrs_names, is_pydantic, is_struct, of_model, of_struct

_VALUE: Final = ("value",)
_ROOTS: Final = frozenset({("pydantic", "BaseModel"), ("pydantic", "RootModel"), ("msgspec", "Struct")})
_fields: Final = cast("Callable[[type], tuple[dataclasses.Field[object], ...]]", dataclasses.fields)


def layout_of(cls: type) -> Layout:
    """Return how the instances of a class are stored; for those that cannot be, a layout that refuses them."""
    if _is_below(cls, Enum):
        return _of_flag(cls) if _is_below(cls, Flag) else _of_enum(cast("type[Enum]", cls))
    if is_named_tuple(cls):
        return _of_named_tuple(cls)
    if is_pydantic(cls):
        return of_model(cls)
    if is_struct(cls):
        return of_struct(cls)
    if bool(dataclasses.is_dataclass(cls)):
        return of_attributes(cls, tuple(field.name for field in _fields(cls)))
    names = attrs_names(cls)
    if names is not None:
        return of_attributes(cls, names)
    for base, (take, make) in _BUILT_IN.items():
        if _is_below(cls, base):
            return _of_subclass(cls, base, take, make)
    return unstorable("its class declares no fields")


def is_storable(cls: type) -> bool:
    """Tell whether a class has a form that can be stored, without asking for exactness."""
    if is_root(cls):
        return False
    return declares_fields(cls) or _is_below(cls, Enum) or any(_is_below(cls, base) for base in _BUILT_IN)


def declares_fields(cls: type) -> bool:
    """Tell whether a class declares fields, with hints."""
    if is_root(cls):
        return False
    known = is_named_tuple(cls) or is_pydantic(cls) or is_struct(cls)
    return known or attrs_names(cls) is not None or dataclasses.is_dataclass(cls)


def is_root(cls: type) -> bool:
    """Tell whether a class is only there to derive storable classes from."""
    return cls.__module__ == "enum" or (cls.__module__.partition(".")[0], cls.__qualname__) in _ROOTS


def is_named_tuple(cls: type) -> bool:
    """Tell whether a class is a named tuple."""
    return _is_below(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple)


def _is_below(cls: type, base: type) -> bool:
    return issubclass(cls, base)


def _of_enum(cls: type[Enum]) -> Layout:
    members = cls.__members__

    def take(value: Enum) -> State:
        if members.get(value.name) is not value:
            raise Refusal("its name does not lead back to it")
        return {"name": value.name}

    def build(fields: State) -> Enum:
        found = members.get(str(fields.get("name")))
        if found is None or len(fields) != 1:
            raise FieldsDiffer(f"it has no member {fields.get('name')!r:.100}")
        return found

    return Layout(("name",), take, build)


def _of_flag(cls: type) -> Layout:
    make = cast("type[Flag]", cls)

    def take(value: Flag) -> State:
        return {"value": value.value}

    def build(fields: State) -> Flag:
        value = fields.get("value")
        if type(value) is not int or len(fields) != 1:
            raise differing(fields, _VALUE)
        try:
            found = make(value)
        except ValueError as error:
            raise FieldsDiffer(f"it has no flags {value}") from error
        if type(found) is not make or found.value != value:
            raise FieldsDiffer(f"it has no flags {value}")
        return found

    return Layout(_VALUE, take, build)


def _of_named_tuple(cls: type) -> Layout:
    names = cast("tuple[str, ...]", getattr(cls, "_fields"))  # noqa: B009  (no type says that it is there)
    why = foreign_base(cls, (tuple,))
    if why:
        return unstorable(why)
    wanted = frozenset(names)

    def take(value: tuple[object, ...]) -> State:
        _refuse_extra(value)
        return dict(zip(names, ().__add__(value), strict=True))

    def build(fields: State) -> object:
        if fields.keys() != wanted:
            raise differing(fields, names)
        return _TUPLE(cls, (fields[name] for name in names))

    return Layout(names, take, build)


def _of_subclass(cls: type, base: type, plain: Callable[..., object], make: Callable[..., object]) -> Layout:
    why = foreign_base(cls, (base,))
    if why:
        return unstorable(why)

    def take(value: object) -> State:
        _refuse_extra(value)
        return {"value": plain(value)}

    def build(fields: State) -> object:
        if fields.keys() != {"value"} or type(fields["value"]) is not base:
            raise differing(fields, _VALUE)
        return make(cls, fields["value"])

    return Layout(_VALUE, take, build)


def _refuse_extra(value: object) -> None:
    extra = extra_state(value)
    if extra is not None:
        raise no_field(extra)


def _new(base: type) -> Callable[..., object]:
    return cast("Callable[..., object]", base.__new__)


def _plain_bytes(value: bytes) -> bytes:
    return memoryview(value).tobytes()


def _mutable(base: type, fill: Callable[..., object]) -> Callable[..., object]:
    new = cast("Callable[[type], object]", base.__new__)

    def make(cls: type, value: object) -> object:
        made = new(cls)
        fill(made, value)
        return made

    return make


_TUPLE: Final = _new(tuple)

#: Built-in types that may have subclasses: how to get at the value of the base, and how to make an instance of it.
#: None of it calls what the subclass may have overridden.
_BUILT_IN: Final[dict[type, tuple[Callable[..., object], Callable[..., object]]]] = {
    str: (str.__str__, _new(str)),
    int: (int.__int__, _new(int)),
    float: (float.__float__, _new(float)),
    bytes: (_plain_bytes, _new(bytes)),
    tuple: (().__add__, _new(tuple)),
    frozenset: (frozenset[object]().union, _new(frozenset)),
    list: (list[object].copy, _mutable(list, list[object].extend)),
    dict: (dict[object, object].copy, _mutable(dict, dict[object, object].update)),
    set: (set[object]().union, _mutable(set, set[object].update)),
}
