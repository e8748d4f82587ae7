"""One commit file: two lines of JSON, the bytes of its records and events, and sometimes the table of what is live.

It is written once and never changed. It must not know where it lies.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rehydrate.codecs.checkpoints import record_digest
from rehydrate.errors import CheckpointCorruptError
from rehydrate.model.checkpoint import Header, Put, RequestRow, StoredEvent, TurnRow

from .file_disk import opened, read_range
from .file_format import (
    FILE_FORMAT,
    CommitLine,
    Contents,
    EventPiece,
    LivePiece,
    LiveTable,
    Piece,
    checksum,
    header_fields,
    header_of,
    opened_line,
    record_check,
    sealed_line,
)

#: Bytes that are read at first; nearly every first line is shorter.
_AT_FIRST: Final = 4096


@dataclass(frozen=True)
class Part:
    """What a commit file is to hold: a checkpoint and what was written with it."""

    header: Header
    token: str
    puts: Sequence[Put]
    removes: Sequence[str]
    requests: Sequence[RequestRow] = ()
    turns: Sequence[TurnRow] = ()
    events: Sequence[StoredEvent] = ()
    taken: Sequence[int] = ()

    def contents(self) -> Contents:
        """Return the line that says what is in it."""
        return Contents(
            puts=tuple(
                Piece(put.key, len(put.data), record_check(record_digest(put.key, put.data))) for put in self.puts
            ),
            removes=tuple(self.removes),
            requests=tuple(self.requests),
            turns=tuple(self.turns),
            events=tuple(EventPiece(event.number, len(event.data), checksum(event.data)) for event in self.events),
            taken=tuple(self.taken),
        )

    def pieces(
        self, contents: Contents, previous: int | None, base: int, live: Mapping[str, LivePiece] | None
    ) -> list[bytes]:
        """Return the pieces of the file; with `live`, it has a table of what is live."""
        second = sealed_line(contents)
        data = [put.data for put in self.puts] + [event.data for event in self.events]
        last = b"" if live is None else sealed_line(LiveTable(dict(live)))
        header, created = header_fields(self.header)
        first = CommitLine(
            rehydrate="commit",
            format=FILE_FORMAT,
            token=self.token,
            previous=previous,
            base=base,
            header=header,
            contents=len(second),
            data=sum(map(len, data)),
            live=len(last),
            created=created,
        )
        return [sealed_line(first), second, *data, last]


class CommitFile:
    """An open commit file, its first line checked; `what` names it in errors."""

    def __init__(self, descriptor: int, what: str) -> None:
        self._descriptor = descriptor
        self._what = what
        length = os.fstat(descriptor).st_size
        data = read_range(descriptor, 0, _AT_FIRST)
        if b"\n" not in data:
            data = read_range(descriptor, 0, length)
        first, found, _ = data.partition(b"\n")
        self.line = opened_line(first + found, CommitLine, what)
        self.header = header_of(self.line, what)
        self._contents_at = len(first) + 1
        self._data_at = self._contents_at + self.line.contents
        self._live_at = self._data_at + self.line.data
        if min(self.line.contents, self.line.data, self.line.live) < 0 or self._live_at + self.line.live != length:
            raise CheckpointCorruptError(what, "its file is longer or shorter than it says")

    def contents(self) -> Contents:
        """Return what it wrote."""
        data = read_range(self._descriptor, self._contents_at, self.line.contents)
        return opened_line(data, Contents, self._what)

    def live(self) -> dict[str, LivePiece]:
        """Return its table of what is live."""
        data = read_range(self._descriptor, self._live_at, self.line.live)
        return opened_line(data, LiveTable, self._what).live

    def record(self, key: str, piece: LivePiece) -> tuple[bytes, int]:
        """Return a record and its digest."""
        data = self._bytes(piece.start, piece.size)
        digest = record_digest(key, data)
        if record_check(digest) != piece.check:
            raise CheckpointCorruptError(self._what, f"record {key!r:.80} in it is not what was written")
        return data, digest

    def events(self) -> list[StoredEvent]:
        """Return the events that were kept with it."""
        contents = self.contents()
        start = sum(piece.size for piece in contents.puts)
        events: list[StoredEvent] = []
        for piece in contents.events:
            data = self._bytes(start, piece.size)
            if checksum(data) != piece.check:
                raise CheckpointCorruptError(self._what, "an event in it is not what was written")
            events.append(StoredEvent(piece.number, data))
            start += piece.size
        return events

    def _bytes(self, start: int, size: int) -> bytes:
        if start < 0 or size < 0 or start + size > self.line.data:
            raise CheckpointCorruptError(self._what, "it has less in it than is looked for")
        return read_range(self._descriptor, self._data_at + start, size)


@contextmanager
def commit_file(path: Path, what: str) -> Generator[CommitFile]:
    """Open a commit file. Raises `FileNotFoundError`, `CheckpointCorruptError` or `CheckpointFormatError`."""
    with opened(path) as descriptor:
        yield CommitFile(descriptor, what)


def advance(live: dict[str, LivePiece], seq: int, contents: Contents) -> None:
    """Bring a table of what is live to where it is once a commit has written this."""
    for key in contents.removes:
        live.pop(key, None)
    live.update(pieces_of(seq, contents.puts))


def pieces_of(seq: int, puts: Iterable[Piece]) -> list[tuple[str, LivePiece]]:
    """Return where the records are that a commit wrote, by key."""
    found: list[tuple[str, LivePiece]] = []
    start = 0
    for piece in puts:
        found.append((piece.key, LivePiece(seq, start, piece.size, piece.check)))
        start += piece.size
    return found
