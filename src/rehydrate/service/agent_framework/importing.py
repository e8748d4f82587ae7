"""`import_agent_framework`: files of theirs in, legacy runs with answerable questions out.

All files are read and placed before anything is stored; one that is refused keeps all out, unless the caller says so.
Those that are chosen are read a second time, so that no more than one file is held at once.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rehydrate.api.workflow import Workflow
from rehydrate.engine import reading as run_reading
from rehydrate.engine.run import Run
from rehydrate.errors import (
    AgentFrameworkImportError,
    CommitConflictError,
    RehydrateError,
    RunNotFoundError,
    WrongCallError,
)
from rehydrate.ids import check_id
from rehydrate.model.checkpoint import Archive, Commit, Latest, Lease, Put, RequestRow
from rehydrate.ports import CheckpointStorage
from rehydrate.runtime.checkpoint import WorkflowCheckpoint, restored
from rehydrate.service.arguments import check_store

from .choosing import newest, of_workflow
from .inert import Refused
from .placement import WHOLES, Question
from .placing import Placing
from .reading import FileReader, bytes_of
from .saved import Saved, SavedFile, saved_file
from .values import TypeMap, Values

_SUFFIX: Final = ".json"
#: Characters of why a file is refused.
_TOLD: Final = 6000


@dataclass(frozen=True)
class ImportedAgentRun:
    """One checkpoint of theirs as a run here.

    `questions` maps the ids that open questions had there to those that they have here; `left_out` tells what was not
    taken in. `stored` is false where there is no store, or the store had the run already: then the checkpoint is the
    head that it has there, `questions` are those of the file that are open in it, and nothing is told as left out.
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

    def placed(self, file: str, checkpoint_id: str, saved: Saved) -> ImportedAgentRun:
        """Return a checkpoint of theirs as a run. Raises `Refused`, and errors of a workflow that it does not fit."""
        placing = Placing(self._early if saved.texts else self._values, self._leave_out)
        root = placing.root(saved, self._workflow.program.graph)
        checkpoint = WorkflowCheckpoint.legacy(
            self._workflow,
            check_id(checkpoint_id, "run id"),
            state=root.state,
            pending_requests=root.pending_requests,
            execution_contexts=root.execution_contexts,
            executor_states=root.executor_states,
            messages=root.messages,
        )
        placement = placing.placement
        return ImportedAgentRun(file, checkpoint, _ids(checkpoint, placement.questions), tuple(placement.left_out))


class _Folder:
    """The files of one import. Of each only what choosing needs is kept, with a digest of what was read."""

    def __init__(self, reader: FileReader, paths: Sequence[Path]) -> None:
        self._reader = reader
        self._paths = {path.name: path for path in paths}
        self._digests: dict[str, bytes] = {}

    def survey(self) -> tuple[dict[str, SavedFile], dict[str, str]]:
        """Read all files; return what there is to choose from, and what is refused and why."""
        found: dict[str, SavedFile] = {}
        refused: dict[str, str] = {}
        ids: dict[str, str] = {}
        for name, path in self._paths.items():
            try:
                data = bytes_of(path)
                found[name], _ = saved_file(self._reader.tree(data))
                first = ids.setdefault(found[name].checkpoint_id, name)
                if first != name:
                    del found[name]
                    raise Refused(f"it is the same checkpoint as {first}: keep one of the two files")
            except Refused as error:
                refused[name] = _said(error)
            else:
                self._digests[name] = hashlib.sha256(data).digest()
        return found, refused

    def run(self, name: str) -> Saved:
        """Read the run of a file that was chosen. Raises `Refused` where the file is not what it was."""
        data = bytes_of(self._paths[name])
        if hashlib.sha256(data).digest() != self._digests[name]:
            raise Refused("it was changed during the import: repeat it once nothing writes into the folder")
        _, run = saved_file(self._reader.tree(data))
        return run


def _imported(placer: Placer, name: str, folder: Path, *, every: bool) -> AgentFrameworkImport:
    """Return what each file of a folder is for the workflow of that name."""
    paths = _files(folder)
    with FileReader(placer.names) as reader:
        files = _Folder(reader, paths)
        found, refused = files.survey()
        passed: dict[str, str] = {}
        try:
            mine = of_workflow(found, name)
            later = {} if every else newest(mine)
        except Refused as error:
            raise AgentFrameworkImportError(str(folder), (*refused.items(), (str(folder), str(error)))) from error
        runs: list[ImportedAgentRun] = []
        for file, saved in found.items():
            if file not in mine:
                passed[file] = f"it is of workflow {saved.name!r}"
            elif file in later:
                passed[file] = f"checkpoint {later[file]!r} comes behind it"
            else:
                try:
                    runs.append(placer.placed(file, saved.checkpoint_id, files.run(file)))
                except (Refused, RehydrateError) as error:
                    refused[file] = _said(error)
    return AgentFrameworkImport(tuple(runs), passed, refused)


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
        return await _there_already(store, run)
    return ImportedAgentRun(run.file, run.checkpoint, run.questions, run.left_out, stored=True)


async def _there_already(store: CheckpointStorage, run: ImportedAgentRun) -> ImportedAgentRun:
    """Return a run as the store has it: each import makes ids of its own, and those of this one lead nowhere."""
    stored = await store.load(Latest(run.run_id))
    if stored is None:
        raise RunNotFoundError(run.run_id)
    checkpoint = restored(stored)
    there = {asked: request_id for request_id, asked in _asked(checkpoint.records).items()}
    asked = _asked(run.checkpoint.records)
    questions = {theirs: there[asked[ours]] for theirs, ours in run.questions.items() if asked[ours] in there}
    return ImportedAgentRun(run.file, checkpoint, questions)


def _asked(run: Run) -> dict[str, tuple[object, ...]]:
    """Return by its id what makes an open question the same in two imports: its place, what it asks, for what."""
    return {
        item.request_id: (item.known, item.record.data, item.record.response_type)
        for item in run_reading.open_requests(run)
    }
