"""The journal: a plain file with one line for each thing that happened in the world, outside of the run's records.

Handlers write what they did, readers of the stream what they saw committed. It only serves the check; the run never
reads it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

__all__ = ["Entry", "Happened", "note", "read_journal"]


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
    """Append one line; nothing where there is no journal."""
    if path is None:
        return
    line = json.dumps({"happened": happened.value, "key": key, "process": os.getpid(), "request_id": request_id})
    # One write to a file opened for appending: lines of two processes, or of a killed one, never mix.
    with Path(path).open("ab", buffering=0) as file:
        file.write(f"{line}\n".encode())


def read_journal(path: str) -> tuple[Entry, ...]:
    """Read a journal; a line that was cut by a kill counts for nothing."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        return ()
    return tuple(_entries(text.splitlines(keepends=True)))


def _entries(lines: Iterable[str]) -> Iterable[Entry]:
    for line in lines:
        if line.endswith("\n"):
            raw: dict[str, Any] = json.loads(line)
            yield Entry(Happened(raw["happened"]), str(raw["key"]), int(raw["process"]), str(raw["request_id"]))
