"""The licence audit as a program: `python -m rehydrate.demo.licence_audit`.

Only the way in; see `command` for what it does.
"""

from __future__ import annotations

import sys

from rehydrate.demo.command import main
from rehydrate.hosts.cli.streams import ending_of

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(ending_of(main))
