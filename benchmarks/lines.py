"""The lines: what is measured, beside which floors and under which bound.

Plain data; how it is measured and shown is elsewhere.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks import functions, work
from benchmarks.disk import growth_on_disk
from benchmarks.floors import Plan, Read, Save, sqlite_on_loop, sqlite_with_hop, tasks_at_once, tasks_in_turn
from benchmarks.measure import Work
from rehydrate import Retry

#: What changes in a superstep that handles one number and writes one: both, with the names that they are found by.
_SMALL: Final = b"s" * 64
_KB: Final = b"k" * 1024
#: 10 MB in rows of 64 KB, which SQLite reads and writes faster than larger ones.
_BIG: Final = (b"b" * 65536,) * 160
_STEP: Final = Save((_SMALL,))


@dataclass(frozen=True)
class Floor:
    """Something that a line is compared with; `judged`: the bound in `Line.times` is about it."""

    name: str
    work: Work
    judged: bool = False


@dataclass(frozen=True)
class Line:
    """One measurement, with at most one bound: `seconds`, or `times` the judged floor; without one it informs."""

    number: str
    name: str
    title: str
    work: Work
    floors: tuple[Floor, ...]
    seconds: float | None = None
    times: float | None = None
    #: Measured once after the repetitions, printed below the line.
    extra: Callable[[Path], Awaitable[str]] | None = None


def _sqlite(*steps: Save | Read, stored: tuple[bytes, ...] = (), opens: bool = False) -> tuple[Floor, ...]:
    plan = Plan(steps, stored, opens)
    return (
        Floor("bare SQLite, a hop per step", sqlite_with_hop(plan), judged=True),
        Floor("bare SQLite, no hop", sqlite_on_loop(plan)),
    )


def _in_turn(count: int) -> tuple[Floor, ...]:
    return (Floor(f"asyncio, {count:,} tasks in turn", tasks_in_turn(count)),)


def _at_once(count: int) -> tuple[Floor, ...]:
    return (Floor(f"asyncio, {count:,} tasks at once", tasks_at_once(count)),)


#: Scopes that end together may share a commit, so that the claim and one more are all that a file has to take.
_TWO_COMMITS: Final = Floor(
    "a hop each for one read and two commits",
    sqlite_with_hop(Plan((Read(8), _STEP, _STEP), stored=(_SMALL,) * 8, opens=True)),
)

#: What a policy may cost where nothing uses it is 10 us an invocation: a quarter of a superstep.
_WITHOUT_POLICIES: Final = (Floor("1,000 supersteps without policies", work.supersteps(1000), judged=True),)

LINES: Final = (
    Line("W1", "supersteps", "1,000 supersteps", work.supersteps(1000), _in_turn(1000), seconds=0.030),
    Line(
        "W2",
        "supersteps-durable",
        "1,000 supersteps, durable",
        work.durable_supersteps(1000),
        _sqlite(*[_STEP] * 1001),
        times=2.0,
    ),
    Line(
        "W3",
        "growth",
        "list grows 1,000 x 1 KB, durable",
        work.growth(1000),
        _sqlite(*[Save((_KB,))] * 1001),
        times=2.2,
        extra=growth_on_disk,
    ),
    Line(
        "W4",
        "constant",
        "10 MB state written, then 50 saves",
        work.constant_state(50),
        _sqlite(_STEP, Save(_BIG), *[_STEP] * 50),
        times=1.6,
    ),
    Line(
        "W4",
        "constant-saves",
        "only the 50 saves beside 10 MB",
        work.constant_state_saves(50),
        _sqlite(*[_STEP] * 50, stored=_BIG),
    ),
    Line(
        "W5",
        "fan-out",
        "fan-out of 1,000 and join",
        work.fan_out(1000, durable=False),
        _at_once(1000),
        seconds=0.020,
    ),
    Line(
        "W5",
        "fan-out-durable",
        "fan-out of 1,000 and join, durable",
        work.fan_out(1000, durable=True),
        _sqlite(_STEP, Save((_SMALL * 2,)), Save((_SMALL * 1000,)), _STEP),
        seconds=0.030,
    ),
    Line(
        "W6",
        "nested",
        "question 6 deep restored, answered, ended",
        work.nested(6),
        (*_sqlite(Read(8), *[_STEP] * 8, stored=(_SMALL,) * 8, opens=True), _TWO_COMMITS),
        times=4.0,
    ),
    Line(
        "W7",
        "restore",
        "10 MB restored to the first output",
        work.restore(0),
        _sqlite(Read(160), stored=_BIG, opens=True),
        times=1.5,
    ),
    Line(
        "W7",
        "restore-read",
        "the same, with all 10 MB read by the handler",
        work.restore(10),
        _sqlite(Read(160), stored=_BIG, opens=True),
    ),
    Line(
        "W8",
        "runs",
        "1,000 runs of 5 supersteps, durable",
        work.runs(1000, 5),
        _sqlite(*[Save((_SMALL,) * 1000)] * 6),
        seconds=0.500,
    ),
    Line(
        "W9",
        "rounds",
        "200 calls with checkpoint and answer",
        work.rounds(200),
        _sqlite(*[Read(4), _STEP, _STEP] * 200, stored=(_SMALL,) * 4),
        times=2.0,
    ),
    Line("W10", "children", "1,000 child scopes at once", work.children(1000), _at_once(1000), seconds=0.120),
    Line(
        "W11",
        "messages",
        "1,000 messages to one executor, durable",
        work.messages(1000),
        _sqlite(_STEP, Save((_SMALL * 1000,)), _STEP),
        seconds=0.200,
    ),
    Line(
        "W12",
        "retry-unused",
        "1,000 supersteps, with a retry that nothing needs",
        work.supersteps(1000, retry=Retry()),
        _WITHOUT_POLICIES,
        times=1.25,
    ),
    Line(
        "W12",
        "timeout-unused",
        "1,000 supersteps, with a timeout that nothing needs",
        work.supersteps(1000, timeout=60.0),
        _WITHOUT_POLICIES,
        times=1.25,
    ),
    Line("W13", "live-events", "1,000 live events that nobody reads", work.live_events(1000), (), seconds=0.010),
    Line("W14", "steps", "1,000 steps of a function", functions.steps(1000), _in_turn(1000)),
    Line(
        "W14",
        "steps-durable",
        "1,000 steps of a function, durable",
        functions.durable_steps(1000),
        _sqlite(*[_STEP] * 1001),
        times=2.0,
    ),
    Line("W15", "replay", "10,000 remembered steps run over", functions.replay(10_000), (), seconds=0.300),
    Line("W16", "renewals", "1,000 times begun anew, a step each", functions.renewals(1000), _in_turn(1000)),
)
