"""The prompt: asks the person at the terminal for the licences that the audit could not decide.

Reads and prints only; an answer that names no licence is asked for again here, before the run sees it. What was
answered is given back however the asking ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rehydrate.demo.answers import AnswerNotUnderstoodError, settle
from rehydrate.demo.licences import Undecided
from rehydrate.demo.messages import LicenceQuestion
from rehydrate.demo.output import say
from rehydrate.model.printable import printable

__all__ = ["Prompt"]

_HELP = (
    "Answer with an SPDX expression or a family; Enter skips, ? shows the evidence, Ctrl-D stops asking, "
    "Ctrl-C stops all. What is answered by then is kept."
)


class Prompt:
    """Asks about each question once, until the person wants no more; `interrupted` where that was said by Ctrl-C."""

    def __init__(self, read: Callable[[str], str] = input, write: Callable[[str], None] = say) -> None:
        self._read = read
        self._write = write
        self._asked: set[str] = set()
        self._ended = False
        self.interrupted = False

    def ask(self, questions: Iterable[tuple[str, LicenceQuestion]]) -> dict[str, str]:
        """Ask one new question after the other; return the answers by request id, without those that were skipped."""
        left = [(request_id, question) for request_id, question in questions if request_id not in self._asked]
        answers: dict[str, str] = {}
        if not left or self._ended:
            return answers
        try:
            self._write(_HELP)
            for request_id, question in left:
                self._asked.add(request_id)
                answer = self._answer(question)
                if answer:
                    answers[request_id] = answer
        except (EOFError, OSError):
            # The end of input, or a terminal that has gone.
            self._ended = True
        except KeyboardInterrupt:
            self._ended = self.interrupted = True
        if self._ended:
            self._write("")
        return answers

    def _answer(self, question: LicenceQuestion) -> str:
        about = question.about
        self._write("")
        self._write(f"{printable(about.name)} {printable(about.version)} ({printable(about.location)})")
        for reason in (*about.reasons, *([question.refused] if question.refused else [])):
            self._write(f"  {printable(reason)}")
        while True:
            answer = self._read("  licence> ").strip()
            if answer == "?":
                self._show(about)
                continue
            if not answer:
                return ""
            try:
                settle(answer)
            except AnswerNotUnderstoodError as error:
                self._write(f"  {printable(str(error))}")
                continue
            return answer

    def _show(self, about: Undecided) -> None:
        for each in about.evidence:
            self._write(f"  {each.kind.value}: {printable(each.said)}")
            self._write(f"    means {printable(each.means)}")
        if not about.evidence:
            self._write("  the metadata says nothing")
