"""The command `rehydrate`: hands each word on to the part of the package that does it.

It must not do anything itself. `demo` and `show-file` need nothing but the core, all others the extra `cli`. What a
command does not need is not loaded, so that each answers at once.
"""

# ruff: noqa: PLC0415  (see above)

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rehydrate import __version__
from rehydrate.errors import MissingExtraError, RehydrateError
from rehydrate.hosts.cli.streams import ending_of

if TYPE_CHECKING:
    from rehydrate.hosts.cli.output import Output

_SUMMARY: Final = "Workflows that stop anywhere and wake up exactly where they were."
_HELP: Final[Mapping[str, str]] = {
    "demo": "A licence audit that is killed and goes on.",
    "show-file": "A file of a file store, as JSON.",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    return ending_of(lambda: _command(given))


def _command(given: Sequence[str]) -> int:
    if given and given[0] in _HELP:
        return _core_command(given)
    try:
        import rich  # noqa: F401  # pyright: ignore[reportUnusedImport]  (needed later, by what draws; told now)

        from rehydrate.hosts.cli.command_line import run_command_line
        from rehydrate.hosts.cli.session import OtherCommand, Wired
    except ModuleNotFoundError as error:
        if error.name not in {"click", "rich"}:
            raise
        from rehydrate.hosts.cli.output import Output

        return _without_extra(given, Output("--json" in given))
    from rehydrate.wiring import is_secret_name, named_checkpoint_storage

    others = {
        name: OtherCommand(text, lambda words, name=name: _core_command([name, *words])) for name, text in _HELP.items()
    }
    return run_command_line(given, Wired(__version__, named_checkpoint_storage, is_secret_name, others))


def _without_extra(given: Sequence[str], output: Output) -> int:
    """Answer help and version, and refuse everything else."""
    if any(not word.startswith("-") for word in given):
        output.error(MissingExtraError(f"`rehydrate {given[0]}`", "cli"))
        return 2
    return _core_command(given or ["--help"])


def _core_command(given: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="rehydrate",
        description=_SUMMARY,
        epilog="All other commands, such as run, resume, answer, inbox and worker, need the extra `cli`: "
        "pip install 'rehydrate[cli]'",
    )
    parser.add_argument("--version", action="version", version=f"rehydrate {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    commands.add_parser("demo", add_help=False, help=_HELP["demo"])
    show = commands.add_parser("show-file", help=_HELP["show-file"])
    show.add_argument("path", type=Path, help="such as runs/inbox-7/head.json or a .commit file")
    show.add_argument("--json", action="store_true", help="on one line, and an error, too")
    known, rest = parser.parse_known_args(given)
    if known.command == "demo":
        from rehydrate.demo.command import main as licence_audit

        return licence_audit(rest or ["--demo"])
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    return _show_file(known.path, as_json=known.json)


def _show_file(path: Path, *, as_json: bool) -> int:
    """Print a file, which may come from anybody, and return the exit code."""
    import msgspec

    from rehydrate.hosts.cli.endings import ending_of_error
    from rehydrate.hosts.cli.output import Output
    from rehydrate.model.printable import printable
    from rehydrate.stores.file_show import shown_file

    output = Output(as_json)
    try:
        shown = shown_file(path)
    except RehydrateError as error:
        output.error(error)
        return ending_of_error(error)
    output.document(shown)
    for line in msgspec.json.format(msgspec.json.encode(shown)).decode().split("\n"):
        output.line(printable(line))
    return 0


if __name__ == "__main__":
    sys.exit(main())
