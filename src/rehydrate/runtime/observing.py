"""What goes on in one call, told to all observers.

What an observer raises is logged once for a call, and the run goes on as if nothing had been. Nothing here knows what
observers make of it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Final, TypeAlias, TypeVar

from rehydrate.engine import reading
from rehydrate.engine.commands import StartInvocation
from rehydrate.engine.inputs import AttemptBroken, Input, InvocationBroken, InvocationFinished
from rehydrate.engine.run import Run
from rehydrate.model.checkpoint import Commit
from rehydrate.model.effects import Pause
from rehydrate.model.events import Event
from rehydrate.ports import CheckpointStorage
from rehydrate.ports.observer import (
    Activity,
    Attempt,
    CallObserver,
    Ending,
    Found,
    Observed,
    Observer,
    Outcome,
    Restored,
    Saved,
)

from .log import OBSERVER_LOG, fields

Told: TypeAlias = tuple[Input, BaseException | None] | None
Result = TypeVar("Result")

_LEFT: Final = Outcome("left")
#: So many characters of an observer are kept in a run.
LONGEST_TRACE: Final = 1024


class Observing:
    """Tells the observers of one call."""

    def __init__(self, observers: Sequence[Observer], observed: Observed) -> None:
        self._workflow = observed.workflow
        self._began = perf_counter()
        self._run_id = ""
        self._is_over = self._has_complained = False
        self._told: list[CallObserver] = []
        #: What attempts have raised that are not over: one whose time is up goes on until it sees its cancellation.
        self._raised: dict[tuple[str, str, int, int], BaseException] = {}
        for observer in observers:
            try:
                self._told.append(observer.begin(observed))
            except Exception as error:  # an observer of any make
                self._complain(observer, error)

    @property
    def seconds(self) -> float:
        """How long the call has taken so far."""
        return perf_counter() - self._began

    @property
    def trace(self) -> str:
        """What the first observer that has something to keep wants kept in the run."""
        traces: list[str] = []
        self._each(lambda one: traces.append(_kept(one.trace)))
        return next((trace for trace in traces if trace), "")

    def _each(self, tell: Callable[[CallObserver], object]) -> None:
        for one in self._told:
            try:
                tell(one)
            except Exception as error:  # an observer of any make
                self._complain(one, error)

    def _complain(self, observer: object, error: Exception) -> None:
        """Say once that an observer raised; not what its error says, which may hold values of the run."""
        if self._has_complained:
            return
        self._has_complained = True
        OBSERVER_LOG.warning(
            "an observer of workflow %r raised, so that what it shows of a call is not whole: %s in %s",
            self._workflow,
            type(error).__qualname__,
            type(observer).__qualname__,
            extra=fields(run_id=self._run_id, workflow=self._workflow, code="observer-failed"),
        )

    @contextmanager
    def calling(self) -> Generator[None]:
        """Tell how the call has ended, where it ends before its turn has begun."""
        try:
            yield
        except GeneratorExit:  # as in `drive`
            raise
        except BaseException as error:
            self.ended(Ending(self.seconds, error=error))
            raise

    async def open(self, work: Awaitable[Result], restored: Callable[..., Restored | None]) -> Result:
        """Let a call be opened, and tell what was restored: `restored` says it of seconds, result and error."""
        began = perf_counter()
        try:
            opened = await work
        except GeneratorExit:  # as in `drive`
            raise
        except BaseException as error:
            self._restored(restored(perf_counter() - began, None, error))
            raise
        self._restored(restored(perf_counter() - began, opened))
        return opened

    def _restored(self, restored: Restored | None) -> None:
        if restored is not None:
            self._each(lambda one: one.restored(restored))

    def found(self, found: Found) -> None:
        """Tell which run the call is about."""
        self._run_id = found.run_id
        self._each(lambda one: one.found(found))

    def told(self, events: Sequence[Event]) -> None:
        """Tell of committed events."""
        self._each(lambda one: one.told(events))

    def ended(self, ending: Ending | None) -> None:
        """Tell how the call has ended, once; `None`: it goes on, with another claim."""
        if ending is not None and not self._is_over:
            self._is_over = True
            self._each(lambda one: one.ended(ending))

    async def commit(self, store: CheckpointStorage, commit: Commit) -> None:
        """Give a store a commit. Raises what the store raises."""
        began = perf_counter()
        try:
            await store.commit(commit)
        except GeneratorExit:  # as in `drive`
            raise
        except BaseException as error:
            saved = Saved(commit, perf_counter() - began, error)
            self._each(lambda one: one.saved(saved))
            raise
        saved = Saved(commit, perf_counter() - began)
        self._each(lambda one: one.saved(saved))

    async def drive(
        self, work: Awaitable[None], ending: Callable[[float, BaseException | None], Ending | None]
    ) -> None:
        """Let a turn go on to its end, and tell of that. Raises what ends it."""
        try:
            await work
        except GeneratorExit:  # its event loop is gone; the collector comes in any thread, also within an exporter
            raise
        except BaseException as error:
            self.ended(ending(self.seconds, error))
            raise
        self.ended(ending(self.seconds, None))

    def raised(self, start: StartInvocation, number: int, error: BaseException) -> None:
        """Take note of what an attempt has raised, or that its time is up."""
        delivery = start.delivery
        self._raised[start.path, delivery.executor, delivery.activation, number] = error

    async def process(self, start: StartInvocation, run: Run, work: Awaitable[Told]) -> Told:
        """Let an attempt at an invocation run its course, and return what the run is told of it."""
        delivery = start.delivery
        number = 1 + reading.attempts(run, start.path, delivery.executor, delivery.activation).started
        activities = self._activities(_attempt(self._run_id, start, number))
        outcome = _LEFT
        try:
            told = await work
            error = self._raised.pop((start.path, delivery.executor, delivery.activation, number), None)
            outcome = _outcome(told, error)
            return told
        except GeneratorExit:  # its event loop is gone, and this is not the context in which it began
            activities = []
            raise
        finally:
            self._end(activities, outcome)

    async def step(self, start: StartInvocation, name: str, number: int, work: Awaitable[Result]) -> Result:
        """Let an attempt at a step run its course. Raises what the step raises."""
        activities = self._activities(_attempt(self._run_id, start, number, name))
        outcome = _LEFT
        try:
            result = await work
            outcome = Outcome("finished")
            return result
        except GeneratorExit:  # as above
            activities = []
            raise
        except Exception as error:  # user code; raised again
            outcome = Outcome("failed", error=error)
            raise
        finally:
            self._end(activities, outcome)

    def _activities(self, attempt: Attempt) -> list[Activity]:
        begun: list[Activity] = []
        self._each(lambda one: begun.append(one.began(attempt)))
        return begun

    def _end(self, activities: list[Activity], outcome: Outcome) -> None:
        for activity in reversed(activities):
            try:
                activity.end(outcome)
            except Exception as error:  # an observer of any make
                self._complain(activity, error)


def _kept(trace: object) -> str:
    """Return a trace. Raises for what is not to get into a record: it would be refused there, at this save or later."""
    if type(trace) is not str:
        raise TypeError
    if len(trace) > LONGEST_TRACE or not trace.isascii():
        raise ValueError
    return trace


def _attempt(run_id: str, start: StartInvocation, number: int, step: str = "") -> Attempt:
    delivery = start.delivery
    message = None if step or not start.payloads else start.payloads[0]
    return Attempt(
        run_id, start.path, delivery.executor, start.superstep, delivery.activation, number, message, step
    )  # fmt: skip


def _outcome(told: Told, error: BaseException | None) -> Outcome:
    """Return what became of an attempt; `error` is what it raised, or that its time was up."""
    if told is None:
        return Outcome("failed", error=error) if error is not None else _LEFT
    match told[0]:
        case InvocationFinished(failure=None, effects=effects):
            waits = bool(effects) and isinstance(effects[-1], Pause)
            return Outcome("paused" if waits else "finished", effects)
        case InvocationFinished(failure=failure):
            return Outcome("failed", failure=failure, error=told[1])
        case InvocationBroken(failure=failure) | AttemptBroken(failure=failure):
            return Outcome("failed", failure=failure, error=error)
        case _:
            return _LEFT
