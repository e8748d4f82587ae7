"""Compression: big records become smaller and come back exactly; what is none is refused in bounded memory."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from rehydrate.codecs import MAX_BYTES, unwrap, wrap
from rehydrate.codecs.compression import LEAST, RATIO
from rehydrate.codecs.envelope import OVERHEAD
from rehydrate.errors import CheckpointCorruptError, CheckpointFormatError, MissingExtraError
from tests.codecs.unpacking import BOMB_BYTES, enveloped, frame_of, zstd

ROOT = Path(__file__).resolve().parents[2]
CHANCE = random.Random(5)
TEXT = b"".join(b"%d bottles of beer on wall %d; " % (number, CHANCE.randrange(1000)) for number in range(1000))
ZEROS = b"\0" * 5_000_000


@pytest.mark.parametrize("body", [TEXT, TEXT * 100, ZEROS], ids=["text", "long text", "zeros"])
def test_a_big_record_becomes_smaller_and_comes_back(body: bytes) -> None:
    """What compresses well is stored compressed, says so, and is read by whoever reads records."""
    whole = wrap(body, compress=True)
    assert whole[:2] == b"RZ"
    assert len(whole) < len(body) / 3
    assert unwrap(whole) == unwrap(whole, hashed=True) == body
    assert wrap(body) == b"RH" + wrap(body)[2:]


@pytest.mark.parametrize(
    "body",
    [b"", b"x", b"x" * (LEAST - 1), random.Random(1).randbytes(100_000)],
    ids=["empty", "one byte", "just below", "noise"],
)
def test_what_is_small_or_does_not_become_smaller_is_left_plain(body: bytes) -> None:
    """Below 4 KB, and where there is nothing to gain, a record is stored as without compression."""
    assert LEAST == 4096
    assert wrap(body, compress=True) == wrap(body)
    assert wrap(b"x" * LEAST, compress=True)[:2] == b"RZ"


def test_every_flipped_bit_truncation_and_tail_is_reported() -> None:
    """Each bit of a compressed record matters."""
    whole = wrap(b"abcdefgh" * 600, compress=True)
    assert whole[:2] == b"RZ"
    damaged = [whole[:end] for end in range(len(whole))] + [whole + b"\0"]
    for position in range(len(whole) * 8):
        flipped = bytearray(whole)
        flipped[position // 8] ^= 1 << position % 8
        damaged.append(bytes(flipped))
    for data in damaged:
        with pytest.raises((CheckpointCorruptError, CheckpointFormatError)):
            unwrap(data)


@pytest.mark.parametrize(
    ("size", "frame", "text"),
    [
        (len(TEXT) - 2, frame_of(TEXT), "bytes and has more"),
        (len(TEXT) + 1, frame_of(TEXT), "ends early or goes on"),
        (len(TEXT), frame_of(TEXT)[:-1], "ends early or goes on"),
        (len(TEXT), frame_of(TEXT) + b"\0", "ends early or goes on"),
        (len(TEXT), frame_of(TEXT) + frame_of(b""), "ends early or goes on"),
        (0, b"", "ends early or goes on"),
        (10, b"no frame at all", "cannot be decompressed"),
        (MAX_BYTES + 1, frame_of(TEXT), "268435457 bytes, and 268435456 are allowed"),
        (len(TEXT), frame_of(TEXT, window_log=27), "cannot be decompressed"),
    ],
    ids=["less", "more", "cut", "tail", "second frame", "nothing", "noise", "too much", "window"],
)
def test_what_is_not_what_it_says_is_refused(size: int, frame: bytes, text: str) -> None:
    """A frame that has more or less than its record says, goes on, or needs too much memory is damage."""
    with pytest.raises(CheckpointCorruptError, match=text):
        unwrap(enveloped(size, frame))


def test_a_record_unpacks_to_32_times_its_length_at_most() -> None:
    """What becomes smaller than that is filled up with zeros, exactly; a reader takes no other filling."""
    whole = wrap(ZEROS, compress=True)
    assert len(whole) == OVERHEAD + len(ZEROS) // RATIO
    assert RATIO == 32
    data = whole[OVERHEAD:]
    frame = data.rstrip(b"\0")[4:]
    for wrong in (frame, data[4:-1], data[4:] + b"\0", data[4:-1] + b"x", data[4:-100] + b"x" + data[-99:]):
        with pytest.raises(CheckpointCorruptError, match=r"allowed for its length|ends early or goes on"):
            unwrap(enveloped(len(ZEROS), wrong))
    assert unwrap(enveloped(len(ZEROS), data[4:])) == ZEROS


def test_a_bomb_is_refused_in_bounded_memory() -> None:
    """32 KB that stand for a GiB are refused; the process needs no more than what the record said it has."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.codecs.unpacking"],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert BOMB_BYTES == 2**30
    assert found["bytes"] < 40_000
    assert [text.rsplit(" ", 2)[1:] for text in found["texts"]] == [
        ["has", "more."],
        ["its", "length."],
        ["are", "allowed."],
    ]
    assert found["peak"] < 48 * 2**20


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no zstd, writing and reading compressed records says what to install; plain ones are read."""
    whole = wrap(TEXT, compress=True)
    monkeypatch.setitem(sys.modules, zstd.__name__, None)
    for package in ("backports", "compression"):
        if package in sys.modules:
            monkeypatch.delattr(sys.modules[package], "zstd", raising=False)
    for call in (lambda: wrap(TEXT, compress=True), lambda: unwrap(whole)):
        with pytest.raises(MissingExtraError, match=r"pip install 'rehydrate\[zstd\]'"):
            call()
    assert unwrap(wrap(TEXT)) == TEXT
    assert len(wrap(b"")) == OVERHEAD
