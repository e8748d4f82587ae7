"""The page on observability names all that is recorded, and nothing else."""

import logging
import re

from rehydrate.runtime import log
from tests.docs.pages import DOCS, rows
from tests.project.source import PACKAGE

PAGE = DOCS / "observability.md"
RECORDED = re.compile(r'"(rehydrate\.[a-z_.]+|error\.type)"')
SPANS = re.compile(r'"([a-z]+\.(?:run|process|send|save|restore))"')


def first(heading: str) -> list[str]:
    """The names in the first cells of a table."""
    return [row[0].split("`")[1] for row in rows(PAGE, heading)]


def in_the_code(pattern: re.Pattern[str], *names: str) -> set[str]:
    """What modules of the observers write down as names."""
    return {found for name in names for found in pattern.findall((PACKAGE / "observers" / name).read_text("utf-8"))}


def test_every_attribute_and_span_has_its_row() -> None:
    """The tables have the names in the code, each once; what only measurements have stands with the metrics."""
    spans = in_the_code(RECORDED, "call_spans.py", "attempt_span.py", "telemetry.py") - {"rehydrate.scope.node"}
    assert sorted(first("Attributes")) == sorted(spans)
    assert set(first("Spans")) == in_the_code(SPANS, "call_spans.py", "attempt_span.py")


def test_every_metric_has_its_row() -> None:
    """The table has each instrument once."""
    assert sorted(first("Metrics")) == sorted(in_the_code(RECORDED, "instruments.py"))


def test_every_logger_and_field_has_its_row() -> None:
    """The tables have the loggers and the fields of each record."""
    loggers = {value.name for value in vars(log).values() if isinstance(value, logging.Logger)}
    assert set(first("Log")) == loggers
    below = PAGE.read_text("utf-8").split("Every record has these fields", 1)[1]
    assert re.findall(r"^\| `(\w+)` \|", below, re.MULTILINE) == list(log.Fields.__annotations__)
