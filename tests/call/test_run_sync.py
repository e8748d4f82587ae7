"""`run_sync`, and workflows and stores that are used by one event loop after another (case 67)."""

import asyncio
import threading

import pytest

from rehydrate import Status
from rehydrate.errors import MessageTypeError, RunFailedError
from tests.call.desk import Gate, Note, desk
from tests.call.variables import TENANT, tell_tenant

run = asyncio.run


def test_in_a_script(world, anywhere):
    """Without an event loop it runs the call and returns its result; turns go on across calls."""
    workflow = desk(world, anywhere, depth=2)
    first = workflow.run_sync(Note("a?"), run_id="r")
    second = workflow.run_sync(Note("b"), checkpoint=first, responses=[first.pending_requests[0].answer(True)])
    assert (second.outputs, second.turn) == (["1: a? yes", "2: b"], 2)


def test_inside_a_running_loop(world, anywhere):
    """In a coroutine it works through a thread, before and after awaits on the same workflow and store."""
    workflow = desk(world, anywhere)

    async def scenario():
        first = await workflow.run(Note("a"), run_id="r")
        second = workflow.run_sync(Note("b"), checkpoint=first)
        third = await workflow.run(Note("c"), checkpoint=second)
        return [result.outputs for result in (first, second, third)]

    assert run(scenario()) == [["1: a"], ["2: b"], ["3: c"]]


def test_it_raises_what_the_call_raises(world, anywhere):
    """Errors before the claim and failures come through, in a script and inside a loop."""
    workflow = desk(world, anywhere)
    world.faults.add("clerk a")

    def fail():
        with pytest.raises(RunFailedError) as failed:
            workflow.run_sync(Note("a"))
        with pytest.raises(MessageTypeError):
            workflow.run_sync(7)
        return failed.value.result.status

    async def scenario():
        return fail()

    assert (fail(), run(scenario())) == (Status.FAILED, Status.FAILED)


def test_it_does_not_stream(world, anywhere):
    """There is no stream to wait for: the argument is refused as one that it does not have."""
    with pytest.raises(TypeError, match="stream"):
        desk(world, anywhere).run_sync(Note("a"), stream=True)
    assert world.diary == []


def test_it_hands_context_variables_on(world, anywhere):
    """Handlers see the caller's context variables, through the thread too; they get a copy."""
    workflow = tell_tenant(anywhere)
    token = TENANT.set("blue")

    async def scenario():
        TENANT.set("green")
        return workflow.run_sync("x").output, (await workflow.run("x")).output, TENANT.get()

    assert workflow.run_sync("x").output == "blue"
    assert run(scenario()) == ("green", "green", "green")
    assert TENANT.get() == "blue"
    TENANT.reset(token)


def test_case_67_a_second_event_loop_on_the_same_objects(world, anywhere):
    """One loop pauses, a second answers, a third brings a message: workflow and store belong to no loop."""
    workflow = desk(world, anywhere, depth=3)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    answered = run(workflow.run(checkpoint=paused, responses=[paused.pending_requests[0].answer(True)]))
    last = run(workflow.run(Note("b"), checkpoint=answered))
    assert (answered.outputs, last.outputs) == (["1: a? yes"], ["2: b"])


def test_case_67_a_second_loop_after_the_first_was_left_in_the_middle(world, store):
    """`asyncio.run` ended while a turn was running: in the next loop the run goes on at once."""
    workflow = desk(world, store)

    async def leave():
        gate = world.gates["clerk a"] = Gate()
        asyncio.get_running_loop().create_task(workflow.run(Note("a"), run_id="r"))
        await gate.entered.wait()

    run(leave())
    world.gates.clear()
    assert run(workflow.run(Note("b"), checkpoint="latest", run_id="r")).outputs == ["1: a", "2: b"]


def test_two_loops_at_the_same_time(world, anywhere):
    """Two threads with a loop each use one workflow and one store at once; each has its own run."""
    workflow, found = desk(world, anywhere), {}

    def talk(name):
        result = workflow.run_sync(Note(name), run_id=name)
        for _ in range(5):
            result = workflow.run_sync(Note(name), checkpoint=result)
        found[name] = (result.outputs, result.turn, result.run_id)

    threads = [threading.Thread(target=talk, args=(name,)) for name in "xy"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {"x": (["6: x"], 6, "x"), "y": (["6: y"], 6, "y")}
