"""What a call gives back: the run at rest, with its outputs and open requests.

Read from the records of the run's checkpoint; it stands for that checkpoint everywhere.
"""

from __future__ import annotations

from functools import cached_property

from rehydrate.codecs import ValueCodec
from rehydrate.engine import reading
from rehydrate.errors import SingleOutputError
from rehydrate.graph.definition import Definition
from rehydrate.model.checkpoint import Status
from rehydrate.model.events import Event
from rehydrate.model.records import TurnRecord

from .checkpoint import WorkflowCheckpoint
from .events import Channel
from .html import run_html
from .pending import PendingRequests


class WorkflowRunResult:
    """What one call gives, made by it. `replayed`: an earlier call with the same idempotency key has recorded it."""

    def __init__(
        self,
        checkpoint: WorkflowCheckpoint,
        graph: Definition,
        codec: ValueCodec,
        channel: Channel | None = None,
        *,
        status: Status | None = None,
        replayed: bool = False,
    ) -> None:
        self._graph = graph
        self._codec = codec
        self._channel = channel
        self.checkpoint = checkpoint
        self.replayed = replayed
        #: How the run stands.
        self.status: Status = checkpoint.status if status is None else status

    @property
    def run_id(self) -> str:
        """The run."""
        return self.checkpoint.run_id

    @property
    def checkpoint_id(self) -> str:
        """The run's newest checkpoint, to go on from."""
        return self.checkpoint.checkpoint_id

    @property
    def turn(self) -> int:
        """Number of the turn, from 1."""
        record = self.checkpoint.records.get("", "turn", "")
        return record.number if isinstance(record, TurnRecord) else 0

    @cached_property
    def outputs(self) -> list[object]:
        """The outputs of the turn in canonical order."""
        return [self._codec.open(record.value) for record in reading.outputs(self.checkpoint.records)]

    @property
    def output(self) -> object:
        """The only output. Raises `SingleOutputError` where there is none or more than one."""
        if len(self.outputs) != 1:
            raise SingleOutputError(len(self.outputs))
        return self.outputs[0]

    @cached_property
    def pending_requests(self) -> PendingRequests:
        """The open requests by path and name."""
        return PendingRequests(self.checkpoint.records, self._graph, self._codec)

    @property
    def next_due(self) -> float | None:
        """When the first `ctx.sleep` is over that the run waits for, in seconds since the epoch: a call with this
        checkpoint goes on from then on."""
        return reading.next_due(self.checkpoint.records)

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """The events of this call; empty where they were streamed."""
        return self._channel.kept() if self._channel is not None else ()

    def _repr_html_(self) -> str:
        """Return the table that a notebook shows."""
        replayed = ", recorded by an earlier call" if self.replayed else ""
        return run_html(self.checkpoint, self.status.value, f"turn {self.turn}{replayed}")

    def __repr__(self) -> str:
        return (
            f"WorkflowRunResult(run_id={self.run_id!r}, checkpoint_id={self.checkpoint_id!r},"
            f" status={self.status.value}, turn={self.turn}, outputs={len(reading.outputs(self.checkpoint.records))},"
            f" pending_requests={self.checkpoint.header.pending}, replayed={self.replayed})"
        )
