"""The result of a command that ran something: how the run stands, its outputs, what it asks, and what to do next."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, assert_never

from rehydrate.api.workflow import Workflow
from rehydrate.codecs import plain
from rehydrate.engine import reading
from rehydrate.model.checkpoint import Status
from rehydrate.model.plain import Plain
from rehydrate.model.printable import printable
from rehydrate.runtime.requests import PendingRequest
from rehydrate.runtime.result import WorkflowRunResult

from .documents import place_text
from .output import shown
from .session import Session
from .told import plain_value

#: Open requests that are shown to a person; JSON has all.
_MOST: Final = 20


@dataclass(frozen=True)
class Shown:
    """A result as it is printed."""

    session: Session
    workflow: Workflow
    result: WorkflowRunResult

    def show(self) -> None:
        """Print it."""
        if self.session.output.as_json:
            self.session.output.document(self.document())
            return
        for line in self._lines():
            self.session.output.line(line)

    def document(self) -> dict[str, object]:
        """Return it as what JSON can hold."""
        result = self.result
        return {
            "run_id": result.run_id,
            "checkpoint_id": result.checkpoint_id,
            "workflow": self.workflow.name,
            "status": result.status.value,
            "turn": result.turn,
            "replayed": result.replayed,
            "outputs": self._outputs(),
            "requests": [self._request(request) for request in result.pending_requests],
            "next_due": result.next_due,
        }

    def _outputs(self) -> list[Plain]:
        return [plain(record.value.data) for record in reading.outputs(self.result.checkpoint.records)]

    def _request(self, request: PendingRequest) -> dict[str, object]:
        return {
            "request_id": request.request_id,
            "path": request.path,
            "executor_id": request.executor_id,
            "asks": self._asks(request),
            "expects": request.shape,
            "intercepted": request.intercepted,
        }

    def _asks(self, request: PendingRequest) -> Plain:
        return plain_value(request.data, self.workflow.program.codec)

    def _lines(self) -> Iterator[str]:
        result = self.result
        for output in self._outputs():
            yield f"output   {shown(output)}"
        requests = result.pending_requests
        for request in itertools.islice(requests, _MOST):
            place = printable(place_text(request.path, request.executor_id))
            yield f"request  {printable(request.request_id)} from {place}"
            yield f"  asks     {shown(self._asks(request))}"
            yield f"  expects  {printable(request.shape)}"
        if len(requests) > _MOST:
            yield f"  and {len(requests) - _MOST} more: {self.session.command('inbox', '--run', result.run_id)}"
        replayed = ", recorded by an earlier call" if result.replayed else ""
        yield f"run      {printable(result.run_id)}: {result.status.value}, turn {result.turn}{replayed}"
        if result.next_due is not None:
            yield f"due      {datetime.fromtimestamp(result.next_due, UTC):%Y-%m-%dT%H:%M:%SZ}"
        next_command = self._next()
        if next_command:
            yield f"next     {next_command}"

    def _next(self) -> str:
        """Return the command that goes on with the run."""
        result, command = self.result, self.session.command
        match result.status:
            case Status.IDLE:
                return ""
            case Status.IDLE_WITH_PENDING_REQUESTS:
                first = next((each.request_id for each in result.pending_requests), None)
                more = " [ID=JSON ...]" if len(result.pending_requests) > 1 else ""
                return (
                    command("resume", "--run", result.run_id)
                    if first is None
                    else f"{command('answer', f'{first}=JSON')}{more}"
                )
            case Status.CANCELLED | Status.LIMIT_REACHED | Status.FAILED | Status.RUNNING:
                return command("resume", "--run", result.run_id)
            case _:
                assert_never(result.status)
