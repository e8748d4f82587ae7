"""The first Ctrl-C stops the command, whatever it is doing; more of them change nothing."""

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest

from rehydrate.demo.interrupts import Interrupts


@pytest.fixture(autouse=True)
def usual_handler() -> Iterator[None]:
    """Begin with what Python does by itself, and end so."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, former)


def interrupt() -> None:
    """Send this process one SIGINT."""
    os.kill(os.getpid(), signal.SIGINT)


def test_the_first_one_is_an_exception_and_the_rest_are_nothing() -> None:
    """What is done after the first one is not torn apart."""
    with Interrupts():
        with pytest.raises(KeyboardInterrupt):
            interrupt()
        interrupt()
    interrupt()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_without_one_nothing_stays() -> None:
    """A command that was not stopped leaves the process as it was."""
    with Interrupts() as interrupts:
        assert interrupts.run(_seven) == 7
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


async def _seven() -> int:
    return 7


def test_a_call_at_work_is_cancelled_and_may_tidy_up() -> None:
    """The call sees a cancellation at an await, never an exception in the middle of a line."""
    seen: list[str] = []

    async def work() -> None:
        try:
            interrupt()
            interrupt()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            seen.append("tidied up")

    with Interrupts() as interrupts, pytest.raises(KeyboardInterrupt):
        interrupts.run(work)
    assert seen == ["tidied up"]


def test_one_that_comes_as_a_call_ends_is_not_forgotten() -> None:
    """There is nothing left to cancel, and the command stops all the same; what it then does runs to its end."""

    async def last_line() -> int:
        interrupt()
        return 1

    with Interrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt):
            interrupts.run(last_line)
        assert interrupts.run(_seven) == 7


def test_a_shell_that_ignores_it_is_respected() -> None:
    """A job in the background is not stopped by the keyboard."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Interrupts():
        interrupt()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
