"""Export and import: a whole run as one file, from one store to another.

A file is written under another name and renamed when it is whole; a run is taken in as a whole or not at all.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeAlias, cast

from rehydrate.codecs.archives import EXPORT_HEADER, MAX_EXPORT, decode_body, decode_lead, encode_archive
from rehydrate.errors import (
    CommitConflictError,
    ExportFileError,
    ImportConflictError,
    RunExistsError,
    RunNotFoundError,
    WrongCallError,
)
from rehydrate.model.checkpoint import Archive, Status
from rehydrate.ports import CheckpointStorage
from rehydrate.runtime.call import with_article

from .arguments import check_store

#: Where an exported run is written to or read from: a path, or a file opened for bytes.
ExportPlace: TypeAlias = str | os.PathLike[str] | BinaryIO


@dataclass(frozen=True)
class ExportedRun:
    """A run in a file: whose it is, how it stands, and how much it is. `size` counts the bytes of the file."""

    run_id: str
    workflow: str
    checkpoint_id: str
    status: Status
    checkpoints: int
    size: int

    def __str__(self) -> str:
        what = f"run {self.run_id!r} of workflow {self.workflow!r}"
        return f"{what}, {self.status.value}: {self.checkpoints} checkpoints, {self.size:,} bytes"


@dataclass(frozen=True)
class ReadRun:
    """A run as a file has it, found whole, and in no store yet."""

    archive: Archive
    size: int


async def export_run(storage: CheckpointStorage, run_id: str, place: ExportPlace) -> ExportedRun:
    """Write a run with all that belongs to it into one file, as it stands at this moment.

    A file that is there under that path is replaced, once the new one is whole. Raises `RunNotFoundError`,
    `CheckpointCorruptError` and `ExportFileError`.
    """
    check_store(storage)
    file = _checked_place(place, "write")
    archive = await storage.archive(run_id)
    if archive is None:
        raise RunNotFoundError(run_id)
    return _described(archive, await asyncio.to_thread(_written, archive, file))


async def import_run(storage: CheckpointStorage, place: ExportPlace) -> ExportedRun:
    """Take the run of a file into a store: all of it or nothing.

    Raises `CheckpointCorruptError` for a file that is damaged or no export, `CheckpointFormatError` for one of a newer
    format, `RunExistsError`, `ImportConflictError` and `ExportFileError`.
    """
    check_store(storage)
    return await adopt_run(storage, await asyncio.to_thread(read_run, place))


def read_run(place: ExportPlace) -> ReadRun:
    """Read the run of a file; apart from taking it in for who has to be able to stop reading. Raises as that does."""
    file = _checked_place(place, "read")
    if not isinstance(file, Path):
        return _decoded(file)
    try:
        with file.open("rb") as opened:
            return _decoded(opened)
    except OSError as error:
        raise ExportFileError(str(file), "read", _problem(error)) from error


async def adopt_run(storage: CheckpointStorage, read: ReadRun) -> ExportedRun:
    """Take a run that was read into a store. Raises `RunExistsError` and `ImportConflictError`."""
    run_id = read.archive.commits[-1].header.run_id
    try:
        await storage.adopt(read.archive)
    except CommitConflictError as error:
        head = await storage.head(run_id)
        if head is None:
            raise ImportConflictError(run_id, error.found) from error
        raise RunExistsError(run_id, head.header.checkpoint_id, importing=True) from error
    return _described(read.archive, read.size)


def _checked_place(place: object, method: str) -> Path | BinaryIO:
    if isinstance(place, str | os.PathLike):
        path = cast("object", os.fspath(cast("str | os.PathLike[str]", place)))
        if isinstance(path, str) and path and "\0" not in path:
            return Path(path)
    elif hasattr(place, method):
        return cast("BinaryIO", place)
    raise WrongCallError(f"{place!r:.80} is no place for an export.", "Pass a path, or a file opened for bytes.")


def _described(archive: Archive, size: int) -> ExportedRun:
    header = archive.commits[-1].header
    return ExportedRun(header.run_id, header.workflow, header.checkpoint_id, header.status, len(archive.commits), size)


def _written(archive: Archive, place: Path | BinaryIO) -> int:
    data = encode_archive(archive)
    if len(data) - EXPORT_HEADER > MAX_EXPORT:  # no import would take it
        raise ExportFileError(str(place), "written", f"the run has {len(data)} bytes, and {MAX_EXPORT} are taken in")
    if not isinstance(place, Path):
        if place.write(data) != len(data):
            raise WrongCallError(f"{with_article(place)} did not take all bytes.", "Pass a file opened for bytes.")
        return len(data)
    try:
        _replace(place, data)
    except OSError as error:
        raise ExportFileError(str(place), "written", _problem(error)) from error
    return len(data)


def _replace(path: Path, data: bytes) -> None:
    """Make a file of these bytes, which is there under its name only once it is whole and on the disk."""
    number, name = tempfile.mkstemp(prefix=".rehydrate-export-", suffix=".part", dir=path.parent)
    whole = False
    try:
        with os.fdopen(number, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
        whole = True
    finally:
        if not whole:
            with contextlib.suppress(OSError):
                Path(name).unlink()
    if os.name == "posix":  # elsewhere a folder cannot be opened
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _decoded(file: BinaryIO) -> ReadRun:
    """Read no more than the header says, and one byte to see whether there is more."""
    lead = decode_lead(_taken(file, EXPORT_HEADER))
    body = _taken(file, lead.length + 1)
    return ReadRun(decode_body(lead, body), EXPORT_HEADER + len(body))


def _taken(file: BinaryIO, count: int) -> bytes:
    """Return so many bytes, or all that there are; what a header promises is not reserved before it comes."""
    parts: list[bytes] = []
    while count > 0:
        part = cast("object", file.read(min(count, 1 << 20)))
        if not isinstance(part, bytes):
            raise WrongCallError(f"the file gave {with_article(part)}.", 'Open it for bytes: open(path, "rb").')
        if not part:
            break
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _problem(error: OSError) -> str:
    return error.strerror or str(error)
