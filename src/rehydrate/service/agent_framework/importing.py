"""`import_agent_framework`: files of theirs in, legacy runs with answerable questions out.

All files are read and placed before anything is stored; one that is refused keeps all out, unless the caller says so.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rehydrate.api.workflow import Workflow
from rehydrate.engine import reading as run_reading
from rehydrate.errors import (
    AgentFrameworkImportError,
    CommitConflictError,
    RehydrateError,
    WrongCallError,
)
from rehydrate.ids import check_id
from rehydrate.model.checkpoint import Archive, Commit, Lease, Put, RequestRow
from rehydrate.ports import CheckpointStorage
from rehydrate.runtime.checkpoint import WorkflowCheckpoint
from rehydrate.service.arguments import check_store

from .choosing import newest, of_workflow
from .inert import Refused
from .on_the_way import messages_of
from .placing import WHOLES, Placing, Question
from .reading import FileReader
from .saved import SavedFile, saved_file
from .values import TypeMap, Values

_SUFFIX: Final = ".json"
#: Characters of why a file is refused.
_TOLD: Final = 6000


@dataclass(frozen=True)
class ImportedAgentRun:
    """One checkpoint of theirs as a run here.

    `questions` maps the ids that open questions had there to those that they have here; `left_out` tells what was not
    taken in. `stored` is false where there is no store, or the store had the run already.
    """

    file: str
    checkpoint: WorkflowCheckpoint
    questions: Mapping[str, str]
    left_out: tuple[str, ...] = ()
    stored: bool = False

    @property
    def run_id(self) -> str:
        """The run's id: that of their checkpoint."""
        return self.checkpoint.run_id

    def __str__(self) -> str:
        what = f"run {self.run_id!r} from {self.file}, {self.checkpoint.status.value}: {len(self.questions)} questions"
        return f"{what}; left out: {', '.join(self.left_out)}" if self.left_out else what


@dataclass(frozen=True)
class AgentFrameworkImport:
    """What an import did with each file: taken in, passed over and why, or refused and why."""

    runs: tuple[ImportedAgentRun, ...]
    passed_over: Mapping[str, str]
    refused: Mapping[str, str]


async def import_agent_framework(
    folder: str | os.PathLike[str],
    workflow: Workflow,
    *,
    storage: CheckpointStorage | None = None,
    types: TypeMap | None = None,
    leave_out: Collection[str] = (),
    every: bool = False,
    skip_refused: bool = False,
) -> AgentFrameworkImport:
    """Take in the checkpoint files that agent-framework-core's `FileCheckpointStorage` wrote into a folder.

    The newest checkpoint of each run, or `every` one, becomes a legacy run of `workflow`, under the id of the
    checkpoint, in `storage` or else the workflow's store; without any it is only returned. `types` says what types of
    theirs are here, where the names differ. Raises `AgentFrameworkImportError` for files that are refused, before
    anything is stored; with `skip_refused` the others are taken in.
    """
    _check_names(leave_out)
    store = storage if storage is not None else workflow.checkpoint_storage
    if store is not None:
        check_store(store)
    placer = Placer(workflow, types or {}, frozenset(leave_out))
    done = await asyncio.to_thread(_imported, placer, workflow.name, Path(folder), every=every)
    if done.refused and not skip_refused:
        raise AgentFrameworkImportError(str(folder), tuple(done.refused.items()))
    if store is None:
        return done
    runs = tuple([await _stored(store, run) for run in done.runs])
    return AgentFrameworkImport(runs, done.passed_over, done.refused)


def _check_names(leave_out: Collection[str]) -> None:
    for name in (leave_out,) if isinstance(leave_out, str) else leave_out:
        kind, _, one = name.partition(":")
        if isinstance(leave_out, str) or (name not in WHOLES and not (one and kind in {"state", "executor"})):
            known = ", ".join(map(repr, (*WHOLES, "state:KEY", "executor:ID")))
            raise WrongCallError(f"leave_out names {name!r}.", f"Pass a list of {known}.")


class Placer:
    """Makes legacy runs of one workflow of what was read."""

    def __init__(self, workflow: Workflow, types: TypeMap, leave_out: Collection[str]) -> None:
        self._workflow = workflow
        self._leave_out = leave_out
        codec = workflow.program.codec
        self._values = Values(codec, types)
        self._early = Values(codec, types, texts=True)

    @property
    def names(self) -> list[str]:
        """Names of types that files may hold, for the closed list."""
        return self._values.names

    def placed(self, file: str, found: SavedFile) -> ImportedAgentRun:
        """Return a checkpoint of theirs as a run. Raises `Refused`, and errors of a workflow that it does not fit."""
        graph = self._workflow.program.graph
        values = self._early if found.run.texts else self._values
        placing = Placing(values, self._leave_out)
        context = placing.context(found.run, graph)
        messages = messages_of(found.run, graph, placing, values.value)
        checkpoint = WorkflowCheckpoint.legacy(
            self._workflow,
            check_id(found.checkpoint_id, "run id"),
            state=context.state,
            pending_requests=context.pending_requests,
            execution_contexts=context.execution_contexts,
            executor_states=context.executor_states,
            messages=messages,
        )
        placement = placing.placement
        return ImportedAgentRun(file, checkpoint, _ids(checkpoint, placement.questions), tuple(placement.left_out))


def _imported(placer: Placer, name: str, folder: Path, *, every: bool) -> AgentFrameworkImport:
    """Return what each file of a folder is for the workflow of that name."""
    saved, refused = _read(placer.names, _files(folder))
    passed: dict[str, str] = {}
    try:
        mine = of_workflow(saved, name)
        later = {} if every else newest(mine)
    except Refused as error:
        raise AgentFrameworkImportError(str(folder), (*refused.items(), (str(folder), str(error)))) from error
    runs: list[ImportedAgentRun] = []
    for file, found in saved.items():
        if file not in mine:
            passed[file] = f"it is of workflow {found.run.name!r}"
        elif file in later:
            passed[file] = f"checkpoint {later[file]!r} comes behind it"
        else:
            try:
                runs.append(placer.placed(file, found))
            except (Refused, RehydrateError) as error:
                refused[file] = _said(error)
    return AgentFrameworkImport(tuple(runs), passed, refused)


def _read(names: Sequence[str], files: Sequence[Path]) -> tuple[dict[str, SavedFile], dict[str, str]]:
    saved: dict[str, SavedFile] = {}
    refused: dict[str, str] = {}
    ids: dict[str, str] = {}
    with FileReader(names) as reader:
        for path in files:
            try:
                found = saved_file(reader.read(path))
                first = ids.setdefault(found.checkpoint_id, path.name)
                if first != path.name:
                    raise Refused(f"it is the same checkpoint as {first}: keep one of the two files")
            except Refused as error:
                refused[path.name] = _said(error)
            else:
                saved[path.name] = found
    return saved, refused


def _said(error: Exception) -> str:
    """Return an error as text that is not as long as a file may make it."""
    said = str(error)
    return said if len(said) <= _TOLD else f"{said[:_TOLD]} ..."


def _files(folder: Path) -> list[Path]:
    try:
        found = sorted(path for path in folder.iterdir() if path.suffix == _SUFFIX)
    except OSError as error:
        raise WrongCallError(
            f"{folder} cannot be listed ({error.strerror}).", "Name the folder of the files."
        ) from error
    if not found:
        raise WrongCallError(f"{folder} holds no {_SUFFIX} file.", "Name the folder that FileCheckpointStorage had.")
    return found


def _ids(checkpoint: WorkflowCheckpoint, questions: Mapping[str, Question]) -> dict[str, str]:
    known = {(item.path, item.name): item.request_id for item in run_reading.open_requests(checkpoint.records)}
    return {theirs: known[question.path, question.name] for theirs, question in questions.items()}


async def _stored(store: CheckpointStorage, run: ImportedAgentRun) -> ImportedAgentRun:
    header, records = run.checkpoint.encoded()
    puts = tuple(Put(key, data) for key, data in sorted(records.items()))
    commit = Commit(header, None, Lease("", 1, 0.0, claim=True), puts)
    rows = tuple(
        RequestRow(item.request_id, header.run_id, item.path, "open")
        for item in run_reading.open_requests(run.checkpoint.records)
    )
    try:
        await store.adopt(Archive((commit,), requests=rows))
    except CommitConflictError:
        if await store.head(header.run_id) is None:
            raise
        return run
    return ImportedAgentRun(run.file, run.checkpoint, run.questions, run.left_out, stored=True)
