"""The actor of a run: the one place where inputs reach the engine and its commands are obeyed.

Inputs are applied one batch at a time to one set of records. While a commit is on its way further deltas gather and
form the next; what a commit holds back (events, starts) follows when it is safe. Nothing here decides what a run does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from rehydrate.engine.commands import Commit, EndRun, Publish
from rehydrate.engine.inputs import Input, TurnArrived, taken_by
from rehydrate.engine.run import Delta, OwnDelta, merged_delta
from rehydrate.engine.transition import Step, transition
from rehydrate.errors import CommitConflictError, RehydrateError, SaveFailedError, StreamStateError
from rehydrate.model.checkpoint import Header, Status
from rehydrate.model.events import Event

from .causes import told
from .claim import Claim
from .context import Surroundings
from .crew import Crew
from .events import Channel
from .heartbeat import Heartbeat
from .live_turn import LiveTurn
from .orders import KINDS, LEAVABLE, Order
from .owner import hold, is_draining, unregister
from .saver import Ledger, Saver

Durability: TypeAlias = Literal["superstep", "turn", "off"]
#: How long a finished invocation waits for a commit that takes it along, in seconds.
TRAILING_SECONDS = 0.05


class Actor(LiveTurn):
    """Drives one turn of one run from its claim to its end."""

    def __init__(
        self,
        around: Surroundings,
        ledger: Ledger,
        saver: Saver | None,
        channel: Channel,
        durability: Durability,
        max_concurrency: int | None,
    ) -> None:
        self.around = around
        super().__init__(around.run, saver, channel, Crew(around, self._arrived, ledger.clock, max_concurrency))
        self.graph = around.outlets.graph_at("")
        self.ledger = ledger
        self._time: Callable[[], float] = ledger.clock.time if self.graph.is_timed else float
        self.each_step = saver is not None and durability == "superstep"
        #: Number of transitions applied; tells captures of a running turn apart.
        self.applied = 0
        self.causes: dict[tuple[str, str], BaseException] = {}
        self._fault: BaseException | None = None
        #: True while commands are obeyed; what they make happen is taken in after them.
        self._obeying = False
        self._delta: OwnDelta = {}
        self._events: list[Event] = []
        self._later: list[Order] = []
        self._committing: asyncio.Task[None] | None = None
        self._waker: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._claim: Claim | None = None

    def is_driving(self) -> bool:
        """Tell whether this actor still drives its run; one whose event loop is gone does not."""
        if self.ended:
            return False
        return self.task is None or not (self.task.done() or self.task.get_loop().is_closed())

    def add_changes(self, delta: Delta) -> None:
        """Let the claim write what differs from the store's records before the turn: all, where it knows none."""
        self._delta = {place: {**changed} for place, changed in delta.items()}

    async def claim(self, arrived: TurnArrived) -> None:
        """Save the turn's input; the run then goes on in a task of its own. Raises what the store raises; then nothing
        has run. Cancelled, it waits for the commit on its way; `claimed` tells what became of it."""
        self.ledger.turn_to(Status.RUNNING)
        if arrived.offer is not None:
            self.taken.append(arrived.offer.number)
        self._apply(transition(self.graph, self.run, [arrived], self.ledger.clock.time()))
        self._claim = Claim()
        name = f"rehydrate run {self.ledger.run_id}"
        self.task = asyncio.get_running_loop().create_task(self._told(self._drive(self._claim)), name=name)
        hold(self.task, self)
        if is_draining():  # from another thread, since it was asked
            self.drain()
        try:
            await self._claim.wait(self.task)
        except asyncio.CancelledError:
            if self._claim.given_up:
                self._release()
            raise

    @property
    def claimed(self) -> bool:
        """Tell whether the turn's input is saved."""
        return self._claim is not None and self._claim.saved

    async def _save_claim(self, claim: Claim) -> bool:
        """Save the turn's input and return whether the run goes on."""
        try:
            await self._flush()
        except BaseException as error:  # whatever the store did, also where only its answer was lost
            claim.fail(error)
            if not isinstance(error, Exception):
                raise
            return False
        return claim.succeed()

    def _release(self) -> None:
        """Drive the run no more."""
        self.ended = True
        self.crew.stop("was stopped with its run")
        self._orders.stop()
        if self.saver is not None:
            unregister(self.ledger.birth, self.saver.lease.epoch, self)

    def _arrived(self, item: Input, cause: BaseException | None) -> None:
        if cause is not None:
            name = getattr(item, "key", None) or f"{getattr(item, 'executor', '')}#{getattr(item, 'activation', '')}"
            self.causes[(getattr(item, "path", ""), name)] = cause
        self._inbox.append(item)
        if self._must_wait():
            self.wake()
        else:
            self._go_on_at_once()

    def _must_wait(self) -> bool:
        """Tell whether what has come is for the run's own task: it may have to save, or to gather more first."""
        if self.saver is not None or self._obeying or self.crew.is_working() or self._savers:
            return True
        if self._committing is not None and not self._committing.done():
            return True  # what has gathered is about to be passed on
        return self.draining or not self.channel.has_room()

    def _go_on_at_once(self) -> None:
        """Take in what came where it came, as nothing has to be saved first and nothing else runs.

        It saves a turn of the event loop in each superstep. An error is the run's, not that of who told us.
        """
        try:
            while self._inbox and self.ending is None:
                self._take_in()
                if self._urgent:
                    self._pass_on(*self._gathered())
                    self.ended = self.ending is not None
        except BaseException as error:
            self._fault = error
        if self.ended or self._fault is not None:
            self.wake()

    def wake(self) -> None:
        """Let the run go on."""
        waker, self._waker = self._waker, None
        if waker is not None and not waker.done():
            waker.set_result(None)

    async def _drive(self, claim: Claim) -> None:
        heartbeat: Heartbeat | None = None
        try:
            if await self._save_claim(claim):
                heartbeat = Heartbeat(self.saver) if self.saver is not None else None
                if self.inbox is not None:
                    self.inbox.open()
                await self._loop()
        finally:
            self._release()
            if heartbeat is not None:
                heartbeat.stop()
            if self.inbox is not None:
                self.inbox.close()
                self.inbox = None  # it knows this turn
            if self._timer is not None:
                self._timer.cancel()
            self.channel.close()
            for waiting in (*self._savers, *self._copies):
                if not waiting.done():
                    waiting.set_exception(StreamStateError("the turn ended first.", "Answer with run(responses=...)."))

    async def _loop(self) -> None:
        while True:
            if self._fault is not None:
                raise self._fault
            if self._has_input():
                self._take_in()
            if self._committing is not None and self._committing.done():
                finished, self._committing = self._committing, None
                finished.result()
            if self._hands_on():
                await self._flush()
                return
            if self._urgent and self._committing is None:
                if self.crew.is_working():
                    self._committing = asyncio.get_running_loop().create_task(self._flush())
                else:
                    await self._flush()
                    continue
            if self.ended:
                return
            while not self.channel.has_room() and not (self._savers or self._copies):
                await self.channel.room()
            if not self._has_input() and not self._hands_on():
                await self._woken()

    def _hands_on(self) -> bool:
        """Tell whether a run that is drained has come to its safe place: the next commit is its last one here."""
        if not self.draining or self.ending is not None or self._committing is not None or self._inbox:
            return False
        idle = self.crew.is_stopped or not self.crew.is_working()
        return idle and all(isinstance(order, LEAVABLE) for order in self._later)

    def _woken(self) -> asyncio.Future[None]:
        """Return what is done once there is something to do."""
        self._waker = asyncio.get_running_loop().create_future()
        if self._committing is not None:
            self._committing.add_done_callback(lambda _: self.wake())
        return self._waker

    def _take_in(self) -> None:
        inputs, self._inbox = self._inbox, []
        self.taken += taken_by(inputs)
        self._apply(transition(self.graph, self.run, inputs, self._time()))

    def _apply(self, step: Step) -> None:
        """Make a step real in memory, and obey or keep its commands by whether they wait for the commit."""
        self.run.apply(step.delta)
        self.applied += 1
        self.ledger.sleeps_until = None  # whatever it waited for
        if self.saver is not None:
            self._delta = merged_delta(self._delta, step.delta)
        waits = False
        self._obeying = True
        try:
            for command in step.commands:
                match command:
                    case Commit():
                        self._urgent = waits = True
                    case Publish():
                        self._events.extend(command.events)
                        self.crew.forget(command.events)
                    case EndRun():
                        self.ending = command
                    case _:
                        if waits:
                            self._later.append(command)
                        else:
                            self._obey(command)
        finally:
            self._obeying = False
        if not self._urgent and self._delta and self.each_step and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TRAILING_SECONDS, self._overdue)

    def _overdue(self) -> None:
        self._timer = None
        self._urgent = True
        self.wake()

    def _gathered(self, *, holds: bool = False) -> tuple[list[Event], list[Order]]:
        """Take what waits for a commit: events, unless no commit is made now that could hold them, and commands."""
        events: list[Event] = []
        if not holds:
            events, self._events = self._events, events
        later, self._later = self._later, []
        self._urgent = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.ending is not None:
            self.ledger.turn_to(self.ending.status)
        if self.saver is None:
            self.ledger.events += len(events)
            if self.ending is not None:
                self.ledger.next_header(self.run, {})
        return events, later

    async def _flush(self) -> None:
        """Save what has gathered, then publish its events and obey what waited for it."""
        savers: Sequence[asyncio.Future[None]] = ()
        if self._savers and not self._inbox:
            savers, self._savers = self._savers, []
        ending, saver = self.ending, self.saver
        handing_on = self.claimed and self._hands_on()
        saves = self.each_step or ending is not None or handing_on or bool(self._copies or savers)
        saves = saver is not None and (saves or saver.lease.claim)
        events, later = self._gathered(holds=saver is not None and not saves)
        if saver is None and handing_on:
            self.ledger.next_header(self.run, {})
        if saver is not None and saves:
            delta, self._delta = self._delta, {}
            taken, self.taken = tuple(self.taken), []
            copies, copy = self._copies, None
            if copies:
                self._copies, copy = [], self.run.copy()
            header = await self._save(saver, delta, events, taken, ends=ending is not None or handing_on)
            if copy is not None:
                for waiting in copies:
                    if not waiting.done():
                        waiting.set_result((header, copy))
        self._pass_on(events, later, savers)
        self.handed_on = handing_on
        if ending is not None:
            self.ended = True

    def _pass_on(self, events: list[Event], later: list[Order], savers: Sequence[asyncio.Future[None]] = ()) -> None:
        """Let out what waited for a commit, now that it is safe."""
        if events:
            self.watched("publish", "before")
            self.channel.publish(events)
            self.watched("publish", "after")
        for saved in savers:
            if not saved.done():
                saved.set_result(None)
        self._obeying = True
        try:
            for command in later:
                self._obey(command)
        finally:
            self._obeying = False

    def _obey(self, order: Order) -> None:
        if self.watch is None:
            self._orders.obey(order, self._arrived)
            return
        kind = KINDS[type(order)]
        self.watched(kind, "before")
        self._orders.obey(order, self._arrived)
        self.watched(kind, "after")

    async def _save(
        self, saver: Saver, delta: Delta, events: list[Event], taken: tuple[int, ...], *, ends: bool
    ) -> Header:
        try:
            self.watched("commit", "before")
            commit = saver.next_commit(self.run, delta, events, taken, ends=ends)
            await saver.commit(commit)  # as `save` does, without a coroutine more for each commit on its way
            header = saver.committed(commit)
            self.watched("commit", "after")
            return header
        except (CommitConflictError, asyncio.CancelledError):
            raise
        except Exception as error:  # a store of any make
            if isinstance(error, RehydrateError) and saver.lease.claim:
                raise
            raise SaveFailedError(self.ledger.run_id, told(error)) from error
