"""`prune`: lets go of what a retention does not keep, run by run.

A dry run takes the same way and only leaves the last step out. A run that changes meanwhile is passed over or loses
what may go, and never stops the others.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, cast

from rehydrate.codecs.records import decode_record
from rehydrate.errors import RunBusyError, RunNotFoundError, WorkflowCheckpointException, WrongCallError
from rehydrate.model.checkpoint import Header, key_text
from rehydrate.model.records import TurnRecord
from rehydrate.ports import CheckpointStorage
from rehydrate.ports.clock import wall_time
from rehydrate.runtime.call import with_article

from .arguments import check_store
from .listing import all_runs
from .retention import Retention, Why, recorded_results

_PAGE: Final = 100
_TURN: Final = key_text("", "turn", "")


@dataclass(frozen=True)
class KeptCheckpoint:
    """A checkpoint that stays, and why."""

    number: int
    why: tuple[Why, ...]


@dataclass(frozen=True)
class PrunedRun:
    """What becomes of one run: which checkpoints go, or all of it.

    `kept` is empty for a run that is deleted, and where the retention lets no single checkpoint go. `size` counts the
    bytes that the commits of what goes had written; of these others may still need some. `passed_over` says why a run
    that had ended was not deleted, or why nothing of it could go.
    """

    run_id: str
    kept: tuple[KeptCheckpoint, ...] = ()
    forgotten: tuple[int, ...] = ()
    deleted: bool = False
    size: int = 0
    passed_over: str = ""

    def __str__(self) -> str:
        if self.deleted:
            return f"{self.run_id}: deleted with {_count(len(self.forgotten), 'checkpoint')}, {self.size:,} bytes"
        gone = _count(len(self.forgotten), "checkpoint")
        text = f"{self.run_id}: {gone} forgotten, {len(self.kept)} kept, {self.size:,} bytes"
        return f"{text}; not deleted, as {self.passed_over}" if self.passed_over else text


@dataclass(frozen=True)
class PruneSummary:
    """What became of all runs. `runs` has those that lose something or were passed over, and the one that was asked
    for; `looked_at` counts all. With `dry_run` nothing was changed."""

    runs: tuple[PrunedRun, ...]
    looked_at: int
    dry_run: bool

    @property
    def forgotten(self) -> int:
        """Number of checkpoints that go, those of deleted runs too."""
        return sum(len(run.forgotten) for run in self.runs)

    @property
    def deleted(self) -> tuple[str, ...]:
        """Ids of the runs that go as a whole."""
        return tuple(run.run_id for run in self.runs if run.deleted)

    @property
    def size(self) -> int:
        """Bytes that the commits of what goes had written."""
        return sum(run.size for run in self.runs)

    def __str__(self) -> str:
        singles = self.forgotten - sum(len(run.forgotten) for run in self.runs if run.deleted)
        what = f"{_count(singles, 'checkpoint')} and {_count(len(self.deleted), 'whole run')}"
        first = (
            f"{'would go' if self.dry_run else 'gone'}: {what}, of {_count(self.looked_at, 'run')}; {self.size:,} bytes"
        )
        return "\n".join([first, *(f"  {run}" for run in self.runs)])


async def prune(
    storage: CheckpointStorage,
    retention: Retention,
    *,
    run_id: str | None = None,
    workflow: str | None = None,
    dry_run: bool = False,
    now: datetime | None = None,
    progress: Callable[[PrunedRun], None] | None = None,
) -> PruneSummary:
    """Let go of what a retention does not keep: of all runs, of those of a workflow, or of one run.

    `progress` is called with every run when it is done. `now` is what ages are counted to. Raises `RunNotFoundError`
    for one that is not there, and what a store raises that cannot be used.
    """
    check_store(storage)
    if not isinstance(cast("object", retention), Retention):
        raise WrongCallError(f"retention is {with_article(retention)}.", "Pass Retention(keep_last=...).")
    pruner = _Pruner(storage, retention, _seconds(now), dry_run=dry_run)
    told: list[PrunedRun] = []
    looked_at = 0
    async for header in _heads(storage, run_id, workflow):
        run = await pruner.prune(header)
        looked_at += 1
        if progress is not None:
            progress(run)
        if run_id is not None or run.forgotten or run.passed_over:
            told.append(run)
    return PruneSummary(tuple(told), looked_at, dry_run)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _seconds(now: datetime | None) -> float:
    if now is None:
        return wall_time()
    if now.tzinfo is None:
        raise WrongCallError("now is a time without a zone.", "Pass datetime.now(timezone.utc), or leave it out.")
    return now.timestamp()


async def _heads(storage: CheckpointStorage, run_id: str | None, workflow: str | None) -> AsyncIterator[Header]:
    if run_id is not None:
        head = await storage.head(run_id)
        if head is None:
            raise RunNotFoundError(run_id)
        if workflow not in (None, head.header.workflow):
            problem = f"run {run_id!r} belongs to workflow {head.header.workflow!r}, not to {workflow!r}."
            raise WrongCallError(problem, "Leave workflow out.")
        yield head.header
        return
    async for header in all_runs(storage, workflow=workflow):
        yield header


class _Pruner:
    """Prunes one run after the other."""

    def __init__(self, storage: CheckpointStorage, retention: Retention, now: float, *, dry_run: bool) -> None:
        self.storage = storage
        self.retention = retention
        self.now = now
        self.dry_run = dry_run

    async def prune(self, head: Header) -> PrunedRun:
        """Let go of what may go of a run, as it was seen at this head."""
        run_id = head.run_id
        passed_over = ""
        try:
            if self.retention.may_delete(head, self.now):
                headers = await self._headers(run_id)  # before the last look, as a long history takes a while
                passed_over = await self._what_keeps(head)
                if not passed_over:
                    return await self._deleted(run_id, headers)
            if self.retention.forgets:
                return await self._forgotten(run_id, passed_over)
        except RunBusyError:
            passed_over = "its owner lives"
        except WorkflowCheckpointException as error:
            passed_over = error.text()
        return PrunedRun(run_id, passed_over=passed_over)

    async def _what_keeps(self, header: Header) -> str:
        """Say what keeps a run from being deleted that has ended long enough ago."""
        run_id = header.run_id
        if header.pending:
            return "it has open requests"
        if await self.storage.tags(run_id):
            return "a checkpoint of it has a name"
        if await self.storage.offers(run_id, limit=1):
            return "something waits in its inbox"
        head = await self.storage.head(run_id)
        if head is None or head.header.checkpoint_id != header.checkpoint_id:
            return "it has changed meanwhile"
        return "its owner lives" if head.alive else ""

    async def _deleted(self, run_id: str, headers: list[Header]) -> PrunedRun:
        if not self.dry_run and not await self.storage.delete(run_id):
            return PrunedRun(run_id, passed_over="it was deleted meanwhile")
        numbers = tuple(sorted(header.seq for header in headers))
        return PrunedRun(run_id, forgotten=numbers, deleted=True, size=sum(header.size for header in headers))

    async def _headers(self, run_id: str) -> list[Header]:
        """Return all headers of a run, newest first."""
        found: list[Header] = []
        page = await self.storage.history(run_id, limit=_PAGE)
        while page:
            found += page
            page = await self.storage.history(run_id, before=page[-1].seq, limit=_PAGE)
        return found

    async def _forgotten(self, run_id: str, passed_over: str) -> PrunedRun:
        headers = await self._headers(run_id)
        kept = await self._kept(run_id, headers)
        going = [header for header in headers if header.seq not in kept]
        numbers = sorted(header.seq for header in going)
        if numbers and not self.dry_run:
            # What was given a name meanwhile stays.
            numbers = await self.storage.forget(run_id, numbers)
        gone = frozenset(numbers)
        return PrunedRun(
            run_id,
            kept=tuple(KeptCheckpoint(number, tuple(why)) for number, why in sorted(kept.items())),
            forgotten=tuple(numbers),
            size=sum(header.size for header in going if header.seq in gone),
            passed_over=passed_over,
        )

    async def _kept(self, run_id: str, headers: list[Header]) -> dict[int, list[Why]]:
        """Return the numbers of the checkpoints that stay, each with all that keeps it."""
        by_id = {header.checkpoint_id: header.seq for header in headers}
        kept: dict[int, list[Why]] = {}
        for position, header in enumerate(headers):
            why = self.retention.keeps(header, position, self.now)
            if position == 0:
                kept[header.seq] = ["head", *why]
            elif why:
                kept[header.seq] = [*why]
        for checkpoint_id in set((await self.storage.tags(run_id)).values()) & by_id.keys():
            kept.setdefault(by_id[checkpoint_id], []).append("named")
        for checkpoint_id in set(await self._bases(run_id)) & by_id.keys():
            kept.setdefault(by_id[checkpoint_id], []).append("start of the newest turn")
        for number in recorded_results(headers):
            kept.setdefault(number, []).append("recorded result")
        return kept

    async def _bases(self, run_id: str) -> list[str]:
        """Return the checkpoints by which the newest turn, and its newest continuation, may be called again."""
        data = (await self.storage.read(run_id, [_TURN])).get(_TURN)
        turn = decode_record("turn", data) if data is not None else None
        if not isinstance(turn, TurnRecord):
            return []
        resumed = turn.resumed[0] if turn.resumed is not None else None
        return [base for base in (turn.base, resumed) if base is not None]
