"""Workflows with two questions at each of three depths, and what becomes of them in whatever order they are answered.

A level is a graph or a function. The text that comes out at the end says in which order each graph has taken its
answers; a function puts them in the order of its lines. What runs writes the journal that the call brings.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, permutations
from typing import Never

from rehydrate import (
    Executor,
    FunctionalContext,
    FunctionalWorkflow,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    append,
    current_step,
    executor,
    handler,
    response_handler,
    step,
    workflow,
)

DEPTH = 3
#: The questions in the order of their inner names in each scope, by depth.
NAMES = tuple(f"{depth}{letter}" for depth in range(1, DEPTH + 1) for letter in "ab")
#: What the levels are, from the root down.
KINDS = ("ggg", "fff", "gfg", "fgf")
#: The message of a turn that asks nothing and is over when the gate of its call is open.
WAIT = "wait"


@dataclass(frozen=True)
class Question:
    name: str


@dataclass
class Journal:
    """What has run in a call. `gate` holds the turn up where there is one."""

    entries: list[str] = field(default_factory=list)
    gate: asyncio.Event | None = None

    async def wait(self) -> None:
        if self.gate is not None:
            await self.gate.wait()

    def took(self, prefix: str) -> list[str]:
        """The entries of one kind, in their order."""
        return [entry.removeprefix(prefix) for entry in self.entries if entry.startswith(prefix)]


class Asker(Executor):
    """Asks some questions at once, logs each answer in the state of its scope, and passes on when it has all."""

    def __init__(self, id: str, names: Sequence[str]) -> None:
        super().__init__(id)
        self.names = tuple(names)

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[str]) -> None:
        for name in self.names:
            ctx.resources["journal"].entries.append(f"asked {name}")
            ctx.request_info(Question(name), response_type=str)

    @response_handler
    async def on_answer(self, question: Question, answer: str, ctx: WorkflowContext[str]) -> None:
        ctx.resources["journal"].entries.append(f"took {question.name}")
        ctx.update_state("log", f"{question.name}={answer}")
        have = ctx.get_state(self.id, 0) + 1
        ctx.set_state(self.id, have)
        if have == len(self.names):
            ctx.send_message("")


def holding() -> Workflow:
    """A workflow that is over when the gate of the call is open."""

    @executor(id="hold")
    async def hold(text: str, ctx: WorkflowContext) -> None:
        await ctx.resources["journal"].wait()

    return WorkflowBuilder("holding", hold).build()


def graph(depth: int, below: Workflow | FunctionalWorkflow | None) -> Workflow:
    """A level as a graph: one executor that asks both, or two that ask one each."""
    names = NAMES[2 * depth - 2 : 2 * depth]

    @executor(id="begin")
    async def begin(text: str) -> str:
        return text

    @executor(id="end")
    async def end(texts: list[str], ctx: WorkflowContext[Never, str]) -> str:
        told = f"{depth}:{','.join(ctx.get_state('log'))}"
        return "|".join([told, *filter(None, texts)])

    sources: list[Executor] = [Asker("one", names)]
    if depth % 2 == 0:
        sources = [Asker("left", names[:1]), Asker("right", names[1:])]
    if below is not None:
        sources.append(WorkflowExecutor(below, id="below"))
    held = WorkflowExecutor(holding(), id="held")
    builder = WorkflowBuilder(f"level {depth}", begin, reducers={"log": append})
    builder.add_fan_in_edges(sources, end).add_edge(begin, held, condition=lambda text: text == WAIT)
    for source in sources:
        builder.add_edge(begin, source, condition=lambda text: text != WAIT)
    return builder.build()


def function(depth: int, below: Workflow | FunctionalWorkflow | None) -> FunctionalWorkflow:
    """A level as a function: its questions, each with a step before and behind it, side by side with what is below."""
    held = holding()

    @step
    async def ask(name: str) -> None:
        current_step().resources["journal"].entries.append(f"asked {name}")

    @step
    async def take(name: str, answer: str) -> str:
        current_step().resources["journal"].entries.append(f"took {name}")
        return f"{name}={answer}"

    @workflow(name=f"level {depth}", calls=[*filter(None, [below]), held], types=[Question])
    async def level(text: str, ctx: FunctionalContext) -> str | None:
        if text == WAIT:
            await ctx.call(held, text)
            return None

        async def answered(name: str) -> str:
            await ask(name)
            return await take(name, await ctx.request_info(Question(name), response_type=str))

        branches = [answered(name) for name in NAMES[2 * depth - 2 : 2 * depth]]
        if below is not None:
            branches.append(ctx.call(below, text))
        one, other, *more = await ctx.gather(*branches)
        texts = [f"{depth}:{one},{other}"]
        if below is not None:
            texts += more[0] if isinstance(more[0], list) else [more[0]]
        return "|".join(texts)

    return level


def build(kinds: str) -> Workflow | FunctionalWorkflow:
    """Build the levels anew, each of its kind, from the root down: `g` a graph, `f` a function."""
    made: Workflow | FunctionalWorkflow | None = None
    for depth in range(DEPTH, 0, -1):
        made = (graph if kinds[depth - 1] == "g" else function)(depth, made)
    assert made is not None
    return made


Calls = tuple[tuple[str, ...], ...]


def expected(kinds: str, calls: Calls) -> str:
    """What comes out when each call brings its answers, whatever their order in the call."""
    texts: list[str] = []
    for depth in range(1, DEPTH + 1):
        taken = [name for call in calls for name in sorted(call) if name[0] == str(depth)]
        shown = taken if kinds[depth - 1] == "g" else sorted(taken)
        texts.append(f"{depth}:{','.join(f'{name}={answer(name)}' for name in shown)}")
    return "|".join(texts)


def answer(name: str) -> str:
    """The answer to a question."""
    return f"<{name}>"


def single(most: int) -> Iterator[Calls]:
    """Every order of up to so many answers, one a call, each before those that it begins."""
    for count in range(1, most + 1):
        for order in permutations(NAMES, count):
            yield tuple((name,) for name in order)


def grouped(most: int) -> Iterator[Calls]:
    """Every way to give up to so many answers in calls of which one brings several, each before those it begins."""
    found: list[Calls] = [()]
    for calls in found:
        given = {name for call in calls for name in call}
        for count in range(1, most - len(given) + 1):
            for call in combinations([name for name in NAMES if name not in given], count):
                found.append((*calls, call))
                if any(len(each) > 1 for each in found[-1]):
                    yield found[-1]


def open_after(calls: Iterable[Iterable[str]]) -> list[str]:
    """The questions that nobody has answered yet, in their order."""
    given = {name for call in calls for name in call}
    return [name for name in NAMES if name not in given]
