"""The threads of plain handlers: what they hold while they wait for more."""

import threading
import weakref

import pytest

from rehydrate.runtime import threads


@pytest.mark.parametrize("left", [False, True])
def test_a_thread_that_waits_holds_nothing_of_its_last_call(left: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of one that was left before it began; else the run that it belongs to is there until the next one comes."""
    monkeypatch.setattr(threads, "MAX_THREADS", 1)
    pool, first, gone = threads._Pool(), threading.Event(), threading.Event()

    def call() -> None:
        pass

    weakref.finalize(call, gone.set)
    pool.submit(threads._Work(("", "", "", 0), lambda: first.wait(10)))
    work = threads._Work(("", "", "", 1), call)
    pool.submit(work)
    if left:
        pool.leave(work)
    del work, call
    first.set()
    assert gone.wait(10)
