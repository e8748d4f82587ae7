"""Driving a run from pause to pause: its questions are answered, and each call goes on from stored bytes.

Every call is made over a store and could be made by a new process; `drive` can be given a function that builds the
workflow, and then each call has executors of its own. Must not know how a run works inside.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias, cast

from rehydrate.api.workflow import Workflow
from rehydrate.model.checkpoint import Status
from rehydrate.ports import CheckpointStorage
from rehydrate.runtime.options import CallOptions
from rehydrate.runtime.program import Program
from rehydrate.runtime.requests import PendingRequest
from rehydrate.runtime.result import WorkflowRunResult
from rehydrate.runtime.runner import Runner
from rehydrate.runtime.watch import Watch
from rehydrate.stores.memory import InMemoryCheckpointStorage

#: What answers requests: a function, or values by the id of the executor that asks.
Answers: TypeAlias = Callable[[PendingRequest], object] | Mapping[str, object]
#: A workflow, or what builds it anew for each call.
Workflows: TypeAlias = Workflow | Callable[[], Workflow]
#: What makes a store, on a place that nothing else uses.
StoreMaker: TypeAlias = Callable[[], CheckpointStorage]
#: What a function of answers returns for a request that is to stay open.
UNANSWERED: Final = object()
#: A workflow that asks more often than this asks for ever.
_MOST_CALLS: Final = 1000
#: A call that ends more often than this, each time by a fault, gets nowhere.
_MOST_ATTEMPTS: Final = 10


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
class MadeCall:
    """What a call brings: a message, or answers by request id."""

    message: object = None
    responses: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True)
class Stage:
    """A workflow, as a runner needs it, over another store and perhaps with its commands watched."""

    program: Program
    checkpoint_storage: CheckpointStorage


@asynccontextmanager
async def fresh_store(make_store: StoreMaker | None) -> AsyncGenerator[CheckpointStorage]:
    """Give a store of its own to one run, and close it; by default one in memory."""
    store = InMemoryCheckpointStorage() if make_store is None else make_store()
    try:
        yield store
    finally:
        await store.close()


def built(workflow: Workflows) -> Workflow:
    """Return the workflow, built anew where it can be."""
    return workflow if isinstance(workflow, Workflow) else workflow()


class Drive:
    """One run that is driven. `watching` gives what watches an attempt at a call; `is_new` says whether attempt `n` at
    a call, from 0, is made as by a new process: then `restarted` is told, and the workflow is built anew. After an
    error of a class in `again` the same call is made again."""

    def __init__(
        self,
        workflow: Workflows,
        store: CheckpointStorage | None = None,
        *,
        watching: Callable[[int], Watch] | None = None,
        restarted: Callable[[], None] | None = None,
        is_new: Callable[[int], bool] = lambda _: True,
        options: Mapping[str, object] | None = None,
        again: tuple[type[BaseException], ...] = (Crash,),
    ) -> None:
        #: What each call brought.
        self.calls: list[MadeCall] = []
        self._again = again
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

    async def run(self, messages: Sequence[object], answers: Answers | None) -> Driven:
        """Make a call for each message, and after it one for the answers of each pause until nothing is answered."""
        if not isinstance(cast("object", messages), list | tuple) or not messages:
            raise TypeError("give the inputs of a run, one for each turn: a list with at least one")
        for message in messages:
            result = await self._call(MadeCall(message))
            for _ in range(_MOST_CALLS):
                given = answered(result, answers)
                if not given or result.status is not Status.IDLE_WITH_PENDING_REQUESTS:
                    break
                result = await self._call(MadeCall(None, given))
            else:
                raise AssertionError(
                    f"the run was answered {_MOST_CALLS} times and still asks; leave a request UNANSWERED"
                )
        return Driven(tuple(self._results), self._crashes)

    async def _call(self, call: MadeCall) -> WorkflowRunResult:
        """Make one call, and the same call again after each crash."""
        key = f"{self._name} {len(self._results)}"
        options = {**self._options, "responses": call.responses, "idempotency_key": key}
        if self._results:
            options["checkpoint"] = self._results[-1].checkpoint_id
        self.calls.append(call)
        attempt = 0
        while True:
            runner = Runner(self._stage(attempt))
            try:
                result = await runner.run(call.message, stream=False, **cast("CallOptions", options))
            except self._again:
                attempt += 1
                self._crashes += 1
                if attempt == _MOST_ATTEMPTS:
                    raise
            else:
                self._results.append(result)
                return result

    def _stage(self, attempt: int) -> Stage:
        if self._built is None or self._is_new(attempt):
            if self._restarted is not None:
                self._restarted()
            self._built = built(self._workflow)
        program = self._built.program
        if self._watching is not None:
            program = replace(program, watch=self._watching(attempt))
        return Stage(program, self._store)


def answered(result: WorkflowRunResult, answers: Answers | None) -> dict[str, object]:
    """Return the answers to those open requests for which there is one, by request id."""
    if answers is None:
        return {}
    found: dict[str, object] = {}
    for request in result.pending_requests:
        if callable(answers):
            value = answers(request)
        else:
            value = answers.get(request.executor_id, UNANSWERED)
        if value is not UNANSWERED:
            found[request.request_id] = request.answer(value).value
    return found


async def drive(
    workflow: Workflows,
    *messages: object,
    answers: Answers | None = None,
    checkpoint_storage: CheckpointStorage | None = None,
    run_args: object = None,
    resources: Mapping[str, object] | None = None,
) -> Driven:
    """Run a workflow and answer what it asks until it is idle, or asks what has no answer; without answers, to the
    first pause. Each further message is a turn of its own in the same run.

    At each pause the run is restored from stored bytes in the call that answers it. The workflow's own store is not
    used. Raises what a call raises.
    """
    options = {"run_args": run_args, "resources": resources}
    return await Drive(workflow, checkpoint_storage, options=options).run(messages, answers)
