"""A run as an HTML table, for notebooks: how it stands, its outputs, open requests, and what its scopes hold.

What a run holds may come from anybody: all of it is escaped, cut, and without control characters. No script, no style
sheet, no ids, so that many of these may stand in one page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import islice
from typing import Final

import msgspec

from rehydrate.codecs import plain
from rehydrate.engine import reading
from rehydrate.engine.reading import next_executors, open_requests
from rehydrate.errors import RehydrateError
from rehydrate.model.plain import Plain
from rehydrate.model.printable import printable

from .checkpoint import WorkflowCheckpoint
from .facts import Fact, FactKey, facts_of

#: Letters of a value, and rows of a table.
_LONGEST: Final = 200
_MOST: Final = 30
#: What stands above the table of what scopes hold, or in a table of its own.
_ELSEWHERE: Final = frozenset({"status", "turn", "version", "output", "request", "closed request"})
_CELL: Final = ' style="text-align:left;vertical-align:top"'
_STATUS_COLOURS: Final = {
    "IDLE": "#37835a", "IDLE_WITH_PENDING_REQUESTS": "#a5790f", "RUNNING": "#3c6db0", "FAILED": "#b0302a",
}  # fmt: skip


def run_html(checkpoint: WorkflowCheckpoint, status: str, more: str) -> str:
    """Return a run as it stands at a checkpoint; `more` is said beside its status."""
    run = checkpoint.records
    parts = [heading_html(f"{checkpoint.workflow_name} {checkpoint.run_id}", status, more)]
    outputs = reading.outputs(run)
    if outputs:
        parts.append(table_html(("output",), ([_value(plain(record.value.data))] for record in outputs), len(outputs)))
    count = run.totals["request"]
    if count:
        rows = (
            (each.request_id, _place(each.path, each.record.executor), _value(plain(each.record.data.data)),
             each.record.response_type)
            for each in open_requests(run)
        )  # fmt: skip
        parts.append(table_html(("open request", "from", "asks", "expects"), rows, count))
    waiting = next_executors(run)
    if waiting:
        parts.append(table_html(("would run next",), ([each] for each in waiting), len(waiting)))
    held = [(key, fact) for key, fact in facts_of(checkpoint).items() if key[1] not in _ELSEWHERE]
    parts.append(table_html(("scope", "what", "key", "value"), (_held(*each) for each in held), len(held)))
    return f"<div>{''.join(parts)}</div>"


def heading_html(name: str, status: str, more: str) -> str:
    """Return the line above a table."""
    colour = _STATUS_COLOURS.get(status, "#4a5160")
    return f'<p><b>{_text(name)}</b> <b style="color:{colour}">{_text(status)}</b>, {_text(more)}</p>'


def table_html(columns: Sequence[str], rows: Iterable[Sequence[str]], count: int) -> str:
    """Return a table of the first of so many rows."""
    return f"<table><thead>{_row('th', columns)}</thead><tbody>{''.join(_body(columns, rows, count))}</tbody></table>"


def _body(columns: Sequence[str], rows: Iterable[Sequence[str]], count: int) -> Iterator[str]:
    for row in islice(rows, _MOST):
        yield _row("td", row)
    if count > _MOST:
        yield f'<tr><td colspan="{len(columns)}">and {count - _MOST:,} more</td></tr>'


def _row(tag: str, cells: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<{tag}{_CELL}>{_text(cell)}</{tag}>' for cell in cells)}</tr>"


def _held(key: FactKey, fact: Fact) -> tuple[str, str, str, str]:
    path, kind, name = key
    try:
        value = _value(fact.show())
    except RehydrateError as error:
        value = f"cannot be shown: {error.text()}"
    return _place(path), kind, name, value


def _place(path: str, executor: str = "") -> str:
    return "/".join(part for part in (path, executor) if part) or "the root"


def _value(value: Plain) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _text(text: str) -> str:
    # Cut before it is escaped, so that no half of an entity is left.
    cut = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return escape(printable(cut))
