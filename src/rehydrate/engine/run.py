"""The records of a run, as a read-only view, and the draft of a change to them.

A run is nothing but its records: applying deltas in order is the run. A draft reads through to the run and writes
aside; throwing it away undoes everything. Neither may hold anything that is not in a record, save counts of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from rehydrate.ids import slot
from rehydrate.model.records import AliasRecord, Key, Record, RunRecord, ScopeRecord, StepRecord, TurnRecord
from rehydrate.model.request_packs import ClosedRecord, RequestsRecord

Place: TypeAlias = tuple[str, str]
#: Records put, or removed (`None`), by place and name.
Delta: TypeAlias = Mapping[Place, Mapping[str, Record | None]]
#: The same as whoever made it hands it over: the receiver may change it.
OwnDelta: TypeAlias = dict[Place, dict[str, Record | None]]
#: A record of the class that `RECORD_TYPES` has for its kind. The caller knows the kind and names the class; a cast
#: would be one more call for each of the reads that every superstep consists of.
AnyRecord: TypeAlias = Any
_EMPTY: Final[Mapping[str, Record]] = MappingProxyType({})
#: Places of changes. One lives as long as its change, so that the collector has fewer to look at where all share them.
_PLACES: Final[dict[Place, Place]] = {}
_REMEMBERED: Final = 8192
#: Kinds of which a run keeps the total over all scopes.
COUNTED: Final = frozenset(
    {"failure", "limit", "request", "attempt", "unrouted", "join", "map", "inbox", "timer", "alias", "pass"}
)
#: Kinds whose records stand for many requests; these count with the single ones.
PACKED: Final = frozenset({"requests", "closed"})


def _kept(place: Place) -> Place:
    if len(_PLACES) >= _REMEMBERED:
        _PLACES.clear()
    return _PLACES.setdefault(place, place)


class Run:
    """The live records, in one table per (scope path, kind)."""

    __slots__ = ("memo", "packs", "tables", "totals")

    def __init__(self, records: Iterable[tuple[Key, Record]] = ()) -> None:
        self.tables: dict[Place, dict[str, Record]] = {}
        #: What was read out of a superstep's record, by its place; may be dropped at any time.
        self.memo: dict[tuple[str, str], object] = {}
        #: What packs of requests hold, by scope and name of the pack, beside the record; may be dropped at any time.
        self.packs: dict[tuple[str, str], tuple[RequestsRecord, object]] = {}
        self.totals: dict[str, int] = dict.fromkeys(COUNTED, 0)
        self.apply(delta_of(dict(records)))

    def get(self, path: str, kind: str, name: str) -> AnyRecord:
        """Return one record."""
        table = self.tables.get((path, kind))
        return table.get(name) if table is not None else None

    def table(self, path: str, kind: str) -> Mapping[str, AnyRecord]:
        """Return the records of one kind in one scope."""
        return self.tables.get((path, kind), _EMPTY)

    def items(self, path: str, kind: str) -> list[tuple[str, AnyRecord]]:
        """Return the records of one kind in one scope."""
        return list(self.table(path, kind).items())

    def count(self, path: str, kind: str) -> int:
        """Return the number of records of one kind in one scope."""
        return len(self.table(path, kind))

    def apply(self, delta: Delta) -> None:
        """Make a change real."""
        tables = self.tables
        for place, changed in delta.items():
            kind = place[1]
            table = tables.get(place)
            if table is None:
                table = tables[place] = {}
            before = len(table)
            if kind in PACKED:
                self._weigh(place, table, changed)
            for name, record in changed.items():
                if record is not None:
                    table[name] = record
                    continue
                table.pop(name, None)
                if kind == "step":
                    self.memo.pop((place[0], name), None)
            if not table:
                del tables[place]
            if kind in COUNTED:
                self.totals[kind] += len(table) - before

    def _weigh(self, place: Place, table: Mapping[str, Record], changed: Mapping[str, Record | None]) -> None:
        """Count the requests that packs gain and lose."""
        for name, record in changed.items():
            self.totals["request"] += weight(record) - weight(table.get(name))
            if place[1] == "requests":
                self.packs.pop((place[0], name), None)

    def records(self) -> Iterator[tuple[Key, Record]]:
        """Yield every live record with its key."""
        for (path, kind), table in self.tables.items():
            for name, record in table.items():
                yield (path, kind, name), record

    def copy(self) -> Run:
        """Return an independent run with the same records (which are frozen and shared)."""
        other = Run()
        other.tables = {place: dict(table) for place, table in self.tables.items()}
        other.totals = dict(self.totals)
        other.packs = dict(self.packs)
        return other


def weight(record: Record | None) -> int:
    """Return by how many open requests a record of a packed kind makes a run richer."""
    if isinstance(record, RequestsRecord):
        return record.count
    return -record.mask.bit_count() if isinstance(record, ClosedRecord) else 0


class Draft:
    """A change in the making: lives for one transition and is then read out as a delta."""

    __slots__ = ("_grown", "_over", "_tables", "run", "totals")

    def __init__(self, run: Run) -> None:
        self.run = run
        #: Numbers of records of the counted kinds in all scopes, as this draft has them.
        self.totals: dict[str, int] = run.totals.copy()
        self._tables = run.tables
        self._over: dict[Place, dict[str, Record | None]] = {}
        #: By how many records each changed table has grown.
        self._grown: dict[Place, int] = {}

    def get(self, path: str, kind: str, name: str) -> AnyRecord:
        """Return one record as this draft has it."""
        place = (path, kind)
        over = self._over.get(place)
        if over is not None and name in over:
            return over[name]
        table = self._tables.get(place)
        return table.get(name) if table is not None else None

    def put(self, path: str, kind: str, name: str, record: Record) -> None:
        """Write one record."""
        place = (path, kind)
        over = self._over.get(place)
        if over is None:
            place = _PLACES.get(place) or _kept(place)
            over = self._over[place] = {}
            self._grown[place] = 0
        table = self._tables.get(place)
        if over[name] is None if name in over else table is None or name not in table:
            self._grown[place] += 1
            if kind in COUNTED:
                self.totals[kind] += 1
        over[name] = record

    def remove(self, path: str, kind: str, name: str) -> None:
        """Remove one record; one that was never saved leaves no trace."""
        place = (path, kind)
        table = self._tables.get(place)
        saved = table is not None and name in table
        over = self._over.get(place)
        if over is not None and name in over:
            if over[name] is None:
                return
        elif not saved:
            return
        if over is None:
            place = _PLACES.get(place) or _kept(place)
            over = self._over[place] = {}
            self._grown[place] = 0
        self._grown[place] -= 1
        if kind in COUNTED:
            self.totals[kind] -= 1
        if saved:
            over[name] = None
        else:
            del over[name]

    def has(self, path: str, kind: str) -> bool:
        """Tell whether a scope may have records of a kind; `False` is certain, and cheap."""
        place = (path, kind)
        return place in self._tables or place in self._over

    def clear(self, path: str, kind: str) -> None:
        """Remove all records of one kind in one scope."""
        for name in [name for name, _ in self.items(path, kind)]:
            self.remove(path, kind, name)

    def items(self, path: str, kind: str) -> list[tuple[str, AnyRecord]]:
        """Return the records of one kind in one scope."""
        base = self.run.table(path, kind)
        over = self._over.get((path, kind))
        if not over:
            return list(base.items())
        merged = [(name, record) for name, record in base.items() if name not in over]
        merged += [(name, record) for name, record in over.items() if record is not None]
        return merged

    def count(self, path: str, kind: str) -> int:
        """Return the number of records of one kind in one scope."""
        place = (path, kind)
        base = self._tables.get(place, _EMPTY)
        over = self._over.get(place)
        if not over:
            return len(base)
        return len(base) + self._grown[place]

    def scope(self, path: str) -> ScopeRecord:
        """Return the record of a live scope."""
        parent, segment = slot(path)
        return self.get(parent, "scope", segment)

    def put_scope(self, path: str, record: ScopeRecord) -> None:
        """Write the record of a scope."""
        parent, segment = slot(path)
        self.put(parent, "scope", segment, record)

    def step(self, path: str) -> StepRecord | None:
        """Return the unfinished superstep of a scope."""
        parent, segment = slot(path)
        return self.get(parent, "step", segment)

    def turn(self) -> TurnRecord:
        """Return the newest turn."""
        return self.get("", "turn", "")

    def delta(self) -> OwnDelta:
        """Return the change; the draft is not written to after that."""
        return self._over


def merged_delta(first: OwnDelta, second: OwnDelta) -> OwnDelta:
    """Return a change that is one after the other, made of both of them, which are gone then."""
    if not first:
        return second
    for place, changed in second.items():
        mine = first.get(place)
        if mine is None:
            first[place] = changed
        else:
            mine.update(changed)
    return first


def is_live(draft: Draft, path: str) -> bool:
    """Tell whether there is a scope at a path."""
    parent, segment = slot(path)
    return draft.get(parent, "scope", segment) is not None


def delta_of(records: Mapping[Key, Record | None]) -> Delta:
    """Return a change to single records."""
    delta: dict[Place, dict[str, Record | None]] = {}
    for (path, kind, name), record in records.items():
        delta.setdefault((path, kind), {})[name] = record
    return delta


def birth_of(records: Run | Draft) -> str:
    """Return what makes a run's outer ids unique."""
    record: RunRecord = records.get("", "run", "")
    return record.birth


def name_now(records: Run, known: str) -> tuple[str, str] | None:
    """Return scope and name of what the outside knows by another name since a migration."""
    if not records.totals["alias"]:
        return None
    for (path, kind), table in records.tables.items():
        if kind != "alias":
            continue
        for name, record in table.items():
            if record == AliasRecord(known):
                return path, name
    return None


def known_name(records: Run | Draft, path: str, name: str) -> str:
    """Return the name from which the outer id of a request, or the effect key of an invocation, is made."""
    record: AliasRecord | None = records.get(path, "alias", name)
    return f"{path}/{name}" if record is None else record.known
