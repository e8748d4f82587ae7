"""What all calls of an observer share: tracer, instruments and what may be recorded; and how errors and values show.

Of an exception its type is recorded, of a message where it goes. What they hold is recorded only where that was asked
for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from reprlib import Repr
from time import time_ns
from typing import Final, TypeAlias

from opentelemetry.metrics import MeterProvider, get_meter
from opentelemetry.trace import Link, Span, SpanContext, Status, StatusCode, TraceFlags, TracerProvider, get_tracer

from rehydrate.model.effects import Failure
from rehydrate.model.sealed import Listed, Payload
from rehydrate.ports.observer import Opener

from .instruments import Instruments

Attributes: TypeAlias = Mapping[str, str | bool | int | float | Sequence[str]]

#: A `traceparent` of the W3C; what is kept in a run comes back from a store, and may be anything.
_TRACE_PARENT: Final = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_NANOSECONDS: Final = 1_000_000_000
#: Shows a value of any size in a few KB, also one that cannot show itself.
_SHOWN: Final = Repr()
_SHOWN.maxother = _SHOWN.maxstring = 4096
_SHOWN.maxlist = _SHOWN.maxtuple = _SHOWN.maxdict = 100


class Telemetry:
    """A tracer, the instruments, and what may be recorded beside names, numbers and ids."""

    def __init__(
        self, tracers: TracerProvider | None, meters: MeterProvider | None, *, types: bool, contents: bool
    ) -> None:
        installed = version("rehydrate")
        self.tracer = get_tracer("rehydrate", installed, tracers)
        self.instruments = Instruments(get_meter("rehydrate", installed, meters))
        self.types = types
        self.contents = contents

    def message(self, payload: Payload, opener: Opener) -> Attributes:
        """Return what may be said of a message."""
        found: dict[str, str] = {}
        if self.types:
            found["rehydrate.message.type"] = _type_of(payload)
        if self.contents:
            found["rehydrate.message.content"] = _content(payload, opener)
        return found

    def fail(self, span: Span, failure: Failure | None, error: BaseException | None) -> str:
        """Mark a span as failed, and return the type of the error."""
        kind = failure.type if failure is not None else type(error).__qualname__
        span.set_attribute("error.type", kind)
        span.set_status(Status(StatusCode.ERROR))
        if self.contents and error is not None:
            _record(span, error, kind)
        elif self.contents and failure is not None:
            told = {"exception.type": kind, "exception.message": failure.text, "exception.stacktrace": failure.trace}
            span.add_event("exception", told)
        return kind


def _record(span: Span, error: BaseException, kind: str) -> None:
    try:
        span.record_exception(error)
    except Exception as problem:  # user code: its own __str__
        text = f"<its text could not be made: {type(problem).__name__}>"
        span.add_event("exception", {"exception.type": kind, "exception.message": text})


def _content(payload: Payload, opener: Opener) -> str:
    try:
        return _SHOWN.repr(opener(payload))
    except Exception as problem:  # user code: a class that refuses the value, or what cannot be shown
        return f"<it could not be shown: {type(problem).__name__}>"


def _type_of(payload: Payload) -> str:
    if not isinstance(payload, Listed):
        return payload.type
    return f"list[{' | '.join(sorted({item.type for item in payload.items}))}]"


def began_at(seconds: float) -> int:
    """Return when something began that has just ended, in nanoseconds since the epoch."""
    return time_ns() - int(seconds * _NANOSECONDS)


def trace_parent(span: Span) -> str:
    """Return a span's context as text; nothing for one that is none."""
    found = span.get_span_context()
    if not found.is_valid:
        return ""
    return f"00-{found.trace_id:032x}-{found.span_id:016x}-{found.trace_flags:02x}"


def link_to(text: str) -> Link | None:
    """Return a link to the span whose context a text is; `None` for any other text."""
    match = _TRACE_PARENT.fullmatch(text)
    if match is None:
        return None
    trace_id, span_id, flags = (int(part, 16) for part in match.groups())
    found = SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(flags))
    return Link(found) if found.is_valid else None
