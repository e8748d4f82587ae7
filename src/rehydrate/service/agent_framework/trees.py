"""Trees of nodes as the reading process gives them, taken apart by what they stand for; `nodes.TAGS` lists the letters.

Nothing is made of a value of theirs here; that is `values`.
"""

from __future__ import annotations

from typing import TypeAlias, cast

from .inert import Refused

Node: TypeAlias = bool | int | float | str | list["Node"] | None


def class_of(node: Node) -> str | None:
    """Return the name of an object's class; `None` for what is no object."""
    match node:
        case ["o", str(name), *_]:
            return name
        case _:
            return None


def has_class(node: Node, *names: str) -> bool:
    """Tell whether a node is an object of a class of the framework, by its bare name."""
    name = class_of(node)
    return name is not None and name.startswith("agent_framework") and name.rpartition(":")[2] in names


def fields_of(node: Node, what: str) -> dict[str, Node]:
    """Return the fields of a dict or an object. Raises `Refused` for anything else."""
    match node:
        case ["d", *items]:
            return _paired(items, what)
        case ["o", str(), _, ["l"], ["t", None, ["d", *items]]]:  # of a class with slots
            return _paired(items, what)
        case ["o", str(), _, ["l"], ["t", ["d", *inside], ["d", *items]]]:
            return {**_paired(inside, what), **_paired(items, what)}
        case ["o", str(), _, ["l"], ["d", *items]]:
            return _paired(items, what)
        case _:
            raise Refused(f"{what} is no dict")


def _paired(items: list[Node], what: str) -> dict[str, Node]:
    keys = items[::2]
    if len(items) % 2 or not all(isinstance(key, str) for key in keys):
        raise Refused(f"{what} has keys that are no texts")
    return dict(zip(cast("list[str]", keys), items[1::2], strict=True))


def items_of(node: Node, what: str) -> list[Node]:
    """Return the items of a list or tuple. Raises `Refused` for anything else."""
    match node:
        case ["l" | "t", *items]:
            return items
        case _:
            raise Refused(f"{what} is no list")


def text_of(fields: dict[str, Node], key: str, what: str) -> str:
    """Return a field that is a text. Raises `Refused`."""
    found = fields.get(key)
    if not isinstance(found, str):
        raise Refused(f"{what} has no {key!r}")
    return found


def is_empty(node: Node) -> bool:
    """Tell whether there is nothing in a value."""
    return node is None or node in (["d"], ["l"], ["t"])
