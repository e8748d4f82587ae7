"""`RunStream`: the events of a call as they come, and the run that belongs to them.

Iterating drives nothing: the run lives in tasks of its own. Leaving the stream cancels its run and touches no other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from types import TracebackType

from rehydrate.engine.inputs import AnswersArrived
from rehydrate.engine.run import birth_of, known_name
from rehydrate.errors import AlreadyAnsweredError, StreamStateError
from rehydrate.ids import outer_id
from rehydrate.model.events import Event

from .claim import CANCEL_SECONDS
from .html import heading_html, run_html
from .requests import Responses, check_answers, collect
from .result import WorkflowRunResult
from .turn import Turn


class RunStream:
    """An async iterator of events, made by `run(..., stream=True)`.

    Nothing starts before its first await; what fails before the claim is raised there.
    """

    def __init__(self, begin: Callable[[], Coroutine[None, None, Turn]]) -> None:
        self._begin = begin
        self._opening: asyncio.Task[Turn] | None = None
        self._turn: Turn | None = None

    async def _begun(self) -> Turn:
        turn = self._turn
        if turn is not None:
            return turn
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._open())
            self._opening.add_done_callback(_take_note)
        return await asyncio.shield(self._opening)

    async def _open(self) -> Turn:
        """Begin the turn and hold it, also where nobody waits for it any more: then the collector cancels it."""
        self._turn = turn = await self._begin()
        return turn

    @property
    def dropped(self) -> int:
        """Number of live events that were dropped because this stream's reader was too far behind."""
        return self._turn.channel.dropped if self._turn is not None else 0

    @property
    def sleeps_until(self) -> float | None:
        """When the run goes on by itself, in seconds since the epoch, while it only waits for a timer of a function or
        the next attempt of a handler or a step. `None` while it does anything, a sub-workflow's time limit runs, before
        its beginning and after its end.
        """
        actor = self._turn.actor if self._turn is not None else None
        return actor.sleeps_until() if actor is not None else None

    def __aiter__(self) -> RunStream:
        return self

    async def __anext__(self) -> Event:
        """Return the next event. Raises a store's error where the run could not be saved, and `RunDrainedError` where
        its process is drained; a failed run just ends."""
        turn = await self._begun()
        event = await turn.channel.next()
        if event is not None:
            return event
        await turn.over()
        await turn.check_handed_on()
        raise StopAsyncIteration

    async def result(self) -> WorkflowRunResult:
        """Read the rest away and return the result; raises `RunFailedError` as a call does."""
        try:
            turn = await self._begun()
        except asyncio.CancelledError:
            await self._stop_opening()
            raise
        turn.channel.ignore()
        return await turn.finish()

    async def _stop_opening(self) -> None:
        """Wait for a claim on its way and cancel the turn that it began."""
        if self._opening is not None:
            await asyncio.wait([self._opening], timeout=CANCEL_SECONDS)
        if self._turn is not None:
            await self._turn.stop()

    async def answer(self, responses: Responses) -> None:
        """Give answers to the running turn; returns once they are saved. Raises an `AnswerError`, or
        `StreamStateError` where the turn has ended."""
        turn = await self._begun()
        actor = turn.actor
        if actor is None or actor.ended or actor.ending is not None or actor.cancelled:
            raise StreamStateError(
                "this turn has ended, so its stream takes no answers.",
                "Call run(checkpoint=..., responses=...) instead.",
            )
        run = actor.run
        program = turn.program
        answers = await check_answers(
            collect(responses),
            run,
            turn.opened.run_id,
            program.graph,
            program.codec,
            actor.saver.store if actor.saver is not None else None,
        )
        for answer in answers:
            if actor.was_told(answer):
                known = known_name(run, answer.path, answer.name)
                raise AlreadyAnsweredError(outer_id(birth_of(run), known), turn.opened.run_id)
        await actor.take(AnswersArrived(answers))

    async def cancel(self) -> WorkflowRunResult:
        """Stop the run at what it has and return how it stands; whoever iterates gets the events up to its end.

        Raises a store's error where that could not be saved within five seconds.
        """
        turn = await self._begun()
        await turn.cancel()
        return turn.result()

    async def hand_on(self) -> None:
        """Leave the run to whoever takes it up next, as `drain` does with all runs of a process.

        Handlers that run are waited for; then the run is saved as it stands, without an owner. Where it only waited for
        a time, workers leave it alone until then. Reader and `result()` raise `RunDrainedError`, unless the turn has
        ended first. Raises a store's error where that was not saved.
        """
        turn = await self._begun()
        if turn.actor is not None:
            turn.actor.drain()
        await turn.over()

    async def __aenter__(self) -> RunStream:
        try:
            await self._begun()
        except asyncio.CancelledError:
            await self._stop_opening()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Cancel the run if it has not ended."""
        if self._turn is not None and self._turn.is_running():
            await self.cancel()

    def _repr_html_(self) -> str:
        """Return the table that a notebook shows: how the run stands at this moment."""
        if self._turn is None:
            if self._opening is None or not self._opening.done():
                return heading_html("a run", "NOT BEGUN", "await the stream, or iterate over it")
            refused = None if self._opening.cancelled() else self._opening.exception()
            return heading_html("a run", "NOT BEGUN", "stopped" if refused is None else type(refused).__name__)
        result = self._turn.result()
        return run_html(result.checkpoint, result.status.value, f"turn {result.turn}, at this moment")

    def __del__(self) -> None:
        turn = getattr(self, "_turn", None)
        if turn is not None:
            turn.abandon()


def _take_note(opening: asyncio.Task[Turn]) -> None:
    """Look at an opening's error, which whoever awaits the stream gets."""
    if not opening.cancelled():
        opening.exception()
