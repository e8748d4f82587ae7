"""Sealing: bytes to AES-256-GCM and back.

What is sealed says in clear which key, run and number it is of, and is bound to these and to its place. It must not
know what a record or header is.
"""

from __future__ import annotations

import base64
import os
import struct
from enum import Enum
from typing import Final, NamedTuple

from rehydrate.codecs.envelope import ENCRYPTED, is_encrypted, is_plain
from rehydrate.errors import CheckpointCorruptError, CheckpointFormatError, NotEncryptedError

from .key_ring import CHECK_BYTES, KeyRing
from .pseudonyms import joined

#: Version of the form that sealed bytes have; a reader refuses a higher one.
SEALED_VERSION: Final = 1
SALT_BYTES: Final = 16
NONCE_BYTES: Final = 12
#: Magic, format version, length of the key's id, which follows.
_FRONT: Final = struct.Struct(">2sBB")
#: The key's check, the run's salt, the number of what is sealed, the nonce.
_REST: Final = struct.Struct(f">{CHECK_BYTES}s{SALT_BYTES}sQ{NONCE_BYTES}s")


class Purpose(Enum):
    """What something is sealed as: never opened as anything else."""

    HEADER = b"header"
    RECORD = b"record"
    REQUEST = b"request"
    TURN = b"turn"
    EVENT = b"event"
    OFFER = b"offer"


class Opened(NamedTuple):
    """What was sealed, and what it said in clear: its run's salt and its number."""

    salt: bytes
    number: int
    body: bytes


class Sealing:
    """Seals and opens with one key ring."""

    def __init__(self, keys: KeyRing) -> None:
        self.keys = keys

    def seal(self, purpose: Purpose, place: tuple[str, ...], salt: bytes, number: int, body: bytes) -> bytes:
        """Return a body encrypted under the current key, bound to purpose, place, run (by its salt) and number."""
        keys, nonce = self.keys, os.urandom(NONCE_BYTES)
        front = _front(keys.current, keys.check, salt, number, nonce)
        return front + keys.current_cipher(salt).encrypt(nonce, body, _associated(purpose, place, front))

    def seal_same(self, purpose: Purpose, place: tuple[str, ...], body: bytes) -> bytes:
        """Do what `seal` does, under the key of names: the same body in the same place gives the same bytes."""
        keys, where = self.keys, joined(purpose.value.decode(), *place)
        salt, nonce = own_salt(keys, where), own_nonce(keys, where, body)
        front = _front(keys.names, keys.names_check, salt, 0, nonce)
        return front + keys.names_cipher(salt).encrypt(nonce, body, _associated(purpose, place, front))

    def open(self, purpose: Purpose, place: tuple[str, ...], data: bytes, what: str) -> Opened:
        """Return what was sealed. Raises `WrongKeyError`, `NotEncryptedError`, `CheckpointFormatError` or
        `CheckpointCorruptError`, which name `what`."""
        key_id, start = _front_of(data, what)
        end = start + _REST.size
        if len(data) < end:
            raise CheckpointCorruptError(what, "it is cut off")
        check, salt, number, nonce = _REST.unpack_from(data, start)
        cipher = self.keys.cipher(salt, key_id, check, what)
        body = cipher.decrypt(nonce, memoryview(data)[end:], _associated(purpose, place, data[:end]))
        if body is None:
            raise CheckpointCorruptError(what, "it was changed, or stands where it does not belong")
        return Opened(salt, number, body)

    def seal_text(self, purpose: Purpose, place: tuple[str, ...], salt: bytes, number: int, body: bytes) -> str:
        """Do what `seal` does, for a column of text."""
        return base64.b85encode(self.seal(purpose, place, salt, number, body)).decode()

    def open_text(self, purpose: Purpose, place: tuple[str, ...], text: str, what: str) -> Opened:
        """Do what `open` does, for a column of text."""
        try:
            data = base64.b85decode(text)
        except ValueError:
            raise NotEncryptedError(what) from None
        if not is_encrypted(data):
            raise NotEncryptedError(what)
        return self.open(purpose, place, data, what)


def own_salt(keys: KeyRing, place: bytes) -> bytes:
    """Return the salt of what must come out the same each time."""
    return keys.hidden(joined("salt") + place)[:SALT_BYTES]


def own_nonce(keys: KeyRing, place: bytes, body: bytes) -> bytes:
    """Return a nonce that only this body has in its place."""
    return keys.hidden(joined("nonce") + len(place).to_bytes(4, "big") + place + body)[:NONCE_BYTES]


def _front(key_id: str, check: bytes, salt: bytes, number: int, nonce: bytes) -> bytes:
    name = key_id.encode()
    return _FRONT.pack(ENCRYPTED, SEALED_VERSION, len(name)) + name + _REST.pack(check, salt, number, nonce)


def _front_of(data: bytes, what: str) -> tuple[str, int]:
    """Return the key's id and where the rest begins."""
    if is_plain(data):
        raise NotEncryptedError(what)
    if not is_encrypted(data) or len(data) < _FRONT.size:
        raise CheckpointCorruptError(what, "it does not begin like something encrypted")
    _, version, length = _FRONT.unpack_from(data)
    if version > SEALED_VERSION:
        raise CheckpointFormatError(what, version, SEALED_VERSION)
    start = _FRONT.size + length
    if version < 1 or not length or len(data) < start:
        raise CheckpointCorruptError(what, "it names no key")
    try:
        return data[_FRONT.size : start].decode("ascii"), start
    except UnicodeDecodeError:
        raise CheckpointCorruptError(what, "it names no key") from None


def _associated(purpose: Purpose, place: tuple[str, ...], front: bytes) -> bytes:
    return joined(purpose.value.decode(), *place) + front
