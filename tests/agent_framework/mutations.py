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
