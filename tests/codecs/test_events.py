"""Kept events: each is read back as it was told, or is damage; hostile bytes run nothing and stay bounded."""

from __future__ import annotations

import threading
from typing import get_args

import msgspec
import pytest

from rehydrate.codecs import wrap
from rehydrate.codecs.events import decode_event, encode_events
from rehydrate.errors import CheckpointCorruptError, CheckpointFormatError, WorkflowCheckpointException
from rehydrate.model.checkpoint import Status, StoredEvent
from rehydrate.model.effects import Failure
from rehydrate.model.events import (
    CommittedEvent,
    InvocationFailed,
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
    SuperstepCompleted,
    SuperstepStarted,
    TurnStarted,
    WorkDiscarded,
)
from rehydrate.model.sealed import Sealed

WHERE = {"path": "a#1/b#2", "executor_id": "é", "superstep": 3, "activation": 4}
VALUE = Sealed("Claim", b"\x00\xff")
EVENTS = [
    TurnStarted(turn=2, continuation=True),
    SuperstepStarted(path="a#1", superstep=1),
    SuperstepCompleted(path="a#1", superstep=1),
    ScopeStarted(**WHERE),
    ScopeEnded(**WHERE),
    OutputYielded(executor_id="a", superstep=1, activation=2**40, data=VALUE),
    RequestOpened(**WHERE, request_id="q", data=VALUE, response_type="bool"),
    RequestsKept(request_ids=("q", "r")),
    RequestsCancelled(request_ids=()),
    OfferTaken(number=3, key="mail"),
    OfferRefused(number=4, key="mail", code="already-answered", text="it was answered"),
    WorkDiscarded(what=("a", "b")),
    MessageDropped(**WHERE, type="Claim"),
    InvocationFailed(**WHERE, failure=Failure("handler", "ValueError", "text", "trace", ("fact",))),
    StatusChanged(status=Status.FAILED, paths=("", "a#1")),
]
encode = msgspec.msgpack.encode


def stored(event: CommittedEvent, number: int = 7, run_id: str = "run") -> StoredEvent:
    (data,) = encode_events(run_id, number, [event])
    return StoredEvent(number, data)


def test_every_committed_kind_is_tried_here() -> None:
    """The list above has each kind once."""
    assert [type(event) for event in EVENTS] == list(get_args(CommittedEvent))


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_is_read_back_as_it_was_told(event: CommittedEvent) -> None:
    """All fields are the same, with the run and the number that it was stored under, and sealed data stays sealed."""
    found = decode_event("run", stored(event))
    assert found == msgspec.structs.replace(event, run_id="run", sequence=7)
    assert type(found) is type(event)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_every_flipped_bit_and_every_cut_is_reported(event: CommittedEvent) -> None:
    """No damaged event is taken for one."""
    data = stored(event).data
    damaged = [bytes([*data[:at], data[at] ^ 1 << bit, *data[at + 1 :]]) for at in range(len(data)) for bit in range(8)]
    for each in (*damaged, *(data[:length] for length in range(len(data)))):
        with pytest.raises((CheckpointCorruptError, CheckpointFormatError)):
            decode_event("run", StoredEvent(7, each))


def test_an_event_in_the_place_of_another_is_reported() -> None:
    """An intact event of another number, or of another run, is named as what it is."""
    data = stored(EVENTS[0]).data
    with pytest.raises(CheckpointCorruptError, match="event 8 of run 'run' is damaged: it is event 7 of run 'run'"):
        decode_event("run", StoredEvent(8, data))
    with pytest.raises(CheckpointCorruptError, match="event 7 of run 'other' is damaged: it is event 7 of run 'run'"):
        decode_event("other", StoredEvent(7, data))


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(["run", 7, "Surprise", encode({})], id="unknown kind"),
        pytest.param(["run", 7, "Emitted", encode({"data": ["str", b""]})], id="a live kind"),
        pytest.param(["run", 7, "TurnStarted", encode({"turn": 1, "more": 1})], id="a field too many"),
        pytest.param(["run", 7, "TurnStarted", encode({})], id="a field too few"),
        pytest.param(["run", 7, "TurnStarted", encode({"turn": "1"})], id="a field of another type"),
        pytest.param(["run", 7, "OutputYielded", encode({"data": "open"})], id="data that is not sealed"),
        pytest.param(["run", 7, "TurnStarted", encode({"turn": 1}), 1], id="more than a row"),
        pytest.param(["run", 7, "TurnStarted"], id="less than a row"),
        pytest.param({"run_id": "run"}, id="no row"),
    ],
)
def test_an_event_that_nothing_here_writes_is_damage(row: object) -> None:
    """With a right checksum it is still refused, and the error names the event."""
    with pytest.raises(CheckpointCorruptError, match="event 7 of run 'run'"):
        decode_event("run", StoredEvent(7, wrap(encode(row))))


def test_nesting_of_any_depth_is_damage_on_a_small_stack() -> None:
    """A hundred thousand levels in any place of an event are an error, in a thread with a stack of 256 KB."""
    levels = 100_000
    found: list[str] = []

    def refuse() -> None:
        for bomb in (b"\x91" * levels, b"\x81\xa1a" * levels, b"\xdc\x00\x01" * levels):
            rows = [encode(["run", 7, event.__name__, bomb]) for event in get_args(CommittedEvent)]
            inner = [b"\x81\xa4data" + bomb, b"\x81\xa4data\x93\x00" + bomb, b"\x81\xa7failure" + bomb]
            rows += [encode(["run", 7, "OutputYielded", fields]) for fields in inner]
            for row in (*rows, bomb, b"\x94" + bomb, b"\x94\xa3run\x07\xa3abc" + bomb):
                try:
                    decode_event("run", StoredEvent(7, wrap(row + b"\x01")))
                except WorkflowCheckpointException as error:
                    found.append(type(error).__name__)

    before = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=refuse)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert found == ["CheckpointCorruptError"] * 3 * (15 + 3 + 3)
