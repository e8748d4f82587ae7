"""The page of limits has the figures of the source, and the errors and arguments that it names are there."""

import inspect
import re
from collections.abc import Callable
from enum import Enum
from math import isclose
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest

import rehydrate
from rehydrate import agents, codecs, errors, ids
from rehydrate.agents import model, schemas
from rehydrate.codecs import archives, compression
from rehydrate.codecs import format as value_format
from rehydrate.engine import restart
from rehydrate.engine.inputs import OnPending, OnUnfinished
from rehydrate.graph import drawing_parts, drawing_text, policies
from rehydrate.hosts.cli import results, told
from rehydrate.runtime import (
    actor,
    causes,
    claim,
    editing,
    events,
    html,
    inbox_watch,
    json_input,
    saver,
    threads,
    turn,
)
from rehydrate.runtime.actor import Durability
from rehydrate.runtime.call import Call
from rehydrate.service import differences, health, history, worker
from rehydrate.service.agent_framework import child, inert
from rehydrate.stores import file_lock, key_ring, sqlite, sqlite_driver, watches
from rehydrate.stores.postgres import connections, layout, listening, place, storage
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
    "workflows below": [ids.MAX_DEPTH],
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
    "a reader of events": [watches.EVERY * 1000],
    "it looks again": [max(sqlite._LONGEST, listening._LONGEST)],
    "events that wait": [events.BUFFER],
    "rows of a page": [history.PAGE],
    "bytes that are read once more": [json_input._TRIES, json_input._TRIES_PER_BYTE],
    "length of a value": [differences.BOUND],
    "size of a run": [archives.MAX_EXPORT / (1024 * MB)],
    "wait for another process": [file_lock.PATIENCE],
    "wait of SQLite": [sqlite_driver.BUSY_SECONDS],
    "waits between": list(storage._WAITS),
    "wait for a connection": [connections._POOL_SECONDS],
    "connections that": [postgres_worker._THREADS],
    "they are given up": [postgres_worker._IDLE_SECONDS],
    "records in one commit": [layout._MOST, layout._CEILING / MB],
    "bytes of an encryption": [key_ring.KEY_BYTES],
    "records that are": [compression.LEAST / 1024, compression.RATIO],
    "runs that a worker": [default(rehydrate.Worker, "concurrency")],
    "a worker looks": [default(rehydrate.Worker, "every")],
    "a run that could": [worker._AGAIN, worker._LONGEST],
    "a store that cannot": [worker._AGAIN, worker._LONGEST_OUTAGE],
    "`worker.finish()`": [worker._SOON],
    "runs that [`check_health`]": [health._RUNS, health._HEADS],
    "a timer that is up": [health._LATE],
    "times that a model": [default(agents.ChatAgent, "max_rounds")],
    "attempts at one request": [model.RETRY.attempts],
    "depth of an answer": [schemas._DEEPEST],
    "size of a file of theirs": [inert.MAX_FILE / MB, inert.MAX_OUT / MB],
    "values in such a file": [inert.MAX_NODES, inert.MAX_DEPTH, inert.MAX_STEPS],
    "time for such a file": [child.SECONDS, child.MEMORY / (1024 * MB)],
    "bytes of a whole number": [inert.MAX_NUMBER, inert.MAX_NAME],
    "calls of one": [driving._MOST_CALLS],
    "attempts of one of": [driving._MOST_ATTEMPTS],
    "real time in": [default(run_virtually, "patience")],
    "characters of a name": [drawing_parts._LONGEST, drawing_text._LONGEST],
    "characters of a value in a line": [told._LONGEST, results._MOST],
    "characters of a value in a notebook": [html._LONGEST, html._MOST],
}
#: What has no figure of its own.
WITHOUT = ("run ids", "the same for stored bytes", "handlers that run at once", "time of one attempt")


#: A number, or a product of numbers, in a line of a module.
CONSTANT = re.compile(r"^(_?[A-Z][A-Z_]*)(?:: \w+)? = [\d_.]+(?: (?:\*|<<) [\d_.]+)*(?:  #.*)?$", re.MULTILINE)
#: How a number is called in the source that is a limit or a time.
LIKE_A_LIMIT = re.compile(
    r"MAX|MOST|LONGEST|LIMIT|SECONDS|PATIENCE|EVERY|AGAIN|(?<!EN)TRIES|DEPTH|DEEPEST|LENGTH|BOUND|BUFFER|PAGE|LATE|MEMORY"
)
#: Those that no program meets, by what they are.
UNSEEN = {
    "refuses stored bytes that nothing here writes": """
        codecs.archives._DEPTH codecs.zones._LONGEST engine.forms.DEEPEST
        engine.invariants._LONGEST engine.requests.LONGEST runtime.observing.LONGEST_TRACE stores.hidden_texts._MAX_NAME
        stores.packing._MOST""",
    "cuts work or records into pieces, of which nobody sees more than the whole": """
        engine.requests.MOST engine.requests.MOST_BYTES runtime.following._PAGE runtime.inbox._PAGE
        runtime.inbox_watch._PAGE service.health._PAGE service.listing._PAGE service.pruning._PAGE
        stores.file_names._LONGEST stores.packing._PATIENCE stores.postgres.planning._EVERY stores.run_sums._MOST""",
    "is waited for where something ends or changes in this moment": """
        api.sigterm._END_SECONDS api.sigterm._NUDGE_SECONDS hosts.cli.completion._SECONDS
        hosts.cli.looping._END_SECONDS runtime.draining._LAST_SECONDS runtime.late_calls._MOST
        runtime.order._PATIENCE runtime.waiting._SECONDS stores.file_reading._TRIES stores.owner_locks._TRIES
        stores.postgres.worker._EXIT_SECONDS stores.worker._EXIT_SECONDS""",
    "is how something is laid out, drawn or listed": """
        graph.drawing_boxes._LONGEST_RULES graph.drawing_places._LONGEST graph.drawing_text._LONGEST_LIST
        graph.layers._MOST hosts.cli.activity._LONGEST hosts.cli.completion._MOST hosts.cli.drawing._EVERY
        hosts.cli.output._LONGEST_WORD hosts.cli.told._MOST hosts.notebook._EVERY
        service.agent_framework.child.LENGTH stores.covers._KEY_LENGTH_BYTES stores.sqlite_health._MOST""",
    "is of the tools for tests": """
        testing.contract_processes._PATIENCE testing.interpreters._PATIENCE testing.outside._DEPTH
        testing.recorded._PAGE testing.resuming._PAGE testing.virtual_time._IO_SECONDS""",
    "counts what is the same by nature": "observers.telemetry._NANOSECONDS",
}


def limits_of_the_source() -> set[str]:
    """The numbers of all modules that are called like a limit, by module and name; the demo is a program of its own."""
    found: set[str] = set()
    package = Path(rehydrate.__file__).parent
    for file in package.rglob("*.py"):
        module = ".".join(file.relative_to(package).with_suffix("").parts)
        lines = CONSTANT.findall(file.read_text(encoding="utf-8")) if not module.startswith("demo.") else []
        found |= {f"{module}.{name}" for name in lines if LIKE_A_LIMIT.search(name)}
    return found


def compared() -> set[str]:
    """The numbers that are named above, as this file is written."""
    named: set[str] = set()
    for alias, name in re.findall(r"\b([a-z]\w*)\.(_?[A-Z][A-Z_]*)\b", Path(__file__).read_text(encoding="utf-8")):
        module = globals().get(alias)
        if isinstance(module, ModuleType) and hasattr(module, name):
            named.add(f"{home_of(module, name)}.{name}".removeprefix("rehydrate."))
    return named


def home_of(module: ModuleType, name: str) -> str:
    """The module of the library in which a number is written that another one may pass on."""
    return "rehydrate.codecs.format" if module is codecs else module.__name__


def test_no_limit_of_the_source_is_missing() -> None:
    """A number that is called like a limit is compared with the page, or is in the list of those that none meets."""
    there = limits_of_the_source()
    unseen = [name for names in UNSEEN.values() for name in names.split()]
    assert there - compared() - set(unseen) == set()
    assert [name for name in unseen if unseen.count(name) > 1 or name not in there] == []


def test_every_default_that_is_a_number_is_on_the_page() -> None:
    """What can be left out of a call, and is a number then, has a row that shows the argument."""
    shown = prose(PAGE)
    #: Where counting begins, and versions, are no limits.
    begins = {"after", "version"}
    missing = []
    for it in [getattr(rehydrate, name) for name in rehydrate.__all__] + [agents.ChatAgent]:
        members = [] if not isinstance(it, type) else [value for value in vars(it).values() if callable(value)]
        for called in [it, *members] if not is_result(it) else []:
            for argument, value in numbers_left_out(called).items():
                if argument not in begins and f"{argument}=" not in shown:
                    missing.append((called, argument, value))
    assert missing == []


def is_result(it: object) -> bool:
    """Tell whether something is a class of what calls return, which nobody makes, or an enumeration."""
    return isinstance(it, type) and (it.__name__ in {"PrunedRun"} or issubclass(it, Enum))


def numbers_left_out(called: Callable[..., object]) -> dict[str, object]:
    """The arguments whose defaults are numbers; none of what has no signature."""
    try:
        parameters = inspect.signature(called).parameters.values()
    except (TypeError, ValueError):
        return {}
    return {each.name: each.default for each in parameters if type(each.default) in (int, float)}


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
        taken = inspect.signature(getattr(rehydrate, name, None) or getattr(agents, name)).parameters
        assert [each for each in arguments.replace("=", "").split(", ") if each not in taken] == [], name
    assert len(shown) > 5
