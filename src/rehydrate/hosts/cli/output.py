"""What a command prints: results on standard output, progress and errors on standard error.

As JSON, one object a command; else for people: as a drawn table in a terminal, as plain lines where it is piped. What
a run holds may come from anybody, so nothing of it reaches a terminal with control characters in it.
"""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import methodcaller
from typing import Final, TextIO

import msgspec

from rehydrate.errors import RehydrateError
from rehydrate.model.plain import Plain
from rehydrate.model.printable import printable

from .streams import check_written

_BEYOND_ASCII: Final = re.compile(r"[^\x20-\x7e]")
#: Columns of tables that hold what is typed again.
_IDS: Final = ("run", "checkpoint")
#: A longer word is folded where a table has no room for it; statuses are shorter.
_LONGEST_WORD: Final = 26
#: Cells of a line between two columns of a table.
_BETWEEN: Final = 2
#: Calls of a traceback, the innermost ones.
_FRAMES: Final = 8


def shown(value: Plain) -> str:
    """Return a plain value on one line: a text as it is, anything else as JSON."""
    return printable(value if isinstance(value, str) else msgspec.json.encode(value).decode())


@dataclass(frozen=True)
class Output:
    """Where a command prints, and whether as JSON."""

    as_json: bool = False
    #: What to do next after an error.
    advise: Callable[[RehydrateError], str] = methodcaller("action")
    #: Standard output as it is when the command begins; while user code runs, `sys.stdout` leads to standard error.
    results: TextIO = field(default_factory=lambda: sys.stdout)

    @property
    def is_terminal(self) -> bool:
        """Whether results are read by a person as they come."""
        return not self.as_json and self.results.isatty()

    def document(self, document: object) -> None:
        """Print the one result of a command as JSON; without `--json` nothing."""
        if self.as_json:
            _write(self.results, _json_line(document, self.results.encoding or "utf-8"))

    def line(self, text: str = "") -> None:
        """Print a line for people; with `--json` nothing. What comes from a run goes through `printable` first."""
        if not self.as_json:
            _write(self.results, text)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Plain]]) -> None:
        """Print rows for people; with `--json` nothing."""
        if self.as_json:
            return
        cells = [[shown(cell) for cell in row] for row in rows]
        if self.is_terminal:
            _draw(self.results, columns, cells)
            return
        for row in (columns, *cells):
            _write(self.results, "\t".join(row))

    def raw(self, data: bytes) -> None:
        """Write bytes as they are where results go."""
        self.results.buffer.write(data)
        check_written(self.results)

    def say(self, text: str) -> None:
        """Say something to a person beside the result, on standard error; with `--json` nothing."""
        if not self.as_json:
            self.note(text)

    def note(self, text: str) -> None:
        """Say something beside the result, on standard error."""
        _write(sys.stderr, text)

    def trace(self, cause: BaseException) -> None:
        """Say on standard error in which lines an exception was raised, as what it stopped names only its text."""
        self.note(_lines("".join(traceback.format_exception(cause, limit=-_FRAMES)).rstrip()))

    def error(self, error: RehydrateError) -> None:
        """Say what went wrong and what to do next; with `--json` on standard output as well."""
        self.document({"error": self.error_document(error)})
        self.complain(error)

    def error_document(self, error: RehydrateError) -> dict[str, str]:
        """Return an error as what JSON can hold."""
        return {"code": error.code, "text": error.text(), "action": self.advise(error)}

    def complain(self, error: RehydrateError) -> None:
        """Say on standard error what went wrong and what to do next."""
        _write(sys.stderr, f"error [{error.code}]: {_lines(error.text())}")
        action = self.advise(error)
        if action:
            _write(sys.stderr, _lines(action))


def _json_line(document: object, encoding: str) -> str:
    """Return JSON with what a terminal obeys, or the encoding of the output does not have, written as JSON has it."""
    text = msgspec.json.encode(document).decode()

    def escaped(found: re.Match[str]) -> str:
        letter = found[0]
        if letter.isprintable() and letter.encode(encoding, "ignore"):
            return letter
        units = letter.encode("utf-16-be")
        return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))

    return _BEYOND_ASCII.sub(escaped, text)


def encodable(text: str, encoding: str) -> str:
    """Return a text with what an encoding does not have written out."""
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _lines(text: str) -> str:
    return "\n".join(map(printable, text.split("\n")))


def _write(stream: TextIO, text: str) -> None:
    # What standard output cannot encode is written out, and is no reason to lose the rest.
    stream.write(encodable(text, stream.encoding or "utf-8") + "\n")
    check_written(stream)


def _draw(stream: TextIO, columns: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    # Here, since most commands draw no table and the package takes its time to load.
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415
    from rich.cells import cell_len  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = Console(file=stream)
    rows = [[encodable(cell, console.encoding) for cell in row] for row in cells]
    least = [
        max(cell_len(column), *(_least(column, row[at], cell_len) for row in rows), 0)
        for at, column in enumerate(columns)
    ]
    if sum(least) + _BETWEEN * len(columns) > console.width:
        _list(stream, columns, rows)
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column, width in zip(columns, least, strict=True):
        table.add_column(column, overflow="fold", min_width=width)
    for row in rows:
        table.add_row(*map(Text, row))  # as texts, since a cell may look like markup
    console.print(table)
    check_written(stream)


def _least(column: str, cell: str, width: Callable[[str], int]) -> int:
    """Return how many cells of a line a cell of a table needs: an id all, else the longest word, up to a bound."""
    if column in _IDS:
        return width(cell)
    return min(max(map(width, cell.split()), default=0), _LONGEST_WORD)


def _list(stream: TextIO, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Write rows below each other, where they would not fit beside each other: an id in pieces cannot be copied."""
    room = max(map(len, columns))
    for row in rows:
        for column, cell in zip(columns, row, strict=True):
            if cell:
                _write(stream, f"{column:<{room}}  {cell}")
        _write(stream, "")
