"""JSON as pydantic models, by their own rules but strictly, and the error of a text that does not fit.

pydantic is never imported. What a model's own hooks make of a text is taken as it is; only fields that nobody knows,
at any depth, are refused, since the model would drop them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

import msgspec

from rehydrate.codecs.models import is_pydantic
from rehydrate.graph.hints import Hint, describe
from rehydrate.model.plain import Plain

from .json_fields import TYPE, is_root_model, json_fields, names_of

#: What reading a text, or a class that is made of it, raises where it does not fit.
MISFITS: Final = (msgspec.MsgspecError, TypeError, ValueError, AssertionError, RecursionError)


class MisfitError(ValueError):
    """A JSON text does not fit a type; `where` is the place in it, such as `claims[2].amount`."""

    def __init__(self, problem: str, where: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.where = where

    def below(self, step: str) -> MisfitError:
        """Return the same, seen from one level above."""
        joined = f"{step}{self.where}" if self.where.startswith("[") or not self.where else f"{step}.{self.where}"
        return MisfitError(self.problem, joined)

    def __str__(self) -> str:
        return f"at {self.where}: {self.problem}" if self.where else self.problem


def read_model(data: bytes, hint: Hint) -> object:
    """Return the model that a JSON text says. Raises `MisfitError`."""
    said, text = _named(data, hint)
    validate = cast("Callable[..., object]", getattr(hint, "model_validate_json"))  # noqa: B009  (no type has it)
    try:
        found = validate(text, strict=True)
    except MISFITS as error:
        raise _first(error) from error
    _check_known(found, said)
    return found


def _named(data: bytes, hint: Hint) -> tuple[Plain, bytes]:
    """Return what a text says, without the name of its type, and as a text. Raises `MisfitError` for another name."""
    try:
        said = cast("Plain", msgspec.json.decode(data))
    except MISFITS as error:
        raise MisfitError(str(error)) from error
    if not isinstance(said, dict) or TYPE not in said:
        return said, data
    if said.pop(TYPE) not in names_of(hint):
        raise MisfitError(f"its {TYPE!r} is not {describe(hint)}")
    raw = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    del raw[TYPE]
    return said, msgspec.json.encode(raw)


def _check_known(value: object, said: Plain) -> None:
    """Raise `MisfitError` where an object has a field that what was made of it does not have."""
    if isinstance(said, list):
        items = cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()
        for index, (item, of) in enumerate(zip(items, said, strict=False)):
            _below(f"[{index}]", item, of)
    if not isinstance(said, dict):
        return
    if isinstance(value, dict):
        for name, of in said.items():
            _below(name, cast("dict[object, object]", value).get(name), of)
        return
    cls = cast("type", type(cast("object", value)))
    known = None if is_root_model(cls) else _known(cls)
    if known is None:
        return
    for name, of in said.items():
        if name not in known:
            raise MisfitError(f"there is no field {name!r} in {describe(cls)}")
        _below(name, getattr(cast("object", value), known[name], None), of)


def _below(step: str, value: object, said: Plain) -> None:
    try:
        _check_known(value, said)
    except MisfitError as error:
        raise error.below(step) from error


def _known(cls: type) -> Mapping[str, str] | None:
    """Return the attributes by the names that they may have in JSON; `None` where a class takes other names, too."""
    fields = json_fields(cls)
    if fields is None:
        return None
    known = {field.name: field.argument for field in fields}
    if not is_pydantic(cls):
        return known
    config = cast("Mapping[str, object]", getattr(cls, "model_config"))  # noqa: B009  (no type has it)
    declared = cast("Mapping[str, object]", getattr(cls, "model_fields"))  # noqa: B009  (no type has it)
    aliases = [getattr(field, "validation_alias", None) for field in declared.values()]
    if config.get("extra") is not None or not all(isinstance(alias, str | None) for alias in aliases):
        return None
    if config.get("populate_by_name") or config.get("validate_by_name"):
        known |= {name: name for name in declared}
    return known


def _first(error: BaseException) -> MisfitError:
    """Return the first of a model's errors, with its place."""
    told = cast("Callable[[], list[dict[str, object]]] | None", getattr(error, "errors", None))
    if told is None:
        return MisfitError(str(error))
    first = told()[0]
    steps = cast("tuple[int | str, ...]", first.get("loc", ()))
    where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")
    return MisfitError(str(first.get("msg", error)), where)
