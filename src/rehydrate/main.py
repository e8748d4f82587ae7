"""The command `rehydrate`: hands each word on to the part of the package that does it.

It must not do anything itself.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from rehydrate import __version__
from rehydrate.demo.command import main as licence_audit
from rehydrate.errors import WorkflowCheckpointException, WrongCallError
from rehydrate.stores.file_show import shown_file


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
    show = commands.add_parser("show-file", help="a file of a file store as JSON, with values in plain form")
    show.add_argument("path", type=Path, help="such as runs/inbox-7/head.json or a .commit file")
    known, rest = parser.parse_known_args(given)
    if known.command == "demo":
        return licence_audit(rest or ["--demo"])
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    return _show_file(known.path)


def _show_file(path: Path) -> int:
    """Print a file; exit code 1 where it is damaged, 2 where it cannot be read."""
    try:
        text = msgspec.json.format(msgspec.json.encode(shown_file(path))).decode()
    except WorkflowCheckpointException as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    except WrongCallError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    sys.stdout.write(f"{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
