"""The page on events says what the code says: every kind with its fields, and the diagram of statuses."""

import asyncio
import re
from collections import defaultdict
from typing import Never, get_args

import msgspec
import pytest

from rehydrate import Executor, WorkflowBuilder, WorkflowContext, WorkflowExecutor, executor, handler
from rehydrate.errors import RunFailedError
from rehydrate.model.events import Event, EventBase, LiveEvent
from rehydrate.model.status_table import STATUS_TABLE, StatusChange
from tests.docs.pages import DOCS, rows

PAGE = DOCS / "events.md"
BASE = msgspec.structs.fields(EventBase)
#: The fields that say where something happened.
WHERE = ("path", "executor_id", "superstep", "activation")


def table() -> dict[str, list[str]]:
    """The rows of the page's table by event."""
    return {row[0].strip("`"): row[1:] for row in rows(PAGE, "All events")}


def names(cell: str) -> list[str]:
    """The names in a cell, in their order."""
    return re.findall(r"`(\w+)`", cell)


def test_the_page_has_every_event_with_its_own_fields() -> None:
    """The kinds are those of the closed union in its order, and each row has the fields that only this kind has."""
    base = {field.name for field in BASE}
    own = {kind.__name__: [f for f in kind.__struct_fields__ if f not in base] for kind in get_args(Event)}
    assert {name: names(row[1]) for name, row in table().items()} == own
    assert list(table()) == list(own)


def test_the_page_says_which_events_are_live() -> None:
    """Rows that begin with `live:` are those of live events."""
    live = [name for name, row in table().items() if row[2].startswith("live:")]
    assert live == [kind.__name__ for kind in get_args(LiveEvent)]


class Counts(Executor):
    """Emits, and sends two numbers, of which a condition declines one."""

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[int]) -> None:
        ctx.emit(text)
        for number in range(2):
            ctx.send_message(number)


@executor(id="fails")
async def fails(number: int, ctx: WorkflowContext[Never, str]) -> None:
    raise ValueError(number)


async def told() -> list[Event]:
    """The events of a run, nested, that fails in the end."""
    counts, inside = Counts("counts"), Counts("inside")
    child = WorkflowBuilder("inner", inside).add_edge(inside, fails, condition=lambda number: number > 0).build()
    node = WorkflowExecutor(child, "child")

    @executor(id="start")
    async def start(text: str, ctx: WorkflowContext[str, str]) -> str:
        ctx.yield_output(text)
        return text

    workflow = WorkflowBuilder("outer", start).add_edge(start, node).add_edge(start, counts)
    workflow.add_edge(counts, fails, condition=lambda number: number == 0)
    stream = workflow.build().run("text", stream=True)
    events = [event async for event in stream]
    with pytest.raises(RunFailedError):
        await stream.result()
    return events


def test_events_fill_the_fields_that_the_page_names() -> None:
    """In a run that tells most kinds, no other field says anything, and each that is named does somewhere."""
    filled = defaultdict(set)
    for event in asyncio.run(told()):
        filled[type(event).__name__] |= {name for name in WHERE if getattr(event, name)}
    assert {name: set(names(table()[name][0])) for name in filled} == dict(filled)
    assert set(filled) >= {"ScopeStarted", "OutputYielded", "MessageDropped", "InvocationFailed", "Emitted"}


def diagram(changes: tuple[StatusChange, ...]) -> str:
    """The diagram of a table of changes, in Mermaid."""
    lines = [f"    {change.before or '[*]'} --> {change.after}: {change.by}" for change in changes]
    return "\n".join(["stateDiagram-v2", *lines])


def test_the_diagram_is_made_from_the_status_table() -> None:
    """The block on the page is what the table in the code gives, line by line."""
    (shown,) = re.findall(r"^```mermaid\n(.*?)\n```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert shown == diagram(STATUS_TABLE)
