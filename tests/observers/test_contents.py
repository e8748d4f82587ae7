"""Contents: never recorded unless asked for."""

import asyncio
import logging
from dataclasses import dataclass
from io import StringIO

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.sdk.trace import ReadableSpan

from rehydrate import (
    FunctionalContext,
    InMemoryCheckpointStorage,
    Retry,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    executor,
    step,
    workflow,
)
from rehydrate.errors import AnswerTypeError, RehydrateError
from rehydrate.ports.observer import Observer
from rehydrate.testing import run_virtually
from tests.observers.claims import Claim, payment
from tests.observers.kit import Sdk


@dataclass(frozen=True, repr=False)
class Shy:
    def __repr__(self) -> str:
        raise ZeroDivisionError


SECRETS = st.text("abcdefgh", min_size=12, max_size=20).map("SECRET-{}".format)


def failing(*observers: Observer) -> Workflow:
    """Raises what it is given, in a retried attempt, and in a condition behind it."""

    @executor(id="raises", retry=Retry(attempts=2))
    async def raises(text: str, ctx: WorkflowContext[str]) -> str:
        ctx.set_state("secret", text)
        ctx.emit(text)
        if ctx.attempt == 1:
            raise LookupError(text)
        return text

    def condition(text: str) -> bool:
        raise KeyError(text)

    @executor(id="last")
    async def last(text: str) -> str:
        return text

    flow = WorkflowBuilder("failing", raises, observers=observers)
    return flow.add_edge(raises, last, condition).build()


def function(*observers: Observer) -> Workflow:
    """Asks, takes a step and raises."""

    @step
    async def fetch(text: str) -> str:
        raise OSError(text)

    @workflow(observers=observers, types=[str])
    async def book(text: str, ctx: FunctionalContext) -> str:
        ctx.state.set("secret", text)
        answer = await ctx.request_info(text, response_type=str)
        return await fetch(answer)

    return book


async def calls(observer: Observer, secret: str) -> None:
    """Let the secret come by in every way."""
    store = InMemoryCheckpointStorage(keep_events=True)
    options = {"checkpoint_storage": store, "run_args": {"k": secret}, "resources": {"r": secret}}
    claims = payment(observer)
    paused = await claims.run(Claim(secret, 5000), **options)
    (request,) = paused.pending_requests
    with pytest.raises(AnswerTypeError):
        await claims.run(checkpoint=paused, responses={request.request_id: secret}, **options)
    await claims.run(checkpoint=paused, responses=[request.answer(True)], **options)
    for flow, message in ((claims, Claim(secret, -1)), (claims, secret), (failing(observer), secret)):
        with pytest.raises(RehydrateError):
            await flow.run(message, **options)
    book = function(observer)
    asked = await book.run(secret, **options)
    with pytest.raises(RehydrateError):
        await book.run(checkpoint=asked, responses=[asked.pending_requests[0].answer(secret)], **options)


def recorded(span: ReadableSpan) -> str:
    """All that a span holds, as text."""
    return span.to_json()


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(secret=SECRETS, types=st.booleans())
def test_no_value_of_a_run_leaks(secret: str, types: bool) -> None:
    """Messages, state, run arguments, resources, requests, answers and texts of errors are in no span, no measurement
    and no log, with and without the types of messages."""
    sdk, out = Sdk(), StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(Everything())
    logger = logging.getLogger()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        run_virtually(calls(sdk.observer(include_types=types), secret))
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    assert len(sdk.named("workflow.run")) >= 7
    assert "failed with LookupError" in out.getvalue()
    for text in (*map(recorded, sdk.spans), sdk.reader.get_metrics_data().to_json(), out.getvalue()):
        assert secret not in text


class Everything(logging.Formatter):
    """Writes all that a record holds."""

    def format(self, record: logging.LogRecord) -> str:
        return f"{record.getMessage()} {record.__dict__}"


def test_types_are_there_when_asked_for() -> None:
    """`include_types` names the types of messages, on both sides."""
    sdk = Sdk()
    asyncio.run(payment(sdk.observer(include_types=True)).run(Claim("c-1", 90)))
    found = [(span.name, span.attributes.get("rehydrate.message.type")) for span in sdk.spans if "." in span.name]
    assert found == [
        ("message.send", "Claim"),
        ("executor.process", "Claim"),
        ("message.send", "Claim"),
        ("executor.process", "Claim"),
        ("workflow.run", None),
        ("executor.process", "Claim"),
        ("workflow.run", None),
    ]


def test_contents_are_there_when_asked_for() -> None:
    """`include_contents` has values of messages and whole exceptions."""
    sdk = Sdk()
    with pytest.raises(RehydrateError):
        asyncio.run(payment(sdk.observer(include_contents=True)).run(Claim("c-1", -1)))
    sent = sdk.named("message.send")[0].attributes
    assert sent["rehydrate.message.content"] == "Claim(id='c-1', amount=-1)"
    assert "rehydrate.message.type" not in sent
    events = [event.attributes["exception.message"] for span in sdk.spans for event in span.events]
    assert events == ["c-1 has a negative amount"] * 3


def test_values_that_cannot_be_shown_break_nothing() -> None:
    """A `__repr__` that raises costs its text, not the trace or the run."""

    @executor(id="takes")
    async def takes(shy: Shy) -> str:
        return "x" * 100_000

    sdk = Sdk()
    flow = WorkflowBuilder("w", takes, observers=[sdk.observer(include_contents=True)]).build()
    assert len(asyncio.run(flow.run(Shy())).output) == 100_000
    (attempt,) = sdk.named("executor.process")
    assert attempt.attributes["rehydrate.message.content"].startswith("<Shy instance at ")
    assert sdk.tree() == ["workflow.run IDLE", "  executor.process takes"]


def test_exceptions_and_values_that_raise_when_shown_cost_no_span() -> None:
    """A `__str__` that raises costs the text of an exception, and a number of too many digits its own."""

    class MuteError(Exception):
        def __str__(self) -> str:
            raise ZeroDivisionError

    @executor(id="counts")
    async def counts(number: int) -> int:
        if number:
            return number
        raise MuteError

    sdk = Sdk()
    flow = WorkflowBuilder("w", counts, observers=[sdk.observer(include_contents=True)]).build()
    asyncio.run(flow.run(10**5000))
    with pytest.raises(RehydrateError):
        asyncio.run(flow.run(0))
    shown, failed = sdk.named("executor.process")
    assert shown.attributes["rehydrate.message.content"] == "<it could not be shown: ValueError>"
    text = "<its text could not be made: ZeroDivisionError>"
    assert [dict(event.attributes) for event in failed.events] == [
        {"exception.type": "MuteError", "exception.message": text}
    ]
