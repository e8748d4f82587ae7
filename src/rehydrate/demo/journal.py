"""The journal: a plain file with one line for each thing that happened in the world, outside of the run's records.

Handlers write what they did, readers of the stream what they saw committed. It only serves the check; the run never
reads it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import msgspec

from rehydrate.demo.environment import AuditInputError

__all__ = ["Entry", "Happened", "note", "open_journal", "read_journal"]


class Happened(Enum):
    """What a line of the journal is about."""

    CLASSIFIED = "classified"
    COMMITTED = "committed"
    ASKED = "asked"


@dataclass(frozen=True)
class Entry:
    """One line: what happened to which distribution, in which process; `request_id` where it was asked about."""

    happened: Happened
    key: str
    process: int
    request_id: str = ""


def note(path: str | None, happened: Happened, key: str, request_id: str = "") -> None:
    """Append one line; nothing where there is no journal.

    Raises `AuditInputError`.
    """
    if path is None:
        return
    line = msgspec.json.encode(Entry(happened, key, os.getpid(), request_id))
    # One write to a file opened for appending: lines of two processes, or of a killed one, never mix.
    try:
        with Path(path).open("ab", buffering=0) as file:
            file.write(line + b"\n")
    except OSError as error:
        raise AuditInputError(f"{path}: {error.strerror or error}") from error


def open_journal(path: str) -> None:
    """Make sure that lines can be appended, and that what is there is a journal.

    Raises `AuditInputError`.
    """
    try:
        Path(path).open("ab").close()
    except OSError as error:
        raise AuditInputError(f"{path}: {error.strerror or error}") from error
    read_journal(path)


def read_journal(path: str) -> tuple[Entry, ...]:
    """Read a journal; a line that was cut by a kill counts for nothing.

    Raises `AuditInputError` if the file is something else.
    """
    try:
        lines = Path(path).read_bytes().splitlines(keepends=True)
        return tuple(msgspec.json.decode(line, type=Entry) for line in lines if line.endswith(b"\n"))
    except FileNotFoundError:
        return ()
    except (OSError, msgspec.MsgspecError) as error:
        raise AuditInputError(f"{path}: no journal of an audit: {error}") from error
