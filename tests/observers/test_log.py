"""The log: names of loggers, fields of records, and what is a warning."""

import asyncio
import json
import logging
from io import StringIO

import pytest

from rehydrate import InMemoryCheckpointStorage, Retry, Status, WorkflowBuilder, executor
from rehydrate.errors import RunFailedError
from rehydrate.testing import run_virtually
from tests.observers.claims import Claim, payment

FIELDS = ("run_id", "workflow", "scope", "superstep", "executor", "code")


def told(record: logging.LogRecord) -> tuple[object, ...]:
    """Logger, level, place and text of a record, without the run's name and durations."""
    text = record.getMessage().removeprefix(f"run {record.run_id!r}: ")
    place = "/".join(filter(None, (record.scope, record.executor)))
    return record.name.removeprefix("rehydrate."), record.levelname, place, text.split(" after ")[0]


def test_a_nested_run_is_logged_with_its_places(caplog: pytest.LogCaptureFixture) -> None:
    """Turns are information, supersteps, attempts and checkpoints are for debugging; each record says where it was."""
    flow = payment(store=InMemoryCheckpointStorage())
    with caplog.at_level(logging.DEBUG, logger="rehydrate"):
        asyncio.run(flow.run(Claim("c-1", 5000), run_id="r"))
    assert [told(record) for record in caplog.records if record.name != "rehydrate.checkpoint"] == [
        ("run", "INFO", "", "turn 1 begins"),
        ("run", "DEBUG", "", "a superstep begins"),
        ("executor", "DEBUG", "intake", "attempt 1 begins"),
        ("executor", "DEBUG", "intake", "attempt 1: finished"),
        ("run", "DEBUG", "", "a superstep is complete"),
        ("run", "DEBUG", "", "a superstep begins"),
        ("run", "DEBUG", "review#1", "a superstep begins"),
        ("executor", "DEBUG", "review#1/assess", "attempt 1 begins"),
        ("executor", "DEBUG", "review#1/assess", "attempt 1: finished"),
        ("run", "DEBUG", "review#1", "a superstep is complete"),
        ("run", "DEBUG", "", "a superstep is complete"),
        ("run", "INFO", "", "the turn ended IDLE_WITH_PENDING_REQUESTS"),
    ]
    saved = [record.getMessage() for record in caplog.records if record.name == "rehydrate.checkpoint"]
    assert [text.split(" of ")[0] for text in saved] == [
        "run 'r': saved checkpoint 0 (message)",
        "run 'r': saved checkpoint 1 (superstep)",
        "run 'r': saved checkpoint 2 (superstep)",
    ]


def test_every_record_has_all_fields() -> None:
    """A formatter may name them all; one of four lines writes JSON."""

    class Json(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return json.dumps({"text": record.getMessage(), **{name: getattr(record, name) for name in FIELDS}})

    out = StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(Json())
    logger = logging.getLogger("rehydrate")
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        with pytest.raises(RunFailedError):
            asyncio.run(payment(store=InMemoryCheckpointStorage()).run(Claim("c-1", -1), run_id="r"))
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert {line["workflow"] for line in lines} == {"payment"}
    assert {line["run_id"] for line in lines} == {"r"}
    assert lines[-1] == {
        "text": lines[-1]["text"],
        "run_id": "r",
        "workflow": "payment",
        "scope": "review#1",
        "superstep": 0,
        "executor": "assess",
        "code": "run-failed",
    }


def test_what_is_raised_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    """Failed attempts and failed runs are information: whoever calls gets the error."""

    @executor(id="flaky", retry=Retry(attempts=2))
    async def flaky(text: str) -> str:
        raise OSError(text)

    flow = WorkflowBuilder("flaky", flaky).build()
    with caplog.at_level(logging.DEBUG, logger="rehydrate"), pytest.raises(RunFailedError):
        run_virtually(flow.run("the text"))
    assert [told(record) for record in caplog.records if record.levelno >= logging.INFO] == [
        ("run", "INFO", "", "turn 1 begins"),
        ("executor", "INFO", "flaky", "attempt 1 failed with OSError"),
        ("executor", "INFO", "flaky", "attempt 2 failed with OSError"),
        ("run", "INFO", "flaky", "the turn ended FAILED"),
    ]
    assert "the text" not in caplog.text


def test_requests_that_stay_open_are_a_warning_with_its_code(caplog: pytest.LogCaptureFixture) -> None:
    """A message that leaves requests open raises nothing, so it is said."""
    flow = payment(store=InMemoryCheckpointStorage())

    async def scenario() -> None:
        paused = await flow.run(Claim("c-1", 5000), run_id="r")
        again = await flow.run(Claim("c-2", 1), checkpoint=paused)
        assert again.status is Status.IDLE_WITH_PENDING_REQUESTS

    with caplog.at_level(logging.WARNING):
        asyncio.run(scenario())
    assert [(record.name, record.code, record.run_id, record.workflow) for record in caplog.records] == [
        ("rehydrate.run", "requests-kept", "r", "payment")
    ]
