"""The prompt: asks the person at the terminal for the licences that the audit could not decide.

Reads and prints only; an answer that names no licence is asked for again here, before the run sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rehydrate.demo.answers import AnswerNotUnderstoodError, settle
from rehydrate.demo.licences import Undecided
from rehydrate.demo.messages import LicenceQuestion
from rehydrate.demo.report import printable

__all__ = ["ask_person"]

_HELP = "Answer with an SPDX expression or a family; Enter skips, ? shows the evidence, Ctrl-D stops asking."


def ask_person(
    questions: Iterable[tuple[str, LicenceQuestion]],
    read: Callable[[str], str] = input,
    write: Callable[[str], None] = print,
) -> dict[str, str]:
    """Ask one question after the other; return the answers by request id, without those that were skipped."""
    answers: dict[str, str] = {}
    write(_HELP)
    for request_id, question in questions:
        try:
            answer = _ask(question, read, write)
        except EOFError:
            write("")
            break
        if answer:
            answers[request_id] = answer
    return answers


def _ask(question: LicenceQuestion, read: Callable[[str], str], write: Callable[[str], None]) -> str:
    about = question.about
    write("")
    write(f"{printable(about.name)} {printable(about.version)} ({printable(about.location)})")
    for reason in (*about.reasons, *([question.refused] if question.refused else [])):
        write(f"  {printable(reason)}")
    while True:
        answer = read("  licence> ").strip()
        if answer == "?":
            _show(about, write)
            continue
        if not answer:
            return ""
        try:
            settle(answer)
        except AnswerNotUnderstoodError as error:
            write(f"  {printable(str(error))}")
            continue
        return answer


def _show(about: Undecided, write: Callable[[str], None]) -> None:
    for each in about.evidence:
        write(f"  {each.kind.value}: {printable(each.said)}")
        write(f"    means {printable(each.means)}")
    if not about.evidence:
        write("  the metadata says nothing")
