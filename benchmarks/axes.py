"""The axes along which a run can grow: what is done at each size, how much of it that is, and what bare SQLite needs.

Plain data; `growth` measures and shows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from benchmarks import work
from benchmarks.floors import Plan, Read, Save
from benchmarks.measure import Work

_SMALL: Final = b"s" * 64
_STEP: Final = Save((_SMALL,))
#: One MB in rows of 64 KB.
_MB: Final = (b"b" * 65536,) * 16
_SAVES: Final = 50


@dataclass(frozen=True)
class Axis:
    """One way to grow: `unit` is what a size counts. Costs are told for each of these, or for each of `saves`."""

    name: str
    title: str
    unit: str
    sizes: tuple[int, ...]
    work: Callable[[int], Work]
    floor: Callable[[int], Plan]
    #: The CPU time is to grow like the size to the power of this: 0 where the size is to cost nothing.
    exponent: float = 1.0
    saves: int = 0


AXES: Final = (
    Axis(
        "steps",
        "supersteps of a run, each committed",
        "supersteps",
        (100, 400, 1_600, 6_400),
        work.durable_supersteps,
        lambda size: Plan((_STEP,) * (size + 1)),
    ),
    Axis(
        "state",
        f"{_SAVES} saves of a small key beside state that stays",
        "MB of state",
        (1, 4, 16, 64),
        lambda size: work.constant_state_saves(_SAVES, size),
        lambda size: Plan((_STEP,) * _SAVES, stored=_MB * size),
        exponent=0.0,
        saves=_SAVES,
    ),
    Axis(
        "restore",
        "state restored with a new message, up to the first output",
        "MB of state",
        (1, 4, 16, 64),
        lambda size: work.restore(0, size),
        lambda size: Plan((Read(16 * size),), stored=_MB * size, opens=True),
    ),
    Axis(
        "width",
        "executors that get one message and are joined, durable",
        "executors",
        (10, 40, 160, 640, 2_560),
        lambda size: work.fan_out(size, durable=True),
        lambda size: Plan((_STEP, Save((_SMALL * 2,)), Save((_SMALL * size,)), _STEP)),
    ),
    Axis(
        "depth",
        "levels above a question that is restored, answered and ended",
        "levels",
        (1, 4, 16, 60),
        work.nested,
        lambda size: Plan((Read(size + 2), *[_STEP] * (size + 2)), stored=(_SMALL,) * (size + 2), opens=True),
    ),
    Axis(
        "runs",
        "runs of five supersteps at once in one store",
        "runs",
        (10, 40, 160, 640, 2_560),
        lambda size: work.runs(size, 5),
        lambda size: Plan((Save((_SMALL,) * size),) * 6),
    ),
)
