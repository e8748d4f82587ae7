"""Reads bytes that are nested 100,000 deep in every position, in a thread with a stack of 256 KB.

Runs in a process of its own, on any Python that has msgspec: it imports nothing that is not the package or in this
folder's bombs. A crash is seen from outside. The argument breaks a check, to show that this is seen.
"""

from __future__ import annotations

import struct
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from hashlib import sha256

import msgspec

from rehydrate.codecs import TypeRegistry, ValueCodec, check_bounds, plain
from rehydrate.codecs.archives import EXPORT_HEADER, decode_body, decode_lead
from rehydrate.codecs.checkpoints import decode_checkpoint
from rehydrate.codecs.envelope import wrap
from rehydrate.codecs.events import decode_event
from rehydrate.codecs.records import decode_header, decode_record
from rehydrate.engine.requests import requests_held
from rehydrate.errors import RehydrateError
from rehydrate.graph.recorded import recorded_graph
from rehydrate.model.checkpoint import Header, StoredEvent
from rehydrate.model.records import RECORD_TYPES
from rehydrate.model.request_packs import RequestsRecord
from rehydrate.model.sealed import Sealed
from rehydrate.model.signatures import SignatureRecord
from rehydrate.runtime.requests import PendingRequest
from rehydrate.stores.checkpoint_rows import Names, _check, open_written
from rehydrate.stores.file_format import CommitLine, Contents, HeadLine, LiveTable, checksum, opened_line
from rehydrate.stores.packing import Recipe, open_recipe
from rehydrate.stores.rows import TagRow, open_row

DEPTH = 100_000
SMALL_STACK = 256 * 1024
CODEC = ValueCodec(TypeRegistry())
encode = msgspec.msgpack.encode
RAW = msgspec.Raw
Read = Callable[[bytes], object]


def deep_values() -> Iterator[tuple[str, bytes]]:
    """Give values that are nested too deep, by how."""
    levels: list[tuple[str, bytes, bytes]] = [
        ("arrays", b"\x91", b""), ("arrays, 16 bit", b"\xdc\0\1", b""), ("arrays, 32 bit", b"\xdd\0\0\0\1", b""),
        ("values of maps", b"\x81\xa1a", b""), ("maps, 16 bit", b"\xde\0\1\xa1a", b""),
        ("maps, 32 bit", b"\xdf\0\0\0\1\xa1a", b""), ("keys of maps", b"\x81", b"\1"),
        ("behind others", b"\x92\xa1a", b""),
        ("before others", b"\x92", b"\x90"),
    ]  # fmt: skip
    for name, head, tail in levels:
        yield name, head * DEPTH + b"\1" + tail * DEPTH
    for code in (1, 2, 3, 4, 5, 6):
        data = b"\x01"
        for _ in range(3000):  # each level carries its length, so deeper ones are of megabytes
            data = encode(msgspec.msgpack.Ext(code, b"\x91" + data if code != 1 else b"\x81\xa0" + data))
        yield f"extensions {code}", data
        yield f"in an extension {code}", encode(msgspec.msgpack.Ext(code, b"\x91" * DEPTH + b"\1"))


def at_every_field(class_: type[msgspec.Struct], deep: bytes) -> Iterator[bytes]:
    """Give arrays as a class is read from, with something deep in each of its fields, and one field more."""
    front = [] if class_.__struct_config__.tag is None else [class_.__struct_config__.tag]
    count = len(msgspec.structs.fields(class_)) + 1
    for place in range(count):
        fields: list[object] = [*front, *[None] * place, RAW(deep)]
        yield encode(fields)
    # Fields in front that are right let the decoder come as far as the one that is deep.
    given = [*front, *(_sample(field.type) for field in msgspec.structs.fields(class_))]
    yield encode([*given, RAW(deep)])
    for place in range(len(given)):
        yield encode([*given[:place], RAW(deep), *given[place + 1 :]])
        yield encode([*given[:place], [RAW(deep)], *given[place + 1 :]])
        yield encode([*given[:place], {"a": RAW(deep)}, *given[place + 1 :]])


def _sample(kind: object) -> object:
    samples: dict[object, object] = {str: "", int: 1, float: 1.0, bytes: b"", bool: False}
    if kind in samples:
        return samples[kind]
    if kind is Sealed or "Sealed" in str(kind):
        return [0, "str", b"\xa1a"]
    if "Literal" in str(kind):
        return kind.__args__[0]  # type: ignore[attr-defined]
    return {} if "dict" in str(kind) else []


def jobs() -> Iterator[tuple[str, Read, bytes]]:
    """Give what is read: where something deep stands, the reader, and the bytes."""
    deep = dict(deep_values())
    for how, data in deep.items():
        yield f"a value: {how}", lambda given: CODEC.open(Sealed("list", given)), data
        yield f"a plain view: {how}", plain, data
        yield f"bounds: {how}", check_bounds, data
    for how in ("arrays", "values of maps", "keys of maps", "extensions 2", "in an extension 1"):
        yield from _of_records(how, deep[how])
        yield from _of_others(how, deep[how])
    slashes = zlib.compress(b"/".join([b"a"] * DEPTH) + b"/x: kind=workflow")
    yield "a signature", _signature, slashes
    for json in (b"[" * DEPTH, b'{"a":' * DEPTH, b"[" * DEPTH + b"]" * DEPTH, b'{"b":' + b"[" * DEPTH):
        for kind in (bool, object, dict, Sealed, list):
            yield "the JSON of an answer", PendingRequest("id", "", "ask", None, kind).parse, json
    line = b'{"rehydrate":"head","format":' + b"[" * DEPTH
    for kind in (HeadLine, CommitLine, Contents, LiveTable):
        for body in (line, b"[" * DEPTH, b'{"live":' + b'{"a":' * DEPTH, b'{"header":{"format":1,"a":' + b"[" * DEPTH):
            for end in (b"", b"]" * DEPTH + b"}"):
                whole = (body + end)[:-1] + b',"check":"' + checksum((body + end)[:-1]).encode() + b'"}\n'
                yield f"a line: {kind.__name__}", lambda given, k=kind: opened_line(given, k, "a line"), whole


def _of_records(how: str, deep: bytes) -> Iterator[tuple[str, Read, bytes]]:
    for kind, class_ in RECORD_TYPES.items():
        for body in at_every_field(class_, deep):
            yield f"a record {kind}: {how}", lambda given, k=kind: decode_record(k, given), wrap(body)
    for body in at_every_field(Header, deep):
        yield f"a header: {how}", decode_header, wrap(body)


def _of_others(how: str, deep: bytes) -> Iterator[tuple[str, Read, bytes]]:
    pack = RequestsRecord("a#1?0", "a#1?0", (), b"1234", b"")
    lead = struct.Struct(">8sHQ")
    yield f"a checkpoint: {how}", decode_checkpoint, wrap(encode([b"", {}, RAW(deep)]))
    for row in (["a", "b", "c", RAW(deep)], [1, RAW(deep)], [99, RAW(deep)]):
        packed = encode(row)
        yield f"a row: {how}", lambda given: open_row(given, TagRow, "a row"), sha256(packed).digest()[:8] + packed
        names = Names("a", "b", "c", None)
        kept = _check(("a", "b", "c"), packed) + packed
        yield f"a checkpoint's row: {how}", lambda given, n=names: open_written(given, n, "a row"), kept
    for body in (deep, encode([RAW(deep)]), encode([[RAW(deep)]]), encode([b"", {"a": RAW(deep)}])):
        held = msgspec.structs.replace(pack, body=body)
        yield f"a pack: {how}", lambda given, p=pack: requests_held(msgspec.structs.replace(p, body=given)), held.body
        yield f"a checkpoint: {how}", decode_checkpoint, wrap(body)
        yield f"an event: {how}", lambda given: decode_event("r", StoredEvent(1, given)), wrap(body)
        fields = encode(["r", 1, "OutputYielded", body])
        yield f"an event's fields: {how}", lambda given: decode_event("r", StoredEvent(1, given)), wrap(fields)
        named = encode(["r", 1, "OutputYielded", encode({"data": RAW(body)})])
        yield f"an event's data: {how}", lambda given: decode_event("r", StoredEvent(1, given)), wrap(named)
        front = lead.pack(b"RHEXPORT", 1, len(body))
        whole = front + sha256(front + body).digest() + body
        yield f"an export: {how}", lambda d: decode_body(decode_lead(d[:EXPORT_HEADER]), d[EXPORT_HEADER:]), whole
        row = sha256(body).digest()[:8] + body
        yield f"a row: {how}", lambda given: open_row(given, TagRow, "a row"), row
        spans = encode(Recipe(1, zlib.compress(body), b""))
        yield f"a recipe: {how}", lambda d: open_recipe(d, 9, "a recipe"), sha256(spans).digest()[:8] + spans


def _signature(data: bytes) -> object:
    try:
        return recorded_graph(SignatureRecord(data).text)
    except (ValueError, LookupError):
        return None


def main(broken: str) -> None:
    """Read all of them."""
    if broken:
        _break(broken)
    found: list[str] = []
    count = 0

    def work() -> None:
        nonlocal count
        for where, read, data in jobs():
            count += 1
            try:
                read(data)
            except RehydrateError:
                continue
            except BaseException as error:
                found.append(f"{where}: {type(error).__name__}: {error!s:.80}")
                continue
            if not where.startswith("a signature"):
                found.append(f"{where}: it was read")

    threading.stack_size(SMALL_STACK)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    sys.stdout.write("\n".join(dict.fromkeys(found)) or f"all {count} refused\n")


def _break(how: str) -> None:
    """Count only arrays, or nothing at all."""
    from rehydrate.codecs import bounds, values  # noqa: PLC0415

    if how == "arrays":
        arrays = frozenset({*range(0x90, 0xA0), 0xDC, 0xDD})
        vars(bounds)["_OPENERS"] = arrays
        vars(bounds)["_OTHERS"] = bytes(byte for byte in range(256) if byte not in arrays)
    else:
        vars(values)["check_bounds"] = lambda data: None


if __name__ == "__main__":
    main(*sys.argv[1:2] or [""])
