"""P10: a megabyte of any bytes is soon over and takes bounded memory, in every reader.

Times are CPU times, the best of three; a machine that is busy with others makes them up to three times as long.
"""

from __future__ import annotations

import json

import pytest

from rehydrate.codecs import compression
from rehydrate.errors import RehydrateError
from tests.codecs.unpacking import enveloped, frame_of
from tests.proof.heavy import bounded, measured
from tests.proof.ledger import Tried
from tests.proof.test_p10_hook import run_apart

MB = 1 << 20
SECONDS = 0.05
BUSY = 3
#: Of a value of nothing but empty containers: what Python needs for each, and for the plain view of it.
BYTES_FOR_A_BYTE = 200


@pytest.mark.proof
@pytest.mark.promise("P10", "the worst megabytes that are known, by reader")
def test_a_megabyte_is_soon_over_and_takes_little(tried: Tried) -> None:
    """50 ms and 64 MB for bombs, lengths that are not there, crowds of one hash, big numbers, and lists that unpack."""
    found = json.loads(run_apart("heavy", "bounded"))
    tried(len(found))
    assert {name: took for name, took in found.items() if took[0] > SECONDS * BUSY or took[1] > 64 * MB} == {}


@pytest.mark.proof
@pytest.mark.promise("P10", "megabytes of very many small containers: linear")
def test_a_megabyte_of_containers_takes_what_these_are(tried: Tried) -> None:
    """A million empty lists are a value that somebody may have stored; it takes what a million empty lists take."""
    found = json.loads(run_apart("heavy", "crowded"))
    tried(len(found))
    assert {name: took for name, took in found.items() if took[1] > BYTES_FOR_A_BYTE * took[2]} == {}


@pytest.mark.promise("P10", "the worst megabytes that are known, by reader")
@pytest.mark.parametrize("name", ["nested arrays", "declared lengths", "a recipe that unpacks"])
def test_a_megabyte_takes_little(name: str, tried: Tried) -> None:
    """The short form: a bomb, lengths that are not there, and a list that unpacks."""
    took = measured(*bounded()[name])
    tried(1)
    assert took[1] < 64 * MB


@pytest.mark.notices("P10")
def test_decompressing_without_an_end_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that believes no size takes more memory than it may."""
    bomb = enveloped(100, frame_of(bytes(80 * MB)))

    def read(data: bytes) -> object:
        return len(compression._zstd("a test").decompress(data[15:]))

    assert measured(read, bomb)[1] > 64 * MB

    def bounded_read(data: bytes) -> object:
        with pytest.raises(RehydrateError):
            compression.decompressed(memoryview(data)[11:])
        return None

    assert measured(bounded_read, bomb)[1] < 64 * MB
