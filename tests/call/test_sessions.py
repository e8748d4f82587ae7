"""Sessions: code that passes nothing between its calls starts a run or goes on with it."""

import asyncio
import gc

import pytest

from rehydrate import Status
from rehydrate.errors import (
    ForeignCheckpointError,
    RunFailedError,
    SaveFailedError,
    StaleCheckpointError,
    UnknownRequestError,
)
from tests.call.desk import Gate, Note, desk
from tests.call.stores import everything

run = asyncio.run


@pytest.mark.parametrize("run_id", [None, "chat"])
def test_the_first_message_starts_the_run_and_later_ones_go_on(world, anywhere, run_id):
    """One session, three messages: one run, three turns; the session tells its run and newest checkpoint."""
    session = desk(world, anywhere, depth=2).session(run_id)
    assert (session.run_id, session.checkpoint) == (run_id, None)
    results = [run(session.run(Note(text))) for text in "abc"]
    assert [result.outputs for result in results] == [["1: a"], ["2: b"], ["3: c"]]
    assert [result.turn for result in results] == [1, 2, 3]
    assert {result.run_id for result in results} == {session.run_id}
    assert session.run_id == run_id or run_id is None
    assert session.checkpoint.checkpoint_id == results[-1].checkpoint_id


def test_a_new_session_goes_on_with_a_run_of_the_store(world, store):
    """Each message has a session object of its own, as in a web handler: the run goes on at its head."""
    outputs = [run(desk(world, store).session("chat").run(Note(text))).outputs for text in "abc"]
    assert outputs == [["1: a"], ["2: b"], ["3: c"]]


def test_a_plain_run_is_always_a_new_run(world, anywhere):
    """The workflow itself remembers nothing of its session's run."""
    workflow = desk(world, anywhere)
    session = workflow.session()
    first = run(session.run(Note("a")))
    other = run(workflow.run(Note("x")))
    second = run(session.run(Note("b")))
    assert other.run_id != first.run_id == second.run_id
    assert (other.outputs, second.outputs) == (["1: x"], ["2: b"])


@pytest.mark.parametrize("depth", [1, 3])
def test_two_steps_in_a_session(world, anywhere, depth):
    """Restore first, then send the message: the session knows what was restored."""
    workflow = desk(world, anywhere, depth=depth)
    paused = run(workflow.run(Note("a?"), run_id="r"))
    session = workflow.session(checkpoint=paused)
    restored = run(session.run())
    answers = [restored.pending_requests[0].answer(True)]
    second = run(session.run(Note("b"), responses=answers))
    assert (restored.checkpoint_id, second.outputs) == (paused.checkpoint_id, ["1: a? yes", "2: b"])
    assert (session.run_id, second.turn) == ("r", 2)


def test_answers_in_a_session(world, anywhere):
    """Answers alone, and answers beside a message, go to the session's run."""
    session = desk(world, anywhere).session()
    first = run(session.run(Note("a?,b?")))
    one, two = first.pending_requests
    second = run(session.run(responses=[one.answer(True)]))
    third = run(session.run(Note("c"), responses=[two.answer(False)]))
    assert (second.outputs, third.outputs) == (["1: a? yes"], ["1: b? no", "2: c"])


def test_a_session_has_the_whole_call_surface(world, store):
    """It streams, resumes, runs synchronously, and takes policies, run arguments and forks as the workflow does."""
    workflow = desk(world, store)
    session = workflow.session("chat")
    first = session.run_sync(Note("a?"))

    async def streamed():
        return await session.run(Note("b"), stream=True, on_pending="cancel").result()

    second = run(streamed())
    third = run(session.resume(second, Note("c"), run_args={"n": 1}))

    async def resumed():
        return await session.resume(third, Note("d"), stream=True).result()

    fourth = run(resumed())
    assert [r.outputs for r in (first, second, third, fourth)] == [[], ["2: b"], ["3: c"], ["4: d"]]
    copy = run(session.run(Note("x"), fork=True))
    assert copy.run_id != "chat"
    assert run(store.head("chat")).header.checkpoint_id == fourth.checkpoint_id


@pytest.mark.parametrize("stream", [False, True])
def test_a_session_goes_on_after_a_failure(world, anywhere, stream):
    """The failed turn is dropped or continued; the session knows where it failed."""
    session = desk(world, anywhere, depth=2).session("chat")
    run(session.run(Note("a")))

    async def fail(text):
        made = session.run(Note(text), stream=stream)
        with pytest.raises(RunFailedError):
            await (made.result() if stream else made)

    world.faults |= {"clerk b", "clerk d"}
    run(fail("b"))
    third = run(session.run(Note("c"), on_unfinished="discard"))
    run(fail("d"))
    world.faults.clear()
    fourth = run(session.run())
    assert (third.outputs, fourth.outputs, fourth.turn) == (["3: c"], ["4: d"], 4)


def test_a_session_goes_on_after_a_failed_first_message(world, anywhere):
    """The run exists although its first turn failed, so the next message goes on with it."""
    session = desk(world, anywhere).session("chat")
    world.faults.add("clerk a")
    with pytest.raises(RunFailedError):
        run(session.run(Note("a")))
    world.faults.clear()
    assert run(session.run(Note("b"))).outputs == ["1: a", "2: b"]


def test_a_session_is_as_it_was_after_a_refused_call(world, anywhere):
    """A wrong call changes nothing; the next message goes on, and a wrong first call starts nothing."""
    session = desk(world, anywhere).session("chat")
    with pytest.raises(TypeError):
        run(session.run("no note"))
    assert session.checkpoint is None
    first = run(session.run(Note("a")))
    with pytest.raises(UnknownRequestError):
        run(session.run(responses={"f" * 32: True}))
    assert session.checkpoint.checkpoint_id == first.checkpoint_id
    assert run(session.run(Note("b"))).outputs == ["2: b"]


async def cancelled_await(session, world):
    """Cancel the await of a message while its handler waits."""
    gate = world.gates["clerk b"] = Gate()
    running = asyncio.create_task(session.run(Note("b")))
    await gate.entered.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def left_stream(session, world):
    """Leave a stream's `async with` while a handler waits."""
    gate = world.gates["clerk b"] = Gate()
    async with session.run(Note("b"), stream=True):
        await gate.entered.wait()


async def dropped_stream(session, world):
    """Leave a stream's loop with `break`, drop it and let it be collected while a handler waits."""
    gate = world.gates["clerk b"] = Gate()
    stream = session.run(Note("b"), stream=True)
    async for _ in stream:
        break
    await gate.entered.wait()
    del stream
    gc.collect()


@pytest.mark.parametrize("leave", [cancelled_await, left_stream, dropped_stream])
def test_a_session_goes_on_after_a_turn_that_was_left(world, store, leave):
    """However a turn was cancelled, the next message finds the run where it stands and finishes its superstep."""
    session = desk(world, store).session("chat")
    run(session.run(Note("a")))
    run(leave(session, world))
    world.gates.clear()
    assert run(session.run(Note("c"))).outputs == ["2: b", "3: c"]


def test_a_session_goes_on_after_a_stream_that_was_only_read(world, anywhere):
    """Reading the events to their end is enough: the next message goes on from there."""
    session = desk(world, anywhere).session("chat")

    async def read(text):
        return [event async for event in session.run(Note(text), stream=True)]

    run(session.run(Note("a")))
    for text in "bc":
        assert run(read(text))[-1].status is Status.IDLE
    assert run(session.run(Note("d"))).outputs == ["4: d"]


def test_a_session_goes_on_after_a_stream_that_failed_and_was_only_read(world, anywhere):
    """A failed turn whose events were read to their end is known to the session, too."""
    session = desk(world, anywhere).session("chat")

    async def read(text):
        return [event async for event in session.run(Note(text), stream=True)]

    run(session.run(Note("a")))
    world.faults.add("clerk b")
    assert run(read("b"))[-1].status is Status.FAILED
    world.faults.clear()
    assert run(session.run(Note("c"))).outputs == ["2: b", "3: c"]


def test_a_session_goes_on_after_a_failed_save(world, store):
    """The disk was full for a moment: the next message finds the head and finishes what was claimed."""
    session = desk(world, store).session("chat")
    run(session.run(Note("a")))
    store.saves_left = 1
    with pytest.raises(SaveFailedError):
        run(session.run(Note("b")))
    store.saves_left = None
    assert run(session.run(Note("c"))).outputs == ["2: b", "3: c"]


def test_a_session_with_nothing_to_do_lists_the_choices(world, store):
    """Without a run there is nothing to go on with: a `ValueError`, and nothing is stored."""
    with pytest.raises(ValueError, match="new run"):
        run(desk(world, store).session("chat").run())
    assert run(everything(store)) == []


def test_a_session_from_a_checkpoint(world, store):
    """It goes on from the head; from an older checkpoint it is stale, and another run's id is foreign."""
    workflow = desk(world, store)
    older = run(workflow.run(Note("a"), run_id="r"))
    head = run(workflow.run(Note("b"), checkpoint=older))
    with pytest.raises(StaleCheckpointError):
        run(workflow.session(checkpoint=older).run(Note("c")))
    with pytest.raises(ForeignCheckpointError):
        run(workflow.session("other", head).run(Note("c")))
    session = workflow.session("r", head)
    assert [run(session.run(Note(text))).outputs for text in "cd"] == [["3: c"], ["4: d"]]


def test_two_sessions_do_not_mix(world, anywhere):
    """Two conversations on one workflow at the same time are two runs."""
    workflow = desk(world, anywhere)

    async def talk(name):
        session = workflow.session(name)
        return [(await session.run(Note(f"{name}{number}"))).outputs for number in range(3)]

    async def both():
        return await asyncio.gather(talk("x"), talk("y"))

    assert run(both()) == [[["1: x0"], ["2: x1"], ["3: x2"]], [["1: y0"], ["2: y1"], ["3: y2"]]]


def test_a_turn_delivered_twice_to_one_session_runs_once(world, store):
    """The same message with the same key to one session object is one turn, although the session stands further on."""
    session = desk(world, store).session("chat")
    run(session.run(Note("a"), idempotency_key="m1"))
    first, second = (run(session.run(Note("b"), idempotency_key="m2")) for _ in range(2))
    assert (first.outputs, second.outputs, second.replayed) == (["2: b"], ["2: b"], True)
    assert run(session.run(Note("a"), idempotency_key="m1")).outputs == ["1: a"]
    assert run(session.run(Note("c"))).outputs == ["3: c"]


def test_a_turn_delivered_twice_to_a_chat_runs_once(world, store):
    """The same message with the same key, each time through a new session object, is one turn."""
    workflow = desk(world, store)
    run(workflow.session("chat").run(Note("a"), idempotency_key="m1"))
    first, second = (run(workflow.session("chat").run(Note("b"), idempotency_key="m2")) for _ in range(2))
    assert (first.outputs, second.outputs) == (["2: b"], ["2: b"])
    assert (first.replayed, second.replayed) == (False, True)
    assert run(workflow.session("chat").run(Note("a"), idempotency_key="m1")).outputs == ["1: a"]
    assert world.diary == ["intake a", "clerk a", "intake b", "clerk b"]
