"""Progress of a running audit: from the events of its stream to lines of text, and to the journal.

Watches only. What is printed as done has been committed; what was only tried is not printed.
"""

from __future__ import annotations

from collections.abc import Callable, Container

from rehydrate.demo.journal import Happened, note, read_journal
from rehydrate.demo.messages import LicenceQuestion, Progress, ProgressKind
from rehydrate.demo.standing import Standing
from rehydrate.model.events import Emitted, Event, RequestOpened, StatusChanged, SuperstepCompleted
from rehydrate.model.printable import printable

__all__ = ["ProgressLines"]


class ProgressLines:
    """Prints one line for each thing that has happened."""

    def __init__(self, write: Callable[[str], None], journal: str | None) -> None:
        self._write = write
        self._journal = journal
        self._tried: dict[str, Progress] = {}
        self._in_work = 0
        self._open: set[str] = set()

    def restored(self, standing: Standing, answered: Container[str]) -> None:
        """Tell how the restored run stands once the call's answers are taken.

        A question whose process was killed between the commit and the journal's line gets its line now.
        """
        self._open = {each.request_id for each in standing.questions if each.request_id not in answered}
        self._in_work = standing.in_work
        noted = {each.request_id for each in read_journal(self._journal)} if self._journal else set[str]()
        for each in standing.questions:
            if each.request_id not in noted:
                note(self._journal, Happened.ASKED, each.key, each.request_id)
        self._write(f"restored    the run {self._standing}")

    def take(self, event: Event) -> None:
        """Take one event of the stream."""
        match event:
            case Emitted(data=Progress(kind=ProgressKind.SCANNED) as news):
                self._scanned(news)
            case Emitted(data=Progress(kind=ProgressKind.CLASSIFIED) as news):
                self._tried[event.path] = news
            case SuperstepCompleted() if event.path in self._tried:
                self._committed(self._tried.pop(event.path))
            case RequestOpened(data=LicenceQuestion() as question):
                self._asked(event, question)
            case StatusChanged():
                self._write(f"status      {event.status.value}")
            case _:
                pass

    def _scanned(self, news: Progress) -> None:
        self._in_work += news.count
        self._write(f"scanned     {printable(news.subject)}: {news.detail}")

    def _committed(self, news: Progress) -> None:
        note(self._journal, Happened.COMMITTED, news.subject)
        self._in_work -= 1
        self._write(f"classified  {printable(news.subject)}: {news.detail} {self._standing}")

    def _asked(self, event: RequestOpened, question: LicenceQuestion) -> None:
        about = question.about
        what = "still open"
        # A call that brings nothing shows again what is open; only what was not open before has been asked now.
        if event.request_id not in self._open:
            what = "question"
            note(self._journal, Happened.ASKED, about.key, event.request_id)
            self._open.add(event.request_id)
        self._write(f"{what:<12}{printable(about.key)} at {event.path} {self._standing}")

    @property
    def _standing(self) -> str:
        return f"({len(self._open)} open, {self._in_work} in work)"
