"""Driving a run from pause to pause: its questions are answered, and each call goes on from stored bytes.

Every call is made over a store and could be made by a new process; `drive` can be given a function that builds the
workflow, and then each call has executors of its own. Must not know how a run works inside.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, cast

from rehydrate.api.workflow import Workflow
from rehydrate.model.checkpoint import Status
from rehydrate.ports import CheckpointStorage
from rehydrate.runtime.options import CallOptions
from rehydrate.runtime.program import Program
from rehydrate.runtime.requests import PendingRequest, RequestAnswer
from rehydrate.runtime.result import WorkflowRunResult
from rehydrate.runtime.runner import Runner
from rehydrate.runtime.watch import Watch
from rehydrate.stores.memory import InMemoryCheckpointStorage

#: What answers requests: a function, or values by the id of the executor that asks.
Answers: TypeAlias = Callable[[PendingRequest], object] | Mapping[str, object]
#: A workflow, or what builds it anew for each call.
Workflows: TypeAlias = Workflow | Callable[[], Workflow]
#: What a function of answers returns for a request that is to stay open.
UNANSWERED: Final = object()
#: A workflow that asks more often than this asks for ever.
_MOST_CALLS: Final = 1000


class Crash(BaseException):
    """The process of a run ends here, as if it had been killed."""


@dataclass(frozen=True)
class Driven:
    """How a run was driven: the result of each call, in their order, and how often its process was ended."""

    results: tuple[WorkflowRunResult, ...]
    crashes: int = 0

    @property
    def result(self) -> WorkflowRunResult:
        """The result of the last call."""
        return self.results[-1]

    @property
    def outputs(self) -> list[object]:
        """The outputs of all calls."""
        return [output for result in self.results for output in result.outputs]

    @property
    def requests(self) -> tuple[PendingRequest, ...]:
        """All requests that were open after a call, each once, in the order in which they were seen."""
        found = {request.request_id: request for result in self.results for request in result.pending_requests}
        return tuple(found.values())


@dataclass(frozen=True)
class _Stage:
    """A workflow whose commands are watched."""

    program: Program
    checkpoint_storage: CheckpointStorage


class Drive:
    """One run that is driven. `watching` gives what watches an attempt at a call; `is_new` says whether attempt `n` at
    a call, from 0, is made as by a new process: then `restarted` is told, and the workflow is built anew."""

    def __init__(
        self,
        workflow: Workflows,
        store: CheckpointStorage | None = None,
        *,
        watching: Callable[[int], Watch] | None = None,
        restarted: Callable[[], None] | None = None,
        is_new: Callable[[int], bool] = lambda _: True,
        options: Mapping[str, object] | None = None,
    ) -> None:
        self._workflow = workflow
        self._store = InMemoryCheckpointStorage() if store is None else store
        self._watching = watching
        self._restarted = restarted
        self._is_new = is_new
        self._built: Workflow | None = None
        self._options = dict(options or {})
        self._name = secrets.token_hex(8)
        self._results: list[WorkflowRunResult] = []
        self._crashes = 0

    async def run(self, message: object, answers: Answers | None) -> Driven:
        """Make the first call, and then one for the answers of each pause until nothing is answered."""
        result = await self._call(message)
        for _ in range(_MOST_CALLS):
            self._results.append(result)
            given = _answered(result, answers)
            if not given or result.status is not Status.IDLE_WITH_PENDING_REQUESTS:
                return Driven(tuple(self._results), self._crashes)
            result = await self._call(None, checkpoint=result.checkpoint_id, responses=given)
        raise AssertionError(f"the run was answered {_MOST_CALLS} times and still asks; leave a request UNANSWERED")

    async def _call(self, message: object, **given: object) -> WorkflowRunResult:
        """Make one call, and the same call again after each crash."""
        key = f"{self._name} {len(self._results)}"
        options = {**self._options, **given, "idempotency_key": key}
        attempt = 0
        while True:
            runner = Runner(self._stage(attempt))
            try:
                return await runner.run(message, stream=False, **cast("CallOptions", options))
            except Crash:
                attempt += 1
                self._crashes += 1

    def _stage(self, attempt: int) -> _Stage:
        if self._built is None or self._is_new(attempt):
            if self._restarted is not None:
                self._restarted()
            self._built = self._workflow if isinstance(self._workflow, Workflow) else self._workflow()
        program = self._built.program
        if self._watching is not None:
            program = replace(program, watch=self._watching(attempt))
        return _Stage(program, self._store)


def _answered(result: WorkflowRunResult, answers: Answers | None) -> list[RequestAnswer]:
    """Return the answers to those open requests for which there is one."""
    if answers is None:
        return []
    found: list[RequestAnswer] = []
    for request in result.pending_requests:
        if callable(answers):
            value = answers(request)
        else:
            value = answers.get(request.executor_id, UNANSWERED)
        if value is not UNANSWERED:
            found.append(request.answer(value))
    return found


async def drive(
    workflow: Workflows,
    message: object,
    *,
    answers: Answers | None = None,
    checkpoint_storage: CheckpointStorage | None = None,
    run_args: object = None,
    resources: Mapping[str, object] | None = None,
) -> Driven:
    """Run a workflow and answer what it asks until it is idle, or asks what has no answer; without answers, to the
    first pause.

    At each pause the run is restored from stored bytes in the call that answers it. The workflow's own store is not
    used. Raises what a call raises.
    """
    options = {"run_args": run_args, "resources": resources}
    return await Drive(workflow, checkpoint_storage, options=options).run(message, answers)
