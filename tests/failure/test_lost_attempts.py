"""Attempts that ended with their process: they are counted, and five in a row are enough."""

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rehydrate import Retry, Status, WorkflowBuilder, WorkflowContext, executor
from rehydrate.errors import RunFailedError
from rehydrate.model.checkpoint import key_of
from rehydrate.model.records import AttemptRecord
from tests.failure.kit import Gate, others, step, until

ROOT = Path(__file__).resolve().parents[2]
run = asyncio.run


def processes(file, *deeds):
    """Make a call in a process for each of the deeds; return what became of them, and the effect keys they saw."""
    command = [sys.executable, "-m", "tests.failure.dying", str(file), *deeds]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=60, check=True)
    ends = json.loads(done.stdout)
    told = [(end["code"], end["said"], [int(attempt) for attempt, _ in end["attempts"]]) for end in ends]
    return told, {key for end in ends for _, key in end["attempts"]}


def test_case_64_a_handler_that_kills_its_process_each_time_fails_for_good(tmp_path):
    """Five processes die of it, the sixth says that it failed; a call that asks again tries again, and it may work."""
    told, keys = processes(tmp_path / "runs.db", *["kill"] * 6, "work")
    assert told[:5] == [(-signal.SIGKILL, None, [number]) for number in range(1, 6)]
    code, failed, attempts = told[5]
    assert (code, failed["status"], failed["where"], failed["outputs"], attempts) == (
        0,
        "FAILED",
        "inner#1/deadly",
        [],
        [],
    )
    assert "5 attempts in a row" in failed["reason"]
    assert told[6] == (0, {"status": "IDLE", "outputs": ["x beside", "x done"]}, [6])
    assert len(keys) == 1


def test_lost_attempts_do_not_use_the_retry_budget(tmp_path):
    """Two processes die, then the handler fails twice, which is its budget: only then the run fails."""
    told, _ = processes(tmp_path / "runs.db", "kill", "kill", "fail")
    assert [attempts for _, _, attempts in told] == [[1], [2], [3, 4]]
    assert told[2][1]["status"] == "FAILED"
    assert "Fault" in told[2][1]["reason"]


# in one process: a run that is taken over was lost by whoever drove it -------------------------------------------


def forked(workflow, store, checkpoint, number):
    """Go on from a checkpoint under a run id of its own, as the process does that comes after a lost one."""
    return workflow.run(checkpoint=checkpoint, fork=True, run_id=f"fork {number}", checkpoint_storage=store)


async def lose(store, world, call, run_id):
    """Go on until the last step runs, and give the newest checkpoint, which is all that is left of a lost process."""
    gate = world.gates["last"] = Gate()
    running = asyncio.create_task(call)
    await gate.entered.wait()
    head = await store.head(run_id)
    running.cancel()
    await asyncio.wait([running])
    return head.header.checkpoint_id


def test_five_lost_attempts_in_a_row_fail_and_a_call_that_asks_again_tries_again(world, store):
    """Also without a process that dies: a run that was taken over was lost by whoever drove it."""
    first, last = step("first", world), step("last", world)
    workflow = WorkflowBuilder("w", first, reducers={"seen": max_text}).add_edge(first, last).build()

    async def scenario():
        call = workflow.run("x", run_id="r", checkpoint_storage=store)
        found = await lose(store, world, call, "r")
        for number in range(4):
            found = await lose(store, world, forked(workflow, store, found, number), f"fork {number}")
        world.gates.clear()
        with pytest.raises(RunFailedError, match="5 attempts in a row") as error:
            await forked(workflow, store, found, 4)
        return error.value

    error = run(scenario())
    assert [entry for entry in world.log if "last" in entry] == [f"last {number}" for number in range(1, 6)]
    assert error.where == "last"
    assert run(workflow.run(checkpoint=error.result, checkpoint_storage=store)).outputs == ["x first last"]
    assert world.log[-1] == "last 6"


def test_a_finished_invocation_between_lost_attempts_breaks_their_row(world, store):
    """Each process finishes one of eight siblings before it is lost: nothing fails, however often that happens."""
    start = step("start", world)
    slow = [step(f"slow {number}", world) for number in range(8)]
    graph = WorkflowBuilder("w", start, reducers={"seen": max_text})
    workflow = graph.add_fan_out_edges(start, [step("last", world), *slow]).build()

    async def scenario():
        for number in range(8):
            world.gates[f"slow {number}"] = Gate()
        call = workflow.run("x", run_id="r", checkpoint_storage=store)
        found = await lose(store, world, call, "r")
        for number in range(8):
            for other in range(number + 1, 8):
                world.gates[f"slow {other}"] = Gate()
            del world.gates[f"slow {number}"]
            running = asyncio.create_task(forked(workflow, store, found, number))
            for _ in range(100_000):
                if len(await records(store, f"fork {number}", "done")) > number:
                    break
            found = (await store.head(f"fork {number}")).header.checkpoint_id
            running.cancel()
            await asyncio.wait([running])
        world.gates.clear()
        return await forked(workflow, store, found, 8)

    result = run(scenario())
    assert (result.status, len(result.outputs)) == (Status.IDLE, 9)
    assert world.log[-1] == "last 10"


def max_text(current, contribution):
    """A reducer."""
    return max(current or "", contribution)


def test_what_failed_for_good_in_a_lost_process_was_not_lost(world, store):
    """A failure that was saved is another try at the restart and not a lost attempt; what ran beside it was lost."""
    start = step("start", world)
    ends = [step("breaks", world, retry=Retry(attempts=2, delay=0)), step("last", world)]
    graph = WorkflowBuilder("w", start, reducers={"seen": max_text}, checkpoint_storage=store)
    workflow = graph.add_fan_out_edges(start, ends).build()
    world.fails["breaks"] = 2

    async def scenario():
        gate = world.gates["last"] = Gate()
        running = asyncio.create_task(workflow.run("x", run_id="r"))
        await gate.entered.wait()
        await until(lambda: "breaks 2" in world.log)
        for _ in range(100_000):
            if await records(store, "r", "failure"):
                break
        checkpoint = (await store.head("r")).header.checkpoint_id
        running.cancel()
        await asyncio.wait([running])
        world.gates["breaks"] = Gate()
        stream = workflow.run(checkpoint=checkpoint, fork=True, run_id="fork", stream=True)
        await anext(stream)
        return await stream.cancel()

    found = run(scenario()).checkpoint.records
    assert found.get("", "attempt", "last#1").lost == 1
    breaks = found.get("", "attempt", "breaks#1")
    assert breaks == AttemptRecord(2)


async def records(store, run_id, kind):
    """Let others run, then return the keys of the records of a kind that are saved."""
    await others()
    head = await store.head(run_id)
    stored = await store.load(head.header.checkpoint_id) if head is not None else None
    return [key for key in stored.records if key_of(key)[1] == kind] if stored is not None else []


def test_a_cancelled_attempt_is_counted_and_not_lost(world, store):
    """`ctx.attempt` says that it began; it counts neither as lost nor against the budget."""
    seen = []

    @executor(retry=Retry(attempts=2, delay=0))
    async def counts(text: str, ctx: WorkflowContext) -> str:
        seen.append(ctx.attempt)
        await world.enter(ctx)
        return text

    workflow = WorkflowBuilder("w", counts, checkpoint_storage=store).build()

    async def scenario():
        result = None
        for _ in range(8):
            gate = world.gates["counts"] = Gate()
            given = {"message": "x", "run_id": "r"} if result is None else {"checkpoint": result}
            stream = workflow.run(stream=True, **given)
            reading = asyncio.create_task(stream.result())
            await gate.entered.wait()
            result = await stream.cancel()
            await asyncio.wait([reading])
        world.gates.clear()
        world.fails["counts"] = 1
        return await workflow.run(checkpoint=result)

    result = run(scenario())
    assert (result.status, seen) == (Status.IDLE, list(range(1, 11)))
