"""The workflows that the cases of nesting speak of, each made by a function: any process can build them anew."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Never

from rehydrate import (
    Executor,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    executor,
    handler,
    response_handler,
)
from tests.nested.intercepted import policed
from tests.nested.mapped import mapped
from tests.nested.self_nested import levels
from tests.nested.sharing import shared
from tests.nested.tree import tree


@dataclass(frozen=True)
class Step:
    """One more round of counting."""


@dataclass(frozen=True)
class Question:
    text: str


@executor(id="intake")
async def intake(text: str) -> str:
    return text


@executor(id="publish")
async def publish(text: str) -> str:
    return f"published {text}"


class Counter(Executor):
    """Counts to 2 in itself and in the scope's state, asks, and goes on by what is answered."""

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.count = 0

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[Step]) -> None:
        self.count += 1
        ctx.set_state("count", self.count)
        ctx.send_message(Step())

    @handler
    async def on_step(self, step: Step, ctx: WorkflowContext[Step]) -> None:
        self.count += 1
        ctx.set_state("count", ctx.get_state("count") + 1)
        ctx.request_info(Question(f"counted to {self.count}, how many more?"), response_type=int)

    @response_handler
    async def on_more(self, question: Question, more: int, ctx: WorkflowContext[Step, str]) -> None:
        self.count += more
        ctx.set_state("count", ctx.get_state("count") + more)
        ctx.yield_output(f"executor {self.count}, state {ctx.get_state('count')}")

    async def on_checkpoint_save(self) -> dict[str, object]:
        return {"count": self.count}

    async def on_checkpoint_restore(self, state: dict[str, object]) -> None:
        self.count = state["count"]


def counting() -> Workflow:
    """A parent with a child that counts."""
    counter = Counter("counter")
    child = WorkflowBuilder("child", counter).add_edge(counter, counter).build()
    return WorkflowBuilder("parent", intake).add_chain([intake, WorkflowExecutor(child, "child"), publish]).build()


class Ask(Executor):
    """Asks what it is told to ask, and yields question and answer."""

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[Never]) -> None:
        ctx.request_info(Question(text), response_type=str)

    @response_handler
    async def on_answer(self, question: Question, answer: str, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output(f"{question.text}: {answer}")


def asking(name: str = "asking", **settings: object) -> Workflow:
    """A workflow of one executor that asks."""
    return WorkflowBuilder(name, Ask("ask"), **settings).build()


def around(child: Workflow, id: str = "child", **settings: object) -> Workflow:
    """A workflow that does nothing but run another one."""
    return WorkflowBuilder(f"around {child.name}", WorkflowExecutor(child, id), **settings).build()


def two_down() -> Workflow:
    """A parent, a child and a grandchild that asks; what it yields is published by the parent."""
    middle = WorkflowExecutor(around(asking(), "grandchild"), "child")
    return WorkflowBuilder("two down", intake).add_chain([intake, middle, publish]).build()


class AskTwice(Executor):
    """Asks a second question when the first one is answered."""

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[Never]) -> None:
        ctx.request_info(Question(f"{text} 1?"), response_type=str)

    @response_handler
    async def on_answer(self, question: Question, answer: str, ctx: WorkflowContext[Never, str]) -> None:
        if question.text.endswith("1?"):
            ctx.set_state("first", answer)
            ctx.request_info(Question(question.text.replace("1?", "2?")), response_type=str)
            return
        ctx.yield_output(f"{ctx.get_state('first')}, then {answer}")


def one_after_the_other() -> Workflow:
    """A parent whose child asks two questions one after the other."""
    return around(WorkflowBuilder("asks twice", AskTwice("ask")).build())


class AskBoth(Executor):
    """Asks two questions at once and yields both answers together, in the order in which they came."""

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.answers: list[str] = []

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[Never]) -> None:
        ctx.request_info(Question(f"{text}1"), response_type=str)
        ctx.request_info(Question(f"{text}2"), response_type=str)

    @response_handler
    async def on_answer(self, question: Question, answer: str, ctx: WorkflowContext[Never, str]) -> None:
        self.answers.append(answer)
        if len(self.answers) == 2:
            ctx.yield_output(f"({self.answers[0]}, {self.answers[1]})")

    def on_checkpoint_save(self) -> dict[str, object]:
        return {"answers": self.answers}

    def on_checkpoint_restore(self, state: dict[str, object]) -> None:
        self.answers = state["answers"]


def both_at_once() -> Workflow:
    """A parent whose child asks two questions for each input."""
    return around(WorkflowBuilder("asks both", AskBoth("ask")).build())


class AskForUser(Executor):
    """Tells whom it works for, when it is started and when it is answered."""

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output(f"{text} for {ctx.run_args['user']}")
        ctx.request_info(Question(text), response_type=str)

    @response_handler
    async def on_answer(self, question: Question, answer: str, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output(f"{answer} for {ctx.run_args['user']}")


def for_user() -> Workflow:
    """A parent whose grandchild reads the run arguments."""
    return around(around(WorkflowBuilder("for user", AskForUser("ask")).build(), "grandchild"))


#: The names by which another process is asked for them.
STORIES: dict[str, Callable[..., Workflow]] = {
    story.__name__: story
    for story in (
        counting,
        two_down,
        one_after_the_other,
        both_at_once,
        for_user,
        tree,
        mapped,
        policed,
        shared,
        levels,
    )
}
