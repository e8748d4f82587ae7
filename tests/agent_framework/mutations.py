"""Damage to files of theirs: in their text, or in the bytes of one object that is stored in it."""

import base64
import json
import random
from collections.abc import Iterator


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Return a file with some damage."""
    document = json.loads(data)
    held = list(stored_in(document))
    if not held or chance.random() < 0.3:
        return damaged(data, chance)
    chosen = chance.choice(held)
    raw = damaged(base64.b64decode(chosen["__pickled__"]), chance)
    chosen["__pickled__"] = base64.b64encode(raw).decode()
    return json.dumps(document).encode()


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Return bytes with a few of them changed, gone, doubled or new."""
    made = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 5))):
        at, count = chance.randrange(len(made)), chance.randrange(1, 20)
        match chance.randrange(5):
            case 0:
                made[at] = chance.randrange(256)
            case 1:
                made[at] ^= 1 << chance.randrange(8)
            case 2 if len(made) > 100:
                del made[at : at + count]
            case 3:
                made[at:at] = made[at : at + count]
            case _:
                made[at:at] = chance.randbytes(count)
    return bytes(made)


def stored_in(document: object) -> Iterator[dict[str, str]]:
    """Yield the objects with stored bytes in a document."""
    if isinstance(document, dict):
        if "__pickled__" in document:
            yield document
            return
        document = list(document.values())
    if isinstance(document, list):
        for value in document:
            yield from stored_in(value)


#: What stands in a tree for something else: each a whole node.
OTHERS = (
    None,
    7,
    "x",
    True,
    ["d"],
    ["l"],
    ["l", 1],
    ["t", None, ["d", "a", 1]],
    ["d", 1, 2],
    ["s", "a"],
    ["b", "AA=="],
    ["i", "-ff"],
    ["r", "nan"],
    ["v", "date", "2026-01-01"],
    ["v", "zone", "Nowhere/Near"],
    ["c", "builtins:int"],
    ["o", "claims:Claim", False, ["l"], ["d", "id", 1]],
    ["o", "claims:Level", False, ["l", ["l"]], None],
    ["o", "agent_framework.x:WorkflowEvent", False, ["l"], ["d"]],
)


def changed(tree: object, chance: random.Random) -> object:
    """Return a tree with one of its nodes replaced by another one."""
    places = list(places_in(tree))
    for _ in range(chance.choice((1, 1, 1, 3))):
        holder, index = chance.choice(places)
        holder[index] = chance.choice(OTHERS)
    return tree


def places_in(node: object) -> Iterator[tuple[list[object], int]]:
    """Yield where nodes stand in a node."""
    match node:
        case ["l" | "t" | "s" | "f" | "d", *items]:
            for index, item in enumerate(items, start=1):
                yield node, index
                yield from places_in(item)
        case ["o", str(), bool(), list() as arguments, state]:
            yield node, 4
            yield from places_in(arguments)
            yield from places_in(state)
