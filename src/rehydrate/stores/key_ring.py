"""The key ring: the keys that encrypted records are read with, the one they are written with, and what comes of each.

Keys never leave it: no text, error or copy of it shows one. What is derived from a key is derived for one purpose.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NoReturn, cast

from rehydrate.errors import MissingExtraError, WrongCallError, WrongKeyError

if TYPE_CHECKING:
    from .ciphers import RunCipher

KEY_BYTES: Final = 32
#: Bytes by which a record tells whether a key of the right id has the right bytes.
CHECK_BYTES: Final = 8
_MAX_ID: Final = 64
#: So many runs have their ciphers at hand.
_CIPHERS: Final = 1024


class _Key:
    """One key. `check` is made from it and may be seen by anybody."""

    __slots__ = ("__material", "check", "id")

    def __init__(self, key_id: str, material: bytes) -> None:
        self.id = key_id
        self.__material = material
        self.check = self.derived(b"check", b"")[:CHECK_BYTES]

    def derived(self, purpose: bytes, salt: bytes) -> bytes:
        """Return 32 bytes for one purpose. Raises `MissingExtraError`."""
        try:
            from .ciphers import derived  # noqa: PLC0415  (an extra)
        except ImportError:
            raise MissingExtraError("encryption", "encryption") from None
        return derived(self.__material, purpose, salt)

    def cipher(self, salt: bytes) -> RunCipher:
        """Return the cipher of a run."""
        from .ciphers import RunCipher  # noqa: PLC0415  (an extra, which is there: `check` was made with it)

        return RunCipher(self.derived(b"records", salt))


class KeyRing:
    """Keys by id, each of 32 random bytes: `current` is written with, all are read with.

    Without `current` it is the last one. `names` is the one that ids and names are hidden under, without it the first;
    it must be the same for as long as a store lives.
    """

    __slots__ = ("_cipher", "_current", "_keys", "_names", "_secrets")

    def __init__(self, keys: Mapping[str, bytes], current: str | None = None, *, names: str | None = None) -> None:
        _check_keys(keys)
        self._keys = {key_id: _Key(key_id, bytes(material)) for key_id, material in keys.items()}
        ids = tuple(self._keys)
        for name, key_id in (("current", current), ("names", names)):
            if key_id is not None and key_id not in self._keys:
                raise WrongCallError(f"{name} is {key_id!r}, which is no key of this ring.", f"Name one of {ids}.")
        self._current = self._keys[ids[-1] if current is None else current]
        self._names = self._keys[ids[0] if names is None else names]
        self._secrets = {purpose: self._names.derived(purpose, b"") for purpose in (b"names", b"sums")}
        self._cipher = lru_cache(_CIPHERS)(self._made_cipher)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all keys."""
        return tuple(self._keys)

    @property
    def current(self) -> str:
        """The id of the key that is written with."""
        return self._current.id

    @property
    def names(self) -> str:
        """The id of the key that ids and names are hidden under."""
        return self._names.id

    @property
    def check(self) -> bytes:
        """Bytes that tell whether the current key is the one that something was written with; no secret."""
        return self._current.check

    @property
    def names_check(self) -> bytes:
        """The same for the key of the names."""
        return self._names.check

    def cipher(self, salt: bytes, key_id: str, check: bytes, what: str) -> RunCipher:
        """Return the cipher of a run. Raises `WrongKeyError`, which names `what`."""
        key = self._keys.get(key_id)
        if key is None or not hmac.compare_digest(key.check, check):
            raise WrongKeyError(what, key_id, self.ids)
        return self._cipher(key_id, salt)

    def current_cipher(self, salt: bytes) -> RunCipher:
        """Return the cipher of a run under the current key."""
        return self._cipher(self._current.id, salt)

    def names_cipher(self, salt: bytes) -> RunCipher:
        """Return a cipher under the key of names."""
        return self._cipher(self._names.id, salt)

    def hidden(self, data: bytes) -> bytes:
        """Return what stands for a name: always the same, and nobody without the key can tell whether it does."""
        return hmac.digest(self._secrets[b"names"], data, "sha256")

    def summand(self, data: bytes) -> int:
        """Return what a stored record adds to the sum that only owners of the key can make."""
        return int.from_bytes(hmac.digest(self._secrets[b"sums"], data, "sha256"), "big")

    def _made_cipher(self, key_id: str, salt: bytes) -> RunCipher:
        return self._keys[key_id].cipher(salt)

    def __repr__(self) -> str:
        return f"KeyRing({', '.join(map(repr, self.ids))}; current={self.current!r}, names={self.names!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a KeyRing is neither pickled nor copied: keys do not travel with data")


def _check_keys(keys: object) -> None:
    if not isinstance(keys, Mapping) or not keys:
        raise WrongCallError(
            "a KeyRing needs at least one key.", "Pass a dict such as {'2026-11': secrets.token_bytes(32)}."
        )
    for key_id, material in cast("Mapping[object, object]", keys).items():
        _check_key(key_id, material)


def _check_key(key_id: object, material: object) -> None:
    if not isinstance(key_id, str) or not 0 < len(key_id) <= _MAX_ID or not (key_id.isascii() and key_id.isprintable()):
        raise WrongCallError(
            f"the id of a key is {key_id!r:.80}.", f"Pass 1 to {_MAX_ID} printable ASCII characters; it is no secret."
        )
    if not isinstance(material, bytes | bytearray):
        raise WrongCallError(f"key {key_id!r} is no bytes.", "Pass 32 random bytes.")
    if len(material) != KEY_BYTES:
        raise WrongCallError(f"key {key_id!r} has {len(material)} bytes.", f"Pass {KEY_BYTES} random bytes.")
