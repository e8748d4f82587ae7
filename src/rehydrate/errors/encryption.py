"""Errors of encryption: what needs keys, and what must not be plain.

None of them holds a key, nor anything that was decrypted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import WorkflowCheckpointException


@dataclass(eq=False, repr=False)
class WrongKeyError(WorkflowCheckpointException):
    """Something is encrypted under a key that the key ring does not have, or has with other bytes."""

    code: ClassVar[str] = "wrong-key"
    what: str
    key_id: str
    #: The ids of the keys in the ring.
    known: tuple[str, ...]

    def text(self) -> str:
        """Name the key."""
        known = ", ".join(map(repr, self.known))
        why = (
            "which has other bytes in this key ring" if self.key_id in self.known else f"and this key ring has {known}"
        )
        return f"{self.what} is encrypted under key {self.key_id!r}, {why}."

    def action(self) -> str:
        """Say what to do next."""
        return "Give EncryptedCheckpointStorage a KeyRing that has that key; old keys stay in it to read by."


@dataclass(eq=False, repr=False)
class NotEncryptedError(WorkflowCheckpointException):
    """A store that is encrypted holds something that is not."""

    code: ClassVar[str] = "not-encrypted"
    what: str

    def text(self) -> str:
        """Name what is plain."""
        return f"{self.what} is not encrypted, and this store takes nothing that is not."

    def action(self) -> str:
        """Say what to do next."""
        return "Read it through the store without EncryptedCheckpointStorage; use a new place for encrypted runs."


@dataclass(eq=False, repr=False)
class EncryptedCheckpointError(WorkflowCheckpointException):
    """Something encrypted was read without keys."""

    code: ClassVar[str] = "encrypted"
    what: str

    def text(self) -> str:
        """Name what is encrypted."""
        return f"{self.what} is encrypted, and it was read without keys."

    def action(self) -> str:
        """Say what to do next."""
        return "Put EncryptedCheckpointStorage with its KeyRing around the store."
