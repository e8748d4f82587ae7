"""`Workflow`: an immutable definition with the calls that start, continue and answer its runs.

It holds no run state and no event loop's objects; any number of runs may use it at once.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from rehydrate.codecs import ValueCodec, type_name
from rehydrate.graph.definition import Definition
from rehydrate.ports import CheckpointStorage
from rehydrate.ports.observer import Observer
from rehydrate.runtime.call import CheckpointArgument, check_given
from rehydrate.runtime.checkpoint import WorkflowCheckpoint
from rehydrate.runtime.editing import EditOptions
from rehydrate.runtime.following import RunEvents
from rehydrate.runtime.json_input import message_from_json
from rehydrate.runtime.offering import Offering, offer
from rehydrate.runtime.options import CallOptions, TurnOptions
from rehydrate.runtime.position import Position
from rehydrate.runtime.program import Program
from rehydrate.runtime.requests import Responses, collect
from rehydrate.runtime.result import WorkflowRunResult
from rehydrate.runtime.runner import Runner
from rehydrate.runtime.stream import RunStream

from .session import Session
from .waiting import wait_for

if TYPE_CHECKING:
    from rehydrate.graph.description import WorkflowDescription
    from rehydrate.graph.drawing import DrawingFormat


class RunOptions(CallOptions, total=False):
    """The keyword arguments of `Workflow.run`."""

    checkpoint_storage: CheckpointStorage | None


class ResumeOptions(TurnOptions, total=False):
    """The keyword arguments of `Workflow.resume`."""

    checkpoint_storage: CheckpointStorage | None


class WorkflowEditOptions(EditOptions, total=False):
    """The keyword arguments of `Workflow.edit`, but for the reason."""

    checkpoint_storage: CheckpointStorage | None


class Workflow:
    """A built workflow. Made by `WorkflowBuilder.build()`."""

    def __init__(
        self,
        *,
        definition: Definition,
        codec: ValueCodec,
        checkpoint_storage: CheckpointStorage | None = None,
        observers: Sequence[Observer] = (),
    ) -> None:
        self._program = Program(definition, codec, observers=tuple(observers))
        self._checkpoint_storage = checkpoint_storage

    @property
    def name(self) -> str:
        """The workflow's name."""
        return self.definition.name

    @property
    def version(self) -> int:
        """The definition's version."""
        return self.definition.version

    @property
    def definition(self) -> Definition:
        """The graph, as frozen data."""
        return self._program.graph

    @property
    def program(self) -> Program:
        """What all runs of this workflow share."""
        return self._program

    @property
    def observers(self) -> tuple[Observer, ...]:
        """Who is told what calls of this workflow do."""
        return self._program.observers

    @property
    def checkpoint_storage(self) -> CheckpointStorage | None:
        """The store that runs use where a call names none."""
        return self._checkpoint_storage

    def accepts(self, message: Any) -> bool:  # `Any`: a functional workflow says the type
        """Tell whether a run can begin with this message."""
        return self.definition.executors[self.definition.start].can_take(message)

    def parse(self, json: str | bytes) -> object:
        """Return the message that a JSON text says, by the types that a run can begin with.

        Raises `MessageShapeError`, which shows what is expected.
        """
        return message_from_json(self.definition, json)

    @overload
    def run(
        self, message: object = None, *, stream: Literal[False] = False, **options: Unpack[RunOptions]
    ) -> Coroutine[None, None, WorkflowRunResult]: ...

    @overload
    def run(self, message: object = None, *, stream: Literal[True], **options: Unpack[RunOptions]) -> RunStream: ...

    def run(
        self, message: object = None, *, stream: bool = False, **options: Unpack[RunOptions]
    ) -> Coroutine[None, None, WorkflowRunResult] | RunStream:
        """Start a run, or restore one and take the next input, in one call.

        docs/reference/running.md says what each argument is, docs/resume.md which of them go together.
        Raises a `CallError` or `WorkflowCheckpointException` before anything has run, `RunFailedError` for a run that
        ends `FAILED`, and a `StoreError` where a checkpoint could not be saved.
        """
        runner = Runner(self, options.pop("checkpoint_storage", None))
        return runner.run(message, stream=stream, **options)

    @overload
    def resume(
        self,
        checkpoint: CheckpointArgument,
        message: object = None,
        *,
        stream: Literal[False] = False,
        **options: Unpack[ResumeOptions],
    ) -> Coroutine[None, None, WorkflowRunResult]: ...

    @overload
    def resume(
        self,
        checkpoint: CheckpointArgument,
        message: object = None,
        *,
        stream: Literal[True],
        **options: Unpack[ResumeOptions],
    ) -> RunStream: ...

    def resume(
        self,
        checkpoint: CheckpointArgument,
        message: object = None,
        *,
        stream: bool = False,
        **options: Unpack[ResumeOptions],
    ) -> Coroutine[None, None, WorkflowRunResult] | RunStream:
        """Restore a checkpoint and go on: `run` with its intent in the name."""
        check_given(checkpoint)
        runner = Runner(self, options.pop("checkpoint_storage", None))
        return runner.run(message, stream=stream, checkpoint=checkpoint, **options)

    async def edit(
        self,
        checkpoint: CheckpointArgument,
        state: Mapping[str, object] | None = None,
        *,
        reason: str,
        **options: Unpack[WorkflowEditOptions],
    ) -> WorkflowCheckpoint:
        """Set state of one scope from outside of a turn, and return the checkpoint that this makes.

        `checkpoint` is the head of its run; with `fork=True` any one, of which a new run is made. `path` is the
        scope's, left out the root's; `delete` names keys to remove; `reason` is kept in the header. Nothing runs, and
        the run stands as it stood. Raises as `run` does before anything has run, and `WrongCallError` for a scope, or a
        key to remove, that is not there.
        """
        runner = Runner(self, options.pop("checkpoint_storage", None))
        return await runner.edit(state, reason=reason, checkpoint=checkpoint, **options)

    def session(
        self,
        run_id: str | None = None,
        checkpoint: CheckpointArgument = None,
        *,
        checkpoint_storage: CheckpointStorage | None = None,
    ) -> Session:
        """Return a session: the same calls, with run id and newest checkpoint supplied."""
        return Session(self, Position(run_id, checkpoint), checkpoint_storage)

    def events(self, run_id: str, *, after: int = 0, checkpoint_storage: CheckpointStorage | None = None) -> RunEvents:
        """Return the events of a run behind number `after`: those that its store has kept, then what comes while this
        process drives it. Raises `EventsNotKeptError` where the next one was not kept."""
        store = self._checkpoint_storage if checkpoint_storage is None else checkpoint_storage
        return RunEvents(self._program, store, run_id, after)

    async def offer(
        self,
        run_id: str,
        message: object = None,
        *,
        responses: Responses | None = None,
        cancel: bool = False,
        key: str | None = None,
        checkpoint_storage: CheckpointStorage | None = None,
    ) -> int:
        """Leave a message, answers or both in a run's inbox, and return their number there; `cancel`: ask it to stop.

        A turn that runs, in whatever process, takes it as a part of itself; a run at rest takes it in the next call
        that continues it, as a turn of its own. With a `key` the same offer again is the one that is there. Raises the
        error that a call with this input raises; then nothing was offered.
        """
        store = self._checkpoint_storage if checkpoint_storage is None else checkpoint_storage
        return await offer(self._program, store, Offering(run_id, message, collect(responses), cancel, key))

    def run_sync(self, message: object = None, **options: Unpack[RunOptions]) -> WorkflowRunResult:
        """Do `run` and wait for it: in scripts, and inside a running loop through a thread."""
        return wait_for(self.run(message, stream=False, **options))

    def draw(self, format: DrawingFormat = "text") -> str:
        """Return a drawing with all sub-workflows: `text`, `mermaid`, `dot` for Graphviz, or `svg`.

        Raises `WrongCallError` for another format.
        """
        from rehydrate.graph.drawing import draw  # noqa: PLC0415  (a process that runs workflows draws none)

        return draw(self.describe(), format)

    def describe(self) -> WorkflowDescription:
        """Return the whole tree as plain data; `dataclasses.asdict` of it can be written as JSON."""
        from rehydrate.graph.description import describe_workflow  # noqa: PLC0415  (the same)

        return describe_workflow(self.definition, type_name)

    def _repr_svg_(self) -> str:
        """Return the picture that a notebook shows."""
        return self.draw("svg")

    def __repr__(self) -> str:
        return f"Workflow({self.name!r}, version={self.version}, executors={len(self.definition.order)})"
