"""Hidden texts: what stands for a text that a store must find and its owner must be able to read back.

The same text of a run has the same form for as long as the key of names is the same. It is encrypted under a nonce that
is made from the text itself.
"""

from __future__ import annotations

import base64
from typing import Final

from rehydrate.errors import CheckpointCorruptError, WrongCallError

from .key_ring import KeyRing
from .pseudonyms import joined
from .sealing import NONCE_BYTES, own_nonce, own_salt

_TAG_BYTES: Final = 16
#: Characters that a name may have in any store.
_MAX_NAME: Final = 200
#: Bytes of a name that fit into these.
MAX_NAME_BYTES: Final = _MAX_NAME * 3 // 4 - NONCE_BYTES - _TAG_BYTES


class HiddenTexts:
    """The hidden texts under one key ring."""

    def __init__(self, keys: KeyRing) -> None:
        self._keys = keys

    def tag(self, run: str, name: str) -> str:
        """Return what stands for a checkpoint's name. Raises `WrongCallError` for one that is too long."""
        size = len(name.encode())
        if size > MAX_NAME_BYTES:
            raise WrongCallError(
                f"the name has {size} bytes in UTF-8, and {MAX_NAME_BYTES} are allowed where names are encrypted.",
                "Pass a shorter one.",
            )
        return self._hidden("tag", run, name)

    def open_tag(self, run: str, hidden: str) -> str:
        """Return a checkpoint's name. Raises `CheckpointCorruptError`."""
        return self._shown("tag", run, hidden)

    def offer_key(self, run: str, key: str) -> str:
        """Return what stands for the key of an offer."""
        return self._hidden("offer key", run, key)

    def open_offer_key(self, run: str, hidden: str) -> str:
        """Return the key of an offer. Raises `CheckpointCorruptError`."""
        return self._shown("offer key", run, hidden)

    def _hidden(self, kind: str, run: str, text: str) -> str:
        body, place = text.encode(), joined(kind, run)
        nonce = own_nonce(self._keys, place, body)
        cipher = self._keys.names_cipher(own_salt(self._keys, place))
        return base64.urlsafe_b64encode(nonce + cipher.encrypt(nonce, body, place)).decode().rstrip("=")

    def _shown(self, kind: str, run: str, hidden: str) -> str:
        place = joined(kind, run)
        cipher = self._keys.names_cipher(own_salt(self._keys, place))
        try:
            data = base64.b64decode(hidden + "=" * (-len(hidden) % 4), altchars=b"-_", validate=True)
            body = cipher.decrypt(data[:NONCE_BYTES], memoryview(data)[NONCE_BYTES:], place)
        except ValueError:  # no such characters, or not enough of them
            body = None
        if body is None or self._hidden(kind, run, body.decode()) != hidden:
            raise CheckpointCorruptError(f"a {kind} of run {run!r}", "it was changed, or is not encrypted")
        return body.decode()
