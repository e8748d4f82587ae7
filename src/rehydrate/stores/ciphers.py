"""Ciphers: the two calls that are made into `cryptography`, which only the key ring loads, and only when it is used.

AES-256-GCM, and HKDF with SHA-256. Nothing here keeps a key of more than one run.
"""

from __future__ import annotations

from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

_DERIVED_BYTES: Final = 32


def derived(material: bytes, purpose: bytes, salt: bytes) -> bytes:
    """Return 32 bytes that a key gives for one purpose and salt."""
    return HKDF(SHA256(), _DERIVED_BYTES, salt or None, b"rehydrate " + purpose).derive(material)


class RunCipher:
    """The cipher of one run under one key."""

    __slots__ = ("_aead",)

    def __init__(self, key: bytes) -> None:
        self._aead = AESGCM(key)

    def encrypt(self, nonce: bytes, body: bytes, associated: bytes) -> bytes:
        """Return the body encrypted, with its tag."""
        return self._aead.encrypt(nonce, body, associated)

    def decrypt(self, nonce: bytes, data: memoryview, associated: bytes) -> bytes | None:
        """Return what was encrypted; `None` where any of it, or of what is associated with it, is not as it was."""
        try:
            return self._aead.decrypt(nonce, data, associated)
        except InvalidTag:
            return None
