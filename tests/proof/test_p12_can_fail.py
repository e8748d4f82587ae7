"""The harness of P12 sees what a runtime or store does in which runs share something, or leave something behind."""

import asyncio
import os
import threading
from collections.abc import Callable, Iterator

import pytest

from rehydrate import InMemoryCheckpointStorage
from rehydrate.runtime import context, crew
from rehydrate.runtime.remembering import Memory
from rehydrate.runtime.state_view import read_state
from tests.proof.crowd import function, graph
from tests.proof.crowding import settle, what_is_there, wrong_in_a_crowd

#: Runs of a round: three of them are stopped.
COUNT = 10


@pytest.fixture
def at_the_end() -> Iterator[list[Callable[[], object]]]:
    """What a broken variant has left behind is put away by these calls."""
    calls: list[Callable[[], object]] = []
    yield calls
    for call in calls:
        call()


def shared_instances(patch, at_the_end) -> None:
    """All runs have the prototype for an instance."""

    async def broken(around, run, prototype, start, before):
        return prototype

    patch.setattr(crew, "make_instance", broken)


def shared_state(patch, at_the_end) -> None:
    """What was read of a key is remembered by the workflow, not by the run."""
    known: dict[tuple[str, str], object] = {}

    def broken(codec, run, path, key, writes, reducer, start):
        return known.setdefault((path, key), read_state(codec, run, path, key, writes, reducer, start))

    patch.setattr(context, "read_state", broken)


def shared_resources(patch, at_the_end) -> None:
    """The live objects of the first call are everybody's."""
    first: list[object] = []
    patch.setattr(context.InvocationContext, "resources", property(lambda self: first[0]))
    init = context.Surroundings.__init__

    def broken(self, run, run_id, birth, codec, outlets, resources, channel):
        first.append(resources)
        init(self, run, run_id, birth, codec, outlets, resources, channel)

    patch.setattr(context.Surroundings, "__init__", broken)


def shared_run_args(patch, at_the_end) -> None:
    """The run arguments of the first turn are everybody's."""
    known: dict[str, object] = {}
    own = context.Surroundings.run_args.fget
    patch.setattr(context.Surroundings, "run_args", property(lambda self: known.setdefault("args", own(self))))


def shared_births(patch, at_the_end) -> None:
    """Ids of requests are made from their names alone."""
    for module in ("turn", "barrier", "reading", "request_list", "requests"):
        patch.setattr(f"rehydrate.engine.{module}.birth_of", lambda run: "one for all", raising=False)
    patch.setattr("rehydrate.runtime.turn.birth_of", lambda run: "one for all", raising=False)


def kept_results(patch, at_the_end) -> None:
    """What was committed stays in memory."""
    kept: list[object] = []
    commit = InMemoryCheckpointStorage.commit

    async def broken(self, item):
        kept.append(item)
        await commit(self, item)

    patch.setattr(InMemoryCheckpointStorage, "commit", broken)


def left_tasks(patch, at_the_end) -> None:
    """Each call leaves a task that waits for ever."""
    _at_each_call(patch, lambda: asyncio.ensure_future(asyncio.Event().wait()))


def left_threads(patch, at_the_end) -> None:
    """Each call leaves a thread that waits for ever."""
    over = threading.Event()
    at_the_end.append(over.set)
    _at_each_call(patch, lambda: threading.Thread(target=over.wait, name="left", daemon=True).start())


def left_files(patch, at_the_end) -> None:
    """Each call leaves a file open."""

    def leave() -> None:
        descriptor = os.open(os.devnull, os.O_RDONLY)
        at_the_end.append(lambda: os.close(descriptor))

    _at_each_call(patch, leave)


def _at_each_call(patch: pytest.MonkeyPatch, leave: Callable[[], object]) -> None:
    init = context.Surroundings.__init__

    def broken(self, *given):
        leave()
        init(self, *given)

    patch.setattr(context.Surroundings, "__init__", broken)


BROKEN = [shared_instances, shared_state, shared_resources, shared_run_args, shared_births]
LEAKING = [kept_results, left_tasks, left_threads, left_files]


def found(make: Callable[[], object]) -> list[str]:
    """Run two small rounds and name what is wrong."""
    flow = make()

    async def a_round() -> list[str]:
        return await wrong_in_a_crowd(flow, InMemoryCheckpointStorage(), range(COUNT))

    settle()
    wrong = asyncio.run(a_round())
    before = what_is_there()
    return wrong + asyncio.run(a_round()) + what_is_there().since(before, 500)


@pytest.mark.notices("P12")
@pytest.mark.parametrize("broken", [*BROKEN, *LEAKING])
def test_runs_that_share_or_leave_something_are_noticed(broken, monkeypatch, at_the_end):
    """Whatever one run has of another, or leaves behind, the harness names it."""
    broken(monkeypatch, at_the_end)
    assert found(graph) != []


@pytest.mark.notices("P12")
def test_functions_that_share_steps_are_noticed(monkeypatch):
    """A pass that finds the steps of another run gives back what is not its own."""
    known: dict[str, object] = {}
    enter = Memory.enter

    def broken(self, kind, name, digest):
        call = enter(self, kind, name, digest)
        if kind == "step" and call is not None:
            if call.record is not None and call.record.value is not None:
                known.setdefault(name, call.record)
            call.record = known.get(name, call.record)
        return call

    monkeypatch.setattr(Memory, "enter", broken)
    assert found(function) != []


def test_small_rounds_are_right_where_nothing_is_broken():
    """What the broken variants are seen by finds nothing wrong with the runtime as it is."""
    assert found(graph) == []
    assert found(function) == []
