"""`Runner`: drives one run, a turn at a time; `Workflow.run` makes one per call and has no other path.

It remembers the run's newest checkpoint, so that code that passes nothing between two calls can go on. It must not know
anything of a run that its records do not say.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Final, Literal, TypeAlias, TypedDict, Unpack, get_type_hints, overload

from rehydrate.engine.inputs import OnPending, OnUnfinished
from rehydrate.engine.run import Run
from rehydrate.errors import CaptureError, RunFailedError
from rehydrate.model.checkpoint import Status
from rehydrate.ports import CheckpointStorage

from .actor import Actor, Durability
from .call import Call, CheckpointArgument
from .checkpoint import WorkflowCheckpoint
from .checks import check_definition
from .program import HasProgram
from .requests import Responses, collect
from .result import WorkflowRunResult
from .stream import RunStream
from .turn import Turn, begin


class TurnOptions(TypedDict, total=False):
    """The keyword arguments that every way to go on with a run takes; see the page on the resume table."""

    run_id: str | None
    responses: Responses | None
    run_args: object
    resources: Mapping[str, object] | None
    idempotency_key: str | None
    on_pending: OnPending | None
    on_unfinished: OnUnfinished
    durability: Durability
    fork: bool
    takeover: bool


class CallOptions(TurnOptions, total=False):
    """Those, and the checkpoint to go on from."""

    checkpoint: CheckpointArgument


KNOWN_OPTIONS: Final = frozenset(get_type_hints(CallOptions))
#: Fills in what a call does not say, at its first await.
Supply: TypeAlias = Callable[[CallOptions], Awaitable[CallOptions]]


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
        return WorkflowCheckpoint(ledger.header_of(actor.run, Status.RUNNING, 0, nonce), actor.run.copy())

    async def create_checkpoint(self) -> WorkflowCheckpoint:
        """Save what has gathered and return the run as it then stands."""
        return WorkflowCheckpoint(*await self._actor.save_now())


class Runner:
    """Drives one run of a workflow."""

    def __init__(self, workflow: HasProgram, checkpoint_storage: CheckpointStorage | None = None) -> None:
        self.program = workflow.program
        self.checkpoint_storage = workflow.checkpoint_storage if checkpoint_storage is None else checkpoint_storage
        self.resumed = False
        self._newest: WorkflowCheckpoint | None = None
        self._context: RunnerContext | None = None
        self._turn: Turn | None = None

    @property
    def context(self) -> RunnerContext:
        """The context of the newest turn. Raises `CaptureError` before the first."""
        if self._context is None:
            raise CaptureError("this runner has not run yet.", "Run or restore it first.")
        return self._context

    @property
    def newest(self) -> WorkflowCheckpoint | None:
        """The newest checkpoint that this runner has seen or was restored from."""
        return self._newest

    @overload
    def run(
        self, message: object = None, *, stream: Literal[False] = False, **options: Unpack[CallOptions]
    ) -> Coroutine[None, None, WorkflowRunResult]: ...

    @overload
    def run(self, message: object = None, *, stream: Literal[True], **options: Unpack[CallOptions]) -> RunStream: ...

    def run(
        self, message: object = None, *, stream: bool = False, **options: Unpack[CallOptions]
    ) -> Coroutine[None, None, WorkflowRunResult] | RunStream:
        """Run a turn; a runner that has run or was restored goes on from there unless a checkpoint is given."""
        return self.run_from(self._supply, message, options, stream=stream)

    async def _supply(self, options: CallOptions) -> CallOptions:
        if self._newest is None or options.get("checkpoint") is not None:
            return options
        filled = options.copy()
        filled["checkpoint"] = self._newest
        return filled

    def run_from(
        self,
        supply: Supply,
        message: object,
        options: CallOptions,
        *,
        stream: bool,
    ) -> Coroutine[None, None, WorkflowRunResult] | RunStream:
        """Run a turn with what `supply` adds to the options at the first await; an unknown one is a `TypeError`."""
        unknown = sorted(options.keys() - KNOWN_OPTIONS)
        if unknown:
            raise TypeError(f"run() got an unexpected keyword argument {unknown[0]!r}")
        if stream:
            return RunStream(lambda: self._begin(supply, message, options, streaming=True), self._settle)
        return self._run(supply, message, options)

    async def _run(self, supply: Supply, message: object, options: CallOptions) -> WorkflowRunResult:
        turn = await self._begin(supply, message, options, streaming=False)
        turn.start()
        try:
            result = await turn.finish()
        except RunFailedError as error:
            if isinstance(error.result, WorkflowRunResult):
                self._settle(turn, error.result)
            raise
        self._settle(turn, result)
        return result

    async def _begin(
        self,
        supply: Supply,
        message: object,
        options: CallOptions,
        *,
        streaming: bool,
    ) -> Turn:
        call = self._call(message, await supply(options))
        turn = self._turn = await begin(self.program, call, streaming=streaming)
        if turn.actor is not None:
            self._context = ActorContext(turn.actor)
        return turn

    def _settle(self, turn: Turn, result: WorkflowRunResult) -> None:
        """Remember where the run stands, unless this runner was restored or has begun another turn meanwhile."""
        if turn is self._turn:
            self._newest = result.checkpoint

    def _call(self, message: object, options: CallOptions) -> Call:
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
        )

    async def capture_checkpoint_object(self, in_flight: bool = False) -> WorkflowCheckpoint:
        """Return the run as a checkpoint in memory. Raises `CaptureError` while messages are in flight, unless asked
        for with `in_flight`."""
        found = self._newest if self._context is None else self.context.create_checkpoint_object()
        if found is None:
            raise CaptureError("this runner has not run yet.", "Run or restore it first.")
        if not in_flight and has_messages(found.records):
            raise CaptureError(
                "messages are in flight in this run.",
                "Capture it when it rests, or pass in_flight=True to take them along.",
            )
        return found

    async def restore_from_checkpoint_object(self, checkpoint: WorkflowCheckpoint) -> None:
        """Make this runner stand where the checkpoint is, in place of what it held. Raises a
        `WorkflowCheckpointException` where it does not fit; then the runner is as it was."""
        check_definition(self.program.graph, checkpoint)
        restored = WorkflowCheckpoint(checkpoint.header, checkpoint.records.copy(), checkpoint.digests)
        self._newest, self._context, self._turn, self.resumed = restored, None, None, True


def has_messages(run: Run) -> bool:
    """Tell whether anything is on its way: every unfinished superstep has messages or waits for one below it."""
    return run.get("/", "step", "") is not None
