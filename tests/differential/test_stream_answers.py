"""Answers that come while the turn runs: taken once, and from any later checkpoint the run goes on as it did."""

import asyncio
from random import Random

import pytest

from rehydrate import InMemoryCheckpointStorage, WorkflowRunResult
from rehydrate.engine.receipts import receipts
from rehydrate.errors import AlreadyAnsweredError, StreamStateError
from rehydrate.model.events import Event, RequestOpened
from tests.differential.drawing import draw
from tests.differential.facts import RunFacts, call_facts
from tests.differential.harness import Calls, Replay, calls_of, ended, stored_checkpoints
from tests.differential.messages import Question, answer_to
from tests.differential.plans import FamilyPlan
from tests.differential.script import Step, first_step, next_step
from tests.widest import one_in

RUN_ID = "streamed"


async def answered_call(
    calls: Calls, number: int, step: Step, options: dict[str, object], *, late: bool
) -> tuple[WorkflowRunResult, list[Event]]:
    """Make a call as a stream and answer the questions of the first one as they are read, as long as the turn runs.

    `late`: in any order and some events later, so that other branches are further or have failed.
    """
    given = {**step.options, **options, "resources": calls.weather(number), "checkpoint_storage": calls.store}
    stream = calls.workflow.run(step.message, stream=True, **given)
    events: list[Event] = []
    waiting: list[RequestOpened] = []
    chance = Random(calls.family.seed)
    async for event in stream:
        events.append(event)
        if isinstance(event, RequestOpened) and number == 0:
            waiting.append(event)
        if not waiting or (late and chance.random() < 0.7):
            continue
        asked = waiting.pop(chance.randrange(len(waiting)))
        assert isinstance(asked.data, Question)
        try:
            await stream.answer({asked.request_id: answer_to(asked.data)})
        except StreamStateError:
            continue
        except AlreadyAnsweredError:
            if not asked.intercepted:  # else an executor of the run was first
                raise
    return await ended(stream.result()), events


async def wrong_after_stream_answers(
    family: FamilyPlan, *, late: bool, durability: str = "superstep"
) -> tuple[int, list[str]]:
    """Answer the first call's questions through its stream; replay every checkpoint after the last of these answers,
    and compare what was told with what the store has kept.

    The first of what is returned is the number of answers that the stream took.
    """
    calls = calls_of(family, InMemoryCheckpointStorage(keep_events=True), chance=1)
    told: list[Event] = []
    facts = RunFacts([], [])
    options: dict[str, object] = {"run_id": RUN_ID}
    step: Step | None = first_step(family)
    answers = 0
    while step is not None:
        number = len(facts.calls)
        options["durability"] = durability
        result, events = await answered_call(calls, number, step, options, late=late)
        told += [event for event in events if not event.live]
        answers = answers or len(receipts(result.checkpoint.records))
        facts.calls.append(call_facts(result, events))
        facts.ends.append(result.checkpoint.header.seq)
        options = {"checkpoint": result.checkpoint_id}
        step = next_step(family, number + 1, result.status, result.pending_requests)
    assert calls.store is not None
    again = calls_of(family, calls.store, chance=2)
    kept = [event async for event in calls.workflow.events(RUN_ID, checkpoint_storage=calls.store)]
    wrong = [] if kept == told else [f"kept {kept} instead of {told}"]
    for checkpoint in await stored_checkpoints(calls.store, RUN_ID):
        if len(receipts(checkpoint.records)) >= answers:
            wrong += await Replay(again, facts, checkpoint, f"again {checkpoint.header.seq}", further=1).compare()
    return answers, wrong


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("seed", [3, 14, 40, 49])
def test_a_run_goes_on_after_answers_through_its_stream_as_if_nothing_had_happened(seed: int, late: bool) -> None:
    """The barrier that took each answer is in the records; a replay does not ask again and gives the same.

    What the store has kept is what the streams have told.
    """
    answers, wrong = asyncio.run(wrong_after_stream_answers(draw(seed), late=late))
    assert answers > 0
    assert wrong == []


@pytest.mark.proof
@pytest.mark.parametrize("durability", ["superstep", "turn"])
@pytest.mark.parametrize("seed", one_in(3, range(4000, 4150)))
def test_any_run_goes_on_after_answers_through_its_stream(seed: int, durability: str) -> None:
    """The long form of the same."""
    late = seed % 2 == 1
    assert asyncio.run(wrong_after_stream_answers(draw(seed), late=late, durability=durability))[1] == []
