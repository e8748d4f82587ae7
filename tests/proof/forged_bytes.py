"""Forged bytes for the readers: bodies that are changed where they stand, dressed in checksums that are right."""

from __future__ import annotations

import json

import msgspec

from tests.proof.forging import Forger
from tests.proof.readers import Reader, quietly


def forged(reader: Reader, seed: str) -> bytes:
    """Return bytes for a reader; the same seed makes the same."""
    forger = Forger(seed)
    body = forger.chance.choice(reader.bodies)
    if not reader.raw and forger.chance.random() < 0.8:
        try:
            body = _changed(reader, forger, body)
        except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError):
            body = _scratched(forger, body)
    else:
        body = _scratched(forger, body)
    data = reader.dressed(body)
    return _scratched(forger, data) if forger.chance.random() < 0.05 else data


def _changed(reader: Reader, forger: Forger, body: bytes) -> bytes:
    if not reader.json:
        return msgspec.msgpack.encode(forger.tree(msgspec.msgpack.decode(body)))
    changed = forger.tree(json.loads(body))
    return json.dumps(changed, default=lambda value: repr(value)[:80], separators=(",", ":")).encode("utf-8", "replace")


def _scratched(forger: Forger, data: bytes) -> bytes:
    """Change some bytes without a look at what they are."""
    chance = forger.chance
    scratched = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 8))):
        place = chance.randrange(len(scratched) + 1)
        act = chance.randrange(5)
        if act == 0 and scratched:
            scratched[place - 1] ^= 1 << chance.randrange(8)
        elif act == 1 and scratched:
            scratched[place - 1] = chance.randrange(256)
        elif act == 2:
            scratched[place:place] = chance.randbytes(chance.choice((1, 2, 5)))
        elif act == 3:
            del scratched[place : place + chance.choice((1, 2, 9))]
        else:
            scratched[place:place] = scratched[max(0, place - 9) : place]
    return bytes(scratched)


def foreign(reader: Reader, seed: str) -> str | None:
    """Read forged bytes, and tell of an error that is not one of ours."""
    data = forged(reader, seed)
    try:
        quietly(reader.read, data)
    except Exception as error:
        return f"{reader.name}, seed {seed!r}: {type(error).__name__}: {error!s:.80} for {data[:80]!r}"
    return None
