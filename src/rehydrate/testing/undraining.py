"""Undoing a drain, for tests that drain the process that they run in.

A drained process is meant to end; nothing of the product takes a drain back.
"""

from __future__ import annotations

from rehydrate.runtime.owner import claim_turns


def claim_turns_again() -> None:
    """Let this process claim turns again after a drain."""
    claim_turns(allowed=True)
