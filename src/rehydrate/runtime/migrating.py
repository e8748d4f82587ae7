"""Fitting a checkpoint to a workflow: as it is, or brought up from an older version, in memory and aside.

Migrations are user code and run here, before the claim; whatever goes wrong leaves the stored run as it was. Scopes of
sub-workflows are brought up by their own workflows' migrations, those of a parent first.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, cast

import msgspec

from rehydrate.engine.invariants import check_run
from rehydrate.engine.migration.homes import homeless
from rehydrate.engine.migration.levels import Level, graph_of, shown
from rehydrate.engine.migration.routes import Rerouting
from rehydrate.engine.migration.whole_values import join_values, split_values
from rehydrate.engine.requests import pack_requests, unpack_requests
from rehydrate.engine.run import Run, delta_of
from rehydrate.errors import (
    CheckpointCorruptError,
    GraphChangedError,
    HomelessWorkError,
    InconsistentRunError,
    MigrationError,
    MissingMigrationError,
    NewerVersionError,
    PredicateError,
    WorkflowCheckpointException,
)
from rehydrate.graph.definition import Definition
from rehydrate.graph.recorded import RecordedGraph, recorded_graph
from rehydrate.graph.signature import differences
from rehydrate.model.effects import Route
from rehydrate.model.records import Key, Record, RunRecord, SignatureRecord
from rehydrate.model.sealed import Listed, Payload
from rehydrate.model.signatures import signature_record

from .causes import told
from .checkpoint import Migrated, WorkflowCheckpoint
from .checks import check_homes, check_tree, check_workflow
from .migrated_values import Fit, fit_lists, open_all
from .migration_view import View, Workpiece
from .program import Program, digest_of

_RUN: Final = ("", "run", "")
_SIGNATURE: Final = ("", "signature", "")


def fitting(program: Program, checkpoint: WorkflowCheckpoint) -> WorkflowCheckpoint:
    """Return a checkpoint that fits the workflow: itself, or as its migrations leave it. Raises what does not fit."""
    check_workflow(program.graph, checkpoint)
    record: RunRecord = checkpoint.records.get(*_RUN)
    if record.signature != program.signature_digest:
        checkpoint = _brought_up(program, checkpoint)
    check_tree(program.graph, checkpoint)
    check_homes(program.graph, checkpoint)
    return checkpoint


def _brought_up(program: Program, checkpoint: WorkflowCheckpoint) -> WorkflowCheckpoint:
    before = checkpoint.records
    what = f"the signature of checkpoint {checkpoint.checkpoint_id!r}"
    try:
        text = cast("SignatureRecord", before.get(*_SIGNATURE)).text
        root = recorded_graph(text)
    except (ValueError, LookupError) as error:
        raise CheckpointCorruptError(what, str(error)) from error
    if digest_of(text) != cast("RunRecord", before.get(*_RUN)).signature:
        raise CheckpointCorruptError(what, "it is not the one that its run was begun with")
    piece = Workpiece(before.copy(), root)
    unpack_requests(piece.run)
    _refuse_unannounced(program.graph, root, piece.run, text)
    joined = join_values(piece.run)
    last = BringingUp(program, piece, text).apply()
    Settling(program, piece, last).apply()
    run = piece.run.copy()  # a view that a migration has kept can no longer reach it
    split_values(run, joined)
    pack_requests(run, program.graph.requests_apart)
    delta = _difference(before, run)
    freed = tuple(sorted(piece.freed))
    return WorkflowCheckpoint(
        checkpoint.header, run, checkpoint.digests, migrated=Migrated(delta, tuple(piece.dropped), freed)
    )


def _difference(before: Run, after: Run) -> dict[Key, Record | None]:
    old, new = dict(before.records()), dict(after.records())
    delta: dict[Key, Record | None] = {key: None for key in old if key not in new}
    delta.update({key: record for key, record in new.items() if old.get(key) != record})
    return delta


def _refuse_unannounced(graph: Definition, root: RecordedGraph, run: Run, text: str) -> None:
    """Raise where the graph has changed and no version says so, or a version is newer or has no function.

    A version speaks for its workflow and all below it.
    """
    today = recorded_graph(graph.signature)
    found: list[str] = []
    waiting: list[tuple[Level, Definition, RecordedGraph, RecordedGraph]] = [((), graph, root, today)]
    while waiting:
        level, definition, recorded, now = waiting.pop()
        if definition.name == recorded.name and definition.version != recorded.version:
            whole = (*differences(text, graph.signature), *homeless(run, graph))
            check_versions(definition, recorded.version, level, whole)
            continue
        changed = differences("\n".join(sorted(recorded.lines)), "\n".join(sorted(now.lines)))
        found += [f"{shown((*level, ''))}{line}" for line in changed]
        waiting += [
            ((*level, name), child, recorded.children[name], now.children[name])
            for name, child in definition.children.items()
            if name in recorded.children
        ]
    if found:
        by_subject = sorted(found, key=lambda line: line.partition(": ")[0])
        raise GraphChangedError(graph.name, (*by_subject, *homeless(run, graph)))


def check_versions(definition: Definition, found: int, level: Level, changes: tuple[str, ...]) -> None:
    """Raise where a stored version is newer than the workflow's, or one on the way up has no function."""
    if found > definition.version:
        raise NewerVersionError(definition.name, found, definition.version, shown(level))
    for version in range(found, definition.version):
        if version not in definition.migrations:
            raise MissingMigrationError(definition.name, changes, version, shown(level))


@dataclass(frozen=True)
class Step:
    """A version of a workflow that was brought up by one."""

    workflow: str
    version: int

    def error(self, problem: str) -> MigrationError:
        """Return the error of a migration that left something wrong."""
        return MigrationError(self.workflow, self.version, problem)


class BringingUp:
    """The migrations of a whole tree, each workflow's in the order of its versions."""

    def __init__(self, program: Program, piece: Workpiece, text: str) -> None:
        self.program = program
        self.piece = piece
        self.text = text
        self.first: Step | None = None

    def apply(self) -> Step:
        """Call every migration that is needed; returns the last one of the outermost workflow that has one."""
        for definition, levels in _workflows(self.program.graph):
            at: dict[int, list[Level]] = {}
            for level in levels:
                recorded = graph_of(self.piece.root, level)
                if recorded is not None and recorded.name == definition.name:
                    at.setdefault(recorded.version, []).append(level)
            for version in sorted(at):
                self._bring_up(definition, version, at[version])
        assert self.first is not None  # noqa: S101  (a version that differs led here)
        return self.first

    def _bring_up(self, definition: Definition, version: int, levels: list[Level]) -> None:
        changes = differences(self.text, self.program.graph.signature)
        check_versions(definition, version, levels[0], changes)
        last: Step | None = None
        for number in range(version, definition.version):
            last = Step(definition.name, number)
            view = View(self.piece, levels, definition.name, number, exact=number == version)
            self._call(definition, last, view)
        for level in levels:
            recorded = graph_of(self.piece.root, level)
            if recorded is not None:
                recorded.version = definition.version
        self.first = self.first or last

    def _call(self, definition: Definition, step: Step, view: View) -> None:
        try:
            given = definition.migrations[step.version](view)
        except WorkflowCheckpointException:
            raise
        except Exception as error:  # a migration is user code
            raise step.error(told(error)) from error
        if inspect.iscoroutine(given):
            given.close()
            raise step.error("it is async, and a migration only changes what it is given")


def _workflows(graph: Definition) -> list[tuple[Definition, list[Level]]]:
    """Return each workflow of the tree with its places, every one behind those that it is nested in."""
    found: dict[tuple[str, int, str], tuple[Definition, list[Level]]] = {}
    for level, definition in _levels(graph, ()):
        key = (definition.name, definition.version, definition.signature)
        found.setdefault(key, (definition, []))[1].append(level)
    return sorted(found.values(), key=lambda item: max(map(len, item[1])))


def _levels(graph: Definition, level: Level) -> Iterator[tuple[Level, Definition]]:
    yield level, graph
    for name, child in graph.children.items():
        yield from _levels(child, (*level, name))


class Settling:
    """What follows the migrations: routes and lists in today's form, a home for all that waits, values that open."""

    def __init__(self, program: Program, piece: Workpiece, step: Step) -> None:
        self.program = program
        self.piece = piece
        self.run = piece.run
        self.graph = program.graph
        self.step = step

    def apply(self) -> None:
        """Settle the run. Raises `HomelessWorkError`, `MigrationError` or `InconsistentRunError`."""
        rerouting = Rerouting(self.run, self.piece.root, self.graph, self._decide)
        rerouting.apply()
        self.piece.dropped += rerouting.declined
        self._refuse_waiting((*homeless(self.run, self.graph), *rerouting.lost))
        self._refuse_waiting(tuple(fit_lists(self.run, self.graph)))
        open_all(self.program.codec, self.run, self.graph, self._refuse_value)
        self._refuse_waiting(tuple(Fit(self.program.codec, self.run, self.graph).lines()))
        self.run.apply(delta_of(self._identity()))
        violations = check_run(self.run)
        if violations:
            raise InconsistentRunError(tuple(violations))

    def _identity(self) -> Mapping[Key, Record | None]:
        record: RunRecord = self.run.get(*_RUN)
        digest = self.program.signature_digest
        today = msgspec.structs.replace(record, version=self.graph.version, signature=digest)
        return {_RUN: today, _SIGNATURE: signature_record(self.graph.signature)}

    def _refuse_waiting(self, lines: tuple[str, ...]) -> None:
        if lines:
            raise HomelessWorkError(self.step.workflow, self.step.version, tuple(dict.fromkeys(lines)))

    def _refuse_value(self, place: str, error: WorkflowCheckpointException) -> None:
        raise self.step.error(f"{place}: {error.text()}".rstrip(".")) from error

    def _decide(self, path: str, executor: str, value: Payload) -> tuple[Route, ...]:
        """Route what has left a sub-workflow behind which there are edges only now."""
        outlets = self.program.outlets
        maps = any(edge.into is not None and edge.source == executor for edge in outlets.graph_at(path).edges)
        if isinstance(value, Listed) or (maps and value.type == "list"):
            problem = (
                f"{path or 'the root'}: a list that {executor!r} has yielded waits, and a map edge is behind it now"
            )
            raise self.step.error(problem)
        try:
            message = self.program.codec.open(value)
            return outlets.at(outlets.graph_at(path), executor).route(message, value, None) or ()
        except (PredicateError, WorkflowCheckpointException) as error:
            raise self.step.error(
                f"{path or 'the root'}, an output of {executor}: {error.text()}".rstrip(".")
            ) from error
