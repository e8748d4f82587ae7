"""The inbox of a run that is driven: what was offered to it is checked and becomes its input.

It is looked into when the turn was claimed and when somebody says that there may be something. What is taken leaves the
store with the commit of what it did. Must not wait for anything but the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from rehydrate.codecs.offers import decode_offer
from rehydrate.engine.inputs import Answer, OfferArrived
from rehydrate.engine.run import Run
from rehydrate.errors import (
    AlreadyAnsweredError,
    CallError,
    NothingRunsError,
    TypeChangedError,
    UnknownTypeError,
    UnknownZoneError,
)
from rehydrate.model.checkpoint import Offer
from rehydrate.model.offers import OfferBody
from rehydrate.ports import CheckpointStorage

from .checks import check_message
from .inbox_watch import watch_inbox, watch_no_more
from .live_turn import LiveTurn
from .program import Program
from .requests import check_sealed_answers

#: So many offers are read at once.
_PAGE: Final = 100


class Inbox:
    """Takes what is offered to one run into its live turn."""

    def __init__(
        self, turn: LiveTurn, program: Program, store: CheckpointStorage, run_id: str, *, offered: bool
    ) -> None:
        self.run_id = run_id
        self.store = store
        self._turn = turn
        self._program = program
        self._offered = offered
        self._after = 0
        self._again = False
        self._looking: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Begin to take what comes; called on the turn's own loop once it is claimed."""
        watch_inbox(self)
        if self._offered:
            self.look()

    def look(self) -> None:
        """See what is there, now or once more; called on the turn's own loop."""
        if self._turn.ended:
            return
        self._again = True
        if self._looking is None or self._looking.done():
            self._looking = asyncio.get_running_loop().create_task(self._look())
            self._looking.add_done_callback(self._looked)

    def is_looking(self) -> bool:
        """Tell whether it is being read: the turn goes on with what is in it."""
        return self._looking is not None and not self._looking.done()

    def close(self) -> None:
        """Take nothing more."""
        watch_no_more(self)
        if self._looking is not None:
            self._looking.cancel()

    def _looked(self, looking: asyncio.Task[None]) -> None:
        error = None if looking.cancelled() else looking.exception()
        if error is not None:  # an inbox that cannot be read is no empty one
            self._turn.break_off(error)
        self._turn.wake()

    async def _look(self) -> None:
        while self._again:
            self._again = False
            while page := await self.store.offers(self.run_id, after=self._after, limit=_PAGE):
                for offer in page:
                    if not self._take(offer):
                        return

    def _take(self, offer: Offer) -> bool:
        """Tell the turn of an offer; `False` where it takes nothing any more."""
        turn = self._turn
        if turn.ended or turn.ending is not None or turn.cancelled or turn.draining:
            return False
        self._after = offer.number
        body = decode_offer(offer)
        if body.cancels:
            turn.cancel(offer.number)
            return False
        turn.post(arrived_offer(self._program, turn.run, offer, body, turn.was_told))
        return True


def arrived_offer(
    program: Program, run: Run, offer: Offer, body: OfferBody, was_told: Callable[[Answer], bool] = lambda _: False
) -> OfferArrived:
    """Return an offer as an input, checked as a call with it is. `was_told`: of answers that are not applied yet."""
    graph, codec = program.graph, program.codec
    try:
        if body.cancels:  # one at rest has nothing to stop
            raise NothingRunsError(offer.run_id)
        if body.message is not None:
            check_message(graph, codec.open(body.message))
        answers = check_sealed_answers(body.answers, run, offer.run_id, graph, codec)
        for (request_id, _), answer in zip(body.answers, answers, strict=True):
            if was_told(answer):
                raise AlreadyAnsweredError(request_id, offer.run_id)
    except (CallError, TypeChangedError, UnknownTypeError, UnknownZoneError) as error:
        return OfferArrived(number=offer.number, key=offer.key, refused=(error.code, str(error)))
    return OfferArrived(number=offer.number, key=offer.key, message=body.message, answers=answers)
