"""The floors: the least that a line could take, without anything of the library.

In memory that is a bare asyncio loop; durable it is bare SQLite, in a thread reached by a hop or on the loop's thread.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import TypeAlias

from benchmarks.measure import Stopwatch, Work


@dataclass(frozen=True)
class Save:
    """One transaction: an INSERT for each row, then COMMIT."""

    rows: tuple[bytes, ...]


@dataclass(frozen=True)
class Read:
    """One SELECT of the newest rows."""

    rows: int


Step: TypeAlias = Save | Read


@dataclass(frozen=True)
class Plan:
    """What SQLite has to do. `stored` is in the file before; `opens`: opening the file is inside the clock."""

    steps: tuple[Step, ...]
    stored: tuple[bytes, ...] = ()
    opens: bool = False


class BareFile:
    """A SQLite file with one table, in WAL mode with synchronous=FULL."""

    def __init__(self, place: Path) -> None:
        self._path = place / "bare.db"
        self._connection: sqlite3.Connection | None = None

    def open(self) -> None:
        self._connection = connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        assert mode == "wal", mode
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE IF NOT EXISTS step (n INTEGER PRIMARY KEY, data BLOB NOT NULL)")

    def do(self, step: Step) -> None:
        assert self._connection is not None
        if isinstance(step, Read):
            sql = "SELECT data FROM step ORDER BY n DESC LIMIT ?"
            rows = self._connection.execute(sql, (step.rows,)).fetchall()
            assert len(rows) == step.rows, len(rows)
            return
        self._connection.execute("BEGIN IMMEDIATE")
        for row in step.rows:
            self._connection.execute("INSERT INTO step (data) VALUES (?)", (row,))
        self._connection.execute("COMMIT")

    def close(self) -> None:
        assert self._connection is not None
        self._connection.close()


class Hop:
    """A thread that does one call at a time and wakes the loop after each: the least that a thread of its own costs."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[tuple[Callable[[], None], asyncio.Future[None]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="floor", daemon=True)
        self._thread.start()

    async def call(self, work: Callable[[], None]) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._calls.put((work, future))
        await future

    def end(self) -> None:
        self._calls.put(None)
        self._thread.join()

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            work, future = call
            try:
                work()
            except (sqlite3.Error, AssertionError) as error:
                future.get_loop().call_soon_threadsafe(future.set_exception, error)
            else:
                future.get_loop().call_soon_threadsafe(future.set_result, None)


def sqlite_on_loop(plan: Plan) -> Work:
    """Bare SQLite without a hop: it stalls the loop, so it is below what a library may do."""

    async def floor(place: Path, watch: Stopwatch) -> None:
        _prepare(place, plan)
        file = BareFile(place)
        if not plan.opens:
            file.open()
        with watch:
            if plan.opens:
                file.open()
            for step in plan.steps:
                file.do(step)
        file.close()

    return floor


def sqlite_with_hop(plan: Plan) -> Work:
    """Bare SQLite in a thread of its own; each transaction is one hop there and back."""

    async def floor(place: Path, watch: Stopwatch) -> None:
        _prepare(place, plan)
        file = BareFile(place)
        hop = None
        if not plan.opens:
            hop = Hop()
            await hop.call(file.open)
        with watch:
            if hop is None:
                hop = Hop()
                await hop.call(file.open)
            for step in plan.steps:
                await hop.call(lambda step=step: file.do(step))
        await hop.call(file.close)
        hop.end()

    return floor


def _prepare(place: Path, plan: Plan) -> None:
    if not plan.stored:
        return
    file = BareFile(place)
    file.open()
    file.do(Save(plan.stored))
    file.close()


def tasks_in_turn(count: int) -> Work:
    """A bare asyncio loop: `count` tasks, each awaited before the next is made."""

    async def floor(place: Path, watch: Stopwatch) -> None:
        loop = asyncio.get_running_loop()
        with watch:
            for _ in range(count):
                await loop.create_task(_nothing())

    return floor


def tasks_at_once(count: int) -> Work:
    """A bare asyncio loop: `count` tasks made at once and awaited together."""

    async def floor(place: Path, watch: Stopwatch) -> None:
        with watch:
            await asyncio.gather(*[_nothing() for _ in range(count)])

    return floor


async def _nothing() -> None:
    pass
