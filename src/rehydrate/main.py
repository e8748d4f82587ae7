"""The command `rehydrate`: hands each word on to the part of the package that does it.

It must not do anything itself.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from rehydrate import __version__
from rehydrate.demo.command import main as licence_audit


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(
        prog="rehydrate", description="Workflows that stop anywhere and wake up exactly where they were."
    )
    parser.add_argument("--version", action="version", version=f"rehydrate {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    commands.add_parser(
        "demo",
        add_help=False,
        help="a licence audit that is killed in the middle and goes on; with arguments: an audit of your own",
    )
    known, rest = parser.parse_known_args(given)
    del known
    return licence_audit(rest or ["--demo"])


if __name__ == "__main__":
    sys.exit(main())
