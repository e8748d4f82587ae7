"""Every reader of stored bytes, with good bytes for it, and a way to make bytes whose checksums are right, so that a
change of what is inside reaches the decoder behind them."""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

import msgspec

from rehydrate.codecs import TypeRegistry, ValueCodec, plain
from rehydrate.codecs.archives import EXPORT_HEADER, decode_body, decode_lead, encode_archive
from rehydrate.codecs.checkpoints import decode_checkpoint, encode_checkpoint
from rehydrate.codecs.envelope import unwrap, wrap
from rehydrate.codecs.events import decode_event
from rehydrate.codecs.records import decode_header, decode_record, encode_header
from rehydrate.engine.requests import requests_held
from rehydrate.errors import EncryptedCheckpointError, RehydrateError
from rehydrate.graph.recorded import recorded_graph
from rehydrate.model.checkpoint import FORMAT, Offer, StoredEvent, key_of
from rehydrate.model.request_packs import RequestsRecord
from rehydrate.model.sealed import Sealed
from rehydrate.model.signatures import SignatureRecord
from rehydrate.stores.checkpoint_rows import Names, Written, open_written, seal_written
from rehydrate.stores.file_format import (
    FILE_FORMAT,
    CommitLine,
    Contents,
    HeadLine,
    LivePiece,
    LiveTable,
    MarkerLine,
    OfferLine,
    PointerLine,
    TagsLine,
    checksum,
    header_fields,
    header_of,
    opened_line,
)
from rehydrate.stores.packing import Source, open_recipe, packed, recipe_of
from rehydrate.stores.rows import TagRow, open_row, seal_row
from rehydrate.stores.sqlite_packing import _Pack, _Place, _places_of, unpacked
from tests.codecs import models
from tests.codecs.test_round_trip import BUILT_IN, CLASSES
from tests.proof.small_runs import archive, checkpoints, workflows

CODEC: Final = ValueCodec(TypeRegistry([models.Everything]))
encode: Final = msgspec.msgpack.encode
decode: Final = msgspec.msgpack.decode
WHAT: Final = "something"


@dataclass(frozen=True)
class Reader:
    """One reader: the bodies of good bytes, how a body is dressed in checksums, and what reads the whole."""

    name: str
    bodies: tuple[bytes, ...]
    dressed: Callable[[bytes], bytes]
    read: Callable[[bytes], object]
    #: The body is JSON; else it is MessagePack, or (`raw`) neither.
    json: bool = False
    raw: bool = False

    def good(self) -> Iterator[bytes]:
        """Give good bytes."""
        yield from map(self.dressed, self.bodies)


def quietly(read: Callable[[bytes], object], data: bytes) -> RehydrateError | None:
    """Read, and return the error of ours; every other one comes out."""
    try:
        read(data)
    except RehydrateError as error:
        return error
    return None


def _same(body: bytes) -> bytes:
    return body


def _values() -> Iterator[Reader]:
    seals = [CODEC.seal(value) for value in {**BUILT_IN, **CLASSES}.values()]
    by_type: dict[str, list[bytes]] = {}
    for sealed in seals:
        if len(sealed.data) < 600:
            by_type.setdefault(sealed.type, []).append(sealed.data)
    for name, bodies in by_type.items():
        yield Reader(f"a value: {name}", tuple(bodies), _same, lambda data, n=name: CODEC.open(Sealed(n, data)))
    yield Reader("elements of a list", (b"\x01\xa1a", b"\x90\x80"), _same, lambda data: CODEC.open_items([data], 2))
    yield Reader("a plain view", tuple(data for some in by_type.values() for data in some), _same, plain)


def _records() -> Iterator[Reader]:
    by_kind: dict[str, dict[bytes, None]] = {}
    for name in workflows():
        for stored in checkpoints(name):
            for key, data in stored.records.items():
                by_kind.setdefault(key_of(key)[1], {})[bytes(unwrap(data))] = None
    for kind, bodies in sorted(by_kind.items()):
        some = [body for body in bodies if len(body) < 20_000][:25]
        yield Reader(f"a record: {kind}", tuple(some), wrap, lambda data, k=kind: decode_record(k, data))
    packs = [decode(body, type=RequestsRecord) for body in by_kind["requests"]]
    pack = packs[0]
    yield Reader(
        "a pack of requests", (pack.body,), _same, lambda data: requests_held(msgspec.structs.replace(pack, body=data))
    )
    text = decode(next(iter(by_kind["signature"])), type=SignatureRecord).text.encode()
    yield Reader("a signature", (text,), zlib.compress, _signature, raw=True)


def _signature(data: bytes) -> object:
    """Read as the runtime does where the graph has changed."""
    try:
        return recorded_graph(SignatureRecord(data).text)
    except (ValueError, LookupError):
        return None


def _wholes() -> Iterator[Reader]:
    stored = checkpoints("small")[1]
    yield Reader("a header", (bytes(unwrap(encode_header(stored.header))),), wrap, decode_header)
    whole = [encode_checkpoint(s.header, s.records) for s in (stored, checkpoints("function")[-1])]
    yield Reader("a checkpoint object", tuple(bytes(unwrap(data)) for data in whole), wrap, decode_checkpoint)
    lead = struct.Struct(">8sHQ")
    exported = encode_archive(archive("small"))

    def dressed(body: bytes) -> bytes:
        front = lead.pack(b"RHEXPORT", 1, len(body))
        return front + hashlib.sha256(front + body).digest() + body

    yield Reader(
        "an exported run",
        (exported[EXPORT_HEADER:],),
        dressed,
        lambda data: decode_body(decode_lead(data[:EXPORT_HEADER]), data[EXPORT_HEADER:]),
    )
    events = [event for name in ("nested", "function", "broken") for event in archive(name).events]
    for name in ("nested", "function", "broken"):
        mine = [event for event in archive(name).events if event in events]
        for event in mine[:12]:
            yield Reader(
                f"an event: {name} {event.number}",
                (bytes(unwrap(event.data)),),
                wrap,
                lambda data, n=name, e=event: decode_event(n, StoredEvent(e.number, data)),
            )


def _rows() -> Iterator[Reader]:
    def row(body: bytes) -> bytes:
        return hashlib.sha256(body).digest()[:8] + body

    places = packed([_Place(3, 4, "a", 5, 6, b"x", b"y"), _Place(1, 0, "b", 2, 3, b"", b"")])
    for kind, good in ((TagRow, TagRow("run", "name", "id")), (_Pack, _Pack(1, 5, 6, places))):
        bodies = (bytes(seal_row(good)[8:]),)
        yield Reader(f"a row: {kind.__name__}", bodies, row, lambda data, k=kind: open_row(data, k, WHAT))
    yield Reader(
        "packed places", (zlib.decompress(places),), zlib.compress, lambda data: unpacked(data, _places_of, WHAT)
    )
    smalls = [Source(n, n * 500, bytes([n]) * 40 + bytes(range(97, 123)) * 12 + bytes(8)) for n in range(1, 20)]
    recipe = recipe_of(smalls, b"start" * 9 + b"".join(small.data[40:-8] for small in smalls) + b"tail" * 9)
    assert recipe is not None
    yield Reader("a recipe", (recipe[8:],), row, lambda data: open_recipe(data, 30, WHAT))
    fields = decode(recipe[8:])
    yield Reader(
        "the spans of a recipe",
        (zlib.decompress(fields[1]),),
        lambda body: row(encode([fields[0], zlib.compress(body), fields[2]])),
        lambda data: open_recipe(data, 30, WHAT),
    )
    names = Names("small", "small", "id", "before")
    header = msgspec.structs.replace(
        checkpoints("small")[1].header, checkpoint_id="id", previous_checkpoint_id="before"
    )
    sealed = seal_written(Written(header, 1, 4), "before")
    yield Reader("a checkpoint's row", (sealed[8:],), _row_dresser(sealed), lambda d: open_written(d, names, WHAT))


def _row_dresser(sealed: bytes) -> Callable[[bytes], bytes]:
    from rehydrate.stores.checkpoint_rows import _check  # noqa: PLC0415

    return lambda body: _check(("small", "small", "id"), body) + body


def _lines() -> Iterator[Reader]:
    header, created = header_fields(checkpoints("small")[1].header)
    lines: list[msgspec.Struct] = [
        MarkerLine("store", FILE_FORMAT),
        HeadLine("head", FILE_FORMAT, "commits-1", "run", "flow", "run:1", 1, "token", 1, None, 5.0, 0),
        PointerLine("pointer", FILE_FORMAT, ("q",), "run", 1, "token"),
        CommitLine("commit", FILE_FORMAT, "token", None, 0, header, 10, 20, 0, created),
        Contents((), ("a",)),
        LiveTable({"a": LivePiece(1, 2, 3, "check")}),
        OfferLine("offer", FILE_FORMAT, Offer("run", "letter", b"come", 1, b"digest")),
        TagsLine("tags", FILE_FORMAT, "run", {"begun": "run:0"}),
    ]

    def dressed(body: bytes) -> bytes:
        return body[:-1] + b',"check":"' + checksum(body[:-1]).encode() + b'"}\n'

    for line in lines:
        kind = type(line)

        def read(data: bytes, kind: type[msgspec.Struct] = kind) -> object:
            opened = opened_line(data, kind, WHAT)
            return header_of(opened, WHAT) if isinstance(opened, CommitLine) else opened

        yield Reader(f"a line: {kind.__name__}", (msgspec.json.encode(line),), dressed, read, json=True)


def _covered() -> Iterator[Reader]:
    from rehydrate.codecs.compression import _zstd  # noqa: PLC0415
    from rehydrate.stores.sealing import Purpose, Sealing  # noqa: PLC0415
    from tests.encryption.kit import ring  # noqa: PLC0415

    sealing = Sealing(ring())
    where = ("run", "place")
    sealed = sealing.seal(Purpose.RECORD, where, bytes(16), 1, b"body")
    yield Reader(
        "an encrypted record", (sealed,), _same, lambda d: sealing.open(Purpose.RECORD, where, d, WHAT), raw=True
    )
    zstd = _zstd("a test")

    def compressed(body: bytes) -> bytes:
        inner = len(body).to_bytes(4, "big") + zstd.compress(body)
        return struct.pack(">2sBII", b"RZ", FORMAT, len(inner), zlib.crc32(inner)) + inner

    stored = checkpoints("nested")[-1]
    bodies = {bytes(unwrap(data)) for key, data in stored.records.items() if key_of(key)[1] == "state"}
    yield Reader("a compressed record", tuple(sorted(bodies)), compressed, lambda data: decode_record("state", data))

    def dressed(body: bytes) -> bytes:
        return struct.pack(">2sBII", b"RZ", FORMAT, len(body), zlib.crc32(body)) + body

    frame = len(b"a" * 9000).to_bytes(4, "big") + zstd.compress(b"a" * 9000)
    yield Reader("a frame", (frame,), dressed, unwrap, raw=True)
    yield Reader("an envelope", tuple(stored.records.values())[:5], _same, _unwrapped, raw=True)


def _unwrapped(data: bytes) -> object:
    try:
        return unwrap(data)
    except EncryptedCheckpointError:
        return None


@cache
def readers() -> tuple[Reader, ...]:
    """Return all readers."""
    return tuple(
        reader for some in (_values(), _records(), _wholes(), _rows(), _lines(), _covered()) for reader in some
    )


def named(names: Iterable[str]) -> list[Reader]:
    """Return those whose name begins with one of these."""
    return [reader for reader in readers() if reader.name.startswith(tuple(names))]


def without_a_check(reader: Reader) -> Reader:
    """Return a reader that lets what is no error of ours out."""
    return replace(reader)
