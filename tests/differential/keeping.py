"""What a store has kept of a run's events, compared with what the uninterrupted run told.

Left out is what going on after an interruption adds by contract: that it was taken up, that it had been cancelled, and
each open request once more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from rehydrate import CheckpointStorage, Status, Workflow
from rehydrate.errors import RehydrateError
from rehydrate.model.events import Event, RequestOpened, StatusChanged, TurnStarted
from tests.differential.facts import CallFacts, Told, event_differences, event_text, is_continuation_start

#: The inner names of requests by outer id.
Names = Mapping[str, str]


async def kept_events(workflow: Workflow, store: CheckpointStorage, run_id: str) -> list[Event]:
    """Return all events that a store has kept of a run."""
    return [event async for event in workflow.events(run_id, checkpoint_storage=store)]


async def followed_events(workflow: Workflow, store: CheckpointStorage, run_id: str, turns: int) -> list[Event]:
    """Follow a run from some turns of the event loop on, as far as that tells committed events."""
    for _ in range(turns):
        await asyncio.sleep(0)
    if await store.head(run_id) is None:
        return []
    return [event for event in await kept_events(workflow, store, run_id) if not event.live]


def calls_in(events: Sequence[Event]) -> list[list[Event]]:
    """Take the events of a run apart by call; what only says that an interrupted call was taken up is left out."""
    calls: list[list[Event]] = []
    open_before: set[str] = set()
    again = ended = False
    for event in events:
        if isinstance(event, TurnStarted):
            again = bool(calls) and not ended and event.continuation
            ended = False
            open_before = {e.request_id for call in calls for e in call if isinstance(e, RequestOpened)}
            if not again:
                calls.append([])
        if isinstance(event, StatusChanged):
            ended = event.status is not Status.CANCELLED
        if again and (is_continuation_start(event) or _is_surfaced(event, open_before)):
            continue
        if not (isinstance(event, StatusChanged) and event.status is Status.CANCELLED):
            calls[-1].append(event)
    return calls


def _is_surfaced(event: Event, open_before: set[str]) -> bool:
    """Tell whether an event repeats a request; a second repetition in the same call is not taken for one."""
    if not isinstance(event, RequestOpened) or event.request_id not in open_before:
        return False
    open_before.remove(event.request_id)
    return True


def kept_differences(kept: Sequence[Event], expected: Sequence[CallFacts], names: Sequence[Names]) -> list[str]:
    """Name where kept events have a gap, and where those of a call differ from what its reference told.

    `names` are the requests that were known after each call.
    """
    numbers = [event.sequence for event in kept]
    wrong = [] if numbers == list(range(1, len(kept) + 1)) else [f"kept events are numbered {numbers}"]
    calls = calls_in(kept)
    if len(calls) != len(expected):
        return [*wrong, f"events of {len(calls)} calls are kept instead of {len(expected)}"]
    for number, (call, reference, known) in enumerate(zip(calls, expected, names, strict=True)):
        told = [Told(event.sequence, event.path, event_text(event, known)) for event in call]
        wrong += [f"kept of call {number}: {text}" for text in event_differences(reference.events, told)]
    return wrong


async def wrong_in_store(
    workflow: Workflow, store: CheckpointStorage, run_id: str, expected: Sequence[CallFacts], names: Sequence[Names]
) -> list[str]:
    """Read what a store has kept of a run and name what differs; a hole in it is a difference."""
    try:
        kept = await kept_events(workflow, store, run_id)
    except RehydrateError as error:
        return [f"kept events: {type(error).__name__}: {error}"]
    return kept_differences(kept, expected, names)
