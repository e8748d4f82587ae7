"""The harness of P7 sees what an engine or runtime does in which something of an earlier turn comes again."""

import asyncio
from collections.abc import Callable

import msgspec
import pytest

from rehydrate import InMemoryCheckpointStorage
from rehydrate.engine import state, turn
from rehydrate.engine.splicing import part_name
from rehydrate.model.records import PartRecord, StateRecord
from rehydrate.model.sealed import Items
from rehydrate.runtime import context, remembering
from tests.proof.conversing import wrong_in_talk

Broken = Callable[[pytest.MonkeyPatch], None]
begin_turn, put_turn = turn.begin_turn, turn._put_turn


def with_turn(**fields: Callable[[object, object], object]) -> Broken:
    """A claim that records some fields of the turn otherwise; each is made of the turn before and the new one."""

    def broken(change, arrived):
        before = change.draft.get("", "turn", "")
        put_turn(change, arrived)
        if before is not None and not arrived.continuation:
            after = change.draft.turn()
            changed = {name: make(before, after) for name, make in fields.items()}
            change.draft.put("", "turn", "", msgspec.structs.replace(after, **changed))

    return lambda patch: patch.setattr(turn, "_put_turn", broken)


def outputs_stay(patch: pytest.MonkeyPatch) -> None:
    """The outputs of the turn before stand before those of this one."""

    def broken(change, arrived):
        begin_turn(change, msgspec.structs.replace(arrived, interrupted=True))

    patch.setattr("rehydrate.engine.transition.begin_turn", broken)


def first_run_args(patch: pytest.MonkeyPatch) -> None:
    """What was opened of the run arguments is remembered by the run."""
    known: dict[str, object] = {}
    own = context.Surroundings.run_args.fget
    shared = property(lambda self: known.setdefault(self.run_id, own(self)))
    patch.setattr(context.Surroundings, "run_args", shared)


def attempts_go_on(patch: pytest.MonkeyPatch) -> None:
    """Attempts are numbered through all turns."""
    seen: list[tuple[str, int, int]] = []

    def broken(self):
        seen.append((self.executor_id, self.activation, self._start.superstep))
        return len(seen)

    patch.setattr(context.InvocationContext, "attempt", property(broken))


def instances_anew(patch: pytest.MonkeyPatch) -> None:
    """What an executor keeps in itself is not given back to it."""

    async def broken(around, run, prototype, start, before):
        return prototype.new_instance()

    patch.setattr("rehydrate.runtime.crew.make_instance", broken)


def lists_written_whole(patch: pytest.MonkeyPatch) -> None:
    """A list that grows is saved whole each time."""

    def broken(draft, path, key, items):
        record = draft.get(path, "state", key) or StateRecord(None)
        parts = [draft.get(path, "part", part_name(key, number)) for number in range(record.next)]
        data = b"".join([*(part.items.data for part in parts), items.data])
        count = record.count + items.count
        draft.put(path, "part", part_name(key, 0), PartRecord(Items(data, count)))
        draft.put(path, "state", key, StateRecord(record.value, count, 1, 1))

    patch.setattr(state, "_append", broken)


def steps_of_earlier_turns(patch: pytest.MonkeyPatch) -> None:
    """A step that an earlier turn has made at the same place is not made again."""
    known: dict[tuple[str, str], object] = {}
    enter = remembering.Memory.enter

    def broken(self, kind, name, digest):
        call = enter(self, kind, name, digest)
        if kind == "step" and call is not None:
            if call.record is not None and call.record.value is not None:
                known.setdefault((self._path, call.name), call.record)
            call.record = call.record or known.get((self._path, call.name))
        return call

    patch.setattr(remembering.Memory, "enter", broken)


BROKEN: dict[str, Broken] = {
    "the limit goes on": with_turn(allowance=lambda before, after: before.allowance),
    "run arguments of the turn before": with_turn(run_args=lambda before, after: before.run_args),
    "run arguments of the first turn": first_run_args,
    "no run arguments": with_turn(run_args=lambda before, after: None),
    "outputs of the turn before": outputs_stay,
    "attempts go on": attempts_go_on,
    "instances anew": instances_anew,
    "lists written whole": lists_written_whole,
}


def found(make: str) -> list[str]:
    """Have a short conversation and name what is wrong."""
    return asyncio.run(wrong_in_talk(make, InMemoryCheckpointStorage(), 9))


@pytest.mark.notices("P7")
@pytest.mark.parametrize("name", BROKEN)
def test_what_comes_again_from_an_earlier_turn_is_noticed(name, monkeypatch):
    """Whatever a turn has of one before it shows in its output, its end or its cost."""
    BROKEN[name](monkeypatch)
    assert found("graph") != []


@pytest.mark.notices("P7")
def test_steps_of_an_earlier_turn_are_noticed(monkeypatch):
    """A result that an earlier turn remembered is not what the world gives now."""
    steps_of_earlier_turns(monkeypatch)
    assert found("function") != []


def test_a_short_conversation_is_right_where_nothing_is_broken():
    """What the broken variants are seen by finds nothing wrong with the engine as it is."""
    assert found("graph") == []
    assert found("function") == []
