"""Hostile bytes: opening them gives a value or one of our errors, runs nothing, and is soon over."""

import itertools
from contextlib import suppress

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rehydrate.codecs import TypeRegistry, ValueCodec, plain
from rehydrate.errors import CheckpointCorruptError, WorkflowCheckpointException
from rehydrate.model.sealed import Sealed
from tests.codecs import models as m
from tests.codecs.test_round_trip import BUILT_IN, CLASSES

CODEC = ValueCodec(TypeRegistry([m.Everything]))
NAMES = sorted({"list", "dict", "tuple", "int", "Claim", "Color", "Model", "Struct", "Attrs", "Point", "datetime"})
SMALL = {
    name: sealed for name, value in {**BUILT_IN, **CLASSES}.items() if len((sealed := CODEC.seal(value)).data) < 600
}

encode = msgspec.msgpack.encode
Ext = msgspec.msgpack.Ext


def read(name: str, data: bytes) -> None:
    """Open and show bytes; only errors about the checkpoint are expected, everything else comes out."""
    for action in (lambda: CODEC.open(Sealed(name, data)), lambda: plain(data)):
        with suppress(WorkflowCheckpointException):
            action()


@pytest.mark.parametrize("name", SMALL)
def test_every_flipped_bit_gives_a_value_or_an_error_of_ours(name: str) -> None:
    """Without its envelope a damaged value may still be a value, but it is never a crash or a foreign error."""
    sealed = SMALL[name]
    for position in range(len(sealed.data) * 8):
        damaged = bytearray(sealed.data)
        damaged[position // 8] ^= 1 << position % 8
        read(sealed.type, bytes(damaged))


@pytest.mark.parametrize("name", SMALL)
def test_every_truncation_is_reported(name: str) -> None:
    """A value that ends early is damaged."""
    sealed = SMALL[name]
    for length in range(len(sealed.data)):
        with pytest.raises(CheckpointCorruptError):
            CODEC.open(Sealed(sealed.type, sealed.data[:length]))


def fields(**given: object) -> dict[str, object]:
    return {"": given.pop("type_", "Claim"), **given}


KEYS = st.one_of(st.text(max_size=3), st.sampled_from(["", "a", "id", "amount", "!missing"]))
WORDS = st.sampled_from(
    ["", "Claim", "Color", "Model", "!missing", "!set", "!extra", "name", "value", "a", "id", "RED"]
)
NUMBERS = st.one_of(st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats())
FIELDS = ("a", "b", "id", "amount", "name", "value", "!missing", "!set")


def objects(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    named = st.fixed_dictionaries({"": st.sampled_from(NAMES)}, optional=dict.fromkeys(FIELDS, inner))
    return st.builds(lambda value: Ext(1, encode(value)), named)


payloads = st.recursive(
    st.one_of(st.none(), NUMBERS, st.text(max_size=8), st.binary(max_size=20), WORDS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(KEYS, inner, max_size=4),
        st.builds(lambda code, value: Ext(code, encode(value)), st.integers(-128, 127), inner),
        objects(inner),
        st.builds(Ext, st.integers(1, 32), st.binary(max_size=24)),
    ),
    max_leaves=10,
)


@settings(deadline=None)
@given(st.sampled_from(NAMES), payloads)
@example("Claim", Ext(1, encode([])))
@example("Claim", Ext(1, encode(fields(type_=[]))))
@example("Claim", Ext(1, encode(fields(type_=["Claim", 0], id=1, amount=1))))
@example("Claim", Ext(1, encode(fields(type_=["Claim", "1"], id=1, amount=1))))
@example("Claim", Ext(1, encode({"id": 1, "amount": 2})))
@example("Claim", Ext(1, encode({1: 1, "": "Claim"})))
@example("Claim", Ext(1, encode(fields(**{"!missing": 5, "id": 1}))))
@example("Claim", Ext(1, encode(fields(**{"!missing": ["id"], "id": 1}))))
@example("Claim", Ext(1, encode(fields(**{"!missing": [[]], "id": 1}))))
@example("Model", Ext(1, encode(fields(type_="Model", a=1, b=1, when=1, **{"!set": 5}))))
@example("Model", Ext(1, encode(fields(type_="Model", a=1, b=1, **{"!missing": 5}))))
@example("Model", Ext(1, encode(fields(type_="Model", a=1, b=1, **{"!missing": [["when"]]}))))
@example("OpenModel", Ext(1, encode(fields(type_="OpenModel", a=1, **{"!extra": 5, "!private": 6}))))
@example("Color", Ext(1, encode(fields(type_="Color", name=[]))))
@example("Right", Ext(1, encode(fields(type_="Right", value=-1))))
@example("Bit", Ext(1, encode(fields(type_="Bit", value=2**64 - 1))))
@example("Name", Ext(1, encode(fields(type_="Name", value=5))))
@example("Claims", Ext(1, encode(fields(type_="Claims", value={}))))
@example("deque", Ext(5, encode([])))
@example("deque", Ext(5, encode([-1, 1])))
@example("deque", Ext(5, encode(["x", 1])))
@example("dict", Ext(6, encode([1])))
@example("dict", Ext(6, encode([[], 1])))
@example("set", Ext(3, encode([{}])))
@example("bytearray", Ext(18, b""))
@example("datetime", Ext(19, encode(["2026-01-01", 2, None, None])))
@example("datetime", Ext(19, encode(["2026-01-01", 0, 10**18, None])))
@example("datetime", Ext(19, encode(["2026-01-01", 0, "../../etc/passwd", None])))
@example("datetime", Ext(19, encode(["2026-01-01", 0, "No/Where", None])))
@example("datetime", Ext(19, encode(["2026-01-01", 0, "9" * 300, None])))
@example("ZoneInfo", Ext(24, b"9" * 300))
@example("ZoneInfo", Ext(24, b""))
@example("ZoneInfo", Ext(24, b"tzdata"))
@example("ZoneInfo", Ext(24, b"Europe"))
@example("timedelta", Ext(22, encode([10**12, 0, 0])))
@example("UUID", Ext(25, b"x"))
@example("UUID", Ext(25, b"x" * 17))
@example("Decimal", Ext(26, b"1E+99999999999999999999"))
@example("PosixPath", Ext(27, b""))
@example("PosixPath", Ext(27, b"\x09x"))
@example("complex", Ext(28, b"x"))
@example("range", Ext(29, encode([b"\1", b"\1", b""])))
@example("datetime", Ext(-1, b"\xff" * 12))
def test_any_payload_gives_a_value_or_an_error_of_ours(name: str, payload: object) -> None:
    """Well-formed MessagePack with any content in any place is refused or read, never a foreign error."""
    read(name, encode(payload))


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_give_a_value_or_an_error_of_ours(data: bytes) -> None:
    """Bytes that are no MessagePack are damage."""
    read("list", data)


def test_a_value_of_another_type_is_damage() -> None:
    """Bytes that hold another type than the sealed value says are not handed out."""
    with pytest.raises(CheckpointCorruptError, match="a stored value of type 'int' is damaged: its bytes hold a str"):
        CODEC.open(Sealed("int", b"\xa1a"))
    with pytest.raises(CheckpointCorruptError, match="its bytes hold a tuple"):
        CODEC.open(Sealed("Claim", CODEC.seal((1,)).data))


@pytest.mark.parametrize("count", [-1, 0, 1, 3, 2**32, 2**70])
def test_a_wrong_number_of_elements_is_damage(count: int) -> None:
    """A list part that says more or less than it holds is refused."""
    data, _ = CODEC.seal_items([1, 2])
    with pytest.raises(CheckpointCorruptError):
        CODEC.open_items([data], count)


def test_keys_made_to_collide_are_refused_at_once() -> None:
    """A hundred thousand keys of one hash value would take minutes to build; they are refused instead."""
    keys = [Ext(2, encode(bits)) for bits in itertools.product((-1, -2), repeat=14)]
    for data in (
        encode(Ext(3, encode(keys))),
        encode(Ext(4, encode(keys))),
        encode(Ext(6, encode([part for key in keys for part in (key, 0)]))),
    ):
        with pytest.raises(CheckpointCorruptError, match="same hash"):
            CODEC.open(Sealed("set", data))
