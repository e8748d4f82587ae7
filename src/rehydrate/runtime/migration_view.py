"""What a migration is given: the calls by which it changes a stored run that is held in memory, aside.

Names that are wrong raise `ValueError` at the call. Nothing here reaches a store or runs anything of the workflow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from rehydrate.codecs.rewriting import (
    items_of,
    list_of,
    may_hold,
    open_plain,
    open_plain_items,
    seal_plain,
    seal_plain_items,
    with_objects,
)
from rehydrate.engine.migration.dropping import Dropping
from rehydrate.engine.migration.levels import ALL, Level, graph_of, level_of, pattern_of, scopes_at, shown
from rehydrate.engine.migration.moving import move_messages
from rehydrate.engine.migration.passes import restart_passes, with_type_names
from rehydrate.engine.migration.pieces import scope_key
from rehydrate.engine.migration.renaming import rename_executor
from rehydrate.engine.migration.state_keys import rename_handler, rename_state_key
from rehydrate.engine.migration.values import Values
from rehydrate.engine.run import Run, delta_of
from rehydrate.engine.splicing import grows, part_name, sealed_value
from rehydrate.graph.migration import FieldChange, PlainObject, PlainScope, ValueChange
from rehydrate.graph.recorded import RecordedGraph
from rehydrate.ids import check_id, check_key
from rehydrate.model.records import Key, PartRecord, Record, StateRecord
from rehydrate.model.sealed import Items, Sealed

from .plain_scopes import plain_scope
from .state_view import committed_parts


@dataclass
class Workpiece:
    """A run that is brought up: its records, aside from the stored ones, the graph that they are of, and what went."""

    run: Run
    root: RecordedGraph
    dropped: list[str] = field(default_factory=list[str])
    freed: set[str] = field(default_factory=set[str])


class View:
    """A workpiece as the migration of one workflow sees it, wherever in the tree that stands.

    `exact`: the recorded graph is that of this version. Behind the first step it is that of an older one, which lacks
    what came in between; then a name that it does not have is of something that this run never had.
    """

    def __init__(self, piece: Workpiece, homes: Iterable[Level], workflow: str, version: int, *, exact: bool) -> None:
        self.workflow = workflow
        self.version = version
        self._exact = exact
        self._piece = piece
        self._homes = tuple(homes)

    def executors(self, at: str = "") -> tuple[str, ...]:
        """Return the ids of the executors that the workflow had."""
        graphs = [graph_of(self._piece.root, level) for level in self._levels(at)]
        return tuple(sorted({name for graph in graphs if graph is not None for name in graph.kinds}))

    def scopes(self, at: str = "") -> list[PlainScope]:
        """Return the scopes, in order."""
        return [plain_scope(self._piece.run, path) for path in self._paths(at)]

    def rename_executor(self, old: str, new: str, *, at: str = "") -> None:
        """Give an executor another id, with all that is stored of it."""
        check_id(new, "executor id")
        levels = self._with(self._whole(at), old)
        taken = self._having(levels, new)
        if taken and (self._exact or Dropping(self._piece.run.copy(), self._piece.root, taken, new).drop()):
            raise ValueError(f"{new!r} is there already; use move_messages, then drop_executor({old!r})")
        renamed = rename_executor(self._piece.run, self._piece.root, levels, old, new)
        self._piece.freed = {renamed(path) for path in self._piece.freed}

    def drop_executor(self, name: str, *, at: str = "") -> list[str]:
        """Remove an executor with all that waits for it; returns what that was."""
        levels = self._with(self._whole(at), name)
        dropping = Dropping(self._piece.run, self._piece.root, levels, name)
        dropping.drop()
        self._piece.dropped += dropping.what
        self._piece.freed |= dropping.freed
        for level in levels:
            graph = graph_of(self._piece.root, level)
            if graph is not None:
                del graph.kinds[name]
                graph.children.pop(name, None)
        return list(dropping.what)

    def move_messages(self, source: str, target: str, *, at: str = "") -> int:
        """Let another executor have the messages that wait for `source`; returns how many there were."""
        check_id(target, "executor id")
        levels = self._with(self._whole(at), source)
        return move_messages(self._piece.run, self._piece.root, levels, source, target)

    def rename_handler(self, executor: str, old: str, new: str, *, at: str = "") -> None:
        """Let answers go to a response handler that has another name now."""
        levels = self._with(self._levels(at), executor)
        for path in self._paths(at):
            if level_of(path) in levels:
                rename_handler(self._piece.run, path, executor, old, new)

    def rename_state_key(self, old: str, new: str, *, at: str = "") -> None:
        """Give a state key another name. Raises `ValueError` where both are set."""
        check_key(new, "state key")
        for path in self._paths(at):
            rename_state_key(self._piece.run, path, old, new)

    def change_state(self, key: str, change: ValueChange, *, at: str = "") -> int:
        """Replace a state key's plain value where it is set; returns in how many scopes it was."""
        changed = 0
        for path in self._paths(at):
            record: StateRecord | None = self._piece.run.get(path, "state", key)
            if record is None:
                continue
            changed += 1
            self._change_state(path, key, record, change)
        return changed

    def restart_passes(self, at: str = "") -> list[str]:
        """Let passes of functions that have not ended begin again from their message; returns what they lost."""
        dropping = Dropping(self._piece.run, self._piece.root, frozenset(), "")
        for path in self._paths(at):
            if self._piece.run.get(*scope_key(path)) is not None:
                restart_passes(dropping, path)
        self._piece.dropped += dropping.what
        self._piece.freed |= dropping.freed
        return list(dropping.what)

    def change_type(self, old: str, new: str, change: FieldChange | None = None, *, version: int | None = None) -> int:
        """Give stored objects of a type another name, other fields, another version; returns how many there were."""
        run = self._piece.run
        changing = _TypeChange(old, new, change, version)
        values = Values(changing.one, changing.items)
        delta: dict[Key, Record | None] = {}
        for key, record in run.records():
            other = with_type_names(values.of(record), old, new)
            if other is not record:
                delta[key] = other
        run.apply(delta_of(delta))
        return changing.count

    def _change_state(self, path: str, key: str, record: StateRecord, change: Callable[[object], object]) -> None:
        run = self._piece.run
        if not grows(record):
            value = seal_plain(change(open_plain(sealed_value(run, path, key, record))))
            run.apply(delta_of({(path, "state", key): StateRecord(value)}))
            return
        parts = committed_parts(run, path, key)
        value = seal_plain(change(open_plain(list_of(parts))))
        if value.type != "list":
            raise ValueError(f"state key {key!r} holds a list that grows, and its new value is a {value.type}")
        items = items_of(value)
        prefix = part_name(key, 0)[:-1]
        delta: dict[Key, Record | None] = {
            (path, "part", name): None for name in run.table(path, "part") if name.startswith(prefix)
        }
        delta[path, "part", part_name(key, 0)] = PartRecord(items)
        delta[path, "state", key] = StateRecord(None, items.count, merged=1, next=1)
        run.apply(delta_of(delta))

    def _levels(self, at: str) -> frozenset[Level]:
        names = tuple(name for name, _ in pattern_of(at))
        levels = frozenset((*home, *names) for home in self._homes)
        missing = {level for level in levels if graph_of(self._piece.root, level) is None}
        if missing and self._exact:
            raise ValueError(f"at={at!r}: there is no sub-workflow {shown(min(missing))!r}")
        return levels - missing

    def _whole(self, at: str) -> frozenset[Level]:
        """Return the levels of a call that is about a workflow, not about single executions of it."""
        if any(number != ALL for _, number in pattern_of(at)):
            raise ValueError(f"at={at!r} names one execution; an executor changes in all of them, so write '#*'")
        return self._levels(at)

    def _paths(self, at: str) -> list[str]:
        self._levels(at)
        return scopes_at(self._piece.run, self._homes, pattern_of(at))

    def _having(self, levels: frozenset[Level], name: str) -> frozenset[Level]:
        graphs = {level: graph_of(self._piece.root, level) for level in levels}
        return frozenset(level for level, graph in graphs.items() if graph is not None and name in graph.kinds)

    def _with(self, levels: frozenset[Level], name: str) -> frozenset[Level]:
        """Return the levels that have an executor. Raises `ValueError` where one must have it and does not."""
        having = self._having(levels, name)
        if having != levels and self._exact:
            level = min(levels - having)
            graph = graph_of(self._piece.root, level)
            there = ", ".join(sorted(graph.kinds)) if graph is not None else "none"
            where = f" at {shown(level)}" if level else ""
            raise ValueError(f"there is no executor {name!r}{where}; there are {there}")
        return having


class _TypeChange:
    """One change of a type, counted."""

    def __init__(self, old: str, new: str, change: FieldChange | None, version: int | None) -> None:
        self.old = old
        self.new = new
        self.change = change
        self.version = version
        self.count = 0

    def one(self, sealed: Sealed) -> Sealed:
        """Return a value with all its objects of the type changed; one without them as it is."""
        if not may_hold(sealed.data, self.old):
            return sealed
        before = self.count
        value = with_objects(open_plain(sealed), self._object)
        return seal_plain(value) if self.count > before else sealed

    def items(self, items: Items) -> Items:
        """The same for elements of a list in state."""
        if not may_hold(items.data, self.old):
            return items
        before = self.count
        values = [with_objects(value, self._object) for value in open_plain_items([items])]
        return seal_plain_items(values) if self.count > before else items

    def _object(self, found: PlainObject) -> PlainObject:
        if found.type != self.old:
            return found
        self.count += 1
        fields = found.fields if self.change is None else self.change(found.fields)
        return PlainObject(self.new, fields, found.version if self.version is None else self.version)
