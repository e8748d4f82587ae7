"""`Runner`: drives one run, a turn at a time; `Workflow.run` makes one per call and has no other path.

It knows where the run stands, so that code that passes nothing between two calls can go on. It must not know anything
of a run that its records do not say.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Literal, Unpack, cast, overload

from rehydrate.engine.run import Run
from rehydrate.errors import CaptureError, WrongCallError
from rehydrate.model.checkpoint import Status
from rehydrate.ports import CheckpointStorage

from .actor import Actor
from .call import Call, CheckpointArgument, check_given, check_storage
from .checkpoint import WorkflowCheckpoint
from .editing import Edit, EditOptions, edit
from .migrating import fitting
from .options import KNOWN_OPTIONS, CallOptions
from .position import Position
from .program import HasProgram
from .requests import collect
from .result import WorkflowRunResult
from .stream import RunStream
from .turn import Turn, begin


class RunnerContext:
    """Where a run can be read out as a checkpoint object; one that cannot raises `NotImplementedError`."""

    def create_checkpoint_object(self) -> WorkflowCheckpoint:
        """Return the run as it stands; it drains nothing."""
        raise NotImplementedError(f"{type(self).__name__} cannot read a run out as a checkpoint object")

    async def create_checkpoint(self) -> WorkflowCheckpoint:
        """Return the run as it stands, and persist it."""
        raise NotImplementedError(f"{type(self).__name__} cannot persist a checkpoint")


class ActorContext(RunnerContext):
    """The context of a turn: the one place that reads a run out."""

    def __init__(self, actor: Actor) -> None:
        self._actor = actor

    def create_checkpoint_object(self) -> WorkflowCheckpoint:
        """Return the run as it stands."""
        actor = self._actor
        ledger = actor.ledger
        if actor.ended and ledger.header is not None:
            return WorkflowCheckpoint(ledger.header, actor.run)
        nonce = f"{ledger.nonce} captured {actor.applied}"
        return WorkflowCheckpoint(ledger.header_of(actor.run, Status.RUNNING, nonce), actor.run.copy())

    async def create_checkpoint(self) -> WorkflowCheckpoint:
        """Save what has gathered and return the run as it then stands."""
        return WorkflowCheckpoint(*await self._actor.save_now())


class Runner:
    """Drives one run of a workflow."""

    def __init__(
        self,
        workflow: HasProgram,
        checkpoint_storage: CheckpointStorage | None = None,
        *,
        position: Position | None = None,
    ) -> None:
        check_storage(checkpoint_storage)
        self.program = workflow.program
        self.checkpoint_storage = workflow.checkpoint_storage if checkpoint_storage is None else checkpoint_storage
        #: True once it was restored from a checkpoint object.
        self.resumed = False
        self._position = Position() if position is None else position

    @property
    def context(self) -> RunnerContext:
        """The context of the newest turn. Raises `CaptureError` before the first."""
        turn = self._position.turn
        if turn is None or turn.actor is None:
            raise CaptureError("this runner has no turn yet.", "Run it first.")
        return ActorContext(turn.actor)

    @overload
    def run(
        self, message: object = None, *, stream: Literal[False] = False, **options: Unpack[CallOptions]
    ) -> Coroutine[None, None, WorkflowRunResult]: ...

    @overload
    def run(self, message: object = None, *, stream: Literal[True], **options: Unpack[CallOptions]) -> RunStream: ...

    @overload
    def run(
        self, message: object = None, *, stream: bool, **options: Unpack[CallOptions]
    ) -> Coroutine[None, None, WorkflowRunResult] | RunStream: ...

    def run(
        self, message: object = None, *, stream: bool = False, **options: Unpack[CallOptions]
    ) -> Coroutine[None, None, WorkflowRunResult] | RunStream:
        """Run a turn; a runner that has run or was restored goes on from there unless a checkpoint is given."""
        unknown = sorted(options.keys() - KNOWN_OPTIONS)
        if unknown:
            raise TypeError(f"run() got an unexpected keyword argument {unknown[0]!r}")
        if stream:
            return RunStream(lambda: self._begin(message, options, streaming=True))
        return self._run(message, options)

    async def _run(self, message: object, options: CallOptions) -> WorkflowRunResult:
        turn = await self._begin(message, options, streaming=False)
        return await turn.finish()

    async def _begin(self, message: object, options: CallOptions, *, streaming: bool) -> Turn:
        position = self._position
        position.opening += 1
        try:
            filled = await position.supply(options, self.checkpoint_storage)
            supplied = frozenset(name for name in ("run_id", "checkpoint") if filled.get(name) is not options.get(name))
            turn = await begin(self.program, self._call(message, filled, supplied), streaming=streaming)
        finally:
            position.opening -= 1
        position.took(turn)
        return turn

    async def edit(
        self,
        state: Mapping[str, object] | None = None,
        *,
        reason: str,
        checkpoint: CheckpointArgument = None,
        **options: Unpack[EditOptions],
    ) -> WorkflowCheckpoint:
        """Change state of the run from outside of a turn, and stand at the checkpoint that this makes."""
        change = Edit.of(state, reason, options)
        position = self._position
        position.opening += 1
        try:
            given: CallOptions = {"checkpoint": checkpoint, "run_id": options.get("run_id")}
            filled = await position.supply(given, self.checkpoint_storage)
            check_given(filled.get("checkpoint"), "edit")
            filled["fork"], filled["takeover"] = options.get("fork", False), options.get("takeover", False)
            edited = await edit(self.program, self._call(None, filled, frozenset()), change)
        finally:
            position.opening -= 1
        position.restore(edited)
        return edited

    def _call(self, message: object, options: CallOptions, supplied: frozenset[str]) -> Call:
        return Call(
            message=message,
            run_id=options.get("run_id"),
            checkpoint=options.get("checkpoint"),
            responses=collect(options.get("responses")),
            run_args=options.get("run_args"),
            resources=options.get("resources") or {},
            idempotency_key=options.get("idempotency_key"),
            on_pending=options.get("on_pending"),
            on_unfinished=options.get("on_unfinished", "finish"),
            durability=options.get("durability", "superstep"),
            fork=options.get("fork", False),
            takeover=options.get("takeover", False),
            store=self.checkpoint_storage,
            supplied=supplied,
        )

    async def capture_checkpoint_object(self, in_flight: bool = False) -> WorkflowCheckpoint:
        """Return the run as a checkpoint in memory. Raises `CaptureError` while messages are in flight, unless asked
        for with `in_flight`."""
        turn = self._position.turn
        if turn is not None and not turn.is_running() and not turn.has_ended():
            raise CaptureError("the newest turn of this run could not be saved.", "Continue the run, then capture it.")
        found = self._position.newest if turn is None or turn.actor is None else self.context.create_checkpoint_object()
        if found is None:
            raise CaptureError("this runner has not run yet.", "Run or restore it first.")
        if not in_flight and has_messages(found.records):
            raise CaptureError(
                "messages are in flight in this run.",
                "Capture it when it rests, or pass in_flight=True to take them along.",
            )
        return found

    async def restore_from_checkpoint_object(self, checkpoint: WorkflowCheckpoint | WorkflowRunResult) -> None:
        """Make this runner stand where the checkpoint is, in place of what it held. Raises a
        `WorkflowCheckpointException` where it does not fit; then the runner is as it was."""
        if isinstance(checkpoint, WorkflowRunResult):
            checkpoint = checkpoint.checkpoint
        if not isinstance(cast("object", checkpoint), WorkflowCheckpoint):
            raise WrongCallError(f"checkpoint is a {type(checkpoint).__name__}.", "Pass a checkpoint or a result.")
        fitted = fitting(self.program, checkpoint)
        restored = WorkflowCheckpoint(
            fitted.header, fitted.records.copy(), fitted.digests, migrated=fitted.migrated or checkpoint.migrated
        )
        self._position.restore(restored)
        self.resumed = True


def has_messages(run: Run) -> bool:
    """Tell whether anything is on its way: every unfinished superstep has messages or waits for one below it."""
    return run.get("/", "step", "") is not None
