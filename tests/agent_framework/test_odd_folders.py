"""Folders and files in which something stands twice, in a circle, or is no file."""

import asyncio
import json
import os
import sys

import pytest

from rehydrate import InMemoryCheckpointStorage
from rehydrate.errors import AgentFrameworkImportError
from rehydrate.service.agent_framework.inert import Refused
from rehydrate.service.agent_framework.placing import Placing
from rehydrate.service.agent_framework.saved import Execution, Saved
from rehydrate.service.agent_framework.values import Values
from tests.agent_framework.here import flat, import_from, nested
from tests.agent_framework.test_refusals import changed, newest, refused


def test_a_checkpoint_that_stands_in_two_files_is_refused(tmp_path) -> None:
    """Both would be one run, and the store would keep the first and say of the other that it was there."""
    changed(tmp_path, "flat")
    data = json.loads((tmp_path / "one.json").read_text(encoding="utf-8"))
    (tmp_path / "two.json").write_text(json.dumps({**data, "iteration_count": 9}), encoding="utf-8")
    store = InMemoryCheckpointStorage()
    assert refused(tmp_path, flat(), storage=store).startswith("it is the same checkpoint as one.json")
    assert asyncio.run(store.runs()) == []


def test_checkpoints_in_a_circle_are_refused(tmp_path) -> None:
    """None of them would be the newest, so all were passed over."""
    own = json.loads(newest("flat").read_text(encoding="utf-8"))["checkpoint_id"]
    assert "comes behind itself" in refused(changed(tmp_path, "flat", previous_checkpoint_id=own), flat())


def test_a_question_stands_once(tmp_path) -> None:
    """Twice, only one of the two could be found by its id there."""
    data = json.loads(newest("flat").read_text(encoding="utf-8"))
    ((request_id, event),) = data["pending_request_info_events"].items()
    folder = changed(tmp_path, "flat", pending_request_info_events={request_id: event, "other": event})
    assert refused(folder, flat()) == f"question {request_id!r} stands twice in the file"


@pytest.mark.parametrize("is_open", [True, False])
def test_a_question_is_answered_once(tmp_path, is_open) -> None:
    """Neither by two answers on their way, nor by one while it is open."""
    asked = json.loads(newest("flat").read_text(encoding="utf-8"))["pending_request_info_events"]
    (event,) = asked.values()
    answer = {"data": True, "source_id": "internal:assess", "target_id": "assess", "original_request_info_event": event}
    messages = {"internal:assess": [answer] if is_open else [answer, answer]}
    folder = changed(tmp_path, "flat", messages=messages, pending_request_info_events=asked if is_open else {})
    assert "is answered, and open or answered once more" in refused(folder, flat())


def test_what_joins_held_where_nothing_was_open_is_looked_at() -> None:
    """Like where something was; it is left out where that is said, and with it the rest of the scope."""
    inside = Saved("level0", texts=False, joins={"FanInEdgeGroup:[]": ["d"]})
    whole = Saved("level1", texts=False, executions=[Execution("review1", inside)])
    program = nested().program
    values = Values(program.codec, {})
    with pytest.raises(Refused, match="what joins held in review1#1: 'FanInEdgeGroup:\\[\\]' is no join"):
        Placing(values, ()).root(whole, program.graph)
    placing = Placing(values, ("joins",))
    placing.root(whole, program.graph)
    assert placing.placement.left_out == ["what joins held in review1#1"]


@pytest.mark.skipif(sys.platform == "win32", reason="no such files there")
@pytest.mark.parametrize(
    ("make", "why"),
    [
        (os.mkfifo, "it is no regular file"),
        (os.mkdir, "it cannot be opened"),
        (lambda path: path.symlink_to("/dev/zero"), "it is no regular file"),
        (lambda path: path.symlink_to("/nowhere"), "it cannot be opened"),
    ],
    ids=["fifo", "folder", "device", "broken link"],
)
def test_what_is_no_file_is_refused(tmp_path, make, why) -> None:
    """It is named like a checkpoint, so nobody can tell what is missing; nothing waits for it."""
    make(tmp_path / "a.json")
    assert why in refused(tmp_path, flat())


def test_what_is_said_of_a_file_is_bounded(tmp_path) -> None:
    """Whatever names it holds."""
    with pytest.raises(AgentFrameworkImportError) as caught:
        import_from(changed(tmp_path, "flat", version="9" * 100_000), flat())
    assert len(str(caught.value)) < 10_000
