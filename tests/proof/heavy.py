"""Reads a megabyte of the worst that is known for each reader, under a hard limit of memory, and prints as JSON what it
took: CPU seconds (the best of three) and bytes at the peak."""

from __future__ import annotations

import gc
import itertools
import json
import resource
import sys
import time
import tracemalloc
import zlib
from collections.abc import Callable
from contextlib import suppress

import msgspec

from rehydrate.codecs import check_bounds, plain, wrap
from rehydrate.codecs.checkpoints import decode_checkpoint
from rehydrate.codecs.records import decode_record
from rehydrate.engine.requests import requests_held
from rehydrate.errors import RehydrateError
from rehydrate.model.request_packs import RequestsRecord
from rehydrate.model.sealed import Sealed
from rehydrate.model.signatures import SignatureRecord
from rehydrate.stores.packing import open_recipe
from tests.proof.readers import CODEC, named

MB = 1 << 20
encode = msgspec.msgpack.encode
Ext = msgspec.msgpack.Ext
Job = tuple[Callable[[bytes], object], bytes]


def opened(data: bytes) -> object:
    return CODEC.open(Sealed("list", data))


def filled(element: bytes) -> bytes:
    """Return a list of as many of these as a megabyte holds."""
    count = (MB - 5) // len(element)
    return b"\xdd" + count.to_bytes(4, "big") + element * count


def bounded() -> dict[str, Job]:
    """Return what is soon over and takes little, whether it is read or refused."""
    (row,) = named(["a recipe"])
    keys = [Ext(2, encode(bits)) for bits in itertools.product((-1, -2), repeat=16)]
    pack = RequestsRecord("a#1?0", "a#1?0", (), b"1234", b"")
    return {
        "nested arrays": (opened, b"\x91" * MB),
        "nested maps": (plain, b"\x81\xa1a" * (MB // 3)),
        "nested keys": (check_bounds, b"\x81" * MB),
        "declared lengths": (opened, b"\xdd\xff\xff\xff\xff" * (MB // 5)),
        "a declared map": (plain, b"\xdf\xff\xff\xff\xff" + b"\x01" * MB),
        "declared lengths of a record": (
            lambda d: decode_record("step", d),
            wrap(b"\x93\x01\xdd\xff\xff\xff\xff" + b"\xc0" * MB),
        ),
        "keys of one hash": (opened, encode(Ext(3, encode(keys)))[:MB]),
        "texts that look like containers": (opened, encode(["\u0410\u0411" * 200] * (MB // 800))),
        "numbers": (opened, filled(b"\x01")),
        "floats": (opened, filled(b"\xcb" + b"\x11" * 8)),
        "one text": (opened, encode(["x" * MB])),
        "one number": (opened, encode([Ext(16, b"\x7f" * MB)])),
        "one decimal": (opened, encode([Ext(26, b"9" * MB)])),
        "noise": (opened, bytes(range(256)) * 4096),
        "a checkpoint of one record": (decode_checkpoint, wrap(encode([b"", {"a": b"x" * MB}]))),
        "a record of nothing": (lambda d: decode_record("state", d), wrap(b"\xc1" * MB)),
        "a pack of nothing": (lambda d: requests_held(msgspec.structs.replace(pack, body=d)), filled(b"\x90")),
        "a recipe that unpacks": (
            lambda d: open_recipe(d, 30, "a recipe"),
            row.dressed(encode([1, zlib.compress(filled(b"\x90") * 64, 9), b""])),
        ),
        "a signature that unpacks": (lambda d: SignatureRecord(d).text, zlib.compress(b"a" * 64 * MB, 9)),
    }


def crowded() -> dict[str, Job]:
    """Return values of very many small containers: what they take is their own size."""
    deep = b"\x91" * 199 + b"\x01"
    found = {"empty lists": b"\x90", "empty maps": b"\x80", "tuples": encode(Ext(2, b"\x90")), "deep lists": deep}
    found |= {"sets": encode(Ext(3, b"\x90")), "deques": encode(Ext(5, b"\x91\xc0")), "paths": encode(Ext(27, b"\0"))}
    found |= {"decimals": encode(Ext(26, b"1")), "texts beyond UTF-8": encode(Ext(17, b"x"))}
    return {name: (read, filled(element)) for name, element in found.items() for read in (opened,)} | {
        f"plain {name}": (plain, filled(element)) for name, element in found.items()
    }


def measured(read: Callable[[bytes], object], data: bytes) -> tuple[float, int]:
    """Return CPU seconds and the bytes that were held at most."""
    best = 1e9
    for _ in range(3):
        gc.collect()
        begun = time.process_time()
        with suppress(RehydrateError, ValueError):
            read(data)
        best = min(best, time.process_time() - begun)
    gc.collect()
    tracemalloc.start()
    with suppress(RehydrateError, ValueError):
        read(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return best, peak


def main(which: str) -> None:
    """Measure."""
    jobs = bounded() if which == "bounded" else crowded()
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
    sys.stdout.write(json.dumps({name: (*measured(*job), len(job[1])) for name, job in jobs.items()}))


if __name__ == "__main__":
    main(sys.argv[1])
