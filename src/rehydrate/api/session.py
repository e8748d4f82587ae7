"""`Session`: a conversation with one run, for code that passes nothing between its calls.

Run id and newest checkpoint are supplied by its position, all else is the runner's. It must not have a way of its own
to run.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Literal, Unpack, overload

from rehydrate.errors import WrongCallError
from rehydrate.ports import CheckpointStorage
from rehydrate.runtime.call import CheckpointArgument, check_given
from rehydrate.runtime.checkpoint import WorkflowCheckpoint
from rehydrate.runtime.editing import EditOptions
from rehydrate.runtime.following import RunEvents
from rehydrate.runtime.offering import Offering, offer
from rehydrate.runtime.options import CallOptions, TurnOptions
from rehydrate.runtime.position import Position
from rehydrate.runtime.program import HasProgram
from rehydrate.runtime.requests import Responses, collect
from rehydrate.runtime.result import WorkflowRunResult
from rehydrate.runtime.runner import Runner
from rehydrate.runtime.stream import RunStream

from .waiting import wait_for


class Session:
    """The calls of a workflow on one run: the first `run(message)` starts it if there is none, later ones go on.

    Made by `Workflow.session()`.
    """

    def __init__(
        self, workflow: HasProgram, position: Position, checkpoint_storage: CheckpointStorage | None = None
    ) -> None:
        self._position = position
        self._runner = Runner(workflow, checkpoint_storage, position=position)

    @property
    def run_id(self) -> str | None:
        """The run's id, `None` before it is known."""
        return self._position.run_id

    @property
    def checkpoint(self) -> WorkflowCheckpoint | None:
        """The newest checkpoint that this session knows."""
        return self._position.newest

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
        return self._runner.run(message, stream=stream, **options)

    @overload
    def resume(
        self,
        checkpoint: CheckpointArgument,
        message: object = None,
        *,
        stream: Literal[False] = False,
        **options: Unpack[TurnOptions],
    ) -> Coroutine[None, None, WorkflowRunResult]: ...

    @overload
    def resume(
        self,
        checkpoint: CheckpointArgument,
        message: object = None,
        *,
        stream: Literal[True],
        **options: Unpack[TurnOptions],
    ) -> RunStream: ...

    def resume(
        self,
        checkpoint: CheckpointArgument,
        message: object = None,
        *,
        stream: bool = False,
        **options: Unpack[TurnOptions],
    ) -> Coroutine[None, None, WorkflowRunResult] | RunStream:
        """Go on from a checkpoint of this run."""
        check_given(checkpoint)
        return self._runner.run(message, stream=stream, checkpoint=checkpoint, **options)

    async def edit(
        self,
        state: Mapping[str, object] | None = None,
        *,
        reason: str,
        checkpoint: CheckpointArgument = None,
        **options: Unpack[EditOptions],
    ) -> WorkflowCheckpoint:
        """Set state of the session's run, as `Workflow.edit` does; with `fork=True` the session goes on in the fork."""
        return await self._runner.edit(state, reason=reason, checkpoint=checkpoint, **options)

    def events(self, *, after: int = 0) -> RunEvents:
        """Return the events of the session's run behind number `after`, as `Workflow.events` does."""
        return RunEvents(self._runner.program, self._runner.checkpoint_storage, self._known_run(), after)

    def _known_run(self) -> str:
        run_id = self._position.run_id
        if run_id is None:
            raise WrongCallError("this session has no run yet.", "Run it first, or name the run: session(run_id=...).")
        return run_id

    async def offer(
        self,
        message: object = None,
        *,
        responses: Responses | None = None,
        cancel: bool = False,
        key: str | None = None,
    ) -> int:
        """Leave something in the inbox of the session's run, as `Workflow.offer` does."""
        runner = self._runner
        offering = Offering(self._known_run(), message, collect(responses), cancel, key)
        return await offer(runner.program, runner.checkpoint_storage, offering)

    def run_sync(self, message: object = None, **options: Unpack[CallOptions]) -> WorkflowRunResult:
        """Do `run` and wait for it, as `Workflow.run_sync` does."""
        return wait_for(self.run(message, stream=False, **options))
