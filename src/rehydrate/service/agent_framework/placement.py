"""What a checkpoint of theirs has come to here so far: questions by their ids, answers on their way, what was left out.

Only a record of it; `placing` and `on_the_way` decide.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Final, TypeVar

from .inert import Refused
from .trees import Node

Value = TypeVar("Value")
#: What can be left out as a whole; `state:KEY` and `executor:ID` name one.
WHOLES: Final = ("state", "executors", "messages", "joins")


@dataclass(frozen=True)
class Question:
    """Where a question of theirs stands here."""

    path: str
    name: str


@dataclass(frozen=True)
class AnswerBelow:
    """An answer on its way to a question of a sub-workflow, and how it is called where it has no place."""

    data: Node
    what: str


@dataclass
class Placement:
    """What was placed, by the ids that questions had, and what was left out."""

    leave_out: Collection[str]
    questions: dict[str, Question] = field(default_factory=dict[str, Question])
    #: Questions that an answer is on its way to.
    answered: set[str] = field(default_factory=set[str])
    #: Answers that have not come to their questions yet, by the ids of these.
    below: dict[str, AnswerBelow] = field(default_factory=dict[str, AnswerBelow])
    left_out: list[str] = field(default_factory=list[str])

    def kept(self, whole: str, one: str, what: str, make: Callable[[], Value]) -> list[Value]:
        """Return a piece, or nothing where it is named to be left out. Raises `Refused`, which says how to name it."""
        if whole in self.leave_out or one in self.leave_out:
            self.left_out.append(what)
            return []
        try:
            return [make()]
        except Refused as error:
            raise Refused(f"{what}: {error}. To do without it, leave out {one!r}") from error

    def answer(self, request_id: str, *, is_open: bool = False) -> None:
        """Note that a question is answered. Raises `Refused` where it is open, or answered already."""
        if is_open or request_id in self.questions or request_id in self.answered:
            raise Refused(f"question {request_id!r} is answered, and open or answered once more")
        self.answered.add(request_id)


def where(path: str) -> str:
    """Return the end of a sentence that says in which scope something is."""
    return f" in {path}" if path else ""
