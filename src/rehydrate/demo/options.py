"""The arguments of the command line, and the command that goes on where one has stopped.

Checks the form of each argument; whether what they name is there is looked at elsewhere.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from rehydrate.demo.environment import RUNNING
from rehydrate.wiring import is_secret_name

__all__ = ["COMPLETE", "FAILED", "INTERRUPTED", "QUESTIONS_OPEN", "WRONG_INPUT", "Options", "parse", "program"]

COMPLETE, FAILED, WRONG_INPUT, QUESTIONS_OPEN, INTERRUPTED = 0, 1, 2, 3, 130

_COMMAND: Final = "rehydrate"


@dataclass(frozen=True)
class Options:
    """What was asked for on the command line."""

    demo: bool
    paths: tuple[str, ...]
    store: str
    run: str
    installed_in: str
    answers: str | None
    journal: str | None
    no_prompt: bool
    check: bool
    look_up_seconds: float
    at_a_time: int

    @property
    def in_memory(self) -> bool:
        """Whether the run ends with this process."""
        return self.store.startswith("memory:")

    @property
    def again(self) -> str:
        """The sentence that says how to go on where this command stopped."""
        if self.in_memory:
            return (
                "Nothing can go on with it: a store in memory ends with its process. "
                "Begin anew with --store and the name of a file"
            )
        words = ["--run", self.run]
        words += ["--journal", self.journal] if self.journal else []
        words += ["--installed-in", self.installed_in] if self.installed_in != RUNNING else []
        words += ["--check"] if self.check else []
        # A password is in no output: who keeps a URL with one in the environment can type this as it stands.
        store = '"$REHYDRATE_STORE"' if is_secret_name(self.store) else shlex.quote(self.store)
        return f"Go on with: {program()} --store {store} {shlex.join(words)}"


def program() -> str:
    """Return what to type for this program, as it was started: its command, or a module of this interpreter."""
    started = Path(sys.argv[0])
    if started.stem == _COMMAND:
        return f"{_typed(started)} demo"
    return f"{_typed(Path(sys.executable))} -m rehydrate.demo.licence_audit"


def _typed(path: Path) -> str:
    """Return the name of a program where the shell finds this one under it, else its path."""
    found = shutil.which(path.name)
    return shlex.quote(path.name if found and Path(found).absolute() == path.absolute() else str(path))


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong with the arguments."""

    def error(self, message: str) -> NoReturn:
        self.exit(WRONG_INPUT, f"error: {message}; see {self.prog} --help\n")


def parse(arguments: Sequence[str] | None) -> Options:
    """Return the options; ends the process with one line where they are wrong."""
    parser = _Parser(
        prog=program(),
        description="Audit the licences of Python environments; stop and go on at any point.",
        epilog="Exit codes: 0 complete, 1 failed, 2 wrong input, 3 stopped with open questions, 130 interrupted,"
        " 7 standard output cannot be written, 141 its reader has gone.",
    )
    add = parser.add_argument
    add(
        "paths",
        nargs="*",
        metavar="PATH",
        help="environment or requirements file; without any, the running environment",
    )
    add("--demo", action="store_true", help="show it all on the running environment: kill, restore, answer, go on")
    add("--store", default="sqlite:///audit.db", help="where the run is kept (default: %(default)s)")
    add("--run", default="audit", help="name of the run (default: %(default)s)")
    add("--installed-in", default=RUNNING, metavar="PATH", help="environment to look requirements up in")
    add("--answers", metavar="FILE", help="answers, as JSON object or as lines 'name = licence'")
    add("--journal", metavar="FILE", help="write a line for each classification and question, for --check")
    add("--no-prompt", action="store_true", help="do not ask at the terminal")
    add(
        "--check", action="store_true", help="compare the report, once it is complete, with the environments themselves"
    )
    add("--look-up-seconds", type=_seconds, default=0.0, metavar="S", help="pretend that each look-up takes so long")
    add("--at-a-time", type=_count, default=8, metavar="N", help="look-ups at the same time (default: %(default)s)")
    given = vars(parser.parse_args(arguments))
    if given["demo"] and given["paths"]:
        parser.error("--demo makes its own input and takes no PATH")
    given["paths"] = tuple(_absolute(path) for path in given["paths"])
    given["installed_in"] = _absolute(given["installed_in"])
    return Options(**given)


def _seconds(text: str) -> float:
    return _between(text, float(text) if text.replace(".", "", 1).isdigit() else -1, 0, 60)


def _count(text: str) -> int:
    return int(_between(text, int(text) if text.isdigit() else -1, 1, 10_000))


def _between(text: str, value: float, lowest: int, highest: int) -> float:
    if not lowest <= value <= highest:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number between {lowest} and {highest}")
    return value


def _absolute(path: str) -> str:
    # The run may go on from another directory.
    return path if path == RUNNING else str(Path(path).absolute())
