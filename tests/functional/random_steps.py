"""The steps of random programs: what each returns follows from its arguments, how long it takes from the weather.

A step that has come to its end writes down its effect key, which says where it stands in which run.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from rehydrate import Retry, current_step, step
from tests.differential.messages import mix
from tests.differential.moments import pause
from tests.differential.nodes import StormError, Weather

#: The weather of the call; set by the program that calls the steps.
WEATHER: Final[ContextVar[Weather]] = ContextVar("weather")


class FlakyStepError(RuntimeError):
    """An attempt failed; one of the next will not."""


class BrokenStepError(RuntimeError):
    """A step that always fails."""


@dataclass(frozen=True)
class Done:
    """What a step came to; `key` says what had been before."""

    key: str
    mark: int


async def _finish(key: str, mark: int) -> Done:
    weather = WEATHER.get()
    stopped = await weather.pass_by(key)
    if stopped:
        return Done(key, mix(mark, "stopped"))  # must leave no trace
    weather.journal.finished.append(current_step().effect_key)
    return Done(key, mix(key, mark))


@step
async def work(key: str, mark: int) -> Done:
    """Take a while."""
    return await _finish(key, mark)


@step
def threaded(key: str, mark: int) -> Done:
    """Do something in a thread; what that has done when the run is stopped meanwhile is not heard."""
    return Done(key, mix(key, mark))


@step(retry=Retry(4, 0.5, on=(FlakyStepError,)))
async def flaky(key: str, mark: int) -> Done:
    """Fail up to three times first."""
    if current_step().attempt <= mark % 4:
        await WEATHER.get().pass_by(key)
        raise FlakyStepError(key)
    return await _finish(key, mark)


@step(name="never-done")
async def broken(key: str, mark: int) -> Done:
    """Fail for good."""
    await WEATHER.get().pass_by(key)
    raise BrokenStepError(f"{key} {mark}")


@step(timeout=1.0)
async def slow(key: str, mark: int) -> Done:
    """Take too long, for every second mark."""
    if mark % 2:
        await pause(9.0)
    return Done(key, mark)


@step
async def stormy(key: str, mark: int) -> Done:
    """Fail where the weather of the call is stormy."""
    if WEATHER.get().stormy:
        raise StormError(key)
    return await _finish(key, mark)


@step
async def stamp(key: str, mark: int, value: str) -> Done:
    """Work with a value that no other run has."""
    await _finish(key, mark)
    return Done(key, mix(value))
