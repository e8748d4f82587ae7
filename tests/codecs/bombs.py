"""Reads bytes that are nested too deep in a thread with a stack of 256 KB. The argument is a recursion limit, or 0."""

import itertools
import sys
import threading

from rehydrate.codecs import TypeRegistry, ValueCodec, check_bounds, plain
from rehydrate.errors import CheckpointCorruptError
from rehydrate.model.sealed import Sealed
from tests.codecs.bytes_by_hand import ONE_LEVEL, Ext, as_tuple, encode, nested

DEPTH = 100_000
SMALL_STACK = 256 * 1024
CODEC = ValueCodec(TypeRegistry())

LONG = [
    head * DEPTH + b"\1" + tail * DEPTH
    for head, tail in [
        (b"\x91", b""), (b"\x81\xa1a", b""), (b"\xdc\0\1", b""), (b"\xdd\0\0\0\1", b""), (b"\xde\0\1\1", b""),
        (b"\x92\xa1a", b""), (b"\x92", b"\x90"), (b"\x81", b"\1"),
    ]
]  # fmt: skip
BOMBS = [
    *LONG,
    *(nested(levels, wrap) for levels in (201, 400, 1000, 5000) for wrap in ONE_LEVEL.values()),
    *(nested(levels, as_tuple) for levels in (101, 500, 3000)),
    *(b"\x93" + encode([{"a": []}] * 5000) + bomb + b"\x90" for bomb in LONG[:4]),
    b"\x91" * 100 + encode(Ext(2, b"\x91" * 60 + encode(Ext(2, b"\x91" * DEPTH + b"\1")))),
]


def answer(read: object, data: bytes) -> str:
    try:
        read(data)
    except CheckpointCorruptError as error:
        return "refused" if "nested deeper" in str(error) else str(error)
    return "read"


def main(recursion_limit: int) -> None:
    sys.setrecursionlimit(recursion_limit or sys.getrecursionlimit())
    readers = [lambda data: CODEC.open(Sealed("list", data)), plain, check_bounds]
    found: list[str] = []

    def work() -> None:
        found.extend(answer(read, bomb) for bomb, read in itertools.product(BOMBS, readers))
        deepest = [nested(200, wrap) for kind, wrap in ONE_LEVEL.items() if "key" not in kind]
        found.append(", ".join(sorted({answer(plain, data)[:40] for data in deepest})))
        found.append(answer(lambda data: CODEC.open(Sealed("tuple", data)), nested(100, as_tuple)))

    threading.stack_size(SMALL_STACK)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    expected = ["refused"] * len(BOMBS) * 3 + ["a stored value is damaged: a container h, read", "read"]
    sys.stdout.write("all refused\n" if found == expected else repr([text for text in found if text != "refused"]))


if __name__ == "__main__":
    main(int(sys.argv[1]))
