"""The same without a store: a run is read out as an object at every event, and goes on from its bytes."""

import asyncio

import pytest

from rehydrate import CheckpointStorage, InMemoryCheckpointStorage, Runner, WorkflowCheckpoint
from tests.differential.drawing import draw
from tests.differential.facts import RunFacts, call_facts, differences, event_differences
from tests.differential.harness import Calls, Replay, calls_of, ended, reference_run
from tests.differential.plans import FamilyPlan
from tests.differential.script import Step, first_step, next_step
from tests.widest import one_in

#: A capture in flight, as bytes, and the number of the call in which it was made.
Capture = tuple[int, bytes]


async def captured_run(calls: Calls, every: int) -> tuple[list[Capture], RunFacts]:
    """Run the script as streams of one runner and capture the run at every n-th event, live ones too."""
    runner = Runner(calls.workflow, calls.store)
    step: Step | None = first_step(calls.family)
    captures: list[Capture] = []
    facts = RunFacts([], [])
    while step is not None:
        number = len(facts.calls)
        events = []
        stream = runner.run(step.message, stream=True, resources=calls.weather(number), **step.options)
        async for event in stream:
            events.append(event)
            if (len(events) + number) % every:
                continue
            captures.append((number, (await runner.capture_checkpoint_object(in_flight=True)).to_bytes()))
        result = await ended(stream.result())
        facts.calls.append(call_facts(result, events))
        step = next_step(calls.family, number + 1, result.status, result.pending_requests)
    return captures, facts


async def wrong_after_captures(family: FamilyPlan, store: CheckpointStorage | None, every: int) -> list[str]:
    """Compare the streamed run with the reference, then go on from the captures."""
    reference = await reference_run(calls_of(family, None, chance=1), "reference")
    captures, facts = await captured_run(calls_of(family, store, chance=4), every)
    wrong = [
        f"streamed call {number}: {text}"
        for number, call in enumerate(reference.calls)
        for text in differences(call, facts.calls[number]) + event_differences(call.events, facts.calls[number].events)
    ]
    again = calls_of(family, None, chance=5)
    for number, data in dict.fromkeys(captures):
        checkpoint = WorkflowCheckpoint.from_bytes(data)
        wrong += await Replay(again, reference, checkpoint, further=1, captured=number).compare()
    return wrong


@pytest.mark.parametrize("seed", [38, 39, 41, 43, 46, 49])
def test_a_run_goes_on_from_what_was_captured_at_an_event(seed: int) -> None:
    """A capture in flight holds all that the run needs, however much of it was never committed."""
    store = InMemoryCheckpointStorage() if seed % 2 else None
    assert asyncio.run(wrong_after_captures(draw(seed), store, every=11)) == []


@pytest.mark.proof
@pytest.mark.parametrize("seed", one_in(3, range(3000, 3060)))
def test_a_run_goes_on_from_what_was_captured_at_any_event(seed: int) -> None:
    """The long form of the same."""
    store = InMemoryCheckpointStorage() if seed % 2 else None
    assert asyncio.run(wrong_after_captures(draw(seed), store, every=1)) == []
