"""How ids and keys stand in the tables: as bytes, and as short names where an index must hold texts of any length."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Final

from rehydrate.errors import CheckpointCorruptError
from rehydrate.stores import checkpoint_rows

#: Bytes of a name: nobody finds two texts with one name.
_NAME_BYTES: Final = 16
#: No text in UTF-8 has this byte.
_NO_TEXT: Final = b"\xff"


@lru_cache(maxsize=8192)
def key_name(key: str) -> bytes:
    """Return what a record's key is found by, as an index makes it too; keys come again with every superstep."""
    return hashlib.sha256(key.encode()).digest()[:_NAME_BYTES]


def turn_name(workflow: str, key: str) -> bytes:
    """Return what the turn of an idempotency key is found by."""
    text = workflow.encode()
    return hashlib.sha256(len(text).to_bytes(8, "big") + text + key.encode()).digest()[:_NAME_BYTES]


def id_cell(checkpoint_id: str) -> bytes:
    """Return a checkpoint's id as it stands in its row: the hex form of 16 bytes as these."""
    cell = checkpoint_rows.id_cell(checkpoint_id)
    if isinstance(cell, bytes):
        return cell
    data = cell.encode()
    return data + _NO_TEXT if len(data) == _NAME_BYTES else data


def id_in_cell(cell: object, what: str) -> str | None:
    """Return the id in a cell, `None` where there is none. Raises `CheckpointCorruptError` that names `what`."""
    if cell is None:
        return None
    data = data_of(cell, what)
    return data.hex() if len(data) == _NAME_BYTES else text_of(data.removesuffix(_NO_TEXT), what)


def text_of(data: object, what: str) -> str:
    """Return a text from its bytes. Raises `CheckpointCorruptError` that names `what`."""
    try:
        return data_of(data, what).decode()
    except UnicodeDecodeError:
        raise CheckpointCorruptError(what, "an id or key is not text") from None


def data_of(data: object, what: str) -> bytes:
    """Return what must be bytes. Raises `CheckpointCorruptError` that names `what`."""
    if not isinstance(data, bytes):
        raise CheckpointCorruptError(what, "a record is not bytes")
    return data
