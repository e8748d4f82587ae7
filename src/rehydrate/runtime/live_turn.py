"""A turn that is driven, as others see it: what can be asked of it while it runs, and what it has become.

How what is asked is carried out is the actor's.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine

from rehydrate.engine import reading
from rehydrate.engine.commands import EndRun
from rehydrate.engine.inputs import Answer, AnswersArrived, CancelAsked, Input, OfferArrived
from rehydrate.engine.run import Run
from rehydrate.errors import CaptureError
from rehydrate.graph.definition import Definition
from rehydrate.model.checkpoint import Header, Status
from rehydrate.ports.observer import Ending

from .crew import Crew
from .events import Channel
from .heartbeat import take_note
from .inbox_watch import OpenInbox
from .orders import Orders
from .saver import Ledger, Saver
from .watch import CommandKind, Moment, Watch


class LiveTurn(ABC):
    """What is known of a turn while it is driven, and what may be asked of it."""

    graph: Definition
    ledger: Ledger

    def __init__(self, run: Run, saver: Saver | None, channel: Channel, crew: Crew) -> None:
        self.run = run
        self.saver = saver
        self.channel = channel
        self.crew = crew
        self._orders = Orders(crew.around, crew)
        self.ending: EndRun | None = None
        self.ended = False
        self.cancelled = False
        #: True once nothing is started any more, because the process is drained.
        self.draining = False
        #: True once it was saved without an owner in the middle of its turn, for another process to go on with.
        self.handed_on = False
        #: Told of each command, in tests.
        self.watch: Watch | None = None
        #: Drives the run, from the claim to the end.
        self.task: asyncio.Task[None] | None = None
        #: Numbers of the offers whose input the next commit holds.
        self.taken: list[int] = []
        #: Takes what is offered to the run.
        self.inbox: OpenInbox | None = None
        self._inbox: list[Input] = []
        self._fault: BaseException | None = None
        self._urgent = False
        self._savers: list[asyncio.Future[None]] = []
        self._copies: list[asyncio.Future[tuple[Header, Run]]] = []

    def _told(self, drive: Coroutine[None, None, None]) -> Coroutine[None, None, None]:
        """Return what drives the run so that those who observe it are told of its end."""
        observed = self.channel.observed
        return drive if observed is None else observed.drive(drive, self._ending)

    def _ending(self, seconds: float, error: BaseException | None) -> Ending | None:
        """Return how the turn has ended, for those who observe it; `None` where it was never claimed."""
        header = self.ledger.header
        if not self.claimed or header is None:
            return None
        if error is not None:  # its last header was not saved
            return Ending(seconds, error=error)
        if header.status is not Status.FAILED:
            return Ending(seconds, header.status, header.pending)
        first = reading.failures(self.run, self.graph, reading.scopes(self.run))[0]
        where = f"{first.path}/{first.executor}".strip("/")
        return Ending(seconds, header.status, header.pending, first.failure, where)

    def _has_input(self) -> bool:
        """Tell whether something is to be taken in; what was offered before it comes first."""
        return bool(self._inbox) and self.ending is None and not (self.inbox is not None and self.inbox.is_looking())

    def sleeps_until(self) -> float | None:
        """Return when the run goes on by itself, in seconds since the epoch, where it only waits for that."""
        if self.ended or self.draining or self.ending is not None or not self.claimed:
            return None
        does = self._inbox or self._urgent or self._savers or self._copies or self._orders.limits_time
        return None if does else self.crew.sleeps_until()

    @property
    @abstractmethod
    def claimed(self) -> bool:
        """Tell whether the turn's input is saved."""

    @abstractmethod
    def _arrived(self, item: Input, cause: BaseException | None) -> None:
        """Take in what happened."""

    @abstractmethod
    def wake(self) -> None:
        """Let the run go on."""

    def post(self, item: Input) -> None:
        """Tell the run that something happened."""
        self._arrived(item, None)

    def was_told(self, answer: Answer) -> bool:
        """Tell whether an answer to this request came already and was not yet applied."""
        return any(
            (other.path, other.name) == (answer.path, answer.name)
            for item in self._inbox
            if isinstance(item, AnswersArrived | OfferArrived)
            for other in item.answers
        )

    async def take(self, item: Input) -> None:
        """Tell the run that something happened and wait until that is saved. Raises where the run ends before."""
        saved: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._savers.append(saved)
        self.channel.nudge()
        self.post(item)
        await saved

    async def save_now(self) -> tuple[Header, Run]:
        """Save what has gathered and return it. Raises `CaptureError` where this run has no store or does not run."""
        if self.saver is None or self.ended or self.ending is not None:
            raise CaptureError("this run saves nothing now.", "Give it a store, and call while the turn runs.")
        saved: asyncio.Future[tuple[Header, Run]] = asyncio.get_running_loop().create_future()
        self._copies.append(saved)
        self.channel.nudge()
        self._urgent = True
        self.wake()
        return await saved

    def cancel(self, offer: int | None = None) -> None:
        """Ask the run to stop at what it has; `offer` asked for it, and leaves the inbox with that."""
        if not self.ended and self.ending is None:
            self.cancelled = True
            self.crew.stop("was cancelled")
            self.post(CancelAsked(offer))

    def drain(self) -> None:
        """Start nothing more; once those handlers that run are done, the run is saved as it stands, without owner, and
        with the time that it waited for where it did nothing else."""
        if not self.draining:
            self.ledger.sleeps_until = self.sleeps_until()
        self.draining = True
        self.channel.wait_no_more()
        self.crew.hold(self.wake)
        self.wake()

    def cut_off(self) -> None:
        """Stop the handlers that still run; a cancellation does the same, and they leave no trace."""
        self.crew.stop("was stopped when its process was drained")
        self.wake()

    def break_off(self, error: BaseException) -> None:
        """End as if the process had ended: nothing more is saved or told."""
        self._fault = error
        self.wake()

    def watched(self, kind: CommandKind, moment: Moment) -> None:
        """Tell whoever watches of a command; what they raise ends the turn."""
        if self.watch is None:
            return
        try:
            self.watch(kind, moment, self)
        except BaseException:
            if self.task is not None:
                self.task.add_done_callback(take_note)  # whoever waits for the claim is told, and nobody for the task
            raise
