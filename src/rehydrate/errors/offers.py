"""Errors of what is offered to a run: when it is put into the inbox, and when it comes out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import CallError, StoreError


@dataclass(eq=False, repr=False)
class OfferConflictError(StoreError):
    """A key was offered to a run before, with something else."""

    code: ClassVar[str] = "offer-conflict"
    run_id: str
    key: str

    def text(self) -> str:
        """Name run and key."""
        return f"key {self.key!r} was offered to run {self.run_id!r} before, with something else."

    def action(self) -> str:
        """Say what to do next."""
        return "Give each thing that you offer a key of its own; only the same again may come under the same key."


@dataclass(eq=False, repr=False)
class NothingRunsError(CallError):
    """A run was asked to stop that is at rest."""

    code: ClassVar[str] = "nothing-runs"
    run_id: str

    def text(self) -> str:
        """Name the run."""
        return f"run {self.run_id!r} was asked to stop and is at rest."

    def action(self) -> str:
        """Say what to do next."""
        return 'Nothing has to be done; to withdraw its open requests, pass on_pending="cancel" with the next input.'
