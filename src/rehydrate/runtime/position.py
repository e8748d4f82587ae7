"""Where a conversation with one run stands: for code that passes nothing from one call to the next.

It fills in run id and checkpoint that a call leaves out. It keeps no state of the run: a turn's checkpoint, the head of
the store, or what it was given is all that it ever names.
"""

from __future__ import annotations

from rehydrate.errors import RunBusyError, WrongCallError
from rehydrate.ports import CheckpointStorage

from .call import LATEST, CheckpointArgument
from .checkpoint import WorkflowCheckpoint
from .options import CallOptions
from .owner import process_owner
from .result import WorkflowRunResult
from .turn import Turn


class Position:
    """The newest turn of a conversation or, before the first, what it was given to begin with."""

    def __init__(self, run_id: str | None = None, checkpoint: CheckpointArgument = None) -> None:
        self.turn: Turn | None = None
        #: Number of calls that are on their way to their claim.
        self.opening = 0
        self._run_id = run_id
        self._given = checkpoint

    @property
    def run_id(self) -> str | None:
        """The run's id, `None` before it is known."""
        if self.turn is not None:
            return self.turn.opened.run_id
        known = self._known()
        return known.run_id if known is not None else self._run_id

    def _known(self) -> WorkflowCheckpoint | None:
        given = self._given
        if isinstance(given, WorkflowRunResult):
            return given.checkpoint
        return given if isinstance(given, WorkflowCheckpoint) else None

    @property
    def newest(self) -> WorkflowCheckpoint | None:
        """The newest checkpoint that is known here; `None` while a turn runs and after one that could not be saved."""
        if self.turn is None:
            return self._known()
        return self.turn.result().checkpoint if self.turn.has_ended() else None

    def took(self, turn: Turn) -> None:
        """Stand where a turn will leave the run; a recorded one that was given back may lie far behind its head."""
        if not turn.opened.replayed:
            self.turn = turn
        elif self.turn is None:
            self._run_id, self._given = turn.opened.run_id, None

    def restore(self, checkpoint: WorkflowCheckpoint) -> None:
        """Stand at a checkpoint, whatever was before."""
        self.turn, self._given = None, checkpoint

    async def supply(self, options: CallOptions, store: CheckpointStorage | None) -> CallOptions:
        """Return the options with run id and checkpoint filled in. Raises `RunBusyError` where a turn without a store
        still runs: what it will leave is not known yet."""
        given = options.get("checkpoint")
        if given is not None and (given != LATEST or options.get("run_id") is not None or self.run_id is None):
            return options
        filled = options.copy()
        if given is not None:
            filled["run_id"] = self.run_id
            return filled
        if self.turn is None:
            if self.opening > 1:
                raise RunBusyError(self.run_id or "of this conversation", process_owner())
            await self._supply_given(filled, store)
            return filled
        await self.turn.gone()
        newest = self.newest
        if newest is not None:
            filled["checkpoint"] = newest
        elif store is not None:
            filled["checkpoint"] = LATEST
            filled["run_id"] = self.turn.opened.run_id
        else:
            raise RunBusyError(self.turn.opened.run_id, process_owner())
        return filled

    async def _supply_given(self, filled: CallOptions, store: CheckpointStorage | None) -> None:
        """Fill in what the conversation begins with: a checkpoint, or the head of its run where there is one."""
        given = filled.get("run_id")
        if given is not None and self._run_id is not None and given != self._run_id:
            raise WrongCallError(
                f"this conversation is run {self._run_id!r} and was given run_id={given!r}.",
                "Leave run_id out, or open a session for the other run.",
            )
        if self._given is not None:
            filled["checkpoint"] = self._given
        if filled.get("run_id") is None and self._run_id is not None:
            filled["run_id"] = self._run_id
        run_id = filled.get("run_id")
        if self._given is not None or self._run_id is None or store is None or run_id is None:
            return
        if await store.head(run_id) is not None:
            filled["checkpoint"] = LATEST
