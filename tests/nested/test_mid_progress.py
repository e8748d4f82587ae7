"""Children in mid-progress: messages in flight, finished work that no barrier has taken, open questions at each level.

The tree is stopped while one executor of every scope waits: its counters have counted and asked, its tallies have
finished beside the one that waits.
"""

import asyncio
import signal
import subprocess
import sys

import pytest

from rehydrate import Runner, SqliteCheckpointStorage, Status, WorkflowCheckpoint
from tests.nested.places import ROOT
from tests.nested.tree import Branch, Gate, Question, answers, paths, reports, size, tree

DEPTHS = [1, 2, 3, 5]


async def stopped_at_the_gate(workflow, depth, *, store=None, run_id=None):
    """Run until every scope has an executor at the gate, then capture and cancel; return the bytes."""
    gate = Gate(size(depth))
    runner = Runner(workflow, store)
    async with runner.run(Branch(1), stream=True, run_id=run_id, resources={"gate": gate}) as stream:
        await gate.full.wait()
        for _ in range(20):  # the tallies beside the last one at the gate finish without waiting for anything
            await asyncio.sleep(0)
        captured = await runner.capture_checkpoint_object(in_flight=True)
        data = captured.to_bytes()
        await stream.cancel()
    return data


async def finished(run, gate):
    """Go on to the questions, check that they are those that were open, answer all and return the outputs."""
    first = await run(resources={"gate": gate})
    asked = {request.path: (request.executor_id, request.data) for request in first.pending_requests}
    second = await run(responses=answers(first.pending_requests), resources={"gate": Gate(is_open=True)})
    return asked, second.outputs


def questions(depth: int) -> dict[str, tuple[str, Question]]:
    """Return what every scope has asked: it counted to twice its number."""
    return {path: ("count", Question(number, 2 * number)) for number, path in paths(depth).items()}


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_restored_parent_goes_on_with_children_in_mid_progress(depth) -> None:
    """Executor state, shared state and questions of all scopes are there, and what had finished does not run again."""
    data = asyncio.run(stopped_at_the_gate(tree(depth), depth))

    async def go_on():
        runner = Runner(tree(depth))
        await runner.restore_from_checkpoint_object(WorkflowCheckpoint.from_bytes(data))
        gate = Gate(is_open=True)
        return gate, await finished(runner.run, gate)

    gate, (asked, outputs) = asyncio.run(go_on())
    assert asked == questions(depth)
    assert outputs == reports(depth)
    assert (gate.waiting, gate.tallied) == (size(depth), [])


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_checkpoint_of_children_in_mid_progress_shows_what_is_open(depth) -> None:
    """The questions of every scope can be read from it, while the waiting work is in flight."""
    data = asyncio.run(stopped_at_the_gate(tree(depth), depth))
    checkpoint = WorkflowCheckpoint.from_bytes(data)
    assert checkpoint.status is Status.RUNNING
    assert len(checkpoint.pending_request_ids) == size(depth)
    assert checkpoint.state == {"shared": 2}
    assert checkpoint.executor_states["count"] == {"kept": 2}


@pytest.mark.parametrize("depth", DEPTHS)
def test_one_object_of_children_in_mid_progress_is_restored_twice(depth) -> None:
    """Two runners go on from it side by side and do not meet."""
    checkpoint = WorkflowCheckpoint.from_bytes(asyncio.run(stopped_at_the_gate(tree(depth), depth)))

    async def go_on():
        runners = [Runner(tree(depth)), Runner(tree(depth))]
        for runner in runners:
            await runner.restore_from_checkpoint_object(checkpoint)
        return await asyncio.gather(*(finished(runner.run, Gate(is_open=True)) for runner in runners))

    assert asyncio.run(go_on()) == [(questions(depth), reports(depth))] * 2


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_stored_run_with_children_in_mid_progress_goes_on(place, depth) -> None:
    """The run was cancelled while all scopes waited; its newest checkpoint has all of them."""
    asyncio.run(stopped_at_the_gate(tree(depth), depth, store=place.open(), run_id="r"))
    store = place.open()
    assert asyncio.run(store.head("r")).header.status is Status.CANCELLED

    async def go_on():
        workflow, gate = tree(depth, checkpoint_storage=store), {"gate": Gate(is_open=True)}
        first = await workflow.run(checkpoint="latest", run_id="r", resources=gate)
        asked = {request.path: (request.executor_id, request.data) for request in first.pending_requests}
        given = answers(first.pending_requests)
        return asked, (await workflow.run(checkpoint=first, responses=given, resources=gate)).outputs

    assert asyncio.run(go_on()) == (questions(depth), reports(depth))


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_running_run_with_children_in_mid_progress_is_forked(place, depth) -> None:
    """The fork finishes while the original still waits; then that one finishes too."""

    async def fork():
        store, gate = place.open(), Gate(size(depth))
        stream = tree(depth).run(Branch(1), stream=True, run_id="r", resources={"gate": gate}, checkpoint_storage=store)
        async with stream:
            await gate.full.wait()
            head = (await store.head("r")).header.checkpoint_id
            workflow = tree(depth, checkpoint_storage=store)
            other = {"gate": Gate(is_open=True)}
            first = await workflow.run(checkpoint=head, fork=True, run_id="f", resources=other)
            given = answers(first.pending_requests)
            forked = await workflow.run(checkpoint=first, responses=given, resources=other)
            gate.opened.set()
            first = await stream.result()
        given = answers(first.pending_requests)
        return forked.outputs, (await workflow.run(checkpoint=first, responses=given, resources=other)).outputs

    assert asyncio.run(fork()) == (reports(depth), reports(depth))


def test_a_run_whose_process_was_killed_in_mid_progress_goes_on_here(tmp_path) -> None:
    """Three levels down work was under way when the process died; this one takes the run over at once."""
    file = tmp_path / "runs.db"
    command = [sys.executable, "-m", "tests.nested.killed", str(file), "r", "3"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr

    async def go_on():
        workflow = tree(3, checkpoint_storage=SqliteCheckpointStorage(file))
        gate = {"gate": Gate(is_open=True)}
        first = await workflow.run(checkpoint="latest", run_id="r", resources=gate)
        asked = {request.path: (request.executor_id, request.data) for request in first.pending_requests}
        second = await workflow.run(checkpoint=first, responses=answers(first.pending_requests), resources=gate)
        return asked, second.outputs

    assert asyncio.run(go_on()) == (questions(3), reports(3))


def test_capturing_from_inside_a_stream_does_not_disturb_it() -> None:
    """Captured at every event, the run ends as if nothing had looked."""

    async def capture():
        gate = {"gate": Gate(is_open=True)}
        runner = Runner(tree(2))
        stream = runner.run(Branch(1), stream=True, resources=gate)
        taken = [await runner.capture_checkpoint_object(in_flight=True) async for _ in stream]
        first = await stream.result()
        return taken, await runner.run(responses=answers(first.pending_requests), resources=gate)

    taken, second = asyncio.run(capture())
    assert second.outputs == reports(2)
    assert len(taken) > 20


def test_whatever_moment_of_a_stream_was_captured_leads_to_the_same_end() -> None:
    """Each captured checkpoint goes on, through bytes, to the outputs of the run that was not interrupted."""

    async def capture():
        runner = Runner(tree(1))
        taken = []
        async for _ in runner.run(Branch(1), stream=True, resources={"gate": Gate(is_open=True)}):
            captured = await runner.capture_checkpoint_object(in_flight=True)
            taken.append(captured.to_bytes())
        return list(dict.fromkeys(taken))

    async def ends(taken):
        found = []
        for data in taken:
            runner = Runner(tree(1))
            await runner.restore_from_checkpoint_object(WorkflowCheckpoint.from_bytes(data))
            found.append(await finished(runner.run, Gate(is_open=True)))
        return found

    taken = asyncio.run(capture())
    assert len(taken) >= 4
    assert asyncio.run(ends(taken)) == [(questions(1), reports(1))] * len(taken)


def test_whatever_moment_of_an_answering_turn_was_captured_leads_to_the_same_end() -> None:
    """Answers that are in flight, at work or done are taken once; outputs that are there already stay."""

    async def capture():
        gate = {"gate": Gate(is_open=True)}
        runner = Runner(tree(2))
        first = await runner.run(Branch(1), resources=gate)
        taken = []
        async for _ in runner.run(responses=answers(first.pending_requests), stream=True, resources=gate):
            captured = await runner.capture_checkpoint_object(in_flight=True)
            taken.append(captured.to_bytes())
        return list(dict.fromkeys(taken))

    async def ends(taken):
        found = []
        for data in taken:
            runner = Runner(tree(2))
            await runner.restore_from_checkpoint_object(WorkflowCheckpoint.from_bytes(data))
            result = await runner.run(resources={"gate": Gate(is_open=True)})
            found.append((result.status, result.pending_requests, result.outputs))
        return found

    taken = asyncio.run(capture())
    assert len(taken) >= 4
    assert asyncio.run(ends(taken)) == [(Status.IDLE, (), reports(2))] * len(taken)
