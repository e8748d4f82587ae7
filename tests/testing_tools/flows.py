"""Small workflows for the testing tools: a desk that asks about what it gets, and faulty ones that keep state beside
their runs.
"""

import itertools
from dataclasses import dataclass
from typing import ClassVar, Never

from rehydrate import Executor, WorkflowBuilder, WorkflowContext, WorkflowExecutor, executor, handler, response_handler


@dataclass(frozen=True)
class Question:
    text: str


class Asker(Executor):
    """Asks about each text and yields what was answered; `remember` and `recall` are for faulty ones."""

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        ctx.set_state("asked", [*ctx.get_state("asked", []), text])
        self.remember(text)
        ctx.request_info(Question(text), response_type=str)

    @response_handler
    async def on_answer(self, question: Question, answer: str, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output(f"{question.text}: {answer}{self.recall()}")

    def remember(self, text: str) -> None:
        """Keep nothing."""

    def recall(self) -> str:
        return ""


class ByClass(Asker):
    total: ClassVar[int] = 0

    def remember(self, text: str) -> None:
        type(self).total += 1

    def recall(self) -> str:
        return f" {self.total}"


class ByAttribute(Asker):
    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.heard: list[str] = []

    def remember(self, text: str) -> None:
        self.heard.append(text)

    def recall(self) -> str:
        return f" {self.heard}"


class Desk:
    def __init__(self) -> None:
        self.notes: dict[str, int] = {}


class ByObject(Asker):
    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.desk = Desk()

    def remember(self, text: str) -> None:
        self.desk.notes[text] = 1

    def recall(self) -> str:
        return f" {self.desk.notes}"


HEARD: list[str] = []
NUMBERS = itertools.count(1)


class ByGlobal(Asker):
    def remember(self, text: str) -> None:
        HEARD.append(text)

    def recall(self) -> str:
        return f" {HEARD}"


class ByCounter(Asker):
    def remember(self, text: str) -> None:
        next(NUMBERS)

    def recall(self) -> str:
        return f" {next(NUMBERS)}"


class Faithful(Asker):
    """Keeps what it heard by the two hooks."""

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.heard: list[str] = []

    def on_checkpoint_save(self) -> dict[str, object]:
        return {"heard": self.heard}

    def on_checkpoint_restore(self, state: dict[str, object]) -> None:
        self.heard = state["heard"]

    def remember(self, text: str) -> None:
        self.heard.append(text)

    def recall(self) -> str:
        return f" {self.heard}"


@executor(id="split")
async def split(text: str, ctx: WorkflowContext[str]) -> None:
    for word in text.split():
        ctx.send_message(word)


@executor(id="sign")
async def sign(text: str) -> str:
    return f"{text}!"


def desk(kind: type[Asker] = Asker):
    """Make a workflow that asks about each word of a text, a level below its root, and signs what was answered."""
    below = WorkflowBuilder("below", kind("asker")).build()
    asking = WorkflowExecutor(below, id="asking")
    return WorkflowBuilder("desk", split).add_chain([split, asking, sign]).build()
