"""`replay`: a recorded run goes through today's code, call by call, and each ends as it did."""

import asyncio

import pytest

from rehydrate import (
    FunctionalContext,
    InMemoryCheckpointStorage,
    Retention,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    executor,
    export_run,
    handler,
    prune,
    workflow,
)
from rehydrate.errors import (
    MissingResourceError,
    RunFailedError,
)
from rehydrate.model.events import RequestOpened
from rehydrate.testing import Replayed, ScriptedExecutor, VirtualClock, drive, replay, run_virtually
from tests.testing_tools.flows import Asker, Faithful, desk, sign, split
from tests.testing_tools.recordings import exported, recorded, refused, replayed

ANSWERS = {"asker": "yes"}
OVER = "turn 1, from checkpoint 0: it was answered while it ran, and is compared from there on"


def test_a_run_that_is_gone_through_again_ends_the_same(tmp_path):
    """Every call of it, from a file, with executors of their own."""

    async def scenario():
        async with InMemoryCheckpointStorage() as store:
            driven = await drive(desk(), "a b", "c", answers=ANSWERS, checkpoint_storage=store)
            await export_run(store, driven.result.run_id, tmp_path / "desk.run")
            return driven.result.run_id, await replay(desk, tmp_path / "desk.run")

    run_id, told = run_virtually(scenario())
    assert told == Replayed(run_id, "desk", 4)


def test_what_is_otherwise_today_is_named_by_turn_and_place():
    """A difference in one call is one in that call alone: the next begins at what was recorded."""

    class Keeping(Asker):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext) -> None:
            await super().on_text(text, ctx)
            ctx.set_state("asked", text)

    async def scenario():
        file = await recorded(desk(), "a", answers=ANSWERS)
        return await refused(desk(Faithful), file), await refused(desk(Keeping), file)

    by_hooks, by_state = run_virtually(scenario())
    assert by_hooks.differences == {
        "turn 1, from checkpoint 0": (
            "what executor 'asker' of asking#1 keeps: nothing recorded, {'heard': ['a']} today",
        ),
        "turn 2, from checkpoint 3": ("outputs: ['a: yes!'] recorded, ['a: yes []!'] today",),
    }
    assert by_state.differences == {
        "turn 1, from checkpoint 0": ("state 'asked' of asking#1: ['a'] recorded, 'a' today",)
    }
    assert "record the run anew" in str(by_state)


def test_another_question_is_a_difference():
    """What is asked, and the name it is asked by, are compared."""

    class Polite(Asker):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext) -> None:
            await super().on_text(f"please: {text}", ctx)

    async def scenario():
        return await refused(desk(Polite), await recorded(desk(), "a"))

    (texts,) = run_virtually(scenario()).differences.values()
    assert (
        "requests: [\"asking#1/asker#1?0: Question(text='a')\"] recorded,"
        " [\"asking#1/asker#1?0: Question(text='please: a')\"] today"
    ) in texts


def test_a_stand_in_of_the_same_types_takes_the_place_of_an_executor():
    """The graph is the same, so what it gives is what comes out."""

    def stood_in(*gives):
        stand_in = ScriptedExecutor("sign", takes=str, gives=gives, returns=str)
        return WorkflowBuilder("signing", split).add_chain([split, stand_in]).build()

    async def scenario():
        file = await recorded(WorkflowBuilder("signing", split).add_chain([split, sign]).build(), "a b")
        return await replayed(stood_in("a!", "b!"), file), await refused(stood_in("a!", "b?"), file)

    told, error = run_virtually(scenario())
    assert told.calls == 1
    assert list(error.differences.values()) == [("outputs: ['a!', 'b!'] recorded, ['a!', 'b?'] today",)]


def test_resources_stand_for_the_world():
    """They are given to the replay, as to any call."""

    @executor(id="ask")
    async def ask(text: str, ctx: WorkflowContext) -> str:
        return ctx.resources["rates"][text]

    flow = WorkflowBuilder("asking", ask, resources={"rates": dict}).build()

    async def scenario():
        file = await recorded(flow, "EUR", resources={"rates": {"EUR": "1.1"}})
        told = await replayed(flow, file, resources={"rates": {"EUR": "1.1"}})
        error = await refused(flow, file, resources={"rates": {"EUR": "1.2"}})
        with pytest.raises(MissingResourceError):
            await replayed(flow, file)
        return told.calls, list(error.differences.values())

    assert run_virtually(scenario()) == (1, [("outputs: ['1.1'] recorded, ['1.2'] today",)])


def failing(times):
    left = [True] * times

    @executor(id="work")
    async def work(text: str) -> str:
        if left:
            left.pop()
            raise OSError("no route")
        return text

    return WorkflowBuilder("working", work).build()


def test_a_call_that_failed_and_was_continued_is_one():
    """Its end is that of the continuation; one that failed for good is to fail again."""

    async def scenario():
        async with InMemoryCheckpointStorage() as store:
            for run_id in ("continued", "failed"):
                flow = failing(1)
                with pytest.raises(RunFailedError) as raised:
                    await flow.run("a", run_id=run_id, checkpoint_storage=store)
                if run_id == "continued":
                    await flow.run(checkpoint=raised.value.result, checkpoint_storage=store)
            continued, failed = [await exported(store, run_id) for run_id in ("continued", "failed")]
        told = [await replayed(failing(0), continued), await replayed(failing(1), failed)]
        return told, await refused(failing(0), failed), await refused(failing(9), continued)

    told, repaired, broken = run_virtually(scenario())
    assert [each.calls for each in told] == [1, 1]
    assert repaired.differences["turn 1, from checkpoint 0"] == (
        "status: FAILED recorded, IDLE today",
        "outputs: [] recorded, ['a'] today",
        "failures: work: OSError: no route recorded, nothing today",
    )
    assert "status: IDLE recorded, FAILED today" in str(broken)


def test_a_limit_that_was_reached_is_an_end_of_its_own():
    """The call and its continuation are two."""

    @executor(id="count")
    async def count(number: int, ctx: WorkflowContext[int, int]) -> None:
        ctx.send_message(number - 1) if number else ctx.yield_output(number)

    @executor(id="pass")
    async def back(number: int) -> int:
        return number

    def looping(limit):
        builder = WorkflowBuilder("looping", count, max_supersteps=limit)
        return builder.add_edge(count, back).add_edge(back, count).build()

    async def scenario():
        async with InMemoryCheckpointStorage() as store:
            first = await looping(4).run(2, run_id="r", checkpoint_storage=store)
            await looping(4).run(checkpoint=first, checkpoint_storage=store)
            file = await exported(store, "r")
        return await replayed(looping(4), file), await refused(looping(9), file)

    told, error = run_virtually(scenario())
    assert told.calls == 2
    assert error.differences["turn 1, from checkpoint 0"][0] == "status: LIMIT_REACHED recorded, IDLE today"


def test_what_was_set_by_hand_and_a_fork_begin_anew():
    """A turn after an edit starts with what was set; a fork with the checkpoint that it was made from."""

    @executor(id="total")
    async def total(number: int, ctx: WorkflowContext) -> int:
        ctx.set_state("total", ctx.get_state("total", 0) + number)
        return ctx.get_state("total")

    flow = WorkflowBuilder("totals", total).build()

    async def scenario():
        async with InMemoryCheckpointStorage() as store:
            first = await flow.run(1, run_id="r", checkpoint_storage=store)
            await flow.run(2, checkpoint=first, fork=True, run_id="fork", checkpoint_storage=store)
            edited = await flow.edit(first, {"total": 10}, reason="a test", checkpoint_storage=store)
            await flow.run(3, checkpoint=edited, checkpoint_storage=store)
            return [await replayed(flow, await exported(store, run_id)) for run_id in ("r", "fork")]

    assert [each.calls for each in run_virtually(scenario())] == [2, 1]


def test_an_answer_that_came_while_a_call_ran_is_where_its_replay_begins():
    """At which moment it came is part of the input, and stands in no record but that one."""
    goes_on = asyncio.Event()

    @executor(id="wait")
    async def wait(text: str) -> str:
        await goes_on.wait()
        return text

    def build():
        asking = WorkflowExecutor(WorkflowBuilder("below", Asker("asker")).build(), id="asking")
        builder = WorkflowBuilder("beside", split)
        return builder.add_fan_out_edges(split, [asking, wait]).build()

    async def scenario():
        async with InMemoryCheckpointStorage() as store:
            async with build().run("a", run_id="r", stream=True, checkpoint_storage=store) as stream:
                async for event in stream:
                    if isinstance(event, RequestOpened):
                        await stream.answer({event.request_id: "yes"})
                        goes_on.set()
                result = await stream.result()
            return result.outputs, await replayed(build, await exported(store, "r"))

    outputs, told = run_virtually(scenario())
    assert outputs == ["a: yes", "a"]
    assert (told.calls, told.passed_over) == (1, (OVER,))


def test_a_cancelled_call_is_passed_over():
    """Where it stopped is no fact of the workflow; if it was continued, its end is compared. A replay that compares
    nothing is an error."""
    begun, goes_on = asyncio.Event(), asyncio.Event()

    @executor(id="wait")
    async def wait(text: str) -> str:
        begun.set()
        await goes_on.wait()
        return text

    flow = WorkflowBuilder("waiting", wait).build()

    async def scenario():
        async with InMemoryCheckpointStorage() as store:
            task = asyncio.ensure_future(flow.run("a", run_id="r", checkpoint_storage=store))
            await begun.wait()
            task.cancel()
            await asyncio.wait([task])
            goes_on.set()
            cancelled = await exported(store, "r")
            await flow.run(checkpoint="latest", run_id="r", checkpoint_storage=store)
            return await refused(flow, cancelled), await replayed(flow, await exported(store, "r"))

    cancelled, continued = run_virtually(scenario())
    assert "can be compared:\n- turn 1, from checkpoint 0: it was cancelled\n" in str(cancelled)
    assert (continued.calls, continued.passed_over) == (1, ())


def test_a_run_of_which_checkpoints_were_let_go_is_gone_through_as_far_as_it_is_there():
    """The newest turn is, from its claim on; of the others there is only the end."""

    async def scenario():
        async with InMemoryCheckpointStorage() as store:
            driven = await drive(desk(), "a", "b", answers=ANSWERS, checkpoint_storage=store)
            await prune(store, Retention(keep_last=3))
            return await replayed(desk(), await exported(store, driven.result.run_id))

    told = run_virtually(scenario())
    places = ((1, 2), (2, 5), (3, 8))
    over = [f"turn {turn}, from checkpoint {seq}: its beginning is not recorded" for turn, seq in places]
    assert (told.calls, list(told.passed_over)) == (1, over)


def test_a_function_is_gone_through_with_its_time():
    """A sleep that is over by now is not over when its call is replayed, and `now` is the time of then."""

    def build():
        @workflow(name="sleeping")
        async def sleeping(number: int, ctx: FunctionalContext) -> str:
            begun = ctx.now()
            await ctx.sleep(1000)
            more = await ctx.request_info("more?", response_type=int)
            return f"{number + more} on {ctx.now():%d.%m.%Y} after {(ctx.now() - begun).total_seconds():.0f}"

        return sleeping

    clock = VirtualClock()
    file = run_virtually(recorded(build, 1, answers=lambda _: 2), clock=clock)
    assert clock.passed == 1000
    clock.advance(10_000_000)
    assert run_virtually(replayed(build, file), clock=clock).calls == 2
