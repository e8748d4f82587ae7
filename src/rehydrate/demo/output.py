"""The output of the command: lines on standard output, at once, and what it means when they cannot be written.

Knows nothing of audits.
"""

from __future__ import annotations

import os
import sys

__all__ = ["OutputLostError", "complain", "drop_output", "say"]


class OutputLostError(Exception):
    """Standard output takes nothing more; `reader_left` where only its reader has gone."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error.strerror or str(error))
        self.reader_left = isinstance(error, BrokenPipeError)


def say(text: str) -> None:
    """Print a line.

    Raises `OutputLostError`.
    """
    try:
        print(text, flush=True)
    except OSError as error:
        raise OutputLostError(error) from error


def complain(text: str) -> None:
    """Print a line to standard error."""
    print(text, file=sys.stderr, flush=True)


def drop_output() -> None:
    """Throw away what could not be written; the interpreter would complain once more when it flushes at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
