"""Offers: what is left in a run's inbox is taken once, by the turn that runs or by the next one (section 7)."""

import asyncio
import contextlib
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from rehydrate import (
    EncryptedCheckpointStorage,
    FunctionalContext,
    InMemoryCheckpointStorage,
    KeyRing,
    Runner,
    SqliteCheckpointStorage,
    Status,
    Workflow,
    WorkflowRunResult,
    drain,
    workflow,
)
from rehydrate.engine.inputs import CancelAsked, OfferArrived, taken_by
from rehydrate.errors import (
    AnswerTypeError,
    ForeignCheckpointError,
    MessageTypeError,
    NoStoreError,
    OfferConflictError,
    RunDrainedError,
    RunNotFoundError,
    UnknownRequestError,
    WrongCallError,
)
from rehydrate.model.events import OfferRefused, OfferTaken, OutputYielded, TurnStarted
from rehydrate.runtime.program import Program
from rehydrate.testing import claim_turns_again, run_virtually
from rehydrate.testing.driving import Crash
from tests.call.desk import Gate, Note, World, desk
from tests.call.process import command

run = asyncio.run


def offers_in(result: WorkflowRunResult) -> list[tuple[str, str]]:
    """What a result tells of offers: each key, and `taken` or the code of its refusal."""
    return [
        (event.key, "taken" if isinstance(event, OfferTaken) else event.code)
        for event in result.events
        if isinstance(event, OfferTaken | OfferRefused)
    ]


async def while_it_works(world: World, flow: Workflow, act: Callable[[], Awaitable[object]]) -> WorkflowRunResult:
    """Start a run with `a`, do something while its clerk works, and let it go on to its end."""
    gate = world.gates["clerk a"] = Gate()
    turn = asyncio.create_task(flow.run(Note("a"), run_id="run"))
    await gate.entered.wait()
    await act()
    gate.opened.set()
    return await turn


def test_a_turn_that_runs_takes_messages_as_part_of_itself(world, store):
    """They are handled in the order in which they were offered, and leave the inbox."""
    flow = desk(world, store)

    async def offer() -> None:
        assert [await flow.offer("run", Note(text), key=text) for text in ("b", "c")] == [1, 2]
        assert [header.run_id for header in await store.runs(offered=True)] == ["run"]

    result = run(while_it_works(world, flow, offer))
    assert result.outputs == ["1: a", "2: b", "3: c"]
    assert (result.turn, result.status, offers_in(result)) == (1, Status.IDLE, [("b", "taken"), ("c", "taken")])
    assert run(store.offers("run")) == run(store.runs(offered=True)) == []


def test_a_run_at_rest_takes_an_offer_as_a_turn_of_its_own(world, store):
    """A continuation begins a new turn with it, whose outputs are its own; with an empty inbox nothing happens."""
    flow = desk(world, store)
    run(flow.run(Note("a"), run_id="run"))
    run(flow.offer("run", Note("b"), key="b"))
    result = run(flow.run(run_id="run", checkpoint="latest"))
    assert (result.outputs, result.turn, offers_in(result)) == (["2: b"], 2, [("b", "taken")])
    assert [event.continuation for event in result.events if isinstance(event, TurnStarted)] == [False]
    again = run(flow.run(run_id="run", checkpoint="latest"))
    assert (again.checkpoint_id, again.turn) == (result.checkpoint_id, 2)


def test_a_new_turn_takes_what_was_offered_before(world, store):
    """Whatever a call brings, the inbox is looked into once it has the run."""
    flow = desk(world, store)
    run(flow.run(Note("a"), run_id="run"))
    run(flow.offer("run", Note("b"), key="b"))

    async def turn() -> WorkflowRunResult:
        gate = world.gates["clerk c"] = Gate()
        call = asyncio.create_task(flow.run(Note("c"), run_id="run", checkpoint="latest"))
        await gate.entered.wait()
        gate.opened.set()
        return await call

    result = run(turn())
    assert sorted(result.outputs) == ["2: c", "3: b"]
    assert offers_in(result) == [("b", "taken")]


def test_answers_are_offered_and_late_ones_are_refused(world, store):
    """The first answer is taken, the second is dropped with an event that says why, as an error says it to a call."""
    flow = desk(world, store)
    asked = run(flow.run(Note("q?"), run_id="run"))
    request = asked.pending_requests[0]

    async def scenario() -> WorkflowRunResult:
        gate = world.gates["clerk b"] = Gate()
        call = asyncio.create_task(flow.run(Note("b"), run_id="run", checkpoint="latest"))
        await gate.entered.wait()
        await flow.offer("run", responses=[request.answer(True)], key="first")
        await flow.offer("run", responses=[request.answer(False)], key="second")
        gate.opened.set()
        return await call

    result = run(scenario())
    assert sorted(result.outputs) == ["1: q? yes", "2: b"]
    assert offers_in(result) == [("first", "taken"), ("second", "already-answered")]
    assert list(result.pending_requests) == []


def test_a_message_and_answers_are_one_offer(world, store):
    """Both are taken in one commit; at rest they are one turn."""
    flow = desk(world, store)
    request = run(flow.run(Note("q?"), run_id="run")).pending_requests[0]
    run(flow.offer("run", Note("b"), responses=[request.answer(True)]))
    result = run(flow.run(run_id="run", checkpoint="latest"))
    assert sorted(result.outputs) == ["1: q? yes", "2: b"]
    assert result.turn == 2


def test_an_offer_can_ask_a_run_to_stop(world, store):
    """The turn that runs ends `CANCELLED`, in a checkpoint that can be resumed; behind it nothing is taken."""
    flow = desk(world, store)

    async def scenario() -> WorkflowRunResult:
        gate = world.gates["clerk a"] = Gate()
        turn = asyncio.create_task(flow.run(Note("a"), run_id="run", stream=True).result())
        await gate.entered.wait()
        await flow.offer("run", cancel=True)
        await flow.offer("run", Note("b"), key="b")
        assert (await turn).status is Status.CANCELLED
        gate.opened.set()
        return await flow.run(run_id="run", checkpoint="latest")

    result = run(scenario())
    assert sorted(result.outputs) == ["1: a", "2: b"]
    assert run(store.offers("run")) == []


def test_the_wish_to_stop_leaves_the_inbox_with_the_stop() -> None:
    """Not with an earlier commit: a process that died between the two would have lost it. What is behind it stays."""
    wishes = [OfferArrived(number=2, key="b"), CancelAsked(3), OfferArrived(number=4, key="d")]
    assert taken_by(wishes) == [2, 3]
    assert taken_by([CancelAsked(), OfferArrived(number=4, key="d")]) == []


def test_a_run_at_rest_has_nothing_to_stop(world, store):
    """The wish to stop is refused by an event and leaves the inbox."""
    flow = desk(world, store)
    before = run(flow.run(Note("a"), run_id="run"))
    run(flow.offer("run", cancel=True, key="stop"))
    after = run(flow.run(run_id="run", checkpoint="latest"))
    assert (after.status, after.turn, offers_in(after)) == (Status.IDLE, before.turn, [("stop", "nothing-runs")])
    assert run(store.offers("run")) == []


def test_what_cannot_be_taken_is_refused_when_it_is_offered(world, store):
    """The errors are those of a call with this input, and nothing is in the inbox."""
    flow, ask = desk(world, store), {"q": True}
    request = run(flow.run(Note("q?"), run_id="run")).pending_requests[0]
    wrong: list[tuple[type[Exception], Callable[[], Awaitable[int]]]] = [
        (MessageTypeError, lambda: flow.offer("run", "text")),
        (UnknownRequestError, lambda: flow.offer("run", responses=ask)),
        (AnswerTypeError, lambda: flow.offer("run", responses={request.request_id: "yes"})),
        (RunNotFoundError, lambda: flow.offer("none", Note("b"))),
        (WrongCallError, lambda: flow.offer("run")),
        (WrongCallError, lambda: flow.offer("run", Note("b"), cancel=True)),
        (NoStoreError, lambda: desk(world).offer("run", Note("b"))),
        (ForeignCheckpointError, lambda: desk(world, store, name="other").offer("run", Note("b"))),
    ]
    for error, call in wrong:
        with pytest.raises(error):
            run(call())
    assert run(store.offers("run")) == []


def test_one_key_is_one_offer(world, store):
    """The same again has the same number, before and after it is taken; something else under the key is refused."""
    flow = desk(world, store)
    run(flow.run(Note("a"), run_id="run"))
    assert [run(flow.offer("run", Note("b"), key="k")) for _ in range(2)] == [1, 1]
    with pytest.raises(OfferConflictError):
        run(flow.offer("run", Note("c"), key="k"))
    assert run(flow.run(run_id="run", checkpoint="latest")).outputs == ["2: b"]
    assert run(flow.offer("run", Note("b"), key="k")) == 1
    assert run(store.offers("run")) == []


def test_a_drained_process_leaves_offers_to_the_next(world, store):
    """They stay in the inbox, and whoever goes on with the run takes them."""
    flow = desk(world, store)

    async def scenario() -> None:
        gate = world.gates["clerk a"] = Gate()
        turn = asyncio.create_task(flow.run(Note("a"), run_id="run"))
        await gate.entered.wait()
        draining = asyncio.create_task(drain(grace=0))
        await flow.offer("run", Note("b"), key="b")
        await draining
        with pytest.raises(RunDrainedError):
            await turn

    run_virtually(scenario())
    claim_turns_again()
    world.gates.clear()
    result = run(flow.run(run_id="run", checkpoint="latest"))
    assert sorted(result.outputs) == ["1: a", "2: b"]
    assert offers_in(result) == [("b", "taken")]


@workflow
async def counter(text: str, ctx: FunctionalContext) -> str:
    count = ctx.state.get("count", 0) + 1
    ctx.state.set("count", count)
    await ctx.sleep(60)
    return f"{count}: {text}"


def test_a_function_takes_messages_one_after_the_other(store):
    """What is offered while a pass of it waits begins the next pass of the same turn."""

    async def scenario() -> WorkflowRunResult:
        turn = asyncio.create_task(counter.run("a", run_id="run", checkpoint_storage=store))
        await asyncio.wait([turn], timeout=30)
        await counter.offer("run", "b", checkpoint_storage=store)
        return await turn

    result = run_virtually(scenario())
    assert (result.outputs, result.turn) == (["1: a", "2: b"], 1)


def test_an_encrypted_store_takes_offers_too(world, store):
    """What is offered is sealed as all else is, and is taken from there."""
    hidden = EncryptedCheckpointStorage(store, KeyRing({"k": b"k" * 32}))
    flow = desk(world, hidden)
    result = run(while_it_works(world, flow, lambda: flow.offer("run", Note("b"), key="secret")))
    assert (result.outputs, offers_in(result)) == (["1: a", "2: b"], [("secret", "taken")])


class Crashing:
    """Ends the process before or after the n-th commit of a turn, once."""

    def __init__(self, number: int, moment: str) -> None:
        self.left = number
        self.moment = moment
        self.crashed = False

    def __call__(self, kind: str, moment: str, turn: object) -> None:
        self.left -= (kind, moment) == ("commit", self.moment)
        if self.left == 0 and not self.crashed:
            self.crashed = True
            raise Crash("at a commit")


async def outputs_after_a_crash(number: int, moment: str) -> tuple[list[object], bool]:
    """Offer three things to a run at rest and go on with it until its inbox is empty; return what it has put out, and
    whether its process ended on the way."""
    store = InMemoryCheckpointStorage(keep_events=True)
    flow = desk(World(), store)
    request = (await flow.run(Note("a,q?"), run_id="run")).pending_requests[0]
    await flow.offer("run", Note("b"))
    await flow.offer("run", responses=[request.answer(True)])
    await flow.offer("run", Note("c"))
    crashing = Crashing(number, moment)
    stage = Stage(replace(flow.program, watch=crashing), store)
    for _ in range(6):
        with contextlib.suppress(Crash):
            await Runner(stage).run(run_id="run", checkpoint="latest")
    assert await store.offers("run") == []
    outputs = [event.data async for event in flow.events("run") if isinstance(event, OutputYielded)]
    await store.close()
    return outputs, crashing.crashed


@dataclass(frozen=True)
class Stage:
    """A workflow whose commands are watched."""

    program: Program
    checkpoint_storage: InMemoryCheckpointStorage


@pytest.mark.parametrize("moment", ["before", "after"])
def test_what_is_offered_takes_effect_once_wherever_the_process_ends(moment: str) -> None:
    """A crash before or after any commit of the turns that take it neither loses an offer nor takes it twice."""
    crashes = 0
    for number in itertools.count(1):
        outputs, crashed = run(outputs_after_a_crash(number, moment))
        assert outputs[0] == "1: a"
        assert sorted(outputs[1:]) == ["1: q? yes", "2: b", "3: c"]
        if not crashed:
            break
        crashes += 1
    assert crashes > 3


def test_another_process_takes_what_this_one_offers(tmp_path: Path) -> None:
    """Its turn takes a message and the wish to stop while its handler waits; whoever goes on has the message."""
    other = command(tmp_path, "tests.call.waiting_desk")
    assert other.stdout is not None
    assert other.stdout.readline() == "waiting\n"

    async def scenario() -> WorkflowRunResult:
        async with SqliteCheckpointStorage(tmp_path / "runs.db") as store:
            flow = desk(World(), store)
            await flow.offer("run", Note("b"))
            await flow.offer("run", cancel=True)
            assert await asyncio.to_thread(other.communicate) == ("CANCELLED", "")
            assert await store.offers("run") == []
            return await flow.run(run_id="run", checkpoint="latest")

    assert sorted(run(scenario()).outputs) == ["1: a", "2: b"]


def test_a_session_offers_to_its_run(world, store):
    """It supplies the run id, and says so where it has none yet."""
    session = desk(world, store).session("run")
    run(session.run(Note("a")))
    assert run(session.offer(Note("b"))) == 1
    assert run(session.run(checkpoint="latest")).outputs == ["2: b"]
    with pytest.raises(WrongCallError, match="this session has no run yet"):
        run(desk(world, store).session().offer(Note("b")))
