"""The service: the verbs of a host, for runs of several workflows in one store."""

import asyncio

import pytest

from rehydrate import CheckpointStorage, RunStream, Service, Status, WorkflowRunResult
from rehydrate.errors import (
    NothingRunsError,
    RunNotFoundError,
    UnknownRequestError,
    UnknownWorkflowError,
    WrongCallError,
)
from rehydrate.model.events import OfferTaken, OutputYielded
from tests.call.desk import Gate, Note, World, desk, solo

run = asyncio.run


def service_of(world: World, store: CheckpointStorage) -> Service:
    """A service of a desk and a solo clerk."""
    return Service(store, [desk(world), solo(world)])


async def end(stream: RunStream) -> WorkflowRunResult:
    """Read a stream to its end."""
    return await stream.result()


def test_runs_are_started_resumed_and_answered_by_their_ids(world, store):
    """The workflow of a run is found by its name, and the run of an answer by its request."""
    service = service_of(world, store)

    async def scenario() -> list[list[object]]:
        first = await end(service.start("desk", Note("a,q?"), run_id="run"))
        second = await end(await service.resume("run", Note("b")))
        third = await end(await service.answer([first.pending_requests[0].answer(True)]))
        fourth = await end(await service.resume("run", Note("r?"), idempotency_key="k"))
        (request,) = fourth.pending_requests
        fifth = await end(await service.resume("run", Note("c"), responses={request.request_id: False}))
        return [result.outputs for result in (first, second, third, fourth, fifth)]

    assert run(scenario()) == [["1: a"], ["2: b"], ["1: q? yes"], [], ["3: r? no", "4: c"]]


def test_what_is_stored_can_be_looked_at(world, store):
    """Runs by workflow and status, a run, one of its checkpoints, its history, and what is open over all runs."""
    service = service_of(world, store)

    async def scenario() -> None:
        first = await end(service.start("desk", Note("q?"), run_id="a"))
        await end(service.start("solo", Note("r?"), run_id="b"))
        await end(service.start("desk", Note("x"), run_id="c"))
        assert [header.run_id for header in await service.runs(workflow="desk")] == ["a", "c"]
        assert [header.run_id for header in await service.runs(status="IDLE")] == ["c"]
        assert (await service.show("c")).outputs == ("1: x",)
        assert (await service.show("a", first.checkpoint_id)).header.turn == 1
        assert [entry.turn async for entry in service.history("c")] == [1] * len(await store.history("c"))
        waiting = await service.inbox()
        assert sorted((each.run_id, each.workflow, each.request.type) for each in waiting) == [
            ("a", "desk", "Query"),
            ("b", "solo", "Query"),
        ]
        assert [each.request.data for each in await service.inbox(workflow="solo")] == [
            {"$type": "Query", "text": "r?", "number": 0}
        ]
        assert await service.inbox(run_id="c") == []

    run(scenario())


def test_a_run_is_watched_offered_to_and_stopped_while_another_call_drives_it(world, store):
    """What was offered is taken; the wish to stop reaches the turn that runs, and a run at rest has nothing to stop."""
    service = service_of(world, store)

    async def scenario() -> None:
        gate = world.gates["clerk a"] = Gate()
        turn = asyncio.create_task(end(service.start("desk", Note("a"), run_id="run")))
        await gate.entered.wait()
        assert await service.offer("run", Note("b"), key="k") == 1
        assert await service.cancel("run") is False
        assert (await turn).status is Status.CANCELLED
        gate.opened.set()
        assert sorted((await end(await service.resume("run"))).outputs) == ["1: a", "2: b"]
        told = [event async for event in await service.watch("run")]
        assert [event.key for event in told if isinstance(event, OfferTaken)] == ["k"]
        assert sorted(event.data for event in told if isinstance(event, OutputYielded)) == ["1: a", "2: b"]
        with pytest.raises(NothingRunsError):
            await service.cancel("run")

    run(scenario())


def test_a_run_is_copied_from_a_checkpoint(world, store):
    """The copy goes on under its own id; the original stands as it stood."""
    service = service_of(world, store)

    async def scenario() -> None:
        first = await end(service.start("desk", Note("q?"), run_id="run"))
        request = first.pending_requests[0]
        copy = await end(await service.fork(first.checkpoint_id, run_id="copy", responses=[request.answer(True)]))
        assert (copy.run_id, copy.outputs) == ("copy", ["1: q? yes"])
        assert [each.run_id for each in await service.inbox()] == ["run"]

    run(scenario())


def test_resources_come_with_every_call_of_their_workflow(store):
    """Those of the service, and those of a call, which win."""
    world = World()
    flow = desk(world, resources={"client": str})
    service = Service(store, [flow], {"desk": {"client": "mine"}})
    assert run(end(service.start("desk", Note("a")))).outputs == ["1: a"]
    with pytest.raises(TypeError, match="client"):
        run(end(service.start("desk", Note("a"), resources={"client": 5})))


def test_what_is_not_there_is_told(world, store):
    """Unknown runs, requests and workflows, two workflows of one name, and calls that say nothing."""
    service = service_of(world, store)
    run(end(service.start("desk", Note("a"), run_id="run")))
    other = Service(store, [solo(world)])
    for error, call in (
        (UnknownWorkflowError, lambda: other.resume("run")),
        (RunNotFoundError, lambda: service.resume("none")),
        (RunNotFoundError, lambda: service.show("none")),
        (RunNotFoundError, lambda: service.cancel("none")),
        (UnknownRequestError, lambda: service.answer({"none": True})),
        (WrongCallError, lambda: service.answer({})),
    ):
        with pytest.raises(error):
            run(call())
    with pytest.raises(UnknownWorkflowError, match="workflow 'none' is not served here; served are 'desk', 'solo'"):
        service.start("none", Note("a"))
    with pytest.raises(WrongCallError, match="two workflows of a service have one name"):
        Service(store, (desk(world) for _ in range(2)))
