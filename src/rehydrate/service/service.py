"""`Service`: the verbs that a host needs, over one store and the workflows whose runs are in it.

A host speaks to nothing else: it knows runs by their ids, and the workflow of each is found by its name. It must not
know what kind of store it has, and keeps nothing of a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypedDict, Unpack

from rehydrate.api.workflow import Workflow
from rehydrate.engine.inputs import OnPending, OnUnfinished
from rehydrate.errors import (
    NothingRunsError,
    RunNotFoundError,
    UnknownRequestError,
    UnknownWorkflowError,
    WrongCallError,
)
from rehydrate.model.checkpoint import CheckpointRef, Head, Header, Latest, RequestRow, Status
from rehydrate.ports import CheckpointStorage, Inspection, OpenRequest
from rehydrate.runtime.actor import Durability
from rehydrate.runtime.following import RunEvents
from rehydrate.runtime.requests import Responses, collect
from rehydrate.runtime.stream import RunStream

from .arguments import check_store
from .history import RunHistory

#: What resources a call gets, by the name of its workflow.
Resources = Mapping[str, Mapping[str, object]]


class VerbOptions(TypedDict, total=False):
    """What may be said of every call that runs something; see `Workflow.run`."""

    run_args: object
    resources: Mapping[str, object] | None
    idempotency_key: str | None
    on_pending: OnPending | None
    on_unfinished: OnUnfinished
    durability: Durability
    takeover: bool


class _Given(VerbOptions, total=False):
    checkpoint_storage: CheckpointStorage


@dataclass(frozen=True)
class WaitingRequest:
    """An open request of some run, readable without its workflow."""

    run_id: str
    workflow: str
    request: OpenRequest


@dataclass(frozen=True)
class Service:
    """What can be done with the runs of some workflows in one store.

    `resources` are given with every call of a workflow, by its name. Calls that run something return a stream: whoever
    leaves it stops its run. Raises `UnknownWorkflowError` for a run of a workflow that is not here.
    """

    storage: CheckpointStorage
    workflows: Iterable[Workflow]
    resources: Resources = field(default_factory=dict[str, Mapping[str, object]])

    def __post_init__(self) -> None:
        check_store(self.storage)
        given = tuple(self.workflows)
        if len({workflow.name for workflow in given}) < len(given):
            raise WrongCallError("two workflows of a service have one name.", "Give each a name of its own.")
        object.__setattr__(self, "workflows", given)

    def workflow(self, name: str) -> Workflow:
        """Return a workflow by its name."""
        found = next((workflow for workflow in self.workflows if workflow.name == name), None)
        if found is None:
            raise UnknownWorkflowError(name, tuple(sorted(workflow.name for workflow in self.workflows)))
        return found

    def start(
        self, workflow: str, message: object, *, run_id: str | None = None, **options: Unpack[VerbOptions]
    ) -> RunStream:
        """Start a run."""
        given = _given(self, workflow, options)
        return self.workflow(workflow).run(message, stream=True, run_id=run_id, **given)

    async def resume(
        self,
        run_id: str,
        message: object = None,
        *,
        checkpoint: str = "latest",
        responses: Responses | None = None,
        **options: Unpack[VerbOptions],
    ) -> RunStream:
        """Go on with a run: with a message, answers, both, or as it stands."""
        workflow = await workflow_of(self, run_id)
        given = _given(self, workflow.name, options)
        return workflow.run(message, stream=True, run_id=run_id, checkpoint=checkpoint, responses=responses, **given)

    async def answer(self, responses: Responses, **options: Unpack[VerbOptions]) -> RunStream:
        """Answer open requests of one run, which is found through their ids, and go on with it."""
        rows = await self._rows(responses)
        workflow = await workflow_of(self, next(iter(rows.values())).run_id)
        return workflow.run(stream=True, responses=responses, **_given(self, workflow.name, options))

    async def offer(
        self, run_id: str, message: object = None, *, responses: Responses | None = None, key: str | None = None
    ) -> int:
        """Leave input for a run, whoever drives it or will; see `Workflow.offer`."""
        workflow = await workflow_of(self, run_id)
        return await workflow.offer(run_id, message, responses=responses, key=key, checkpoint_storage=self.storage)

    async def cancel(self, run_id: str) -> bool:
        """Stop a run at what it has; `False`: another call drives it and was asked to. Raises `NothingRunsError`.

        One whose process died is taken up for that, and a handler of it may begin before it is stopped.
        """
        head = await _head(self, run_id)
        workflow = self.workflow(head.header.workflow)
        if head.header.status is not Status.RUNNING:
            raise NothingRunsError(run_id)
        if head.owner is not None and head.alive:
            await workflow.offer(run_id, cancel=True, checkpoint_storage=self.storage)
            return False
        stream = await self.resume(run_id)
        await stream.cancel()
        return True

    async def fork(
        self,
        checkpoint: str,
        message: object = None,
        *,
        run_id: str | None = None,
        responses: Responses | None = None,
        **options: Unpack[VerbOptions],
    ) -> RunStream:
        """Copy a run at one of its checkpoints, given by its id, under another run id, and go on from there."""
        workflow = await workflow_at(self, checkpoint)
        return forked(self, workflow, checkpoint, message, run_id=run_id, responses=responses, **options)

    async def runs(
        self, *, workflow: str | None = None, status: str | None = None, after: str | None = None, limit: int = 100
    ) -> list[Header]:
        """Return how runs stand, ordered by run id, from the one behind `after` on."""
        return await self.storage.runs(workflow=workflow, status=status, after=after, limit=limit)

    async def show(self, run_id: str, checkpoint: str | None = None) -> Inspection:
        """Return what the newest checkpoint of a run says, or another one of its id."""
        ref: CheckpointRef = Latest(run_id) if checkpoint is None else checkpoint
        if checkpoint is None:
            await _head(self, run_id)
        return await self.storage.inspect(ref)

    def history(self, run_id: str) -> RunHistory:
        """Return the checkpoints of a run, which are also compared there: `history.diff(...)`."""
        return RunHistory(self.storage, run_id)

    async def watch(self, run_id: str, *, after: int = 0) -> RunEvents:
        """Return the events of a run behind number `after`, as `Workflow.events` does."""
        workflow = await workflow_of(self, run_id)
        return workflow.events(run_id, after=after, checkpoint_storage=self.storage)

    async def inbox(
        self, *, workflow: str | None = None, run_id: str | None = None, after: str | None = None, limit: int = 100
    ) -> list[WaitingRequest]:
        """Return open requests over all runs, ordered by id, from the one behind `after` on, with what they ask."""
        rows = await self.storage.requests(workflow=workflow, run_id=run_id, after=after, limit=limit)
        found: dict[str, WaitingRequest] = {}
        for name in {row.run_id: None for row in rows}:
            inspection = await self.storage.inspect(Latest(name))
            for request in inspection.requests:
                found[request.request_id] = WaitingRequest(name, inspection.header.workflow, request)
        return [found[row.request_id] for row in rows if row.request_id in found]

    async def _rows(self, responses: Responses) -> dict[str, RequestRow]:
        rows: dict[str, RequestRow] = {}
        for request_id in collect(responses):
            row = await self.storage.find_request(request_id)
            if row is None:
                raise UnknownRequestError(request_id)
            rows[request_id] = row
        if not rows:
            raise WrongCallError("no answers were given.", "Pass request ids with their answers.")
        return rows


def _given(service: Service, workflow: str, options: VerbOptions) -> _Given:
    """Return the options of a call, with the store and the resources of its service."""
    resources = {**service.resources.get(workflow, {}), **(options.get("resources") or {})}
    given: _Given = {**options, "resources": resources, "checkpoint_storage": service.storage}
    return given


async def workflow_of(service: Service, run_id: str) -> Workflow:
    """Return the workflow of a run, by its head alone. Raises `RunNotFoundError` and `UnknownWorkflowError`."""
    return service.workflow((await _head(service, run_id)).header.workflow)


async def workflow_at(service: Service, checkpoint: str) -> Workflow:
    """Return the workflow of a checkpoint, which is read for it. Raises as the store's `inspect`, and
    `UnknownWorkflowError`."""
    return service.workflow((await service.storage.inspect(checkpoint)).header.workflow)


def forked(
    service: Service,
    workflow: Workflow,
    checkpoint: str,
    message: object = None,
    *,
    run_id: str | None = None,
    responses: Responses | None = None,
    **options: Unpack[VerbOptions],
) -> RunStream:
    """Do what `Service.fork` does where the workflow of the checkpoint is known already."""
    given = _given(service, workflow.name, options)
    return workflow.run(
        message, stream=True, run_id=run_id, checkpoint=checkpoint, responses=responses, fork=True, **given
    )


async def _head(service: Service, run_id: str) -> Head:
    head = await service.storage.head(run_id)
    if head is None:
        raise RunNotFoundError(run_id)
    return head
