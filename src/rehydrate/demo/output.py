"""The output of the command: lines on standard output, at once.

Knows nothing of audits.
"""

from __future__ import annotations

import sys

from rehydrate.hosts.cli.streams import check_written

__all__ = ["complain", "say"]


def say(text: str) -> None:
    """Print a line. Raises `UnwrittenError` where standard output takes nothing more."""
    print(text, flush=True)
    check_written(sys.stdout)


def complain(text: str) -> None:
    """Print a line to standard error."""
    print(text, file=sys.stderr, flush=True)
