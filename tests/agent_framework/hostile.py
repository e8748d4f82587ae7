"""Bytes that somebody made to do harm when they are read, and what shows that they did."""

import base64
import json
import os
import pickle
import struct
import subprocess
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

from rehydrate.service.agent_framework.inert import Refused
from rehydrate.service.agent_framework.listed import Listed
from rehydrate.service.agent_framework.nodes import read_file

PROTO = b"\x80\x05"


class Calling:
    """Something that is stored as a call of a function with arguments."""

    def __init__(self, function: Callable[..., object], *args: object) -> None:
        self.call = (function, args)

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return self.call


def stored(value: object) -> bytes:
    """Return the bytes that theirs stores of a value."""
    return pickle.dumps(value, protocol=5)


def file_with(data: bytes, type_name: str = "claims:Claim") -> bytes:
    """Return a file of theirs that holds stored bytes in its state."""
    held = {"__pickled__": base64.b64encode(data).decode(), "__type__": type_name}
    return json.dumps({"version": "1.0", "state": {"a": held}}).encode()


def name(module: str, attribute: str) -> bytes:
    """Return the instructions that name something."""
    return text(module) + text(attribute) + b"\x93"


def text(value: str) -> bytes:
    """Return the instruction for a text."""
    return b"\x8c" + bytes([len(value)]) + value.encode()


def laughs(levels: int) -> bytes:
    """Return a list of ten lists of ten lists, each kept once."""
    made = b"]\x94"
    for level in range(levels):
        made += b"]\x94(" + b"".join(b"h" + bytes([level]) for _ in range(10)) + b"e"
    return PROTO + made + b"."


def calls(marker: Path) -> dict[str, bytes]:
    """Return stored bytes that would make the marker, each in its own way."""
    touch = f"touch {marker}"
    write = f"__import__('pathlib').Path({str(marker)!r}).touch()"
    return {
        "os.system": stored(Calling(os.system, touch)),
        "subprocess": stored(Calling(subprocess.call, ["touch", str(marker)])),
        "eval": stored(Calling(eval, write)),
        "exec": stored(Calling(exec, write)),
        "open": stored(Calling(open, str(marker), "w")),
        "nested": stored([OrderedDict(a=Calling(os.system, touch))]),
        "in the framework": PROTO
        + name("agent_framework._workflows._checkpoint_encoding", "decode_checkpoint_value")
        + name("os", "system")
        + b"\x85R.",
        "by an attribute": PROTO
        + name("builtins", "getattr")
        + name("builtins", "object")
        + text("__subclasses__")
        + b"\x86R)R.",
        "as a class": PROTO + name("os", "system") + text(touch) + b"\x85\x81.",
        "as state": PROTO + name("claims", "Claim") + b")\x81" + stored(Calling(os.system, touch))[2:-1] + b"b.",
        "old protocol": pickle.dumps(Calling(os.system, touch), protocol=0),
        "protocol 2": pickle.dumps(Calling(os.system, touch), protocol=2),
    }


def bombs() -> dict[str, bytes]:
    """Return stored bytes that would take all memory or time."""
    deep = PROTO + b"]" * 3000 + b"a" * 2999 + b"."
    return {
        "ten to the ninth": laughs(9),
        "deep": deep,
        "deep tuples": PROTO + b")" + b"\x85" * 3000 + b".",
        "itself": PROTO + b"]\x94h\x00a.",
        "a dict in itself": PROTO + b"}\x94h\x00h\x00s.",
        "a number of four GiB": PROTO + b"\x8b\xff\xff\xff\xff.",
        "a number of a megabyte": PROTO + b"\x8b" + struct.pack("<I", 1 << 20) + b"\x01" * (1 << 20) + b".",
        "bytes of 2**63": PROTO + b"\x8e" + struct.pack("<Q", 1 << 63) + b".",
        "a far memory": PROTO + b"j\xff\xff\xff\x7f.",
        "a Decimal of a megabyte": PROTO
        + name("decimal", "Decimal")
        + b"X"
        + struct.pack("<I", 1 << 20)
        + b"9" * (1 << 20)
        + b"\x85R.",
        "a text a hundred thousand times": PROTO
        + b"X"
        + struct.pack("<I", 1 << 16)
        + b"a" * (1 << 16)
        + b"\x94]("
        + b"h\x00" * 100_000
        + b"e.",
        "a long number twenty thousand times": kept_once(b"\x8b" + struct.pack("<I", 4096) + b"\x01" * 4096, 20_000),
        "a long name two thousand times": kept_once(long_text(1 << 20) + text("Claim") + b"\x93", 2000),
        "arguments that are copied": PROTO
        + b"("
        + b"N" * 100_000
        + b"t\x94"
        + name("claims", "Claim")
        + b"\x94]("
        + b"h\x01h\x00\x81" * 300
        + b"e.",
        "lists that are copied": PROTO
        + b"]("
        + b"N" * 100_000
        + b"e\x94"
        + name("builtins", "frozenset")
        + b"\x94]("
        + b"h\x01h\x00\x85R" * 300
        + b"e.",
    }


def long_text(length: int) -> bytes:
    """Return the instruction for a text of that length."""
    return b"X" + struct.pack("<I", length) + b"a" * length


def kept_once(made: bytes, times: int) -> bytes:
    """Return a list that holds one value so many times."""
    return PROTO + b"](" + made + b"\x94" + b"h\x00" * (times - 1) + b"e."


def refusal(data: bytes, *names: str) -> str | None:
    """Return why a file is refused; `None` for one that is read."""
    try:
        read_file(data, Listed(names))
    except Refused as error:
        return str(error)
    return None
