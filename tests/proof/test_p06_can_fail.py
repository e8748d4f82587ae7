"""The harness of P6 sees what an engine does that asks again, forgets an answer or takes it in another order."""

import asyncio
from collections.abc import Callable

import msgspec
import pytest

from rehydrate.codecs.records import decode_records
from rehydrate.engine import turn
from rehydrate.engine.requests import get_request
from rehydrate.model.passes import CallRecord, CallsRecord
from rehydrate.model.records import RunRecord
from tests.proof.answering import NAMES, Calls
from tests.proof.walking import Walk

Broken = Callable[[pytest.MonkeyPatch], None]
#: One answer a call in reverse; three calls that bring two.
ORDERS: tuple[Calls, ...] = (tuple((name,) for name in reversed(NAMES)), (NAMES[4:], NAMES[:2], NAMES[2:4]))


def loads(change: Callable[[str, object], object | None]) -> Broken:
    """A restore that forgets or changes records."""

    def broken(records: dict[str, bytes]) -> list[tuple[object, object]]:
        changed = [(key, change(key[1], record)) for key, record in decode_records(records)]
        return [(key, record) for key, record in changed if record is not None]

    return lambda patch: patch.setattr("rehydrate.runtime.checkpoint.decode_records", broken)


def lost(*kinds: str) -> Broken:
    return loads(lambda kind, record: None if kind in kinds else record)


def born_anew(kind: str, record: object) -> object:
    """The run has got another birth, from which the ids of its requests are made."""
    return msgspec.structs.replace(record, birth="f" * 32) if isinstance(record, RunRecord) else record


def no_steps(kind: str, record: object) -> object | None:
    """What steps have given is forgotten; what the function has asked is not."""
    if isinstance(record, CallsRecord):
        calls = {name: call for name, call in record.calls.items() if call.kind != "step"}
        return msgspec.structs.replace(record, calls=calls) if calls else None
    return None if isinstance(record, CallRecord) and record.kind == "step" else record


def not_closed(patch: pytest.MonkeyPatch) -> None:
    """An answer leaves its request open."""
    patch.setattr("rehydrate.engine.waking.close_request", get_request)


def surfaced_again(patch: pytest.MonkeyPatch) -> None:
    """A call with answers tells of everything that is open, as a look does."""
    begin = turn.begin_turn

    def broken(change: object, arrived: object) -> None:
        begin(change, arrived)
        for path in turn.all_scopes(change):
            for name, record in turn.requests_in(change.draft, path):
                change.events.append(turn.surfaced(turn._outer_id(change, path, name), path, record))

    patch.setattr("rehydrate.engine.transition.begin_turn", broken)


def in_order_of_the_call(patch: pytest.MonkeyPatch) -> None:
    """Answers are taken as they stand in the call."""
    patch.setattr("rehydrate.engine.turn.in_order", list)
    patch.setattr("rehydrate.engine.waking.order_key", lambda text: 0)


def only_the_first(patch: pytest.MonkeyPatch) -> None:
    """Of several answers in one call all but the first get lost on their way."""
    patch.setattr("rehydrate.engine.turn.in_order", lambda answers: sorted(answers, key=str)[:1])


def no_receipt(patch: pytest.MonkeyPatch) -> None:
    """An answer leaves nothing that says that it was given."""
    patch.setattr("rehydrate.engine.waking.leave_receipt", lambda *given: None)


BROKEN: dict[str, Broken] = {
    "requests stay open": not_closed,
    "requests are surfaced again": surfaced_again,
    "answers in the order of the call": in_order_of_the_call,
    "only the first answer arrives": only_the_first,
    "no receipt": no_receipt,
    "receipts lost by a restore": lost("receipt", "receipts"),
    "requests lost by a restore": lost("request", "requests"),
    "state lost by a restore": lost("state", "part"),
    "other ids after a restore": loads(born_anew),
}


def noticed(kinds: str) -> bool:
    """Tell whether something is found wrong in an order."""

    async def walk() -> bool:
        way = Walk(kinds)
        found = await way.begin()
        for order in ORDERS:
            for count in range(1, len(order) + 1):
                found += await way.wrong(order[:count]) if order[: count - 1] in way.left else []
        return bool(found)

    return asyncio.run(walk())


@pytest.mark.notices("P6")
@pytest.mark.parametrize("name", BROKEN)
def test_an_engine_that_asks_or_takes_twice_is_noticed(name, monkeypatch):
    """Whatever goes wrong with requests and answers, some order shows it in graphs."""
    BROKEN[name](monkeypatch)
    assert noticed("gfg")


@pytest.mark.notices("P6")
def test_steps_before_a_question_that_run_again_are_noticed(monkeypatch):
    """A function whose remembered steps are lost by a restore does again what comes before its questions."""
    loads(no_steps)(monkeypatch)
    assert noticed("fff")


def test_the_same_orders_are_right_where_nothing_is_broken():
    """What the broken engines are seen by finds nothing wrong with the engine as it is."""
    assert not noticed("gfg")
    assert not noticed("fff")
