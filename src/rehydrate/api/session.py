"""`Session`: a conversation with one run, for code that passes nothing between its calls.

It supplies run id and newest checkpoint; all else is the runner's. It must not have a way of its own to run.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Literal, Unpack, overload

from rehydrate.runtime.call import LATEST, CheckpointArgument
from rehydrate.runtime.checkpoint import WorkflowCheckpoint
from rehydrate.runtime.result import WorkflowRunResult
from rehydrate.runtime.runner import CallOptions, Runner, TurnOptions
from rehydrate.runtime.stream import RunStream


class Session:
    """The calls of a workflow on one run: the first `run(message)` starts it if there is none, later ones go on."""

    def __init__(self, runner: Runner, run_id: str | None, checkpoint: CheckpointArgument) -> None:
        self._runner = runner
        self._run_id = run_id
        self._given = checkpoint

    @property
    def run_id(self) -> str | None:
        """The run's id, `None` before it is known."""
        newest = self._runner.newest
        return newest.run_id if newest is not None else self._run_id

    @property
    def checkpoint(self) -> WorkflowCheckpoint | None:
        """The newest checkpoint that this session has seen."""
        return self._runner.newest

    @overload
    def run(
        self, message: object = None, *, stream: Literal[False] = False, **options: Unpack[CallOptions]
    ) -> Coroutine[None, None, WorkflowRunResult]: ...

    @overload
    def run(self, message: object = None, *, stream: Literal[True], **options: Unpack[CallOptions]) -> RunStream: ...

    def run(
        self, message: object = None, *, stream: bool = False, **options: Unpack[CallOptions]
    ) -> Coroutine[None, None, WorkflowRunResult] | RunStream:
        """Go on with the session's run, or start it; arguments are those of `Workflow.run`."""
        return self._runner.run_from(self._supply, message, options, stream=stream)

    def resume(
        self, checkpoint: CheckpointArgument, message: object = None, **options: Unpack[TurnOptions]
    ) -> Coroutine[None, None, WorkflowRunResult]:
        """Go on from a checkpoint of this run."""
        return self.run(message, checkpoint=checkpoint, **options)

    async def _supply(self, options: CallOptions) -> CallOptions:
        """Fill in where the run stands: what the runner saw last, what was given, or the head in the store."""
        if options.get("checkpoint") is not None:
            return options
        filled = options.copy()
        if self._runner.newest is not None:
            filled["checkpoint"] = self._runner.newest
            return filled
        if self._given is not None:
            filled["checkpoint"] = self._given
        filled.setdefault("run_id", self._run_id)
        run_id, store = filled.get("run_id"), self._runner.checkpoint_storage
        if self._given is None and run_id is not None and store is not None and await store.head(run_id) is not None:
            filled["checkpoint"] = LATEST
        return filled
