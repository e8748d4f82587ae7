"""The record sum, of all records at once and one by one."""

import hashlib

import pytest

from rehydrate.codecs.checkpoints import digest_sum, record_digest
from rehydrate.errors import CheckpointCorruptError
from rehydrate.model.checkpoint import Header
from rehydrate.stores.records_sum import RecordSum, checked_sum
from rehydrate.testing.store_contract import CommitMaker

MB = 1024 * 1024


def header_of(records: dict[str, bytes]) -> Header:
    return CommitMaker().claim(records).header


def added(records: dict[str, bytes]) -> RecordSum:
    record_sum = RecordSum()
    for key, data in records.items():
        record_sum.add(key, data)
    return record_sum


def test_the_sum_is_of_key_and_data() -> None:
    """The digest of a record is the SHA-256 of its key's length, its key and its data; sums wrap around."""
    expected = int.from_bytes(hashlib.sha256(b"\0\0\0\x02ab" + b"data").digest(), "big")
    assert record_digest("ab", b"data") == expected
    assert digest_sum([expected, 2**256 - expected, 5]) == (5).to_bytes(32, "big")


@pytest.mark.parametrize("size", [0, 1, 64 * 1024, MB, MB + 1, 5 * MB + 3])
def test_records_of_all_sizes_give_the_same_sum(size: int) -> None:
    """A record's digest is the same whether it is hashed at once, while others are read, or on a second thread."""
    records = {"small": b"s", "é": b"x" * size, "after": b"", "big": b"y" * (2 * MB), "last": b"l"}
    header = header_of(records)
    digests = checked_sum(header, records)
    with added(records) as record_sum:
        assert record_sum.checked(header) == digests


def test_pieces_give_the_same_sum() -> None:
    """A record that is added piece by piece, of whatever sizes, has the digest that it has as a whole."""
    records = {"a": b"1", "long": b"x" * (3 * MB) + b"y", "z": b"2" * MB}
    header = header_of(records)
    long = records["long"]
    with RecordSum() as record_sum:
        record_sum.add("a", b"1")
        for parts in ([long[:5], long[5:MB]], [long[MB : 3 * MB]], [], [long[3 * MB :]]):
            record_sum.add_piece("long", parts)
        record_sum.add("z", records["z"])
        assert record_sum.checked(header) == checked_sum(header, records)


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"a": b"1", "b": b"2"}, id="one less"),
        pytest.param({"a": b"1", "b": b"2", "big": b"x" * 3_000_000, "c": b""}, id="one more"),
        pytest.param({"a": b"2", "b": b"1", "big": b"x" * 3_000_000}, id="swapped"),
        pytest.param({"a": b"1", "b": b"2", "big": b"x" * 2_999_999}, id="cut"),
        pytest.param({"a": b"1", "b": b"2", "big": b"x" * 2_999_999 + b"y"}, id="changed at its end"),
        pytest.param({"a": b"1", "c": b"2", "big": b"x" * 3_000_000}, id="another key"),
    ],
)
def test_every_difference_is_seen(wrong: dict[str, bytes]) -> None:
    """A record less, more, swapped, cut, changed or under another key is damage, in both ways of checking."""
    header = header_of({"a": b"1", "b": b"2", "big": b"x" * 3_000_000})
    with pytest.raises(CheckpointCorruptError, match="checkpoint 'run:0' of run 'run' is damaged"):
        checked_sum(header, wrong)
    with added(wrong) as record_sum, pytest.raises(CheckpointCorruptError, match="checkpoint 'run:0' of run 'run'"):
        record_sum.checked(header)
