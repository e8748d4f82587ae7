"""Small runs that have a record of every kind: workflows that stop and go on in a process of any age, and the
checkpoints of their runs. The workflows take whatever values they are given, so that what raises is the engine."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, Never, TypeAlias

from rehydrate import (
    Executor,
    FunctionalContext,
    InMemoryCheckpointStorage,
    Retry,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    WorkflowRunResult,
    append,
    executor,
    handler,
    response_handler,
    step,
    workflow,
)
from rehydrate.errors import RunFailedError, StepFailedError
from rehydrate.model.checkpoint import Archive, Stored
from rehydrate.testing import run_virtually

LONG: Final = "0123456789abcdef" * 160
#: So many questions of one scope share a record.
MANY: Final = 34


@dataclass(frozen=True)
class Ask:
    about: str
    number: int


class Asking(Executor):
    """Asks as often as its message says, and keeps what it has seen."""

    def __init__(self, id: str = "ask", times: int = 2) -> None:
        super().__init__(id)
        self.times = times
        self.seen = 0

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        self.seen += 1
        ctx.update_state("lines", text)
        for number in range(self.times):
            ctx.request_info(Ask(text, number), response_type=bool)

    @response_handler
    async def on_answer(self, asked: Ask, answer: bool, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output(f"{asked.about} {asked.number} {answer}")

    def on_checkpoint_save(self) -> dict[str, object]:
        return {"seen": self.seen}

    def on_checkpoint_restore(self, state: Mapping[str, object]) -> None:
        self.seen = int(str(state["seen"]))


@executor(id="start")
async def start(text: str, ctx: WorkflowContext[str]) -> None:
    ctx.set_state("handbook", LONG + text)
    ctx.update_state("lines", f"start {text}")
    ctx.send_message(text)


@executor(id="note")
async def note(text: str, ctx: WorkflowContext[str]) -> None:
    ctx.set_state("handbook", text + LONG)
    ctx.update_state("lines", f"note {text}")
    if len(text) < 4:
        ctx.send_message(text * 2)


@executor(id="split")
async def split(texts: list[str], ctx: WorkflowContext[list[str]]) -> None:
    ctx.send_message([*texts, "more"])


@executor(id="each")
async def each(text: str, ctx: WorkflowContext[str]) -> None:
    ctx.send_message(f"<{text}>")


@executor(id="told")
async def told(texts: list[str]) -> str:
    return "+".join(map(str, texts))


@executor(id="end")
async def end(text: str) -> str:
    return f"end {text}"


@executor(id="breaks", retry=Retry(attempts=2))
async def breaks(text: str) -> str:
    raise ValueError(text)


@executor(id="loop")
async def loop(text: str, ctx: WorkflowContext[str]) -> None:
    ctx.send_message(text)


def declines(text: str) -> bool:
    raise ValueError(text)


@cache
def broken() -> Workflow:
    """A graph in which an executor and a condition raise while a map asks."""
    return (
        WorkflowBuilder("broken", start, reducers={"lines": append})
        .add_fan_out_edges(start, [breaks, note])
        .add_edge(note, end, condition=declines)
        .build()
    )


@cache
def round_and_round() -> Workflow:
    """A graph that reaches its limit."""
    return WorkflowBuilder("round", loop, max_supersteps=3).add_edge(loop, loop).build()


@executor(id="several")
async def several(text: str, ctx: WorkflowContext[list[str]]) -> None:
    ctx.send_message([text, text + "x", text + "xy"])


@executor(id="doubled")
async def doubled(text: str, ctx: WorkflowContext[str]) -> None:
    ctx.send_message(text * 2)


@cache
def mapped() -> Workflow:
    """A map whose items ask, each in a scope of its own, and one that is done at once."""
    inner = WorkflowExecutor(WorkflowBuilder("item", Asking("item", 1), reducers={"lines": append}).build(), id="item")
    return (
        WorkflowBuilder("mapped", several)
        .add_map_edge(several, inner, into=told)
        .add_map_edge(several, doubled, into=told)
        .build()
    )


@cache
def nested() -> Workflow:
    """A graph with state in pieces and in parts, a join, a map, and questions two scopes below."""
    lowest = WorkflowBuilder("lowest", Asking(), reducers={"lines": append}).build()
    inner = WorkflowExecutor(lowest, id="inner")
    between = WorkflowBuilder("between", each).add_edge(each, inner).build()
    outer = WorkflowExecutor(between, id="outer")
    shared = WorkflowExecutor(
        WorkflowBuilder("one", Asking("one", 1), reducers={"lines": append}).build(),
        id="shared",
        isolation="shared",
        timeout=1000,
    )
    return (
        WorkflowBuilder("nested", start, reducers={"lines": append}, max_supersteps=40)
        .add_fan_out_edges(start, [note, outer, shared])
        .add_fan_in_edges([note, outer], split)
        .add_map_edge(split, end, into=told)
        .build()
    )


@cache
def asking() -> Workflow:
    """A graph that asks so much at once that its questions share a record."""
    many = WorkflowExecutor(WorkflowBuilder("many", Asking("many", MANY), reducers={"lines": append}).build(), "many")
    return WorkflowBuilder("asking", start, reducers={"lines": append}).add_chain([start, many, end]).build()


@step(retry=Retry(attempts=3))
async def noted(text: str) -> str:
    return text.upper()


@step
async def rarely(text: str) -> str:
    raise ValueError(text)


@workflow(name="function", types=[Ask])
async def function(text: str, ctx: FunctionalContext) -> str:
    """A function with steps, questions side by side, a timer, values of the moment, and a graph that it calls."""
    first = await noted(text)
    begun = ctx.now()
    try:
        await rarely(text)
    except StepFailedError:
        first += "!"
    ctx.set_state("text", first)
    answer, called, _ = await ctx.gather(
        ctx.request_info(Ask(first, 1), response_type=bool), ctx.call(small(), first), ctx.sleep(60)
    )
    for number in range(20):
        first = await noted(f"{first}{number}"[-4:])
    second = await ctx.request_info(Ask(first, 2), response_type=bool)
    return f"{first} {answer} {called} {second} {ctx.now() >= begun} {ctx.get_state('text')}"


@cache
def small() -> Workflow:
    """A graph that asks once."""
    return WorkflowBuilder("small", Asking("once", 1), reducers={"lines": append}).build()


@cache
def mixed() -> Workflow:
    """A graph in which a function is a node."""
    node = WorkflowExecutor(function, id="function")
    return WorkflowBuilder("mixed", start, reducers={"lines": append}).add_chain([start, node, end]).build()


Made: TypeAlias = "dict[str, Workflow]"


@cache
def workflows() -> Made:
    """Return the workflows by name."""
    found: Made = {
        "nested": nested(),
        "asking": asking(),
        "mixed": mixed(),
        "small": small(),
        "broken": broken(),
        "round": round_and_round(),
        "mapped": mapped(),
    }
    found["function"] = function  # type: ignore[assignment]
    return found


async def go_on(made: Workflow, result: WorkflowRunResult, answers: int, store: object = None) -> WorkflowRunResult:
    """Answer some of what is open, and go on."""
    given = [request.answer(True) for request in result.pending_requests[:answers]]
    return await made.run(checkpoint=result, responses=given, checkpoint_storage=store)


async def _run(name: str, store: InMemoryCheckpointStorage) -> None:
    made = workflows()[name]
    try:
        result = await made.run("ab", run_id=name, checkpoint_storage=store, idempotency_key=f"key {name}")
    except RunFailedError:
        return
    for answers in (1, 1, 2, 40, 40):
        if result.pending_requests:
            result = await go_on(made, result, answers, store)
    if name not in {"mixed", "round"}:
        await made.run("cd", checkpoint="latest", run_id=name, checkpoint_storage=store, run_args={"a": 1})


@cache
def checkpoints(name: str) -> tuple[Stored, ...]:
    """Return every checkpoint of the run of a workflow, oldest first."""

    async def main() -> tuple[Stored, ...]:
        store = InMemoryCheckpointStorage()
        await _run(name, store)
        headers = await store.history(name, limit=1000)
        found = [await store.load(header.checkpoint_id) for header in reversed(headers)]
        return tuple(stored for stored in found if stored is not None)

    return run_virtually(main())


@cache
def archive(name: str) -> Archive:
    """Return the whole run of a workflow, its events included."""

    async def main() -> Archive:
        store = InMemoryCheckpointStorage(keep_events=True)
        await _run(name, store)
        found = await store.archive(name)
        assert found is not None
        return found

    return run_virtually(main())


def run_now(work: object) -> object:
    """Drive a coroutine in virtual time."""
    return run_virtually(work)  # type: ignore[arg-type]


__all__ = ["archive", "asyncio", "checkpoints", "go_on", "run_now", "workflows"]
