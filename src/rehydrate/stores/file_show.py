"""A file of a file store as plain data, for a person: its lines, and in a commit its records with values in plain form.

It builds no user type and repairs nothing; what is damaged is an error. It reads one file and needs no store.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, cast

import msgspec

from rehydrate.codecs import plain
from rehydrate.codecs.events import decode_event
from rehydrate.codecs.records import decode_record
from rehydrate.engine.requests import requests_held
from rehydrate.errors import CheckpointCorruptError, CheckpointFormatError, WrongCallError
from rehydrate.model.checkpoint import StoredEvent, key_of
from rehydrate.model.plain import Plain
from rehydrate.model.request_packs import ClosedRecord, RequestsRecord
from rehydrate.model.sealed import Items, Sealed

from .file_commit import CommitFile, commit_file, pieces_of
from .file_disk import read_whole
from .file_format import HeadLine, MarkerLine, OfferLine, PointerLine, TagsLine, opened_line

_LINES: Final[Mapping[str, type[msgspec.Struct]]] = {
    "store": MarkerLine,
    "head": HeadLine,
    "pointer": PointerLine,
    "offer": OfferLine,
    "tags": TagsLine,
}
#: The first byte of a list of MessagePack whose length is in the four that follow.
_LIST: Final = b"\xdd"


def shown_file(path: Path) -> Plain:
    """Return what is in a file of a store. Raises `WrongCallError` for another file, `CheckpointCorruptError`."""
    what = f"file {str(path)!r}"
    try:
        if path.suffix == ".commit":
            with commit_file(path, what) as commit:
                return _commit(commit)
        data = read_whole(path)
    except OSError as error:
        raise WrongCallError(f"{what} cannot be read ({error.strerror}).", "Name a file of a file store.") from None
    if data is None:
        raise WrongCallError(f"{what} is not there.", "Name a file of a file store.")
    kind = _LINES.get(data.partition(b'{"rehydrate":"')[2].partition(b'"')[0].decode(errors="replace"))
    if kind is None or not data.startswith(b'{"rehydrate":"'):
        raise WrongCallError(f"{what} is no file of a file store.", "Name a .commit or .json file in one.")
    opened_line(data, kind, what)
    return cast("Plain", json.loads(data))


def _commit(commit: CommitFile) -> Plain:
    contents = commit.contents()
    shown = cast("dict[str, Plain]", msgspec.to_builtins(commit.line))
    records: list[Plain] = []
    for key, piece in pieces_of(commit.header.seq, contents.puts):
        data, _ = commit.record(key, piece)
        records.append({**_key(key), "bytes": piece.size, "record": _record(key, data)})
    shown["puts"] = records
    shown["removes"] = [_key(key) for key in contents.removes]
    shown["requests"] = cast("Plain", msgspec.to_builtins(contents.requests))
    shown["turns"] = cast("Plain", msgspec.to_builtins(contents.turns))
    shown["taken"] = list(contents.taken)
    shown["events"] = [_event(commit.header.run_id, event) for event in commit.events()]
    if commit.line.live:
        live = commit.live()
        shown["live"] = [{**_key(key), "commit": piece.seq, "bytes": piece.size} for key, piece in live.items()]
    return shown


def _key(text: str) -> dict[str, Plain]:
    key = key_of(text)
    return {"key": text} if key is None else {"path": key[0], "kind": key[1], "name": key[2]}


def _record(text: str, data: bytes) -> Plain:
    key = key_of(text)
    return _decoded(lambda data: _shown(decode_record(key[1] if key else "", data)), data)


def _event(run_id: str, event: StoredEvent) -> Plain:
    def shown(_: bytes) -> Plain:
        told = decode_event(run_id, event)
        return {"kind": type(told).__name__, "event": _shown(told)}

    return {"number": event.number, "told": _decoded(shown, event.data)}


def _decoded(decode: Callable[[bytes], Plain], data: bytes) -> Plain:
    """Return what bytes mean, which are as they were written; else, as where they are encrypted, the bytes."""
    try:
        return decode(data)
    except (CheckpointCorruptError, CheckpointFormatError) as error:
        return {"$not_decoded": error.text(), "base64": base64.b64encode(data).decode()}


def _shown(value: object) -> Plain:
    if isinstance(value, Sealed):
        return {"type": value.type, "value": plain(bytes(value.data))}
    if isinstance(value, Items):
        return plain(_LIST + value.count.to_bytes(4, "big") + bytes(value.data))
    if isinstance(value, RequestsRecord):
        return {"low": value.low, "high": value.high, "requests": _shown(requests_held(value))}
    if isinstance(value, ClosedRecord):
        return {"closed": [place for place in range(value.mask.bit_length()) if value.mask >> place & 1]}
    if isinstance(value, msgspec.Struct):
        return {name: _shown(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, (list, tuple)):
        return [_shown(item) for item in cast("tuple[object, ...]", value)]
    if isinstance(value, dict):
        return {str(key): _shown(item) for key, item in cast("dict[object, object]", value).items()}
    return cast("Plain", value)
