"""Records: what is stored under a kind decodes to exactly that class, or is damage."""

from __future__ import annotations

import threading

import pytest

from rehydrate.codecs import wrap
from rehydrate.codecs.records import decode_record, encode_record
from rehydrate.errors import CheckpointCorruptError
from rehydrate.model.records import RECORD_TYPES, CounterRecord

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
