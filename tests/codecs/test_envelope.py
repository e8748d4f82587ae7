"""The envelope: every damage of a record is seen before anything is decoded."""

import zlib

import pytest

from rehydrate.codecs import FORMAT_VERSION, unwrap, wrap
from rehydrate.errors import CheckpointCorruptError, CheckpointFormatError

BODY = bytes(range(60))


@pytest.mark.parametrize("body", [b"", b"x", BODY, b"\0" * 100_000])
def test_a_body_comes_out_as_it_went_in(body: bytes) -> None:
    """An envelope gives back what was put in and costs at most twelve bytes."""
    assert unwrap(wrap(body)) == body
    assert len(wrap(body)) - len(body) <= 12


def test_every_flipped_bit_is_reported() -> None:
    """Each single bit of a record matters: one in the version may say that newer code wrote it."""
    whole = wrap(BODY)
    for position in range(len(whole) * 8):
        damaged = bytearray(whole)
        damaged[position // 8] ^= 1 << position % 8
        with pytest.raises((CheckpointCorruptError, CheckpointFormatError)):
            unwrap(bytes(damaged))


def test_every_truncation_and_every_tail_is_reported() -> None:
    """A record that ends early or late is damaged."""
    whole = wrap(BODY)
    for length in range(len(whole)):
        with pytest.raises(CheckpointCorruptError):
            unwrap(whole[:length])
    with pytest.raises(CheckpointCorruptError, match="holds 61 bytes and says 60"):
        unwrap(whole + b"\0")


def test_a_newer_format_is_told_from_damage() -> None:
    """A record with a higher version is refused with the advice to upgrade."""
    newer = b"RH" + bytes([FORMAT_VERSION + 1]) + wrap(BODY)[3:]
    with pytest.raises(CheckpointFormatError, match=r"format 2; this version reads up to 1\..*newer code: upgrade"):
        unwrap(newer)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "shorter than its header"),
        (b"PK" + wrap(BODY)[2:], "does not begin like one"),
        (b"RH\0" + wrap(BODY)[3:], "no format version"),
        (wrap(BODY)[:-1] + b"\0", "checksum"),
        (b"RH\1" + (60).to_bytes(4, "big") + zlib.crc32(b"").to_bytes(4, "big") + BODY, "checksum"),
    ],
    ids=["empty", "magic", "no version", "body", "checksum"],
)
def test_damage_is_named(data: bytes, text: str) -> None:
    """The error says what is wrong with the record."""
    with pytest.raises(CheckpointCorruptError, match=text):
        unwrap(data)
