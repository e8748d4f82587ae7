"""Records: what is stored under a kind decodes to exactly that class, or is damage."""

from __future__ import annotations

import copy
import threading

import pytest

from rehydrate.codecs import TypeRegistry, ValueCodec, plain, wrap
from rehydrate.codecs.records import decode_record, encode_record
from rehydrate.errors import CheckpointCorruptError
from rehydrate.model.records import RECORD_TYPES, CounterRecord, PartRecord, Record, StateRecord
from rehydrate.model.sealed import Items, Sealed

LEVELS = 100_000
#: What may stand before the nested part: no field, one, two, ... and a list in place of a text.
BEGINNINGS = [b"\x91", b"\x9f", b"\x92\x01", b"\x93\x01\x01", b"\x94\x01\x01\x01", b"\x92\x90", b"\x93\x01\x90"]
NESTED = {"lists": b"\x91" * LEVELS, "maps": b"\x81\x01" * LEVELS, "long lists": b"\xdc\x00\x01" * LEVELS}


def refused(kind: str) -> int:
    """Count the nested forms that are refused as damage."""
    found = 0
    for beginning in BEGINNINGS:
        for nested in NESTED.values():
            with pytest.raises(CheckpointCorruptError):
                decode_record(kind, wrap(beginning + nested + b"\x01"))
            found += 1
    return found


@pytest.mark.parametrize("kind", RECORD_TYPES)
def test_nesting_of_any_depth_is_damage_on_a_small_stack(kind: str) -> None:
    """A hundred thousand levels in any place of a record are an error, in a thread with a stack of 256 KB."""
    counts: list[int] = []
    before = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=lambda: counts.append(refused(kind)))
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert counts == [21]


def test_a_record_with_a_field_too_many_is_damage() -> None:
    """Nothing in a record is skipped: a field that its class does not have is an error."""
    assert decode_record("counter", encode_record(CounterRecord(7))) == CounterRecord(7)
    with pytest.raises(CheckpointCorruptError, match="of kind 'counter' is damaged"):
        decode_record("counter", wrap(b"\x92\x07\x07"))


def test_a_kind_that_is_not_known_is_damage() -> None:
    """A record of an unknown kind is never left out."""
    with pytest.raises(CheckpointCorruptError, match="kind 'surprise'"):
        decode_record("surprise", wrap(b"\x90"))


BIG = b"\xc6" + (100_000).to_bytes(4, "big") + b"x" * 100_000


@pytest.mark.parametrize(
    ("kind", "record"),
    [
        ("state", StateRecord(Sealed("bytes", BIG))),
        ("state", StateRecord(Sealed("bytes", BIG), 1, 2, 3)),
        ("part", PartRecord(Items(BIG, 1))),
    ],
)
def test_a_big_value_in_state_is_read_without_a_copy(kind: str, record: Record) -> None:
    """It is a view of its record that nobody can write to, and the record equals, hashes and copies as one of bytes."""
    stored = encode_record(record)
    found = decode_record(kind, stored)
    data = found.value.data if isinstance(found, StateRecord) and found.value else found.items.data
    assert isinstance(data, memoryview)
    assert (data.obj, data.readonly) == (stored, True)
    assert found == record
    assert hash(found) == hash(record)
    assert encode_record(found) == stored
    assert repr(copy.deepcopy(found)) == repr(record)


@pytest.mark.parametrize("kind", ["state", "part"])
def test_every_byte_of_a_big_record_counts(kind: str) -> None:
    """Of a big record, too, no field is skipped, and none of another class is taken."""
    state, part = b"\x91\x93\x00\xa5bytes", b"\x91\x93\x01"
    good = {"state": state + b"\xc6" + len(BIG).to_bytes(4, "big") + BIG, "part": part + BIG + b"\x01"}
    decode_record(kind, wrap(good[kind]))
    other = good["part" if kind == "state" else "state"]
    fields = b"\x95" + good[kind][1:] + b"\x01" * 4
    text = b"\x92" + good[kind][1:] + b"\xa1x"
    for wrong in (fields, text, b"\x9f" + good[kind][1:], good[kind] + b"\x01", good[kind][:-1], other):
        with pytest.raises(CheckpointCorruptError, match=f"kind '{kind}' is damaged"):
            decode_record(kind, wrap(wrong))


@pytest.mark.parametrize(
    "value",
    [
        pytest.param([0] * 100_000, id="many small"),
        pytest.param(["x" * 1000] * 100, id="few large"),
        pytest.param({number: [number] for number in range(50_000)}, id="a dict"),
        pytest.param(([(1, [2, (3,)])] * 30_000, {4}), id="nested"),
        pytest.param(b"x" * 100_000, id="bytes"),
        pytest.param("\ud800" * 50_000, id="a lone surrogate"),
    ],
)
def test_a_view_opens_as_its_bytes_do(value: object) -> None:
    """A value of any shape is the same, opened or shown plain, whether its bytes are a view of a record or not."""
    codec = ValueCodec(TypeRegistry())
    record = decode_record("state", encode_record(StateRecord(codec.seal(value))))
    assert isinstance(record, StateRecord)
    assert record.value is not None
    assert isinstance(record.value.data, memoryview)
    assert codec.open(record.value) == value
    assert plain(record.value.data) == plain(bytes(record.value.data))


def test_a_view_is_bounded_as_its_bytes_are() -> None:
    """Lists in lists beyond the bound are damage in a big record, too, when it is opened."""
    nested = b"\x91" * 100_000 + b"\x01"
    record = decode_record("state", encode_record(StateRecord(Sealed("list", nested))))
    assert isinstance(record, StateRecord)
    assert record.value is not None
    with pytest.raises(CheckpointCorruptError, match="nested deeper"):
        ValueCodec(TypeRegistry()).open(record.value)
