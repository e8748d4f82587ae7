"""Plain views: sealed bytes shown without the types, as JSON can hold them."""

import json
import math
from collections import deque
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import PurePosixPath
from uuid import UUID

import pytest

from rehydrate.codecs import TypeRegistry, ValueCodec, checkpointable, plain
from rehydrate.errors import CheckpointCorruptError
from tests.codecs import models as m

CODEC = ValueCodec(TypeRegistry([m.Everything]))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, None),
        ([1, 2.5, "a", True, None], [1, 2.5, "a", True, None]),
        (2**70, 2**70),
        ({"a": {"b": 1}}, {"a": {"b": 1}}),
        (m.Claim("c", 1), {"$type": "Claim", "id": "c", "amount": 1}),
        (
            [m.Holder(m.Derived("n"))],
            [{"$type": "Holder", "base": {"$type": "Derived", "name": "n", "extra": 0}, "anything": None}],
        ),
        (m.Color.RED, {"$type": "Color", "name": "RED"}),
        (m.Right.READ | m.Right.RUN, {"$type": "Right", "value": 5}),
        (m.OpenModel(a=1, z=2), {"$type": "OpenModel", "a": 1, "z": 2}),
        (m.Name("x"), {"$type": "Name", "value": "x"}),
        ((1, (2,)), [1, [2]]),
        ({3}, [3]),
        (frozenset({3}), [3]),
        (deque([1, 2], maxlen=5), [1, 2]),
        ({1: "a"}, {"$type": "dict", "items": [[1, "a"]]}),
        ({(1, 2): m.Color.RED}, {"$type": "dict", "items": [[[1, 2], {"$type": "Color", "name": "RED"}]]}),
        (b"\xff", {"$type": "bytes", "base64": "/w=="}),
        (bytearray(b"\xff"), {"$type": "bytearray", "base64": "/w=="}),
        (math.nan, {"$type": "float", "value": "nan"}),
        (-math.inf, {"$type": "float", "value": "-inf"}),
        (range(1, 5, 2), {"$type": "range", "start": 1, "stop": 5, "step": 2}),
        (datetime(2026, 1, 2, 3, tzinfo=UTC), "2026-01-02 03:00:00+00:00"),
        (date(2026, 1, 2), "2026-01-02"),
        (timedelta(seconds=90), "0:01:30"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Decimal("1.10"), "1.10"),
        (PurePosixPath("a/b"), "a/b"),
        (1j, "1j"),
        ("\ud800", "\\ud800"),
        ({"$type": "Claim", "$$x": 1}, {"$$type": "Claim", "$$$x": 1}),
        ({"": "Claim"}, {"": "Claim"}),
    ],
    ids=lambda case: str(case)[:30],
)
def test_a_value_is_shown_without_its_type(value: object, shown: object) -> None:
    """Objects carry their type's name; keys of users that look like ours have one more `$`."""
    found = plain(CODEC.seal(value).data)
    assert found == shown
    assert json.loads(json.dumps(found, allow_nan=False).encode()) == shown


def test_a_version_is_shown() -> None:
    """An object of a later version says which."""

    @checkpointable(version=3)
    @dataclass
    class Late:
        a: int

    sealed = ValueCodec(TypeRegistry([Late])).seal(Late(1))
    assert plain(sealed.data) == {"$type": "Late", "$version": 3, "a": 1}


@pytest.mark.parametrize(
    "data",
    [b"", b"\xc1", b"\x91", b"\x01\x01", b"\xd4\x01\x01", b"\xd4\x05\x90", b"\xd4\x63\x00", b"\x91" * 300 + b"\x01"],
    ids=repr,
)
def test_damaged_bytes_are_not_shown(data: bytes) -> None:
    """Bytes that nobody wrote are an error here, too."""
    with pytest.raises(CheckpointCorruptError):
        plain(data)
