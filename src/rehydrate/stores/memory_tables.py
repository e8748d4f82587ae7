"""What all runs of a memory store share: the runs, and where checkpoints, requests and turns are found.

It keeps them in step with each other. It takes no lock and reads no clock; the store does.
"""

from __future__ import annotations

from rehydrate.errors import CommitConflictError
from rehydrate.model.checkpoint import At, CheckpointRef, Commit, Latest, RequestRow, TurnRow

from .memory_run import MemoryRun
from .standing import Standing, id_in_use, numbered_events


class MemoryTables:
    """Runs by id, and the places of what they hold."""

    __slots__ = ("checkpoints", "offered", "requests", "runs", "turns")

    def __init__(self) -> None:
        self.runs: dict[str, MemoryRun] = {}
        self.checkpoints: dict[str, tuple[str, int]] = {}
        self.requests: dict[str, RequestRow] = {}
        self.turns: dict[tuple[str, str], TurnRow] = {}
        #: Runs that have something in their inbox.
        self.offered: set[str] = set()

    def find(self, ref: CheckpointRef) -> tuple[MemoryRun, int] | None:
        """Return the run and the number of a checkpoint."""
        if isinstance(ref, Latest):
            run = self.runs.get(ref.run_id)
            return (run, run.standing.seq) if run else None
        if isinstance(ref, At):
            run = self.runs.get(ref.run_id)
            number = run.number_at(ref) if run else None
            return (run, number) if run is not None and number is not None else None
        place = self.checkpoints.get(ref)
        return (self.runs[place[0]], place[1]) if place else None

    def check(self, commit: Commit) -> None:
        """Raise `CommitConflictError` where an id or a key of a commit is another run's."""
        header = commit.header
        if header.checkpoint_id in self.checkpoints:
            raise id_in_use(header, *self.checkpoints[header.checkpoint_id])
        for row in commit.requests:
            known = self.requests.get(row.request_id)
            if known is not None and known.run_id != row.run_id:
                raise CommitConflictError(header.run_id, f"request {row.request_id} as its own", "another run's")
        if commit.turn is not None:
            self.check_turn(commit.turn)
        if commit.taken:
            self._check_taken(commit)

    def _check_taken(self, commit: Commit) -> None:
        run = self.runs.get(commit.header.run_id)
        waiting = {offer.number for offer in run.inbox.values() if not offer.taken} if run else set[int]()
        for number in commit.taken:
            if number not in waiting:
                raise CommitConflictError(commit.header.run_id, f"offer {number} in its inbox", "none")

    def check_turn(self, turn: TurnRow) -> None:
        """Raise `CommitConflictError` where a key is another turn's."""
        held = self.turns.get((turn.workflow, turn.key))
        if held and (held.run_id, held.number) != (turn.run_id, turn.number):
            raise CommitConflictError(turn.run_id, f"key {turn.key!r} as its own", "another turn's")

    def write(self, commit: Commit, standing: Standing, *, keeps_events: bool) -> MemoryRun:
        """Take a commit that was checked."""
        header = commit.header
        run = self.runs.get(header.run_id)
        if run is None:
            run = self.runs[header.run_id] = MemoryRun(standing)
        run.write(commit, standing)
        if commit.taken:
            self.look_into_inbox(run)
        if keeps_events:
            run.events += numbered_events(commit)
        self.checkpoints[header.checkpoint_id] = (header.run_id, header.seq)
        for row in commit.requests:
            self.requests[row.request_id] = row
            run.requests.add(row.request_id)
        if commit.turn is not None:
            self.write_turn(commit.turn, run)
        return run

    def look_into_inbox(self, run: MemoryRun) -> None:
        """Note whether a run has something in its inbox."""
        run_id = run.standing.run_id
        if any(not offer.taken for offer in run.inbox.values()):
            self.offered.add(run_id)
        else:
            self.offered.discard(run_id)

    def write_turn(self, turn: TurnRow, run: MemoryRun) -> None:
        """Take a turn that was checked."""
        name = (turn.workflow, turn.key)
        self.turns[name] = turn
        run.turns.add(name)

    def forget(self, run: MemoryRun, dropped: list[int]) -> None:
        """Drop checkpoints of a run."""
        if not dropped:
            return
        for seq in dropped:
            del self.checkpoints[run.headers[seq].checkpoint_id]
        run.forget(dropped)

    def delete(self, run_id: str) -> None:
        """Drop a run."""
        run = self.runs.pop(run_id)
        self.offered.discard(run_id)
        for header in run.headers.values():
            del self.checkpoints[header.checkpoint_id]
        for request_id in run.requests:
            del self.requests[request_id]
        for name in run.turns:
            del self.turns[name]
