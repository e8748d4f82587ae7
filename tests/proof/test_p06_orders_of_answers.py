"""P6: answered requests are never asked again, whatever the order of the answers, with a restart between each."""

import asyncio
from collections.abc import Sequence
from itertools import permutations

import pytest

from rehydrate import InMemoryCheckpointStorage
from rehydrate.errors import AlreadyAnsweredError
from rehydrate.model.events import RequestOpened
from tests.processes.nursery import Nursery
from tests.proof.answering import (
    KINDS,
    NAMES,
    WAIT,
    Calls,
    Journal,
    answer,
    build,
    expected,
    grouped,
    open_after,
    single,
)
from tests.proof.walking import Walk


def begun_by(orders: Sequence[Calls]) -> list[Calls]:
    """Those orders and all that they begin with, shorter ones first."""
    return sorted({calls[:count] for calls in orders for count in range(1, len(calls) + 1)}, key=len)


#: A few orders of single answers, and of answers that share a call.
FEW = [*list(single(6))[-720::311], *list(grouped(4))[::331]]


def walked(kinds: str, orders: Sequence[Calls], *, thorough: bool = True) -> list[str]:
    """Name what is wrong in these orders; each begins with one that stands before it, or with a single answer."""

    async def walk() -> list[str]:
        way = Walk(kinds, thorough)
        found = await way.begin()
        for calls in orders:
            found += await way.wrong(calls) if calls[:-1] in way.left else []
        return found

    return asyncio.run(walk())


@pytest.mark.promise("P6", "answers over three depths in any order, each from bytes")
@pytest.mark.parametrize("kinds", KINDS)
def test_answers_in_some_orders_are_taken_once(kinds, tried):
    """What was answered is not asked, not surfaced and not answered again, and the end is that of the order."""
    orders = begun_by(FEW)
    assert walked(kinds, orders) == []
    tried(len(orders))


@pytest.mark.proof
@pytest.mark.promise("P6", "answers over three depths in any order, each from bytes")
@pytest.mark.parametrize("kinds", KINDS)
def test_answers_in_all_orders_are_taken_once(kinds, tried):
    """All 720 orders of six answers, one a call, and all that they begin with."""
    orders = list(single(6))
    assert walked(kinds, orders) == []
    tried(len(orders))


@pytest.mark.proof
@pytest.mark.promise("P6", "several answers in one call, every partition of up to four")
@pytest.mark.parametrize("kinds", KINDS)
def test_answers_that_share_a_call_are_taken_in_the_order_of_their_names(kinds, tried):
    """All ways to bring up to four answers in calls of one to four, in whatever order they stand in the call."""
    orders = begun_by(list(grouped(4)))
    assert walked(kinds, orders) == []
    tried(len(orders))


async def wrong_in_a_stream(kinds: str, order: Sequence[str]) -> list[str]:
    """Answer in an order through the stream of a later turn that is held up, each a second time too; let it end."""
    journal, store = Journal(), InMemoryCheckpointStorage()
    options = {"checkpoint_storage": store, "resources": {"journal": journal}}
    first = await build(kinds).run("go", **options)
    asked = {request.data.name: request for request in first.pending_requests}
    journal.gate = asyncio.Event()
    stream = build(kinds).run(WAIT, checkpoint=first.checkpoint_id, on_pending="keep", stream=True, **options)
    for name in order:
        await stream.answer([asked[name].answer(answer(name))])
        with pytest.raises(AlreadyAnsweredError):
            await stream.answer([asked[name].answer("again")])
    journal.gate.set()
    result = await stream.result()
    took, again = sorted(journal.took("took ")), journal.took("asked ")
    found = [] if (took, again) == (list(NAMES), list(NAMES)) else [f"ran {journal.entries}"]
    told = [event.data.name for event in result.events if isinstance(event, RequestOpened)]
    found += [f"surfaced {told}"] if told else []
    found += [] if result.pending_requests == () else [f"open are {result.pending_requests}"]
    # Scopes take what has come when they can: their own order is that of names where answers wait for a barrier.
    levels = [sorted(level[2:].split(",")) for output in result.outputs for level in output.split("|")]
    wanted = [[f"{name}={answer(name)}" for name in NAMES[at : at + 2]] for at in range(0, len(NAMES), 2)]
    return found + ([] if levels == wanted else [f"outputs {result.outputs}"])


@pytest.mark.promise("P6", "orders of answers through the stream of a running turn")
@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("every", [240, pytest.param(2, marks=pytest.mark.proof)])
def test_answers_through_a_stream_are_taken_once_in_any_order(kinds, every, tried):
    """Six answers, each in a commit of its own while the turn runs: nothing is asked again."""
    orders = list(permutations(NAMES))[every // 2 :: every]
    assert [text for order in orders for text in asyncio.run(wrong_in_a_stream(kinds, order))] == []
    tried(len(orders))


def from_process_to_process(nursery: Nursery, file: object, kinds: str, order: Sequence[str]) -> list[str]:
    """Answer in an order, each time in a process of its own that first tries all that was answered before."""
    told = {"file": str(file), "kinds": kinds}
    child = nursery.child("answered_once", told)
    ids = dict(child.receive()["pending"])
    child.end()
    found: list[str] = []
    for at, name in enumerate(order):
        before = [ids[each] for each in order[:at]]
        child = nursery.child("answered_once", {**told, "again": before, "responses": {ids[name]: answer(name)}})
        refused, result = child.receive(), child.receive()
        child.end()
        still = open_after([order[: at + 1]])
        outputs = [] if still else [expected(kinds, tuple((each,) for each in order))]
        wanted = {"outputs": outputs, "pending": [[each, ids[each]] for each in still], "entries": [f"took {name}"]}
        found += [] if refused == ["AlreadyAnsweredError"] * at else [f"again: {refused}"]
        found += [] if result == wanted else [f"{result} instead of {wanted}"]
    return [f"{kinds} {order}: {text}" for text in found]


@pytest.mark.promise("P6", "orders of six answers, each in a process of its own")
@pytest.mark.parametrize(
    ("kinds", "count"), [("fgf", 1), *(pytest.param(k, 12, marks=pytest.mark.proof) for k in KINDS)]
)
def test_answers_from_process_to_process_are_taken_once(kinds, count, nursery, tmp_path, tried):
    """A sample of the orders, over one file: no process is asked what another one has been answered."""
    orders = list(permutations(NAMES))[31 :: 720 // count]
    found = [from_process_to_process(nursery, tmp_path / f"{n}.db", kinds, order) for n, order in enumerate(orders)]
    assert found == [[]] * count
    tried(count)
