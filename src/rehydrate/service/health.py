"""`check_health`: how a store is, and how the runs in it are: what stands still, what is damaged, what could go.

It reads only. Without `full` it looks at a bounded number of runs and at their heads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from rehydrate.errors import CheckpointNotFoundError, RehydrateError
from rehydrate.model.checkpoint import Header, Latest, Status
from rehydrate.ports import CheckpointStorage, Finding, examine_store
from rehydrate.ports.clock import wall_time

from .arguments import check_store
from .listing import all_runs, sleeps
from .pruning import prune
from .retention import Retention

_PAGE: Final = 100
#: Without `full`: so many runs are counted, and so many heads are read.
_RUNS: Final = 10_000
_HEADS: Final = 200
#: So many ids are told of each kind.
_TOLD: Final = 5
#: Seconds by which a timer may be late before nobody seems to look at it.
_LATE: Final = 60.0
#: From so many checkpoints a run on, on average, a retention is advised.
_MANY: Final = 200


@dataclass(frozen=True)
class HealthReport:
    """What was found, in the order in which it was looked at; false where there is a problem."""

    findings: tuple[Finding, ...]

    @property
    def problems(self) -> tuple[Finding, ...]:
        """The findings that are problems."""
        return tuple(finding for finding in self.findings if finding.level == "problem")

    def __bool__(self) -> bool:
        return not self.problems

    def __str__(self) -> str:
        return "\n".join(map(_line, self.findings))


def _line(finding: Finding) -> str:
    return f"{finding.level}: {finding.about}: {finding.text} {finding.action}".rstrip()


async def check_health(
    storage: CheckpointStorage,
    *,
    full: bool = False,
    retention: Retention | None = None,
    now: datetime | None = None,
) -> HealthReport:
    """Look at a store and at its runs; nothing is changed, and what is wrong is in the report.

    `full`: every checkpoint of every run is read and checked. `retention`: what `prune` would let go by it is told.
    """
    check_store(storage)
    found = await examine_store(storage, full=full)
    findings = list(found.findings)
    if not found.usable:
        return HealthReport(tuple(findings))
    seconds = wall_time() if now is None else now.timestamp()
    try:
        look = _Look(storage, full=full)
        await look.at_runs()
        findings += [*look.counted(), await look.orphaned(seconds), await look.late(seconds), await look.offered()]
        findings += [await look.damaged(), await _retention(storage, retention, now, look)]
    except RehydrateError as error:
        findings.append(Finding("runs", "problem", error.text(), error.action()))
    return HealthReport(tuple(findings))


class _Look:
    """One look at the runs of a store."""

    def __init__(self, storage: CheckpointStorage, *, full: bool) -> None:
        self.storage = storage
        self.full = full
        self.heads: list[Header] = []
        self.more = False

    async def at_runs(self) -> None:
        """Read the heads of runs: of all, or of so many."""
        async for header in all_runs(self.storage):
            if len(self.heads) == _RUNS and not self.full:
                self.more = True
                return
            self.heads.append(header)

    def counted(self) -> Iterable[Finding]:
        """Say how many runs there are, and how they stand."""
        by_status = Counter(header.status.value for header in self.heads)
        told = ", ".join(f"{count:,} {status}" for status, count in sorted(by_status.items()))
        total = f"{'more than ' if self.more else ''}{_count(len(self.heads), 'run')}"
        yield Finding("runs", "ok", f"{total}{f': {told}' if told else ''}.")
        failed = [header.run_id for header in self.heads if header.status is Status.FAILED]
        if failed:
            text = f"{_count(len(failed), 'run')} failed: {_ids(failed)}."
            yield Finding(
                "failed runs", "note", text, "Look at one with rehydrate show; rehydrate resume tries it again."
            )

    async def orphaned(self, now: float) -> Finding:
        """Say which runs are in the middle of a turn that nobody drives, but for those that wait for a time."""
        lost: list[str] = []
        left: list[str] = []
        asleep = 0
        async for header in all_runs(self.storage, status=Status.RUNNING.value):
            head = await self.storage.head(header.run_id)
            if head is None or head.alive or head.header.status is not Status.RUNNING:
                continue
            if sleeps(head.header, now):
                asleep += 1
                continue
            (left if head.owner is None else lost).append(header.run_id)
        if not lost and not left:
            others = f"; handed on until a time: {_count(asleep, 'run')}" if asleep else ""
            return Finding("orphaned runs", "ok", f"every turn that has begun is driven by a living process{others}.")
        parts = [f"{_count(len(lost), 'run')} whose process is gone ({_ids(lost)})"] if lost else []
        parts += [f"{_count(len(left), 'run')} handed on by a process that was drained ({_ids(left)})"] if left else []
        action = "Start a worker, which takes them up: rehydrate worker; or one of them: rehydrate resume."
        return Finding("orphaned runs", "problem", f"nobody drives {' and '.join(parts)}.", action)

    async def late(self, now: float) -> Finding:
        """Say which timers are up that nobody looks at."""
        late = [header.run_id for header in await self.storage.runs(due_by=now - _LATE, limit=_PAGE)]
        if not late:
            return Finding("timers", "ok", "none is over time.")
        text = f"{_count(len(late), 'run')} should have gone on by now: {_ids(late)}."
        return Finding("timers", "problem", text, "Start a worker: rehydrate worker.")

    async def offered(self) -> Finding:
        """Say which runs have something in their inbox that nobody takes."""
        waiting: list[str] = []
        for header in await self.storage.runs(offered=True, limit=_PAGE):
            head = await self.storage.head(header.run_id)
            if head is not None and head.offered and not head.alive:
                waiting.append(header.run_id)
        if not waiting:
            return Finding("inboxes", "ok", "nothing waits in one that nobody drives.")
        text = f"{_count(len(waiting), 'run')} with something in the inbox that nobody drives: {_ids(waiting)}."
        return Finding("inboxes", "note", text, "A worker takes it: rehydrate worker; so does the next turn.")

    async def damaged(self) -> Finding:
        """Read runs and check all that was read: the newest heads, or every checkpoint of every run."""
        newest = sorted(self.heads, key=lambda header: (-header.created, header.run_id))
        looked = newest if self.full else newest[:_HEADS]
        broken: list[tuple[str, RehydrateError]] = []
        for header in looked:
            try:
                await self._read(header.run_id)
            except CheckpointNotFoundError as error:
                if await self.storage.head(header.run_id) is not None:  # else it was deleted meanwhile
                    broken.append((header.run_id, error))
            except RehydrateError as error:
                broken.append((header.run_id, error))
        what = "all checkpoints" if self.full else "the newest checkpoints"
        if not broken:
            more = "" if self.full else " The rest: --full."
            return Finding("records", "ok", f"{what} of {_count(len(looked), 'run')} are whole.{more}")
        run_id, error = broken[0]
        ids = _ids(run_id for run_id, _ in broken)
        text = f"{_count(len(broken), 'run')} of {len(looked):,} cannot be read: {ids}."
        action = f"{error.action()} An earlier checkpoint may be whole: rehydrate history {run_id!r}, then fork."
        return Finding("records", "problem", f"{text} The first: {error.text()}", action.strip())

    async def _read(self, run_id: str) -> None:
        if await self.storage.head(run_id) is None:
            return
        await self.storage.inspect(Latest(run_id))
        if self.full:
            await self.storage.archive(run_id)


async def _retention(
    storage: CheckpointStorage, retention: Retention | None, now: datetime | None, look: _Look
) -> Finding:
    """Say what a retention would let go; without one, whether one would be of use."""
    if retention is not None:
        summary = await prune(storage, retention, dry_run=True, now=now)
        first, *_ = str(summary).splitlines()
        going = summary.forgotten or summary.deleted
        return Finding("retention", "note" if going else "ok", f"{first}.", "rehydrate prune does it." if going else "")
    numbers = sum(header.seq + 1 for header in look.heads)
    text = f"nothing is let go by itself; up to {_count(numbers, 'checkpoint')} are kept of these runs."
    if numbers > _MANY * max(len(look.heads), 1):
        action = "See what could go: rehydrate prune --keep-last 20 --dry-run."
        return Finding("retention", "note", text, action)
    return Finding("retention", "ok", text)


def _ids(ids: Iterable[str]) -> str:
    found = list(ids)
    return ", ".join(map(repr, found[:_TOLD])) + (", ..." if len(found) > _TOLD else "")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
