"""Keys that stand twice in one object of a JSON text: decoders take the last one and say nothing.

One pass over a text that is JSON and not too deep, at the speed of C but for the objects; it makes no values.
"""

from __future__ import annotations

import json
from typing import Final, NamedTuple, TypeAlias, cast

#: Steps from where a search began, the last one first: the steps above, and a key or an index.
_Steps: TypeAlias = "tuple[_Steps, str | int] | None"


class Twice(NamedTuple):
    """A key that stands twice in one object, and the steps to that object."""

    key: str
    steps: tuple[str | int, ...] = ()

    @property
    def where(self) -> str:
        """The object as errors name places, such as `claims[2]`."""
        text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.steps)
        return text.removeprefix(".")


def key_twice(data: bytes) -> Twice | None:
    """Return a key that stands twice in one object, if there is any. Raises `ValueError` for what is no JSON."""
    return _found(None, _DECODER.decode(data.decode("utf-8", "surrogatepass")))


def _of_object(pairs: list[tuple[str, object]]) -> Twice | None:
    """Return what is left of an object: a key that stands twice in it or further inside, or nothing."""
    if len(dict(pairs)) < len(pairs):
        seen: set[str] = set()
        return Twice(next(key for key, _ in pairs if key in seen or seen.add(key)))
    for key, left in pairs:
        found = _found((None, key), left)
        if found is not None:
            return found
    return None


def _found(steps: _Steps, left: object) -> Twice | None:
    """Return what was found in what is left of a value: of a list, in its elements."""
    waiting = [(steps, left)]
    while waiting:
        above, value = waiting.pop()
        if isinstance(value, Twice):
            return Twice(value.key, (*_in_order(above), *value.steps))
        if isinstance(value, list):
            waiting += [
                ((above, at), each)
                for at, each in enumerate(cast("list[object]", value))
                if isinstance(each, list | Twice)
            ]
    return None


def _in_order(steps: _Steps) -> list[str | int]:
    found: list[str | int] = []
    while steps is not None:
        steps, step = steps
        found.append(step)
    return found[::-1]


#: Numbers stay texts: an integer of a long one takes more than linear time to make.
_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_of_object, parse_int=str, parse_float=str, parse_constant=str, strict=False
)
