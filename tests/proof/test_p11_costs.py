"""P11: a save costs what changed, not what there is."""

from __future__ import annotations

import pytest

from rehydrate.engine import state
from rehydrate.engine.splicing import part_name, remove_parts
from rehydrate.model.checkpoint import key_of
from rehydrate.model.records import PartRecord, StateRecord
from rehydrate.model.sealed import Items
from rehydrate.runtime.saver import Changes, Ledger
from tests.proof import costs

KINDS = ("memory", "file", "sqlite")
SHORT = [pytest.param("memory", 40, id="memory")]
LONG = [pytest.param(kind, 400, marks=pytest.mark.proof, id=f"{kind}-long") for kind in KINDS]
ACTS = {"update_state": costs.grows, **{f"set_state of {name}": costs.set_whole(s) for name, s in costs.SHAPES.items()}}


@pytest.mark.promise("P11", "saves of a small key beside 10 MB that stay")
@pytest.mark.parametrize(
    ("kind", "saves"), [("memory", 10), *(pytest.param(kind, 100, marks=pytest.mark.proof) for kind in KINDS)]
)
def test_what_stays_costs_a_save_nothing(kind, saves, tmp_path, tried):
    """A save beside 10 MB writes at most 4 KB more than one without them."""
    assert costs.wrong_with_constant(kind, tmp_path, saves) == []
    tried(saves)


@pytest.mark.promise("P11", "supersteps that add 1 KB to a list, in four ways")
@pytest.mark.parametrize("name", ACTS)
@pytest.mark.parametrize(("kind", "most"), [*SHORT, *LONG])
def test_a_list_that_grows_costs_what_is_new(kind, most, name, tmp_path, tried):
    """Contributed or set whole, in a list, a dict or a dataclass: bytes are linear in what was added."""
    assert costs.wrong_with_growth(ACTS[name], kind, tmp_path, most) == []
    tried(most)


@pytest.mark.promise("P11", "saves of a text of 100 KB that is set again and is the same")
@pytest.mark.parametrize(("kind", "saves"), [*SHORT, *LONG])
def test_a_text_that_is_set_again_is_stored_once(kind, saves, tmp_path, tried):
    """What is the same as before is not written, also where it is set."""
    assert costs.wrong_with_one_text(kind, tmp_path, saves) == []
    tried(saves)


@pytest.mark.promise("P11", "saves of many nodes, after many steps, beside many requests")
@pytest.mark.parametrize(
    ("nodes", "supersteps", "requests"), [(40, 60, 100), pytest.param(300, 2000, 10_000, marks=pytest.mark.proof)]
)
def test_what_the_engine_saves_does_not_grow(nodes, supersteps, requests, tried):
    """At most 300 bytes a superstep, whatever the graph, the past and the open requests are."""
    assert costs.wrong_with_engine_data(nodes, supersteps, requests) == []
    tried(nodes + supersteps + requests)


def everything_of(patch: pytest.MonkeyPatch, *kinds: str) -> None:
    """Let each save write all records of some kinds again."""
    encode, known = Ledger.encode, {}

    def broken(self, delta):
        if self.header is None:
            known[self.run_id] = {}
        changes, mine = encode(self, delta), known[self.run_id]
        for put in changes.puts:
            if key_of(put.key)[1] in kinds:
                mine[put.key] = put
        for key in changes.removes:
            mine.pop(key, None)
        written = {put.key for put in changes.puts}
        return Changes(
            (*changes.puts, *(mine[key] for key in mine.keys() - written)),
            changes.removes,
            changes.scopes,
            changes.named,
        )

    patch.setattr(Ledger, "encode", broken)


def whole_list(draft, path, key, items) -> None:
    """An append that writes the list."""
    record = draft.get(path, "state", key) or StateRecord(None)
    parts = [draft.get(path, "part", part_name(key, number)) for number in range(record.next)]
    data = b"".join([*(part.items.data for part in parts), items.data])
    draft.put(path, "part", part_name(key, 0), PartRecord(Items(data, record.count + items.count)))
    draft.put(path, "state", key, StateRecord(record.value, record.count + items.count, 1, 1))


def whole_value(draft, path, key, value) -> None:
    """A value that is set is written whole."""
    remove_parts(draft, path, key, draft.get(path, "state", key))
    draft.put(path, "state", key, StateRecord(value))


@pytest.mark.notices("P11")
def test_a_save_of_the_whole_state_is_noticed(tmp_path, monkeypatch):
    """All keys are written with each of them."""
    everything_of(monkeypatch, "state", "part")
    assert costs.wrong_with_constant("memory", tmp_path, 4, megabytes=1) != []


@pytest.mark.notices("P11")
def test_a_list_that_is_written_whole_is_noticed(tmp_path, monkeypatch):
    """An append of a line writes all lines."""
    monkeypatch.setattr(state, "_append", whole_list)
    assert costs.wrong_with_growth(costs.grows, "memory", tmp_path, 40) != []


@pytest.mark.notices("P11")
@pytest.mark.parametrize("shape", costs.SHAPES)
def test_a_value_that_is_written_whole_is_noticed(shape, tmp_path, monkeypatch):
    """A list that is set with one line more is written from its beginning."""
    monkeypatch.setattr(state, "put_value", whole_value)
    assert costs.wrong_with_growth(costs.set_whole(costs.SHAPES[shape]), "memory", tmp_path, 40) != []


@pytest.mark.notices("P11")
def test_a_text_that_is_written_again_is_noticed(tmp_path, monkeypatch):
    """A key that is set to what it is takes another place each time."""
    everything_of(monkeypatch, "state", "part")
    assert costs.wrong_with_one_text("memory", tmp_path, 40) != []


@pytest.mark.notices("P11")
@pytest.mark.parametrize(("kind", "what"), [("counter", "nodes"), ("requests", "requests")])
def test_engine_data_that_grows_is_noticed(kind, what, monkeypatch):
    """Records of all nodes, or of all open requests, are written with each save."""
    everything_of(monkeypatch, kind)
    found = costs.wrong_with_engine_data(40, 60, 100)
    assert [text for text in found if what in text] != []
