"""What is offered to a run: its next input, left for whoever has the hand on it.

Sealed and frozen. How a run takes it is the engine's.
"""

from __future__ import annotations

import msgspec

from .sealed import Sealed


class OfferBody(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """A message, answers by request id, both, or the wish that the run stops at what it has."""

    message: Sealed | None = None
    answers: tuple[tuple[str, Sealed], ...] = ()
    cancels: bool = False
