"""The layouts of pydantic models and msgspec structs, and the fields of attrs classes.

pydantic and attrs are never imported: a class of theirs can only exist where their modules are loaded already.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final, cast

import msgspec

from .layouts import (
    MISSING,
    FieldsDiffer,
    Layout,
    Refusal,
    State,
    differing,
    extra_state,
    new_bare,
    no_field,
    set_dict,
    slots_of,
)

#: Names of the fields that were given and not defaulted; absent where all were.
_FIELDS_SET: Final = "!set"
#: Values beyond the declared fields.
EXTRA: Final = "!extra"
#: Private attributes.
_PRIVATE: Final = "!private"
_OF_PYDANTIC: Final = ("__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")


def is_struct(cls: type) -> bool:
    """Tell whether a class is a msgspec struct."""
    return issubclass(cls, msgspec.Struct)


def is_pydantic(cls: type) -> bool:
    """Tell whether a class is a pydantic model of version 2."""
    module = sys.modules.get("pydantic.main")
    return module is not None and issubclass(cls, cast("type", module.BaseModel))


def attrs_names(cls: type) -> tuple[str, ...] | None:
    """Return the field names of an attrs class, or `None` for another class."""
    fields = cast("tuple[object, ...] | None", getattr(cls, "__attrs_attrs__", None))
    return None if fields is None else tuple(cast("str", getattr(field, "name")) for field in fields)  # noqa: B009


def attrs_hints(cls: type) -> dict[str, object]:
    """Return the types that an attrs class gives without annotations."""
    fields = cast("tuple[object, ...]", getattr(cls, "__attrs_attrs__", ()))
    given = {cast("str", getattr(field, "name")): getattr(field, "type", None) for field in fields}  # noqa: B009
    return {name: hint for name, hint in given.items() if hint is not None}


def model_hints(cls: type) -> dict[str, object] | None:
    """Return the hints of a pydantic model's fields, or `None` where they are not resolved yet."""
    if not getattr(cls, "__pydantic_complete__", False):
        return None
    return {name: getattr(field, "annotation", object) for name, field in _model_fields(cls).items()}


def of_model(cls: type) -> Layout:
    """Return the layout of a pydantic model: fields, the names of those given, extra values and private attributes.

    Building validates nothing and calls no hook of the model: what is stored was valid.
    """
    names = tuple(_model_fields(cls))
    known = frozenset(names)
    fill = set_dict(cls)
    slots = slots_of(cls)
    beside = set(slots) - set(_OF_PYDANTIC)
    set_given, set_extra, set_private = (slots[name].__set__ for name in _OF_PYDANTIC)
    # A root model has `None` in the class for the other two, and no values.
    has_more = not getattr(cls, "__pydantic_root_model__", False)

    def take(value: object) -> State:
        inside: State = value.__dict__
        state = {**inside}
        if inside.keys() != known or beside:
            extra = extra_state(value, (*names, *_OF_PYDANTIC))
            if extra is not None:
                raise no_field(extra)
            state = {name: inside[name] for name in names if name in inside}
        given, extra_values, private = (getattr(value, name, None) for name in _OF_PYDANTIC)
        if given != known:
            state[_FIELDS_SET] = sorted(cast("set[str]", given))
        if extra_values is not None:
            state[EXTRA] = extra_values
        if private is not None:
            state[_PRIVATE] = private
        if len(state.keys() & known) < len(names):
            state[MISSING] = [name for name in names if name not in state]
        return state

    def build(fields: State) -> object:
        given = fields.pop(_FIELDS_SET, None)
        extra = fields.pop(EXTRA, None)
        private = fields.pop(_PRIVATE, None)
        missing = cast("list[object]", fields.pop(MISSING, []))
        if {*fields, *map(str, missing)} != set(names):
            raise differing(fields, names)
        made = new_bare(cls)
        fill(made, fields)
        set_given(made, set(names) if given is None else set(cast("list[str]", given)))
        if has_more:
            set_extra(made, extra)
            set_private(made, private)
        return made

    return Layout(names, take, build)


def of_struct(cls: type) -> Layout:
    """Return the layout of a msgspec struct.

    There is no way to make a struct without its `__post_init__`; what that changes is overwritten with what is stored.
    """
    struct = cast("type[msgspec.Struct]", cls)
    names = struct.__struct_fields__
    wanted = frozenset(names)
    slots = slots_of(cls)
    fill = [(name, slots[name].__set__) for name in names] if hasattr(cls, "__post_init__") else []
    has_more = bool(cls.__dictoffset__) or set(slots) != set(names)

    def take(value: msgspec.Struct) -> State:
        if has_more:
            extra = extra_state(value, names)
            if extra is not None:
                raise no_field(extra)
        try:
            return msgspec.structs.asdict(value)
        except AttributeError as error:
            raise Refusal("one of its fields is not set") from error

    def build(fields: State) -> object:
        if fields.keys() != wanted:
            raise differing(fields, names)
        made = _made(struct, fields)
        for name, setter in fill:
            setter(made, fields[name])
        return made

    return Layout(names, take, build)


def _made(struct: type[msgspec.Struct], fields: State) -> object:
    make = cast("Callable[..., object]", struct)
    try:
        return make(**fields)
    except Exception as error:  # the struct's `__post_init__` is user code
        raise FieldsDiffer(f"its __post_init__ raised {type(error).__name__}: {error}") from error


def _model_fields(cls: type) -> dict[str, object]:
    return cast("dict[str, object]", getattr(cls, "model_fields"))  # noqa: B009  (pydantic is not imported)
