"""Events as a line of text or as JSON. It must not know where they are printed."""

from __future__ import annotations

from typing import Final, assert_never

import msgspec

from rehydrate.codecs import ValueCodec
from rehydrate.codecs import plain as plain_of_bytes
from rehydrate.errors import NotStorableError
from rehydrate.model.effects import Failure
from rehydrate.model.events import (
    AttemptFailed,
    Emitted,
    Event,
    EventsDropped,
    InvocationFailed,
    InvocationStarted,
    MessageDropped,
    OfferRefused,
    OfferTaken,
    OutputYielded,
    RequestOpened,
    RequestsCancelled,
    RequestsKept,
    ScopeEnded,
    ScopeStarted,
    StatusChanged,
    StepFinished,
    StepStarted,
    SuperstepCompleted,
    SuperstepStarted,
    TurnStarted,
    WorkDiscarded,
)
from rehydrate.model.plain import Plain
from rehydrate.model.printable import printable
from rehydrate.runtime.causes import safe_text

from .output import shown

#: Letters of a value in a line; all of it is in the result and in JSON.
_LONGEST: Final = 200
#: And of a value that is no value of a record, in JSON, too.
_MOST: Final = 10_000


def plain_value(value: object, codec: ValueCodec) -> Plain:
    """Return a value that a run told as a plain one; of what cannot be stored, the text that it has."""
    try:
        return plain_of_bytes(codec.seal(value).data)
    except NotStorableError:
        return safe_text(lambda: str(value)[:_MOST], _MOST)


def shortened(text: str) -> str:
    """Return the beginning of a long text."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def event_document(event: Event, codec: ValueCodec) -> dict[str, object]:
    """Return an event as what JSON can hold."""
    fields = {field.name: getattr(event, field.name) for field in msgspec.structs.fields(event)}
    if "data" in fields:
        fields["data"] = plain_value(fields["data"], codec)
    return {"event": type(event).__name__, **fields}


def event_line(event: Event, codec: ValueCodec) -> str | None:
    """Return an event in one line, safe for a terminal; `None` for one that is not worth it."""
    text = _text(event, codec)
    if text is None:
        return None
    executor = "" if isinstance(event, ScopeStarted | ScopeEnded) else event.executor_id
    place = "/".join(filter(None, (event.path, executor)))
    return printable(f"{place}: {text}" if place else text)


def _text(event: Event, codec: ValueCodec) -> str | None:
    match event:
        case TurnStarted() | StatusChanged() | ScopeStarted() | ScopeEnded():
            return _standing(event)
        case InvocationStarted():
            return "started"
        case StepStarted(step=step, attempt=attempt):
            return f"step {step} started{_again(attempt)}"
        case OutputYielded(data=data) | Emitted(data=data):
            verb = "output" if isinstance(event, OutputYielded) else "tells"
            return f"{verb} {shortened(shown(plain_value(data, codec)))}"
        case RequestOpened(request_id=request_id, data=data):
            return f"asks {shortened(shown(plain_value(data, codec)))} (request {request_id})"
        case InvocationFailed(failure=failure):
            return f"failed: {_failure(failure)}"
        case AttemptFailed(attempt=attempt, failure=failure, again=again, step=step):
            then = "" if again is None else f"; again in {again:.1f} s"
            return f"{f'step {step}: ' if step else ''}attempt {attempt} failed: {_failure(failure)}{then}"
        case SuperstepStarted() | SuperstepCompleted() | StepFinished():
            return None
        case _:
            return _of_input(event)


def _standing(event: TurnStarted | StatusChanged | ScopeStarted | ScopeEnded) -> str:
    match event:
        case TurnStarted(turn=turn, continuation=continuation):
            return f"turn {turn} {'goes on' if continuation else 'started'}"
        case StatusChanged(status=status):
            return status.value
        case ScopeStarted():
            return "sub-workflow started"
        case ScopeEnded():
            return "sub-workflow ended"


def _of_input(
    event: RequestsKept
    | RequestsCancelled
    | OfferTaken
    | OfferRefused
    | WorkDiscarded
    | MessageDropped
    | EventsDropped,
) -> str:
    match event:
        case RequestsKept(request_ids=ids):
            return f"keeps {len(ids)} open request(s)"
        case RequestsCancelled(request_ids=ids):
            return f"withdraws {len(ids)} open request(s)"
        case OfferTaken(key=key):
            return f"takes the offer {key}"
        case OfferRefused(key=key, text=text):
            return f"refuses the offer {key}: {text}"
        case WorkDiscarded(what=what):
            return f"discards {len(what)} piece(s) of work: {shortened(', '.join(what))}"
        case MessageDropped(type=name):
            return f"a message of type {name} went nowhere: every condition declined it"
        case EventsDropped(count=count):
            return f"{count} event(s) were not told, as they came too fast"
        case _:
            assert_never(event)


def _again(attempt: int) -> str:
    return f", attempt {attempt}" if attempt > 1 else ""


def _failure(failure: Failure) -> str:
    return shortened(f"{failure.type}: {failure.text}")
