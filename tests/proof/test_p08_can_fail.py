"""The harness of P8 sees what an engine or runtime does in which something leaves a trace, or shows too early."""

from collections.abc import Callable

import pytest

from rehydrate.codecs.records import decode_records
from rehydrate.engine import barrier, state, transition
from rehydrate.engine.splicing import put_value
from rehydrate.model.effects import Output, SetState
from rehydrate.runtime import context
from tests.proof.superstep_model import Op, Work
from tests.proof.supersteps import Supersteps

Broken = Callable[[pytest.MonkeyPatch], None]


def reads_of_others(patch: pytest.MonkeyPatch) -> None:
    """A handler reads what another one has written in the same superstep."""
    live: dict[tuple[object, str], object] = {}
    set_state, get_state = context.InvocationContext.set_state, context.InvocationContext.get_state

    def broken_set(self, key, value):
        live[self._around, key] = value
        return set_state(self, key, value)

    def broken_get(self, key, default=None, **given):
        found = live.get((self._around, key))
        return get_state(self, key, default, **given) if found is None else found

    patch.setattr(context.InvocationContext, "set_state", broken_set)
    patch.setattr(context.InvocationContext, "get_state", broken_get)


def effects_of_failed_attempts(patch: pytest.MonkeyPatch) -> None:
    """A second attempt begins with what the first one has done."""
    kept: dict[object, list[object]] = {}
    init = context.InvocationContext.__init__

    def broken(self, around, start, executor, declared, chain):
        init(self, around, start, executor, declared, chain)
        place = (around.run_id, around, start.path, executor.id, start.delivery.activation)
        self.effects = kept.setdefault(place, [])

    patch.setattr(context.InvocationContext, "__init__", broken)


def writes_before_the_barrier(patch: pytest.MonkeyPatch) -> None:
    """What an invocation has set is there as soon as it has finished."""
    finished = transition._finished

    def broken(change, item):
        finished(change, item)
        for effect in item.effects:
            if isinstance(effect, SetState) and effect.value is not None and effect.key in "xy":
                put_value(change.draft, item.path, effect.key, effect.value)

    patch.setattr(transition, "_finished", broken)


def writes_of_the_failed(patch: pytest.MonkeyPatch) -> None:
    """Where an invocation fails, what others have set in its superstep is there although they are not merged."""
    broken_one = transition._broken

    def broken(change, item):
        broken_one(change, item)
        for _, done in change.draft.items(item.path, "done"):
            for effect in done.effects:
                if isinstance(effect, SetState) and effect.value is not None and effect.key in "xy":
                    put_value(change.draft, item.path, effect.key, effect.value)

    patch.setattr(transition, "_broken", broken)


def merged_backwards(patch: pytest.MonkeyPatch) -> None:
    """Writes merge in another order than that of the executors."""
    in_order = barrier.Barrier._in_order
    patch.setattr(barrier.Barrier, "_in_order", lambda self: in_order(self)[::-1])


def no_conflicts(patch: pytest.MonkeyPatch) -> None:
    """Of two writes that do not go together the last one stays."""
    patch.setattr(barrier, "find_conflict", lambda graph, writes: None)


def nothing_deleted(patch: pytest.MonkeyPatch) -> None:
    """A key that is deleted stays."""
    set_whole = state.set_whole
    patch.setattr(
        state, "set_whole", lambda d, p, effect: set_whole(d, p, effect) if effect.value is not None else None
    )


def finished_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """What had finished beside a failure runs again after a restore."""

    def broken(records):
        return [(key, record) for key, record in decode_records(records) if key[1] != "done"]

    patch.setattr("rehydrate.runtime.checkpoint.decode_records", broken)


def nothing_discarded(patch: pytest.MonkeyPatch) -> None:
    """Work that is to be dropped is finished."""
    patch.setattr("rehydrate.engine.turn.discard", lambda change, arrivals: [])


def second_messages_lost(patch: pytest.MonkeyPatch) -> None:
    """A message that waits for the end of a superstep is lost."""
    patch.setattr(barrier, "take_inbox", lambda draft, path: draft.clear(path, "inbox") or [])


def outputs_of_the_failed(patch: pytest.MonkeyPatch) -> None:
    """An invocation that is to run again after a conflict leaves its outputs."""
    fail = barrier.Barrier._fail

    def broken(self, executor, activation, failure):
        fail(self, executor, activation, failure)
        for delivery, done in self.done.get(executor, ()):
            for effect in done.effects:
                if isinstance(effect, Output):
                    self._yield(effect.value, (), executor, activation, delivery.trail)

    patch.setattr(barrier.Barrier, "_fail", broken)


BROKEN = [
    reads_of_others, effects_of_failed_attempts, writes_before_the_barrier, writes_of_the_failed, merged_backwards,
    no_conflicts, nothing_deleted, finished_is_forgotten, nothing_discarded, second_messages_lost,
    outputs_of_the_failed,
]  # fmt: skip

GET, SET_1, SET_2 = Op("get", "x"), Op("set", "x", 1), Op("set", "x", 2)
ALL = Work(
    (Op("set", "y", 9),),
    (
        ("a", Work((GET, Op("get", "y"), Op("update", "log", 5)), label=1)),
        ("b", Work((GET, SET_1, GET, Op("yield", "", 3)), label=2)),
        ("b", Work((GET, Op("update", "log", 6)), (("a", Work((GET, Op("get", "log")), label=4)),), label=3)),
        ("c", Work((GET, Op("set", "y", 2), Op("update", "log", 7)), label=5)),
    ),
    label=6,
)
PAIR = (("a", Work((SET_1, Op("yield", "", 1)), label=11)), ("b", Work((SET_2, Op("yield", "", 2)), label=12)))


def history() -> None:
    """Some calls with all that can go wrong, each compared with the model."""
    run, latest = Supersteps(), {"checkpoint": "latest"}
    run.call(ALL, {5: "fail"})
    run.call(None, {2: "slow"}, **latest)
    run.call(Work((GET,), label=7), {5: "fail"}, **latest)
    run.call(None, {}, **latest)
    run.call(Work((), (("c", Work((Op("update", "sum", 1), SET_2), label=8)),), label=9), {8: "flaky"}, **latest)
    run.call(Work((), PAIR, label=13), {}, **latest)
    run.call(None, {}, **latest)
    run.call(Work((Op("delete", "x"), GET, Op("delete", "log")), label=14), {}, on_unfinished="discard", **latest)
    run.call(Work((SET_1, GET), (("b", Work((GET,), label=15)),), label=16), {15: "cancel"}, **latest)
    run.call(None, {}, crash=(2, False), **latest)
    run.call(Work((GET,), label=17), {}, **latest)


@pytest.mark.notices("P8")
@pytest.mark.parametrize("broken", BROKEN)
def test_what_leaves_a_trace_or_shows_too_early_is_noticed(broken, monkeypatch):
    """Whatever is read, merged, kept or run that the model does not know ends the history with what differs."""
    broken(monkeypatch)
    with pytest.raises(AssertionError, match=r"ended|ran|read|state|outputs|have run"):
        history()


def test_the_same_history_is_right_where_nothing_is_broken():
    """What the broken variants are seen by finds nothing wrong with the engine as it is."""
    history()
