"""Observers that raise, and what is no observer."""

import asyncio
import gc
import logging
import re
import sys
import types
from contextvars import copy_context

import pytest

from rehydrate import (
    InMemoryCheckpointStorage,
    OpenTelemetryObserver,
    WorkflowBuilder,
    WorkflowExecutor,
    step,
    workflow,
)
from rehydrate.engine.commands import StartInvocation
from rehydrate.engine.run import Run
from rehydrate.errors import MissingExtraError, RunFailedError, WrongCallError
from rehydrate.model.checkpoint import Commit
from rehydrate.model.records import Delivery
from rehydrate.ports.observer import Ending, Observed, Restored
from rehydrate.runtime.observing import Observing
from rehydrate.testing.store_contract import CommitMaker
from tests.observers.claims import Claim, intake, payment
from tests.observers.kit import Sdk

MOMENTS = ("begin", "trace", "restored", "found", "saved", "told", "began", "end", "ended")


class Broken:
    """Raises at one moment, everywhere else it does nothing."""

    def __init__(self, moment: str) -> None:
        self.moment = moment
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> object:
        if name not in MOMENTS:
            raise AttributeError(name)
        if name == "trace":
            self.happen(name)
            return ""
        return lambda _: self.happen(name)

    def happen(self, name: str) -> "Broken":
        """Raise, if this is the moment."""
        self.calls.append(name)
        if name == self.moment:
            raise RuntimeError("secret of the exporter")
        return self


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_observer_that_raises_changes_nothing(moment: str, caplog: pytest.LogCaptureFixture) -> None:
    """The run has the same result, the other observer hears all, and one warning for each call names the type only."""
    broken, sdk = Broken(moment), Sdk()
    flow = payment(broken, sdk.observer(), store=InMemoryCheckpointStorage())

    async def scenario() -> None:
        paused = await flow.run(Claim("c-1", 5000))
        done = await flow.run(checkpoint=paused, responses=[paused.pending_requests[0].answer(True)])
        assert done.outputs == ["c-1 paid"]

    with caplog.at_level(logging.WARNING):
        asyncio.run(scenario())
    assert moment in broken.calls
    assert len(sdk.named("executor.process")) == 4
    assert {record.name for record in caplog.records} == {"rehydrate.observer"}
    assert {record.levelname for record in caplog.records} == {"WARNING"}
    assert all("RuntimeError" in record.getMessage() for record in caplog.records)
    assert "secret" not in caplog.text
    assert len(caplog.records) == (1 if moment == "restored" else 2)


@pytest.mark.parametrize("trace", [42, b"bytes", ["list"], "half of a pair \ud800", "x" * 1025, object()])
def test_a_trace_that_no_record_can_hold_is_not_kept(trace: object, caplog: pytest.LogCaptureFixture) -> None:
    """It gets into no record, where it would break this save or the next restore; what another observer keeps does."""

    class Tracing(Broken):
        def __getattr__(self, name: str) -> object:
            return trace if name == "trace" else super().__getattr__(name)

    sdk = Sdk()
    flow = payment(Tracing(""), sdk.observer(), store=InMemoryCheckpointStorage())

    async def scenario() -> None:
        paused = await flow.run(Claim("c-1", 5000))
        done = await flow.run(checkpoint=paused, responses=[paused.pending_requests[0].answer(True)])
        assert done.outputs == ["c-1 paid"]

    asyncio.run(scenario())
    assert [len(span.links) for span in sdk.named("workflow.run") if span.parent is None] == [0, 1]
    assert {record.name for record in caplog.records} == {"rehydrate.observer"}


def test_a_broken_span_processor_breaks_no_run() -> None:
    """What raises inside of the SDK is no more than an observer that raises."""

    class Processor:
        def on_start(self, span, parent_context=None):
            raise OSError("no disk")

        def on_end(self, span):
            raise OSError("no disk")

        def shutdown(self): ...

        def force_flush(self, timeout_millis=0):
            return True

    sdk = Sdk()
    sdk.tracers.add_span_processor(Processor())
    assert asyncio.run(payment(sdk.observer()).run(Claim("a", 1))).outputs == ["a paid"]


def test_what_is_no_observer_is_refused() -> None:
    """A class, a lone observer and anything else are errors that say what to pass, in both kinds of workflow."""
    for given, words in (
        ([OpenTelemetryObserver], "the class OpenTelemetryObserver"),
        (OpenTelemetryObserver(), "observers is an OpenTelemetryObserver"),
        (["x"], "observers has a str"),
    ):
        with pytest.raises(WrongCallError, match=words):
            WorkflowBuilder("w", intake, observers=given)
        with pytest.raises(WrongCallError, match=words):
            workflow(observers=given)(in_function)


async def in_function(text: str) -> str:
    return text


def test_observers_of_a_sub_workflow_are_not_told_and_building_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """Inside of a parent only the parent's observers are told."""
    sdk = Sdk()
    inner = payment(sdk.observer())
    with caplog.at_level(logging.INFO, logger="rehydrate.build"):
        flow = WorkflowBuilder("outer", WorkflowExecutor(inner, id="inner")).build()
    assert "'inner' has observers of its own, which are told nothing" in caplog.text
    asyncio.run(flow.run(Claim("a", 1)))
    assert sdk.spans == ()


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The class can be imported; making an observer says what to install."""
    for name in [name for name in sys.modules if name.startswith("rehydrate.observers.")]:
        if name != "rehydrate.observers.opentelemetry":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    with pytest.raises(MissingExtraError, match=re.escape("pip install 'rehydrate[otel]'")):
        OpenTelemetryObserver()


def test_what_the_collector_takes_leaves_quietly(caplog: pytest.LogCaptureFixture) -> None:
    """It closes what a dead event loop left, in another context and in any thread; nobody is told of that."""
    start = StartInvocation("", 1, Delivery("slow", 1, 0, ()), ())
    sdk = Sdk()
    observing = Observing([sdk.observer()], Observed("w", 1, repr))

    async def calling() -> None:
        with observing.calling():
            await never()

    for running in (
        observing.process(start, Run(), never()),
        observing.step(start, "s", 1, never()),
        observing.drive(never(), lambda seconds, error: Ending(seconds, error=error)),
        observing.open(never(), lambda seconds, _, error: Restored("run", "", 0, seconds, error)),
        observing.commit(Stuck(), CommitMaker().claim()),
        calling(),
    ):
        copy_context().run(running.send, None)
        running.close()
    assert (caplog.records, sdk.spans, sdk.measured()) == ([], (), {})


class Stuck:
    async def commit(self, commit: Commit) -> None:
        await never()


@types.coroutine
def never():
    yield


def test_what_an_observer_was_told_of_an_error_does_not_keep_the_call_alive() -> None:
    """An error knows the frames that it went through, and these what was told: the collector takes all of it."""

    @step
    async def raises(text: str) -> str:
        raise ValueError(text)

    @workflow(observers=[Sdk().observer()])
    async def raising(text: str) -> str:
        return await raises(text)

    def alive() -> int:
        gc.collect()
        return sum(type(thing).__name__ in {"Actor", "Turn"} for thing in gc.get_objects())

    before = alive()
    for _ in range(3):
        with pytest.raises(RunFailedError):
            asyncio.run(raising.run("x"))
    assert alive() == before
