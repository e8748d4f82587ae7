"""The demonstration: an audit that is killed in the middle and goes on in a new process, in numbered steps.

Uses nothing but the command that anybody can type. It only starts processes, kills one, and looks at what they print.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rehydrate.demo import spdx
from rehydrate.demo.environment import RUNNING, Distribution
from rehydrate.demo.licences import Undecided, classify
from rehydrate.demo.metadata import read_environment
from rehydrate.demo.output import say
from rehydrate.demo.unclear import UNCLEAR_LICENCES, make_unclear_environment

__all__ = ["KillPoint", "demonstrate"]

_AT_A_TIME: Final = 2
_FIRST_PROCESS_SECONDS: Final = 3.0
"""How long all look-ups of the first process would take together, so that the kill finds it at work."""
_STANDING: Final = re.compile(r"\((?P<open>\d+) open, (?P<work>\d+) in work\)$")
_ABSENT: Final = "not-installed-anywhere"


@dataclass(frozen=True)
class _Place:
    """The files of one demonstration."""

    root: Path

    @property
    def store(self) -> str:
        return f"sqlite:///{self.root / 'audit.db'}"

    @property
    def journal(self) -> Path:
        return self.root / "journal.jsonl"

    @property
    def requirements(self) -> Path:
        return self.root / "requirements.txt"

    @property
    def answers(self) -> Path:
        return self.root / "answers.json"


@dataclass(frozen=True)
class KillPoint:
    """When to kill: all that will be asked is open, or enough is and little work is left; but some is in flight."""

    enough_open: int
    all_open: int
    little_work: int

    def is_reached(self, open_questions: int, in_work: int) -> bool:
        """Tell whether the child stands where it is to be killed."""
        if in_work == 0 or open_questions < self.enough_open:
            return False
        return open_questions >= self.all_open or in_work <= self.little_work


def demonstrate(environment: str = RUNNING, seconds: float = _FIRST_PROCESS_SECONDS) -> int:
    """Tell the whole story; return 0 only if the check at its end found nothing wrong.

    `seconds` is how long all look-ups of the first process would take.
    """
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="rehydrate-audit-", ignore_cleanup_errors=True) as directory:
        code = _story(_Place(Path(directory)), environment, seconds)
    say(f"\n{'Everything held' if code == 0 else 'It did NOT hold'}; {time.monotonic() - started:.1f} seconds.")
    return code


def _story(place: _Place, environment: str, all_seconds: float) -> int:
    site = make_unclear_environment(place.root)
    real = read_environment(environment).distributions
    made = read_environment(str(site)).distributions
    seconds = min(1.0, max(0.03, all_seconds * _AT_A_TIME / (len(real) + len(made))))
    pace = ["--no-prompt", "--look-up-seconds", f"{seconds:.3f}"]
    say(
        f"1. An audit of {len(real)} distributions installed here and of {len(made)} made-up ones that nobody can tell."
    )
    say(f"   A look-up takes {seconds:.2f} s, {_AT_A_TIME} at a time. A child process begins; nobody answers it.")
    kill_at = KillPoint(len(made), sum(_needs_person(each) for each in (*made, *real)), len(real) // 4)
    if not _run_until_killed(_command(place, str(site), environment, *pace), kill_at):
        return 1
    say("\n3. Meanwhile a person has found out about the open questions, and there is more to audit:")
    _write_second_input(place, real)
    _write_answers(place, [*made, *real])
    say("\n4. A new process makes one call: it restores the run, answers, and brings the new input.")
    looked_up = ["--installed-in", environment] if environment != RUNNING else []
    again = [str(place.requirements), *looked_up, "--answers", str(place.answers), "--check"]
    return _run_to_its_end(_command(place, *again, *pace))


def _command(place: _Place, *words: str) -> list[str]:
    common = ["--store", place.store, "--run", "demo", "--journal", str(place.journal)]
    return [sys.executable, "-m", "rehydrate.demo.licence_audit", *words, *common, "--at-a-time", str(_AT_A_TIME)]


@contextmanager
def _child(command: Sequence[str]) -> Generator[subprocess.Popen[str], None, None]:
    """Start a child that ends with this process, in a group of its own: Ctrl-C is for the parent alone."""
    child = subprocess.Popen(  # noqa: S603  (our own command)
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, bufsize=1, process_group=0
    )
    with child:
        try:
            yield child
        finally:
            child.kill()


def _run_until_killed(command: Sequence[str], kill_at: KillPoint) -> bool:
    with _child(command) as child:
        at_work = _watch(child, kill_at)
        child.kill()
        code = child.wait()
    if not at_work:
        say("   The child came to its end before it could be killed at work; that shows nothing.")
        return False
    say(f"\n2. Killed with SIGKILL while look-ups were in flight: exit code {code}, {at_work}.")
    return True


def _watch(child: subprocess.Popen[str], kill_at: KillPoint) -> str:
    """Echo the child until it is to be killed; return how it stood, empty if it ended before."""
    for line in _lines(child):
        match = _STANDING.search(line)
        if match and kill_at.is_reached(int(match["open"]), int(match["work"])):
            return f"{match['open']} questions open at depth two, {match['work']} distributions in work"
    return ""


def _run_to_its_end(command: Sequence[str]) -> int:
    with _child(command) as child:
        for _ in _lines(child):
            pass
        return child.wait()


def _lines(child: subprocess.Popen[str]) -> Iterator[str]:
    for line in child.stdout or ():
        say(f"   | {line.rstrip()}")
        yield line.rstrip("\n")


def _write_second_input(place: _Place, installed: Sequence[Distribution]) -> None:
    pinned = [f"{each.name}=={each.version}" for each in installed if each.version]
    lines = [*pinned[:: max(1, len(pinned) // 3)][:3], _ABSENT]
    place.requirements.write_text("\n".join(lines) + "\n", encoding="utf-8")
    say(f"   a requirements file: {', '.join(lines)}")


def _write_answers(place: _Place, distributions: Sequence[Distribution]) -> None:
    answers = {each.name: _stand_in(each) for each in distributions if _needs_person(each)} | UNCLEAR_LICENCES
    place.answers.write_text(json.dumps(answers), encoding="utf-8")
    say(f"   answers: {_listed(answers)}")


def _needs_person(distribution: Distribution) -> bool:
    return isinstance(classify(distribution), Undecided)


def _stand_in(distribution: Distribution) -> str:
    """Answer in the place of a person: with what the distribution declares if that is sound, else `unknown`."""
    try:
        expression = spdx.parse(distribution.licence_expression or "")
    except spdx.ExpressionError:
        return "unknown"
    return "unknown" if spdx.unknown_names(expression) else str(expression)


def _listed(answers: Mapping[str, str]) -> str:
    return ", ".join(f"{name} is {licence}" for name, licence in sorted(answers.items()))
