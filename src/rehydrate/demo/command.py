"""The command: the loop of calls and questions, what is said at its end, and exit codes.

Exit codes: 0 complete, 1 failed, 2 wrong arguments or input, 3 stopped with open questions, 130 interrupted; and those
of all commands for an output that cannot be written.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from rehydrate import WorkflowRunResult
from rehydrate.demo.advice import explain
from rehydrate.demo.answer_file import Answers, read_answers
from rehydrate.demo.audit import Audit, open_store
from rehydrate.demo.check import check, ran_again
from rehydrate.demo.demonstration import demonstrate
from rehydrate.demo.environment import RUNNING, AuditInputError, site_directories
from rehydrate.demo.interrupts import Interrupts
from rehydrate.demo.journal import open_journal, read_journal
from rehydrate.demo.licences import DecidedBy
from rehydrate.demo.messages import AuditRequest, LicenceQuestion
from rehydrate.demo.options import COMPLETE, FAILED, INTERRUPTED, QUESTIONS_OPEN, WRONG_INPUT, Options, parse
from rehydrate.demo.output import complain, say
from rehydrate.demo.prompt import Prompt
from rehydrate.demo.report import AuditReport, render
from rehydrate.demo.requirements import read_requirements
from rehydrate.demo.so_far import report_so_far
from rehydrate.errors import DefinitionError, RehydrateError, StoreUnavailableError, WrongCallError
from rehydrate.model.printable import printable

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    options = parse(arguments)
    with Interrupts() as interrupts:
        try:
            return demonstrate() if options.demo else _audit(options, interrupts)
        except (AuditInputError, DefinitionError, StoreUnavailableError, WrongCallError) as error:
            complain(f"error: {error}")
            return WRONG_INPUT
        except RehydrateError as error:
            complain(explain(error, options.again))
            return FAILED
        except KeyboardInterrupt:
            complain(f"\nStopped{_safe(options)}")
            return INTERRUPTED


def _safe(options: Options) -> str:
    if options.demo:
        return "."
    return f". {options.again}" if options.in_memory else f"; what was committed is safe. {options.again}"


def _audit(options: Options, interrupts: Interrupts) -> int:
    answers = _checked_input(options)
    storage = open_store(options.store)
    audit = Audit(storage, options.run, options.journal, options.look_up_seconds, options.at_a_time)
    try:
        return _Dialogue(options, audit, answers, Prompt(), interrupts).run()
    finally:
        asyncio.run(storage.close())


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


@dataclass(frozen=True)
class _Dialogue:
    """One audit and the person at the terminal: calls and questions by turns, until there is nothing to hand in."""

    options: Options
    audit: Audit
    answers: Answers
    prompt: Prompt
    interrupts: Interrupts

    def run(self) -> int:
        standing = self.interrupts.run(self.audit.standing)
        paths = self.options.paths or ((RUNNING,) if standing is None else ())
        request = AuditRequest(paths, self.options.installed_in) if paths else None
        responses = self._from_file(
            {each.request_id: (each.name, each.version) for each in (standing.questions if standing else ())}
        )
        result = self._call(request, responses)
        while responses := self._answers_for(result):
            result = self._call(None, responses)
        if self.prompt.interrupted:
            raise KeyboardInterrupt
        return self._finish(result)

    def _call(self, request: AuditRequest | None, responses: dict[str, str]) -> WorkflowRunResult:
        sources = f"{len(request.sources)} new input(s)" if request else "no new input"
        say(f"call        run {self.audit.run_id!r}: {len(responses)} answer(s), {sources}")
        return self.interrupts.run(lambda: self.audit.call(request, responses, say))

    def _answers_for(self, result: WorkflowRunResult) -> dict[str, str]:
        questions = _questions(result)
        responses = self._from_file({key: (each.about.name, each.about.version) for key, each in questions.items()})
        left = {key: question for key, question in questions.items() if key not in responses}
        if left and not self.options.no_prompt and sys.stdin.isatty():
            responses |= self.prompt.ask(left.items())
        return responses

    def _from_file(self, asked: dict[str, tuple[str, str]]) -> dict[str, str]:
        found = ((request_id, self.answers.find(*about)) for request_id, about in asked.items())
        return {request_id: licence for request_id, licence in found if licence}

    def _finish(self, result: WorkflowRunResult) -> int:
        questions = _questions(result)
        reports = [each for each in result.outputs if isinstance(each, AuditReport)]
        if not questions and reports:
            self._tell(reports[-1])
            return _checked(reports[-1], self.options) if self.options.check else COMPLETE
        self._tell(report_so_far(result.checkpoint, tuple(each.about for each in questions.values())))
        if self.options.check:
            say("Not checked, since the report is not complete.")
        say(f"Not complete. {self.options.again}")
        return QUESTIONS_OPEN

    def _tell(self, report: AuditReport) -> None:
        say("\n" + render(report))
        asked = [*report.waiting, *(row for row in report.rows if row.decided_by is DecidedBy.PERSON)]
        unused = self.answers.unused((each.name, each.version) for each in asked)
        if unused:
            say(f"Answers not used, since nothing of that name was asked about: {printable(', '.join(unused))}")


def _questions(result: WorkflowRunResult) -> dict[str, LicenceQuestion]:
    return {each.request_id: cast("LicenceQuestion", each.data) for each in result.pending_requests}


def _checked(report: AuditReport, options: Options) -> int:
    journal = read_journal(options.journal) if options.journal else ()
    say("Check against the environments themselves")
    results = check(report, options.installed_in, journal)
    for each in results:
        say(f"  {each}")
    again = ran_again(journal)
    if again:
        say(f"  (for {len(again)} the kill came before the commit, so they were classified anew: {', '.join(again)})")
    return FAILED if any(each.wrong for each in results) else COMPLETE
