"""Workflows of one module for a new interpreter: one that goes through a set as it comes, and one that sorts it."""

import time
from typing import Never

from rehydrate import Executor, Workflow, WorkflowBuilder, WorkflowContext, executor, handler, response_handler

WORDS = frozenset({"ash", "beech", "cedar", "elm", "fir", "larch", "maple", "oak", "pine", "yew"})


class Gather(Executor):
    """Tells of all words, in the order in which the set gives them."""

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        ctx.request_info(text, response_type=str)

    @response_handler
    async def on_answer(self, text: str, answer: str, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output(" ".join(self.ordered(WORDS | {text, answer})))

    def ordered(self, words: frozenset[str]) -> list[str]:
        return list(words)


class Sorted(Gather):
    """Sorts them first."""

    def ordered(self, words: frozenset[str]) -> list[str]:
        return sorted(words)


@executor(id="stamp")
async def stamp(text: str) -> str:
    return f"{text} at {time.perf_counter_ns()}"


def unordered() -> Workflow:
    return WorkflowBuilder("gathering", Gather("gather")).build()


def ordered() -> Workflow:
    return WorkflowBuilder("gathering", Sorted("gather")).build()


def stamped() -> Workflow:
    return WorkflowBuilder("stamping", stamp).build()
