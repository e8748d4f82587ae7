"""What must hold once a simulated world has come to its end: what is stored, and what was done outside.

Reads the database itself, past network and handles. What is wrong is told to the world.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rehydrate.codecs.events import decode_event
from rehydrate.model.checkpoint import Latest
from rehydrate.model.events import TurnStarted
from rehydrate.runtime.checkpoint import restored

from .simulated_plans import comparable
from .simulated_store import now
from .simulated_workflows import CROWD, TALLY

if TYPE_CHECKING:
    from .simulated_conversations import Conversation
    from .simulated_world import World


def check_end(world: World) -> None:
    """Check all runs, turns and effects of a world."""
    tables = world.database.tables
    known = {conversation.run_id for conversation in world.conversations}
    known.update(run_id for conversation in world.conversations for run_id in conversation.forks)
    for shot in world.shots:
        made = [run_id for run_id in tables.runs if run_id not in known and _is_of(world, run_id, shot.number)]
        if len(made) > 1 or (shot.run_id is not None and made != [shot.run_id]):
            world.found(f"{shot}: one call has made the runs {made}, and was given {shot.run_id}")
        known.update(made)
    if world.crowd:
        known.add(CROWD)
    for stranger in sorted(tables.runs.keys() - known):
        world.found(f"nobody has asked for run {stranger}")
    keys = [(c.plan.workflow, key) for c in world.conversations for key in c.keys.values()]
    keys += [(c.plan.workflow, f"{c} fork {n}") for c in world.conversations for n in range(len(c.forks))]
    if world.crowd:
        keys += [(TALLY, key) for key in ("the first", *(member.key for member in world.crowd))]
    if sorted(tables.turns) != sorted(keys):
        world.found(f"keys {sorted(keys)} were given, and {sorted(tables.turns)} are stored")
    for client, done in world.effects.items():
        for key, effects in done.items():
            if len(effects) != 1:
                world.found(f"{client}: effect key {key} stands for {sorted(effects)}")
    for conversation in world.conversations:
        _check_run(world, conversation)
        _check_effects(world, conversation)
    if world.crowd:
        _check_crowd(world)


def _is_of(world: World, run_id: str, number: int) -> bool:
    """Tell whether a run began with a message of this number, which no other message has."""
    first = now(world.database.archive(run_id)).commits[0]
    return any(number.to_bytes(2, "big") in put.data for put in first.puts)


def _check_run(world: World, conversation: Conversation) -> None:
    stored = now(world.database.load(Latest(conversation.run_id)))
    plan, run_id = conversation.plan, conversation.run_id
    turns = len(plan.turns)
    if stored.header.turn != turns:
        world.found(f"run {run_id} has {stored.header.turn} turns, and {turns} were given")
    if stored.head.owner is not None and stored.head.alive:
        world.found(f"run {run_id} rests, and {stored.head.owner} holds it")
    records = comparable(stored.records)
    for name in sorted(records.keys() | plan.records.keys()):
        if records.get(name) != plan.records.get(name):
            world.found(f"run {run_id}: {name!r} is {records.get(name)} and not {plan.records.get(name)}")
    for number, key in conversation.keys.items():
        row = world.database.tables.turns.get((plan.workflow, key))
        if row is not None and (row.run_id, row.number) != (run_id, number + 1):
            world.found(f"key {key!r} is turn {row.number} of run {row.run_id}")
    _check_events(world, run_id, turns)


def _check_events(world: World, run_id: str, turns: int) -> None:
    run = world.database.tables.runs[run_id]
    numbers = [event.number for event in run.events]
    if numbers != list(range(1, run.headers[run.standing.seq].events + 1)):
        world.found(f"run {run_id}: events are numbered {numbers}")
    begun = Counter(
        event.turn
        for stored in run.events
        if isinstance(event := decode_event(run_id, stored), TurnStarted) and not event.continuation
    )
    if begun != Counter(range(1, turns + 1)):
        world.found(f"run {run_id}: turns began {dict(begun)} times, and {turns} were given")


def _check_effects(world: World, conversation: Conversation) -> None:
    done = world.effects.get(str(conversation), {})
    found = Counter(effect for effects in done.values() for effect in effects)
    expected = conversation.plan.effects
    if found != expected:
        world.found(f"{conversation}: {dict(found - expected)} was done too often, {dict(expected - found)} too rarely")


def _effects_of(number: int) -> list[tuple[str, str]]:
    """Return what an order of a crowd does outside."""
    weighed = [("scale#1/weigh", repr((number, side))) for side in ("once", "twice")]
    return [("/take", repr(number)), *weighed, ("/book", repr(str(number)))]


def _check_crowd(world: World) -> None:
    """Check that each order of a crowd was taken once, in whatever order."""
    numbers = sorted([0, *(member.number for member in world.crowd)])
    stored = now(world.database.load(Latest(CROWD)))
    found = restored(stored)
    log: list[str] = list(found.state["log"])  # type: ignore[call-overload]
    booked = sorted(int(text.split()[0]) for text in log)
    weighed = sorted(int(text.split()[1]) for text in log)
    if booked != numbers or weighed != list(range(1, len(numbers) + 1)) or found.state["sum"] != sum(numbers):
        world.found(f"the crowd brought {numbers}, and {log} is booked, {found.state['sum']} in all")
    _check_events(world, CROWD, len(numbers))
    done = world.effects.get(CROWD, {})
    expected = Counter(effect for number in numbers for effect in _effects_of(number))
    found_effects = Counter(effect for effects in done.values() for effect in effects)
    if found_effects != expected:
        world.found(
            f"the crowd: {dict(found_effects - expected)} too often, {dict(expected - found_effects)} too rarely"
        )
