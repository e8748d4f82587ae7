"""Offering: what is left in the inbox of a run for whoever drives it, or will.

It is checked as a call with it would be, against the run as it stands. Must not wait for the run to take it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rehydrate.codecs.offers import encode_offer
from rehydrate.errors import ForeignCheckpointError, NoStoreError, WrongCallError
from rehydrate.ids import check_id
from rehydrate.model.checkpoint import Latest, Offer
from rehydrate.model.offers import OfferBody
from rehydrate.ports import CheckpointStorage

from .call import check_storage, seal_named
from .checkpoint import restored
from .checks import check_message
from .finding import load
from .inbox_watch import tell_inboxes
from .program import Program
from .requests import check_answers


@dataclass(frozen=True)
class Offering:
    """What a caller offers; `cancels`: that the run stops at what it has."""

    run_id: str
    message: object
    responses: Mapping[str, object]
    cancels: bool
    key: str | None

    def check(self) -> None:
        """Raise `WrongCallError` unless it is one thing, and `IdError` for a wrong id."""
        check_id(self.run_id, "run_id")
        if self.key is not None:
            check_id(self.key, "key")
        brings = self.message is not None or bool(self.responses)
        if brings == self.cancels:
            raise WrongCallError(
                "an offer needs a message or answers, or cancel=True without either.",
                "Pass message, responses= or both, or cancel=True.",
            )


async def offer(program: Program, store: CheckpointStorage | None, offering: Offering) -> int:
    """Put something into a run's inbox, and return its number there, the same one for the same key again.

    Raises the error that a call with this input raises, and then nothing was offered.
    """
    offering.check()
    check_storage(store)
    if store is None:
        raise NoStoreError("offering something to a run")
    stored = await load(store, Latest(offering.run_id))
    checkpoint = restored(stored)
    if checkpoint.workflow_name != program.graph.name:
        named = f"workflow {checkpoint.workflow_name!r}"
        raise ForeignCheckpointError(checkpoint.checkpoint_id, named, f"workflow {program.graph.name!r}")
    message = None
    if offering.message is not None:
        check_message(program.graph, offering.message)
        message = seal_named(program.codec, offering.message, "the message")
    given = offering.responses
    answers = await check_answers(given, checkpoint.records, offering.run_id, program.graph, program.codec, store)
    sealed = tuple((request_id, answer.value) for request_id, answer in zip(given, answers, strict=True))
    body = encode_offer(offering.run_id, OfferBody(message, sealed, offering.cancels))
    number = await store.offer(Offer(offering.run_id, offering.key or program.ids.new_id(), body))
    tell_inboxes(offering.run_id)
    return number
