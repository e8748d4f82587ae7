"""The command line of the audit: arguments, the loop of calls and questions, and exit codes.

Exit codes: 0 complete, 1 failed, 2 wrong arguments or input, 3 stopped with open questions, 130 interrupted.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn, cast

from rehydrate import CheckpointStorage, WorkflowRunResult
from rehydrate.demo.answer_file import Answers, read_answers
from rehydrate.demo.audit import Audit, open_store
from rehydrate.demo.check import check, ran_again
from rehydrate.demo.demonstration import demonstrate
from rehydrate.demo.environment import RUNNING, AuditInputError, site_directories
from rehydrate.demo.journal import open_journal, read_journal
from rehydrate.demo.messages import AuditRequest, LicenceQuestion
from rehydrate.demo.prompt import ask_person
from rehydrate.demo.report import AuditReport, render
from rehydrate.demo.requirements import read_requirements
from rehydrate.demo.so_far import report_so_far
from rehydrate.errors import DefinitionError, RehydrateError, StoreUnavailableError

__all__ = ["main"]

PROGRAM: Final = "python -m rehydrate.demo.licence_audit"
COMPLETE, FAILED, WRONG_INPUT, QUESTIONS_OPEN, INTERRUPTED = 0, 1, 2, 3, 130


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
    def again(self) -> str:
        """The command that goes on where this one stopped."""
        words = ["--store", self.store, "--run", self.run]
        words += ["--journal", self.journal] if self.journal else []
        return f"{PROGRAM} {shlex.join(words)}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    options = _options(arguments)
    if options.demo:
        return demonstrate()
    storage: CheckpointStorage | None = None
    try:
        answers = _checked_input(options)
        storage = open_store(options.store)
        return _audit(options, storage, answers)
    except (AuditInputError, DefinitionError, StoreUnavailableError) as error:
        return _fail(f"error: {error}", WRONG_INPUT)
    except RehydrateError as error:
        return _fail(f"error: {error}\nWhat was committed is safe. Go on with: {options.again}", FAILED)
    except KeyboardInterrupt:
        return _fail(f"\nStopped; what was committed is safe. Go on with: {options.again}", INTERRUPTED)
    except BrokenPipeError:
        # Whoever read the output has left; the interpreter would complain once more when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return INTERRUPTED
    finally:
        if storage is not None:
            asyncio.run(storage.close())


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong with the arguments."""

    def error(self, message: str) -> NoReturn:
        self.exit(WRONG_INPUT, f"error: {message}; see {PROGRAM} --help\n")


def _options(arguments: Sequence[str] | None) -> Options:
    parser = _Parser(
        prog=PROGRAM,
        description="Audit the licences of Python environments; stop and go on at any point.",
        epilog="Exit codes: 0 complete, 1 failed, 2 wrong input, 3 stopped with open questions, 130 interrupted.",
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
    add("--check", action="store_true", help="compare the complete report with the environments themselves")
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


def _fail(text: str, code: int) -> int:
    print(text, file=sys.stderr, flush=True)
    return code


def _say(text: str) -> None:
    print(text, flush=True)


def _checked_input(options: Options) -> Answers:
    """Read the answers and look at every path, so that nothing starts with input that is wrong."""
    for path in (*options.paths, options.installed_in):
        if path not in {RUNNING, options.installed_in} and Path(path).is_file():
            read_requirements(Path(path))
        else:
            site_directories(path)
    if options.journal:
        open_journal(options.journal)
    return read_answers(Path(options.answers)) if options.answers else Answers({})


def _audit(options: Options, storage: CheckpointStorage, answers: Answers) -> int:
    audit = Audit(storage, options.run, options.journal, options.look_up_seconds, options.at_a_time)
    standing = asyncio.run(audit.standing())
    paths = options.paths or ((RUNNING,) if standing is None else ())
    request = AuditRequest(paths, options.installed_in) if paths else None
    found = (
        (each.request_id, answers.find(each.name, each.version)) for each in (standing.questions if standing else ())
    )
    responses = {request_id: licence for request_id, licence in found if licence}
    result = _call(audit, request, responses)
    while responses := _answers_for(result, answers, options):
        result = _call(audit, None, responses)
    return _finish(result, options)


def _call(audit: Audit, request: AuditRequest | None, responses: dict[str, str]) -> WorkflowRunResult:
    sources = f"{len(request.sources)} new input(s)" if request else "no new input"
    _say(f"call        run {audit.run_id!r}: {len(responses)} answer(s), {sources}")
    return asyncio.run(audit.call(request, responses, _say))


def _answers_for(result: WorkflowRunResult, answers: Answers, options: Options) -> dict[str, str]:
    questions = _questions(result)
    found = ((each, answers.find(question.about.name, question.about.version)) for each, question in questions.items())
    responses = {request_id: licence for request_id, licence in found if licence}
    left = {each: question for each, question in questions.items() if each not in responses}
    if left and not options.no_prompt and sys.stdin.isatty():
        responses |= ask_person(left.items())
    return responses


def _questions(result: WorkflowRunResult) -> dict[str, LicenceQuestion]:
    return {each.request_id: cast("LicenceQuestion", each.data) for each in result.pending_requests}


def _finish(result: WorkflowRunResult, options: Options) -> int:
    questions = _questions(result)
    reports = [each for each in result.outputs if isinstance(each, AuditReport)]
    if questions or not reports:
        report = report_so_far(result.checkpoint, tuple(each.about for each in questions.values()))
        _say("\n" + render(report))
        _say(f"Not complete. Go on with: {options.again}")
        return QUESTIONS_OPEN
    _say("\n" + render(reports[-1]))
    return _checked(reports[-1], options) if options.check else COMPLETE


def _checked(report: AuditReport, options: Options) -> int:
    journal = read_journal(options.journal) if options.journal else ()
    _say("Check against the environments themselves")
    results = check(report, options.installed_in, journal)
    for each in results:
        _say(f"  {each}")
    again = ran_again(journal)
    if again:
        _say(f"  (for {len(again)} the kill came before the commit, so they were classified anew: {', '.join(again)})")
    return FAILED if any(each.wrong for each in results) else COMPLETE
