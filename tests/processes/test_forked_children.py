"""A forked child of a process with a store and live runs is another owner, and uses the same store object (section 5).

The forks happen in a handler, in the middle of a turn.
"""

import os
import select
import signal
import socket
import sqlite3

import pytest

from tests.processes.line import Line
from tests.processes.races import Course, heads, outcome, released

NOW = 1_000_000.0
SAME = {"call": {"message": "a", "run_id": "run"}}
LATEST = {"call": {"run_id": "run", "checkpoint": "latest"}}


class Family:
    """A parent in the middle of run `run`, its forked child with objects of the parent, and a process apart, `b`."""

    def __init__(self, nursery, folder) -> None:
        self.course = Course(nursery, folder, ["b"], now=NOW)
        ours, theirs = socket.socketpair()
        self.course.add("parent", theirs.fileno())
        theirs.close()
        self.parent = self.course.callers["parent"]
        self.parent.send({**SAME, "forks": ["clerk"], "holds": ["clerk"]})
        self.child = Line(ours)
        self.pid = self.child.receive()
        assert self.parent.receive() == {"holds": "clerk", "run_id": "run"}

    def ask(self, told: dict[str, object]) -> object:
        """Let the child make a call."""
        self.child.send(told)
        return self.child.receive()

    def kill_child(self) -> None:
        """Kill the child and return when it is gone; its parent has nothing to reap."""
        os.kill(self.pid, signal.SIGKILL)
        while is_there(self.pid):
            select.select([self.child.end], [], [], 0.001)

    def heads(self):
        return heads(self.course, NOW)

    def leave(self) -> None:
        if is_there(self.pid):
            os.kill(self.pid, signal.SIGKILL)
        self.child.end.close()
        self.course.leave()


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def family(nursery, tmp_path):
    """See `Family`."""
    found = Family(nursery, tmp_path)
    yield found
    found.leave()


def test_a_forked_child_does_not_own_the_runs_of_its_parent(family):
    """It has copies of all objects that drive the run, and is refused like any other process; the parent goes on."""
    assert outcome(family.ask(SAME)) == "TurnInProgressError"
    assert outcome(family.ask(LATEST)) == "RunBusyError"
    assert family.course.entries() == ["run parent take", "run parent clerk"]
    assert released(family.parent)["outputs"] == ["1 of 1: a"]
    assert family.course.entries() == ["run parent ship"]


def test_a_forked_child_and_its_parent_use_the_same_store_object_at_once(family):
    """Each has a connection of its own: runs of both are saved, and each sees what the other one did."""
    for number in range(5):
        assert family.ask({"call": {"message": f"{number}?", "run_id": f"child {number}"}})["turn"] == 1
    assert released(family.parent)["outputs"] == ["1 of 1: a"]
    assert family.ask(LATEST)["outputs"] == ["1 of 1: a"]
    for number in range(5):
        call = {"message": f"{number}?", "run_id": f"parent {number}"}
        assert family.course.ask("parent", {"call": call})["turn"] == 1
        result = family.course.ask("parent", {"call": {"run_id": f"child {number}", "checkpoint": "latest"}})
        (request,) = result["requests"]
        answered = family.ask({"call": {"responses": {request[0]: "yes"}}})
        assert answered["outputs"] == [f"1 of 1: {number}? yes"]
    assert family.ask({"call": {"message": "b", "run_id": "run", "checkpoint": "latest"}})["outputs"] == ["2 of 2: b"]
    family.course.callers["parent"].kill()
    family.kill_child()
    with sqlite3.connect(family.course.file) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    assert len(family.heads()) == 11


def test_a_forked_child_does_not_keep_its_killed_parent_alive(family):
    """The parent is killed: its run is free at once, for the child and for others, while the child still runs."""
    family.parent.kill()
    (_, _, alive) = family.heads()["run"]
    assert not alive
    assert family.ask(SAME)["outputs"] == ["1 of 1: a"]
    assert family.course.entries()[2:] == ["run parent's child clerk", "run parent's child ship"]


def test_a_killed_child_frees_its_own_runs_and_not_those_of_its_parent(family):
    """Parent and child are different owners: the end of one says nothing about the other."""
    family.child.send({"call": {"message": "c", "run_id": "own"}, "holds": ["clerk"]})
    assert family.child.receive() == {"holds": "clerk", "run_id": "own"}
    assert {run_id: alive for run_id, (_, _, alive) in family.heads().items()} == {"run": True, "own": True}
    family.kill_child()
    assert {run_id: alive for run_id, (_, _, alive) in family.heads().items()} == {"run": True, "own": False}
    assert family.course.ask("b", {"call": {"run_id": "own", "checkpoint": "latest"}})["outputs"] == ["1 of 1: c"]
    assert outcome(family.course.ask("b", LATEST)) == "RunBusyError"
    assert released(family.parent)["outputs"] == ["1 of 1: a"]


def test_forks_while_other_runs_are_being_saved_disturb_neither_side(nursery, tmp_path):
    """Twenty runs go on at once and each forks in a handler: all end right, and so does a run of each child."""
    course = Course(nursery, tmp_path, [])
    ours, theirs = socket.socketpair()
    course.add("parent", theirs.fileno())
    theirs.close()
    line = Line(ours)
    names = [f"r{number:02}" for number in range(20)]
    told = {"call": [{"message": name, "run_id": name} for name in names], "forks": ["clerk"], "leaves": True}
    results = course.ask("parent", told)
    assert [result["outputs"] for result in results] == [[f"1 of 1: {name}"] for name in names]
    children = [line.receive() for _ in names]
    ours.close()
    assert sorted(child["outputs"] for child in children) == [[f"1 of 1: child of {name}"] for name in names]
    assert sorted(heads(course, NOW)) == sorted([*names, *(f"child of {name}" for name in names)])
    course.close()
