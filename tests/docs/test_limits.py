"""The page of limits has the figures of the source, and the errors and arguments that it names are there."""

import inspect
import re
from collections.abc import Callable
from math import isclose
from typing import get_args

import pytest

import rehydrate
from rehydrate import codecs, errors, ids
from rehydrate.codecs import archives, compression
from rehydrate.codecs import format as value_format
from rehydrate.engine import restart
from rehydrate.engine.inputs import OnPending, OnUnfinished
from rehydrate.graph import drawing_parts, drawing_text, policies
from rehydrate.runtime import actor, causes, claim, editing, events, inbox_watch, saver, threads, turn
from rehydrate.runtime.actor import Durability
from rehydrate.runtime.call import Call
from rehydrate.service import differences, history, worker
from rehydrate.stores import file_lock, key_ring, sqlite_driver
from rehydrate.stores.postgres import connections, layout, place, storage
from rehydrate.stores.postgres import worker as postgres_worker
from rehydrate.testing import driving, run_virtually
from tests.docs.pages import DOCS, prose, rows

PAGE = DOCS / "limits.md"


def limits() -> dict[str, list[str]]:
    """The rows of all tables with four columns, by their first cells."""
    lines = [line for line in prose(PAGE).splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {first: others for first, *others in cells if len(others) == 3 and first != "limit"}


ROWS = limits()
MB = 1024 * 1024


def default(called: Callable[..., object], argument: str) -> object:
    """What an argument is when it is not given."""
    return inspect.signature(called).parameters[argument].default


#: How a row begins, and the numbers of its value, with those of the source.
FIGURES: dict[str, list[object]] = {
    "ids of executors": [1, ids.MAX_ID_LENGTH],
    "state keys": [1, ids.MAX_ID_LENGTH],
    "why a checkpoint": [editing.REASON_LENGTH],
    "schema of": [place._LONGEST],
    "id of an encryption": [key_ring._MAX_ID],
    "size of a value": [codecs.MAX_BYTES / MB],
    "depth of a value": [codecs.MAX_DEPTH],
    "keys of one set": [value_format.MAX_CROWD],
    "characters kept": [causes._TEXT, causes._TRACE],
    "depth of workflows": [ids.MAX_DEPTH],
    "supersteps of a scope": [default(rehydrate.WorkflowBuilder, "max_supersteps")],
    "handlers and steps": [threads.MAX_THREADS],
    "attempts of one invocation": [restart.LOST_LIMIT],
    "looks at a run": [turn.CLAIM_TRIES],
    "attempts of a failed": [1, rehydrate.Retry().attempts],
    "wait before the second": [rehydrate.Retry().delay, rehydrate.Retry().factor, rehydrate.Retry().max_delay],
    "any of these times": [policies.LONGEST / (365.25 * 86400)],
    "lease of": [saver.LEASE_SECONDS],
    "last commits": [claim.CANCEL_SECONDS],
    "time for handlers": [default(rehydrate.drain, "grace")],
    "what finished inside": [actor.TRAILING_SECONDS * 1000],
    "looks into the inbox": [inbox_watch.EVERY],
    "events that wait": [events.BUFFER],
    "rows of a page": [history.PAGE],
    "length of a value": [differences.BOUND],
    "size of a run": [archives.MAX_EXPORT / (1024 * MB)],
    "wait for another process": [file_lock.PATIENCE],
    "wait of SQLite": [sqlite_driver.BUSY_SECONDS],
    "waits between": list(storage._WAITS),
    "wait for a connection": [connections._POOL_SECONDS],
    "connections that": [postgres_worker._THREADS],
    "records in one commit": [layout._MOST, layout._CEILING / MB],
    "bytes of an encryption": [key_ring.KEY_BYTES],
    "records that are": [compression.LEAST / 1024, compression.RATIO],
    "runs that a worker": [default(rehydrate.Worker, "concurrency")],
    "a worker looks": [default(rehydrate.Worker, "every")],
    "a run that could": [worker._AGAIN, worker._LONGEST],
    "calls of one": [driving._MOST_CALLS],
    "attempts of one of": [driving._MOST_ATTEMPTS],
    "real time in": [default(run_virtually, "patience")],
    "characters of a name": [drawing_parts._LONGEST, drawing_text._LONGEST],
}
#: What has no figure of its own.
WITHOUT = ("run ids", "the same for stored bytes", "handlers that run at once", "time of one attempt")


def row_of(begin: str) -> list[str]:
    """The one row whose first cell begins like this."""
    (found,) = [cells for limit, cells in ROWS.items() if limit.startswith(begin)]
    return found


@pytest.mark.parametrize("begin", FIGURES)
def test_a_limit_has_the_figure_of_the_source(begin: str) -> None:
    """The numbers in the cell of the value are those that the code goes by, in their order."""
    shown = [float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*(?:\.\d+)?", row_of(begin)[0])]
    assert len(shown) == len(FIGURES[begin])
    assert all(isclose(one, float(str(other))) for one, other in zip(shown, FIGURES[begin], strict=True))


def test_every_row_is_compared() -> None:
    """Each row has its figures above, but for those that say so in words."""
    known = (*FIGURES, *WITHOUT)
    assert [limit for limit in ROWS if sum(map(limit.startswith, known)) != 1] == []


def test_the_choices_of_a_call_have_the_defaults_of_the_source() -> None:
    """Each row shows the word that is meant where the argument is left out, and every word of its type."""
    call = Call()
    expected = {
        "on_pending": ("keep", get_args(OnPending)),  # a call that leaves it out also says in the log what it kept
        "on_unfinished": (call.on_unfinished, get_args(OnUnfinished)),
        "durability": (call.durability, get_args(Durability)),
    }
    shown = {}
    for argument, value, choices in rows(PAGE, "Choices of a call"):
        for name in re.findall(r"`(\w+)=`", argument):
            shown[name] = (value.strip("`").strip('"'), tuple(re.findall(r'`"?(\w+)"?`', choices)))
    assert {name: shown[name] for name in expected} == expected
    assert {name: shown[name][0] for name in ("fork", "takeover")} == {
        "fork": str(call.fork),
        "takeover": str(call.takeover),
    }
    assert shown["keep_events"][0] == str(default(rehydrate.SqliteCheckpointStorage, "keep_events"))


def test_what_is_raised_is_an_error_of_the_library() -> None:
    """Each error that a row names is one of the library's, but for those of its tools for tests."""
    named = {name for cells in ROWS.values() for name in re.findall(r"`(\w+Error)`", cells[2])}
    assert named - {"AssertionError", "StuckError"} <= set(errors.__all__)


def test_where_a_limit_is_changed_there_is_such_an_argument() -> None:
    """What a row shows as a call is public and takes these arguments."""
    shown = [call for cells in ROWS.values() for call in re.findall(r"`(\w+)\(([^)]*)\)`", cells[1])]
    for name, arguments in shown:
        taken = inspect.signature(getattr(rehydrate, name)).parameters
        assert [each for each in arguments.replace("=", "").split(", ") if each not in taken] == [], name
    assert len(shown) > 5
