"""`Worker`: takes up runs that nobody drives and that could go on.

Those are runs whose process died, runs that something was offered to, and runs at rest with a timer that is up. It asks
the store again and again, and keeps nothing but which runs it has to leave alone for a while.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Final

from rehydrate.errors import (
    DrainingError,
    RehydrateError,
    RunBusyError,
    RunDrainedError,
    RunFailedError,
    RunNotFoundError,
    StoreBrokenError,
    StoreUnavailableError,
    WrongCallError,
)
from rehydrate.model.checkpoint import Status
from rehydrate.ports import Clock
from rehydrate.runtime.clock import SystemClock
from rehydrate.runtime.log import WORKER_LOG, fields
from rehydrate.runtime.owner import is_draining
from rehydrate.runtime.result import WorkflowRunResult
from rehydrate.runtime.stream import RunStream

from .listing import RunFilters, all_runs, sleeps
from .service import Service

#: Seconds for which a run is left alone that could not be taken up, the first time; each further time twice as long.
_AGAIN: Final = 1.0
_LONGEST: Final = 300.0
#: A run that waits for a time which is further away than this is handed on until then.
_SOON: Final = 10.0
#: The longest pause before a store is asked again that could not be reached.
_LONGEST_OUTAGE: Final = 30.0


@dataclass
class _Trouble:
    """A run that could not be taken up: how often in a row, and when it is tried again."""

    times: int
    again: float


@dataclass
class _Taken:
    """A run that was taken up: what drives it, and its stream, once it has one."""

    task: asyncio.Task[None]
    stream: RunStream | None = None


class Worker:
    """Takes up the runs of a service, so many at a time, and hands on those that come to wait for a time far away.

    `every`: seconds between two looks; `clock`: the time by which timers are up. `told` hears how each run that was
    taken up has ended, or of its error. Raises `WrongCallError` where it could take up nothing.
    """

    def __init__(
        self,
        service: Service,
        *,
        concurrency: int = 10,
        every: float = 1.0,
        told: Callable[[str, WorkflowRunResult | RehydrateError], None] | None = None,
        clock: Clock | None = None,
    ) -> None:
        if concurrency < 1 or not every > 0:
            raise WrongCallError(
                f"a worker with concurrency={concurrency} and every={every} would take up nothing.",
                "Give a concurrency of 1 or more, and seconds above 0.",
            )
        self._service = service
        self._every = every
        self._told = told
        self._clock = clock or SystemClock()
        self._concurrency = concurrency
        self._running: dict[str, _Taken] = {}
        #: How often it has taken up a run.
        self._begun = 0
        self._troubles: dict[str, _Trouble] = {}
        self._names = {workflow.name for workflow in service.workflows}
        #: How many looks in a row have failed; `None` before the first one.
        self._failed_looks: int | None = None

    async def run(self) -> None:
        """Go on until it is cancelled, or its process is drained; then the runs that it has are waited for.

        Where the store cannot be reached any more, that is logged and it is asked again later. Raises its error where
        that was so from the beginning, and where the store object answers nothing any more.
        """
        try:
            while (pause := await self._looked()) is not None:  # noqa: ASYNC110  (nothing tells of what others leave)
                await asyncio.sleep(pause)
        finally:
            await asyncio.gather(*self._tasks(), return_exceptions=True)

    async def finish(self) -> int:
        """Take up all that can go on now, until nothing can any more; return how often one was taken up.

        A run that waits for a time more than ten seconds away, and does nothing else, is left until then.
        """
        first = self._begun
        while True:
            before = self._begun
            if not await self.look() or self._begun == before:
                return self._begun - first
            await self._fewer_than(1)

    async def look(self) -> bool:
        """Look once, and begin with what there is; `False` where this process takes up nothing any more."""
        await self._hand_on_sleepers()
        async for run_id in self._candidates():
            if is_draining():
                break
            if run_id in self._running or not self._may_try(run_id):
                continue
            await self._fewer_than(self._concurrency)
            task = asyncio.get_running_loop().create_task(self._take_up(run_id), name=f"rehydrate worker {run_id}")
            self._running[run_id] = _Taken(task)
            self._begun += 1
            task.add_done_callback(lambda task, run_id=run_id: self._over(run_id, task))
        return not is_draining()

    def _tasks(self) -> list[asyncio.Task[None]]:
        return [taken.task for taken in self._running.values()]

    async def _fewer_than(self, number: int) -> None:
        """Wait until it has fewer runs. Nothing tells that one has come to wait for a time, so that is looked for."""
        while len(self._running) >= number:
            await asyncio.wait(self._tasks(), timeout=self._every, return_when=asyncio.FIRST_COMPLETED)
            await self._hand_on_sleepers()

    async def _hand_on_sleepers(self) -> None:
        """Let go of runs that only wait for a time which is not near; it is in their headers."""
        for taken in list(self._running.values()):
            stream = taken.stream
            until = stream.sleeps_until if stream is not None else None
            if stream is not None and until is not None and until > self._clock.time() + _SOON:
                with contextlib.suppress(RehydrateError):  # whoever drives it gets it, too, and says so
                    await stream.hand_on()

    async def _looked(self) -> float | None:
        """Look once and return the seconds until the next time, `None` where there is none."""
        try:
            goes_on = await self.look()
        except StoreBrokenError:
            raise
        except StoreUnavailableError as error:
            if self._failed_looks is None:
                raise
            self._failed_looks += 1
            seconds = min(_pause(self._failed_looks), _LONGEST_OUTAGE)
            WORKER_LOG.warning(
                "the store could not be looked into (%s); it is asked again in %.0f s",
                type(error).__name__,
                seconds,
                extra=fields(code=error.code),
            )
            return seconds
        self._failed_looks = 0
        return self._every if goes_on else None

    def _over(self, run_id: str, task: asyncio.Task[None]) -> None:
        self._running.pop(run_id, None)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            # Of `told`, or of a store that raises what stores do not: no reason to end, and none to be silent.
            self._wait(run_id)
            WORKER_LOG.error(
                "run %r was taken up, and %s was raised beside it",
                run_id,
                type(error).__name__,
                extra=fields(run_id=run_id),
            )

    def _may_try(self, run_id: str) -> bool:
        trouble = self._troubles.get(run_id)
        return trouble is None or trouble.again <= asyncio.get_running_loop().time()

    async def _candidates(self) -> AsyncIterator[str]:
        """Give the runs of this service's workflows that nobody drives and that could go on."""
        now = self._clock.time()
        everywhere: list[RunFilters] = [{"status": Status.RUNNING.value}, {"offered": True}, {"due_by": now}]
        for filters in everywhere:
            async for header in all_runs(self._service.storage, **filters):
                if header.workflow not in self._names or ("status" in filters and sleeps(header, now)):
                    continue
                if not await self._is_driven(header.run_id):
                    yield header.run_id

    async def _is_driven(self, run_id: str) -> bool:
        head = await self._service.storage.head(run_id)
        return head is None or (head.owner is not None and head.alive)

    async def _take_up(self, run_id: str) -> None:
        try:
            stream = self._running[run_id].stream = await self._service.resume(run_id)
            result = await stream.result()
            if result.next_due is not None and result.next_due <= self._clock.time():
                self._wait(run_id)  # the clock of its workflow is behind: again at once would be for nothing
            else:
                self._troubles.pop(run_id, None)
            self._tell(run_id, result)
        except (DrainingError, RunBusyError, RunDrainedError, RunNotFoundError):
            return  # another one has it, or will have it
        except RunFailedError as error:
            self._tell(run_id, error)
        except RehydrateError as error:
            self._leave_alone(run_id, error)

    def _leave_alone(self, run_id: str, error: RehydrateError) -> None:
        """Try a run again later that could not be taken up, and say so."""
        seconds = self._wait(run_id)
        WORKER_LOG.warning(
            "run %r could not be taken up (%s); it is tried again in %.0f s",
            run_id,
            type(error).__name__,
            seconds,
            extra=fields(run_id=run_id, code=error.code),
        )
        self._tell(run_id, error)

    def _wait(self, run_id: str) -> float:
        """Leave a run alone for some seconds, which are returned: each time in a row for twice as long."""
        before = self._troubles.get(run_id)
        times = before.times + 1 if before is not None else 1
        seconds = min(_pause(times), _LONGEST)
        self._troubles[run_id] = _Trouble(times, asyncio.get_running_loop().time() + seconds)
        return seconds

    def _tell(self, run_id: str, end: WorkflowRunResult | RehydrateError) -> None:
        if self._told is not None:
            self._told(run_id, end)


def _pause(times: int) -> float:
    """Return the seconds after so many failures in a row: each time twice as many, as long as anybody waits for it."""
    return _AGAIN * 2 ** min(times - 1, 20)
