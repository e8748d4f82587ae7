"""The clients of a simulated world: each wants the turns of a plan, in order, and repeats a call until it is answered.

They send to any process, several times, at once and late; some turns have a key and some have none. What a client is
told must be what the plan says, whoever did the work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, Final

from rehydrate import RunFailedError, WorkflowRunResult
from rehydrate.errors import (
    AlreadyAnsweredError,
    CommitConflictError,
    DrainingError,
    RunBusyError,
    RunDrainedError,
    RunExistsError,
    SaveFailedError,
    StaleCheckpointError,
    StoreUnavailableError,
)
from rehydrate.runtime.runner import Runner

from .simulated_loop import Killed, SimProcess, settle
from .simulated_store import CALL, CallFacts
from .simulated_workflows import Order

if TYPE_CHECKING:
    from .simulated_world import Stage, World


class GoneError(Exception):
    """The process of a call is gone, or did not reply in time."""


#: What a client that gets it does again.
AGAIN: Final = (
    CommitConflictError, DrainingError, RunBusyError, RunDrainedError, SaveFailedError, StoreUnavailableError,
    RunFailedError, GoneError, asyncio.CancelledError, Killed,
)  # fmt: skip
#: What tells who repeats a turn without a key that it was done.
DONE: Final = (AlreadyAnsweredError, RunExistsError, StaleCheckpointError)


@dataclass
class SimCall:
    """One call, as it is repeated."""

    name: str
    workflow: str
    message: Order | None
    options: Mapping[str, Any]
    tries: int = 0
    #: Under what name its effects are noted, where not under that of the client.
    journal: str = ""


class Client:
    """What clients have in common."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.random = Random(f"{world.seed} client {name}")
        self.is_over = False
        self.last: SimProcess | None = None
        #: Under what name effects of its calls are noted.
        self.journal = name
        #: What is done beside the calls that the client waits for.
        self.beside: list[asyncio.Task[None]] = []

    def also(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something beside the rest."""
        self.beside.append(asyncio.ensure_future(work))

    def __str__(self) -> str:
        return self.name

    async def attempt(self, call: SimCall, *, takeover: bool = False) -> WorkflowRunResult:
        """Make a call once, at some process. Raises what it raises, or `GoneError`."""
        world, random = self.world, self.random
        call.tries += 1
        process = world.pick(random, self.last)
        if process is None:
            raise GoneError("no process is up")
        self.last = process
        stage = world.stage(process, call.workflow)
        streams = random.random() < 0.5
        facts = CallFacts(takeover, "turn" if random.random() < 0.2 else "superstep")
        over: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        task = process.spawn(make(world, stage, call, facts, streams, call.journal or self.journal))
        task.add_done_callback(lambda done: settle(over, done))
        process.on_death.append(lambda: settle(over, None))
        world.note(f"{self} asks {process} {call.name}{' takeover' if takeover else ''}")
        world.tried["call"] += 1
        timer = None
        if not world.quiet and random.random() < 0.5:
            timer = asyncio.get_running_loop().call_later(random.choice((2.0, 15.0, 60.0)), settle, over, None)
        if world.has("cancel") and random.random() < 0.15:
            world.tried["cancel"] += 1
            asyncio.get_running_loop().call_later(random.choice((0.05, 1.0, 10.0)) * random.random(), stop, task, over)
        await over
        if timer is not None:
            timer.cancel()
        if not task.done():
            world.note(f"{self} has no reply to {call.name}")
            raise GoneError(str(process))
        try:
            result: WorkflowRunResult = task.result()
        except BaseException as error:
            world.note(f"{self} {call.name}: {type(error).__name__}")
            raise
        world.note(f"{self} {call.name}: {result.status.value} {result.turn} {result.checkpoint_id[:6]}")
        stored = world.database.header(result.checkpoint_id)
        if stored != result.checkpoint.header:
            world.found(f"{self} {call.name} was given {result.checkpoint.header}, and {stored} is stored")
        return result

    async def live(self) -> None:
        """Make the calls."""
        raise NotImplementedError

    def surprise(self, call: SimCall, error: BaseException) -> None:
        """Note an error that a call must not end with."""
        self.world.found(f"{self} {call.name}: {type(error).__name__}: {error}")


def stop(task: asyncio.Task[Any], over: asyncio.Future[object]) -> None:
    """Cancel a call where it runs."""
    if not over.done():
        task.cancel()


async def make(
    world: World, stage: Stage, call: SimCall, facts: CallFacts, streams: bool, client: str
) -> WorkflowRunResult:
    """Make a call in a process; what is streamed must be stored by then."""
    CALL.set(facts)
    runner = Runner(stage)
    options = {**call.options, "resources": {"tools": world.tools(client)}, "takeover": facts.takeover}
    options["durability"] = facts.durability
    if not streams:
        return await runner.run(call.message, stream=False, **options)
    stream = runner.run(call.message, stream=True, **options)
    try:
        async for event in stream:
            run = world.database.tables.runs.get(event.run_id)
            stored = run.headers[run.standing.seq].events if run is not None else 0
            if not event.live and event.sequence > stored:
                world.found(f"{call.name}: event {event.sequence} was told, and {stored} are stored")
        return await stream.result()
    except asyncio.CancelledError:
        await stream.cancel()
        raise
