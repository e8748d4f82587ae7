"""Records of functions that do not fit together are refused at the restore, with what is wrong and where."""

import msgspec
import pytest

from rehydrate import FunctionalContext, step, workflow
from rehydrate.codecs.records import encode_record
from rehydrate.errors import InconsistentRunError
from rehydrate.model.checkpoint import Head, Stored, key_text
from rehydrate.model.passes import CallsRecord
from rehydrate.model.sealed import Listed, Sealed
from rehydrate.runtime.checkpoint import restored
from tests.functional.book import run


@step
async def noted(text: str) -> str:
    return text


@workflow
async def below(text: str, ctx: FunctionalContext) -> str:
    return f"{text} {await ctx.request_info('?', response_type=bool)}"


@workflow(calls=[below])
async def above(text: str, ctx: FunctionalContext) -> str:
    await noted(text)
    answer, called = await ctx.gather(ctx.request_info("?", response_type=bool), ctx.call(below, text))
    return f"{answer} {called}"


def loaded(header, records):
    """Return a checkpoint as it is read from a store."""
    stored = {key_text(*key): encode_record(record) for key, record in records.items()}
    return restored(Stored(header, stored, {}, Head(header, None, 1, False)))


def renumber(records, name):
    records["", "pass", name] = records.pop(("", "pass", "1"))
    for place in [place for place in records if place[:2] == ("", "call")]:
        records["", "call", f"{name}:{place[2].partition(':')[2]}"] = records.pop(place)


def change(records, kind, which, **fields):
    for place, record in list(records.items()):
        if place[:2] == ("", kind) and which(record):
            records[place] = msgspec.structs.replace(record, **fields)


FORGED = {
    "I33 no number": lambda records: records.update({("", "pass", "x"): records["", "pass", "1"]}),
    "I33 a number without end": lambda records: renumber(records, "9" * 5000),
    "I33 a pack without a number": lambda records: records.update({("", "calls", "1:x"): CallsRecord({})}),
    "I26 nobody's call": lambda records: records.pop(("", "pass", "1")),
    "I27 a called scope without its call": lambda records: change(records, "scope", lambda _: True, call="1:9"),
    "I29 no message": lambda records: change(records, "pass", lambda _: True, payload=None),
    "I30 a question without its call": lambda records: change(records, "request", lambda _: True, handler="9"),
    "I31 a list of a step": lambda records: change(records, "call", lambda c: c.kind == "step", value=Listed(())),
    "I31 no list of a workflow": lambda records: change(
        records, "call", lambda c: c.kind == "workflow", value=Sealed("str", b"\xa1a")
    ),
}


@pytest.mark.parametrize("forged", FORGED)
def test_what_does_not_fit_together_is_refused(forged):
    """Nothing runs of a stored checkpoint whose passes and calls are not what the engine writes."""
    paused = run(above, "a")
    records = dict(paused.checkpoint.records.records())
    FORGED[forged](records)
    with pytest.raises(InconsistentRunError, match=forged.partition(" ")[0]):
        loaded(paused.checkpoint.header, records)


def test_what_fits_together_goes_on():
    """The same without a change."""
    paused = run(above, "a")
    checkpoint = loaded(paused.checkpoint.header, dict(paused.checkpoint.records.records()))
    answers = [request.answer(True) for request in paused.pending_requests]
    assert run(above, checkpoint=checkpoint, responses=answers).outputs == ["True a True"]
