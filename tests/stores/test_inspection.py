"""Inspecting a checkpoint: what it says without the workflow that made it."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from rehydrate.codecs import TypeRegistry, ValueCodec
from rehydrate.codecs.records import encode_record
from rehydrate.errors import CheckpointCorruptError
from rehydrate.ids import outer_id
from rehydrate.model.checkpoint import Latest, Status, key_text
from rehydrate.model.records import (
    Delivery,
    DoneRecord,
    OutputRecord,
    Record,
    RequestRecord,
    RunRecord,
    ScopeRecord,
    StepRecord,
)
from rehydrate.ports import Inspection, OpenRequest
from rehydrate.stores.memory import InMemoryCheckpointStorage
from rehydrate.testing.store_contract import CommitMaker, ManualClock


@dataclass(frozen=True)
class Question:
    text: str
    amount: int


VALUES = ValueCodec(TypeRegistry([Question, str]))
BIRTH = "b" * 32
RUN = {("", "run", ""): RunRecord(BIRTH, "flow", 1, "signature")}


def asked(executor: str, activation: int, data: object) -> RequestRecord:
    return RequestRecord(executor, activation, 1, VALUES.seal(data), "bool", "on_answer", ())


def inspected(records: Mapping[tuple[str, str, str], Record], *, status: Status = Status.RUNNING) -> Inspection:
    """Store a run with these records and inspect its head."""

    async def main() -> Inspection:
        store, maker = InMemoryCheckpointStorage(clock=ManualClock()), CommitMaker()
        await store.commit(maker.claim({key_text(*key): encode_record(record) for key, record in records.items()}))
        await store.commit(maker.end(status=status))
        assert await store.inspect("run:1") == await store.inspect(Latest("run"))
        return await store.inspect(Latest("run"))

    return asyncio.run(main())


def test_open_requests_are_shown_with_plain_data() -> None:
    """Each open request has its outer id, path and types, and its data as plain values, at every depth."""
    found = inspected(
        {
            **RUN,
            ("/", "scope", ""): ScopeRecord(()),
            ("", "scope", "review#2"): ScopeRecord(()),
            ("review#2", "request", "assess#1?1"): asked("assess", 1, Question("Pay 5?", 5)),
            ("", "request", "gate#3?1"): asked("gate", 3, "go on?"),
        },
        status=Status.IDLE_WITH_PENDING_REQUESTS,
    )
    assert found.header.status is Status.IDLE_WITH_PENDING_REQUESTS
    assert found.requests == (
        OpenRequest(outer_id(BIRTH, "/gate#3?1"), "", "gate", "str", "bool", "go on?"),
        OpenRequest(
            outer_id(BIRTH, "review#2/assess#1?1"),
            "review#2",
            "assess",
            "Question",
            "bool",
            {"$type": "Question", "text": "Pay 5?", "amount": 5},
        ),
    )
    assert (found.next_executors, found.outputs) == ((), ())


def test_the_next_executors_are_those_that_have_not_finished() -> None:
    """Invocations of an unfinished superstep that left no finished record are what runs next."""
    message = (VALUES.seal("m"),)
    found = inspected(
        {
            **RUN,
            ("/", "scope", ""): ScopeRecord(()),
            ("/", "step", ""): StepRecord(
                1, message, (Delivery("a", 1, 0, ()), Delivery("b", 1, 0, ()), Delivery("b", 2, 0, ()))
            ),
            ("", "done", "a#1"): DoneRecord(()),
            ("", "scope", "child#4"): ScopeRecord(()),
            ("", "step", "child#4"): StepRecord(7, message, (Delivery("inner", 9, 0, ()),)),
        }
    )
    assert found.next_executors == ("b", "child#4/inner")


def test_outputs_are_shown_in_order() -> None:
    """The outputs of the turn come as plain values, in canonical order."""
    found = inspected(
        {
            **RUN,
            ("", "output", "00000001"): OutputRecord(VALUES.seal("second"), "a"),
            ("", "output", "00000000"): OutputRecord(VALUES.seal(Question("first", 1)), "a"),
        },
        status=Status.IDLE,
    )
    assert found.outputs == ({"$type": "Question", "text": "first", "amount": 1}, "second")


@pytest.mark.parametrize(
    "records",
    [
        pytest.param({}, id="nothing"),
        pytest.param({("", "request", "a#1?1"): asked("a", 1, "?")}, id="no run"),
        pytest.param({**RUN, ("", "scope", "no number"): ScopeRecord(()), ("/", "step", ""): StepRecord(1)}, id="path"),
        pytest.param({**RUN, ("", "scope", ""): ScopeRecord(()), ("", "request", "q"): asked("a", 1, "?")}, id="loop"),
    ],
)
def test_records_that_are_no_run_are_damage(records: dict[tuple[str, str, str], Record]) -> None:
    """Records that add up but are no run are reported, not guessed at."""
    with pytest.raises(CheckpointCorruptError, match="run 'run'"):
        inspected(records)


def test_a_record_that_cannot_be_decoded_is_damage() -> None:
    """Bytes that are no record are reported."""

    async def main() -> None:
        store = InMemoryCheckpointStorage(clock=ManualClock())
        await store.commit(CommitMaker().claim({key_text("", "run", ""): b"no envelope"}))
        with pytest.raises(CheckpointCorruptError):
            await store.inspect(Latest("run"))

    asyncio.run(main())
