"""JSON as typed input: messages and answers that a person types or a client sends, read by the types of a workflow.

Nothing is guessed: `"5"` is no number, a field that nobody knows is an error, and so is what fits two types. Which one
of several types is meant, an object may say as plain values show it: `{"$type": "Claim", ...}`.
"""

from __future__ import annotations

import typing
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from contextvars import ContextVar
from pathlib import PurePath
from typing import Any, Final, cast

import msgspec

from rehydrate.codecs import MAX_DEPTH
from rehydrate.codecs.bounds import is_deep_json
from rehydrate.codecs.models import is_pydantic, is_struct
from rehydrate.errors import MessageShapeError
from rehydrate.graph.definition import Definition
from rehydrate.graph.hints import Hint, describe, is_anything, is_literal, is_typed_dict, members, plain, shape

from .json_fields import TYPE, JsonField, class_of, is_below, json_fields, json_shape, names_of
from .json_keys import key_twice
from .json_models import MISFITS, MisfitError, read_model

_object: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_array: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode
_CONCRETE: Final = (list, tuple, set, frozenset, deque)
#: Bytes that may still be tried as one of several types: types that look alike inside of each other double the tries
#: with every level.
_tries: Final[ContextVar[list[int]]] = ContextVar("tries")
_TRIES: Final = 100_000
_TRIES_PER_BYTE: Final = 100


class _TooManyTriesError(Exception):
    """The tries are used up; no `MisfitError`, as no other type is tried then."""


def message_types(graph: Definition) -> tuple[Hint, ...]:
    """Return the types that a workflow can begin with, of a nested one where it begins with that."""
    owner, start = graph, graph.start
    while start in owner.children and not owner.executors[start].is_body:
        owner = owner.children[start]
        start = owner.start
    return tuple(spec.message for spec in owner.executors[start].handlers)


def message_from_json(graph: Definition, text: str | bytes) -> object:
    """Return the message that a JSON text says. Raises `MessageShapeError`, also for `null`."""
    hints = message_types(graph)
    try:
        message = from_json(text, *hints)
        if message is None:  # a call would take it for one that was not given
            raise MisfitError("null stands for no message at all")
        return message
    except MisfitError as error:
        raise MessageShapeError(graph.name, str(error), tuple(map(json_shape, hints))) from error


def from_json(text: str | bytes, *hints: Hint) -> object:
    """Return the value that a JSON text says, of the one of these types that it fits. Raises `MisfitError`."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if is_deep_json(data, MAX_DEPTH):  # no value of such depth could be stored, and reading takes stack
        raise MisfitError("it is nested too deep")
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except MISFITS as error:
        quotes = "; a text stands in double quotes" if str in hints else ""
        raise MisfitError(f"it is no JSON ({error}){quotes}") from error
    _check_keys(data)
    token = _tries.set([_TRIES + _TRIES_PER_BYTE * len(data)])
    try:
        return _read(data, [member for hint in hints for member in _kept_members(hint)])
    except RecursionError as error:
        raise MisfitError("it is nested too deep") from error
    except _TooManyTriesError:
        raise MisfitError(f'it could be too many types; say which are meant with "{TYPE}"') from None
    finally:
        _tries.reset(token)


def _check_keys(data: bytes) -> None:
    """Raise `MisfitError` where a key stands twice in one object, since only one of its values would be taken."""
    try:
        twice = key_twice(data)
    except RecursionError as error:
        raise MisfitError("it is nested too deep") from error
    except ValueError as error:
        raise MisfitError(f"it is no JSON ({error})") from error
    if twice is not None:
        raise MisfitError(f"the key {twice.key!r} stands twice in one object", twice.where)


def _read(data: bytes, hints: Sequence[Hint]) -> object:
    """Read what fits exactly one of the types; one that says nothing of its values is for what fits no other."""
    hints = _named_there(data, _exact_number(data, hints))
    if len(hints) == 1:
        return _read_one(data, hints[0])
    fitting: list[tuple[Hint, object]] = []
    misfits: dict[str, None] = {}
    left = _tries.get()
    for hint in (each for each in hints if not is_anything(each)):
        left[0] -= len(data)
        if left[0] < 0:
            raise _TooManyTriesError
        try:
            fitting.append((hint, _read_one(data, hint)))
        except MisfitError as error:
            misfits[f"{describe(hint)}: {error}"] = None
    if len(fitting) == 1:
        return fitting[0][1]
    if fitting:
        names = " and ".join(describe(hint) for hint, _ in fitting)
        raise MisfitError(f'it fits {names}; say which is meant with "{TYPE}"')
    if any(map(is_anything, hints)):
        return _leaf(data, object)
    raise MisfitError("; ".join(misfits) or "nothing is expected")


def _exact_number(data: bytes, hints: Sequence[Hint]) -> Sequence[Hint]:
    """Return the types without `float` where the text is a whole number and `int` is one of them."""
    if int in hints and data.strip().lstrip(b"-").isdigit():
        return [hint for hint in hints if hint is not float]
    return hints


def _named_there(data: bytes, hints: Sequence[Hint]) -> Sequence[Hint]:
    """Return those types that an object itself names, if it names one."""
    if not data.lstrip().startswith(b"{") or TYPE.encode() not in data:
        return hints
    said = _object(data).get(TYPE)
    if said is None:
        return hints
    name = _leaf(bytes(said), str)
    return [hint for hint in hints if name in names_of(hint)] or hints


def _read_one(data: bytes, hint: Hint) -> object:
    kept, hint = hint, plain(hint)
    cls = class_of(hint)
    if cls is not None and is_pydantic(cls):
        return read_model(data, hint)
    fields = json_fields(hint)
    if cls is not None and fields is not None and not _is_for_msgspec(cls):
        return _with_fields(data, hint, fields)
    found = shape(hint)
    if is_literal(hint) or found is None or not found.arguments or not is_below(found.origin, Collection):
        return _leaf(data, kept)
    if is_below(found.origin, Mapping):
        return _mapping(data, found.origin, found.arguments)
    return _sequence(data, found.origin, found.arguments)


def _is_for_msgspec(cls: type) -> bool:
    """Tell whether a struct is no object in JSON."""
    return is_struct(cls) and cast("type[msgspec.Struct]", cls).__struct_config__.array_like


def _leaf(data: bytes, hint: Hint) -> object:
    kind = Any if hint is object else hint
    try:
        return msgspec.json.decode(data, type=cast("type[object]", kind), dec_hook=_path)
    except MISFITS as error:
        problem, _, where = str(error).partition(" - at `")
        where = where.rstrip("`").removeprefix("$").removeprefix(".") if where.startswith("$") else ""
        raise MisfitError(problem[:1].lower() + problem[1:], where) from error


def _path(kind: type, value: object) -> object:
    """Make a path of a text; nothing else that msgspec does not know has a form in JSON."""
    if issubclass(kind, PurePath) and isinstance(value, str):
        return kind(value)
    raise TypeError(f"{kind.__name__} has no form in JSON")


def _with_fields(data: bytes, hint: Hint, fields: Sequence[JsonField]) -> object:
    given = _fields_of(data, hint)
    cls = cast("Callable[..., object]", typing.get_origin(hint) or hint)
    expected = {*(field.name for field in fields), _tag_checked(given, cls)}
    unknown = [name for name in given if name not in expected]
    if unknown:
        raise MisfitError(f"there is no field {unknown[0]!r} in {describe(hint)}")
    arguments: dict[str, object] = {}
    for field in fields:
        if field.name not in given:
            if field.required:
                raise MisfitError(f"the field {field.name!r} of {describe(hint)} is missing")
            continue
        try:
            arguments[field.argument] = _read(given[field.name], _kept_members(field.hint))
        except MisfitError as error:
            raise error.below(field.name) from error
    if is_typed_dict(cls):
        return arguments
    try:
        return cls(**arguments)
    except MISFITS as error:
        raise MisfitError(str(error) or f"{describe(hint)} refuses it") from error


def _kept_members(hint: Hint) -> tuple[Hint, ...]:
    """Return the members of a union, or a type as it is, with the limits that are annotated to it."""
    found = members(hint)
    return found if len(found) != 1 else (hint,)


def _fields_of(data: bytes, hint: Hint) -> dict[str, bytes]:
    """Return the fields of an object without what says its type. Raises `MisfitError` where that is another one."""
    try:
        given = {name: bytes(value) for name, value in _object(data).items()}
    except MISFITS as error:
        raise MisfitError(f"expected an object for {describe(hint)}") from error
    said = given.pop(TYPE, None)
    if said is not None and _leaf(said, str) not in names_of(hint):
        raise MisfitError(f"its {TYPE!r} is not {describe(hint)}")
    return given


def _tag_checked(given: Mapping[str, bytes], cls: object) -> str:
    """Return the name of a struct's tag, if it has one. Raises `MisfitError` where it is another one's."""
    config = cls.__struct_config__ if isinstance(cls, type) and issubclass(cls, msgspec.Struct) else None
    if config is None or config.tag_field is None:
        return TYPE
    if config.tag_field in given and _leaf(given[config.tag_field], object) != config.tag:
        raise MisfitError(f"its {config.tag_field!r} is not {config.tag!r}")
    return config.tag_field


def _mapping(data: bytes, origin: type, arguments: tuple[Hint, ...]) -> object:
    try:
        given = _object(data)
    except MISFITS as error:
        raise MisfitError("expected an object") from error
    key_hint, value_hint = arguments if len(arguments) == 2 else (str, object)
    made: dict[object, object] = {}
    for name, value in given.items():
        try:
            key = next(iter(cast("dict[object, object]", _leaf(_one_key(name), dict[key_hint, None]))))
            if key in made:  # two texts may be one time
                raise MisfitError("the same key stands there already, written in another way")
            made[key] = _read(bytes(value), _kept_members(value_hint))
        except MisfitError as error:
            raise error.below(name) from error
    return made if origin is dict or getattr(origin, "__abstractmethods__", None) else origin(made)


def _one_key(name: str) -> bytes:
    return msgspec.json.encode({name: None})


def _sequence(data: bytes, origin: type, arguments: tuple[Hint, ...]) -> object:
    try:
        given = _array(data)
    except MISFITS as error:
        raise MisfitError("expected a list") from error
    hints = arguments[:1] * len(given)
    if origin is tuple and arguments[-1] is not Ellipsis:
        if len(given) != len(arguments):
            raise MisfitError(f"expected {len(arguments)} elements, and there are {len(given)}")
        hints = arguments
    made: list[object] = []
    for index, (value, hint) in enumerate(zip(given, hints, strict=True)):
        try:
            made.append(_read(bytes(value), _kept_members(hint)))
        except MisfitError as error:
            raise error.below(f"[{index}]") from error
    concrete = origin if origin in _CONCRETE else (set if is_below(origin, Set) else list)
    make = cast("Callable[[list[object]], object]", concrete)
    try:
        return make(made)
    except TypeError as error:  # an element that has no hash
        raise MisfitError(str(error)) from error
