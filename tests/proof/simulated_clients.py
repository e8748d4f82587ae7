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
    RehydrateError,
    RunBusyError,
    RunDrainedError,
    RunExistsError,
    RunNotFoundError,
    SaveFailedError,
    StaleCheckpointError,
    StoreUnavailableError,
)
from rehydrate.model.checkpoint import RESTING
from rehydrate.runtime.runner import Runner
from rehydrate.testing.driving import Crash

from .simulated_loop import SimProcess, pause, settle
from .simulated_plans import SHAPES, end_of, plan
from .simulated_store import CALL, CallFacts
from .simulated_workflows import CROWD, TALLY, WORKFLOWS, Order

if TYPE_CHECKING:
    from .simulated_world import Stage, World


class GoneError(Exception):
    """The process of a call is gone, or did not reply in time."""


#: What a client that gets it does again.
AGAIN: Final = (
    CommitConflictError, DrainingError, RunBusyError, RunDrainedError, SaveFailedError, StoreUnavailableError,
    RunFailedError, GoneError, asyncio.CancelledError, Crash,
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


class Conversation(Client):
    """Wants the turns of one plan."""

    def __init__(self, world: World, number: int) -> None:
        super().__init__(world, f"c{number}")
        random = self.random
        self.plan = plan(random.choice(sorted(WORKFLOWS)), random.randrange(SHAPES))
        self.run_id = f"run-{number}"
        self.own_id = random.random() < 0.7
        self.keys: dict[int, str] = {}
        self.results: list[WorkflowRunResult] = []
        #: Run ids of its forks, which are known once they are there.
        self.forks: list[str] = []

    async def live(self) -> None:
        """Have every turn done."""
        await pause(self.random.random() * 10)
        for number in range(len(self.plan.turns)):
            result = await self._deliver(number, self._call(number))
            self.check(number, result)
            self.run_id = result.run_id
            self.results.append(result)
            await pause(self.random.choice((0.0, 0.1, 8.0)))
        await asyncio.gather(*self.beside)
        self.is_over = True

    def _call(self, number: int) -> SimCall:
        random, turn = self.random, self.plan.turns[number]
        before = self.results[-1] if self.results else None
        options: dict[str, Any] = {"responses": turn.answered(before), "on_pending": turn.pending}
        keyed = random.random() < 0.6
        if before is None:
            keyed = keyed or not self.own_id
            if self.own_id:
                options["run_id"] = self.run_id
        elif keyed and random.random() < 0.4:
            options |= {"checkpoint": "latest", "run_id": self.run_id}
        elif turn.message is None and random.random() < 0.4:
            options["run_id"] = self.run_id
        else:
            options["checkpoint"] = before.checkpoint_id
        if keyed:
            options["idempotency_key"] = self.keys[number] = f"{self.name} {number}"
        given = "key" if keyed else ""
        name = f"turn {number + 1} {given} {options.get('checkpoint', '-')[:6]}"
        return SimCall(name, self.plan.workflow, turn.message, options)

    async def _deliver(self, number: int, call: SimCall) -> WorkflowRunResult:
        """Repeat a call until it is answered, with what the world does beside it."""
        world, random = self.world, self.random
        self._beside(number, call)
        reading = SimCall(f"read {number + 1}", call.workflow, None, {"checkpoint": "latest", "run_id": self.run_id})
        while True:
            takeover = world.has("takeover") and random.random() < 0.15
            try:
                return await self.attempt(call, takeover=takeover)
            except AGAIN:
                await pause(random.choice((0.01, 0.5, 5.0, 12.0)))
                continue
            except DONE as error:
                self._told_done(number, call, error)
            except RehydrateError as error:
                self.surprise(call, error)
            try:
                return await self.attempt(reading)
            except AGAIN:
                await pause(random.choice((0.5, 5.0)))

    def _beside(self, number: int, call: SimCall) -> None:
        """Let others do the same call, or another one that must change nothing."""
        world, random = self.world, self.random
        if world.has("repeat"):
            for _ in range(random.choice((0, 1, 2))):
                world.tried["repeat"] += 1
                call.tries += 1
                self.also(self._repeat(number, call, random.choice((0.0, 0.05, 5.0, 50.0))))
        if world.has("takeover") and self.results and random.random() < 0.5:
            self.also(self._continue(random.random() * 30))
        if world.has("fork") and self.results and random.random() < 0.4:
            self.also(self._fork(random.randrange(len(self.results)), random.random() * 30))
        if world.has("stale") and len(self.results) > 1 and random.random() < 0.6:
            self.also(self._stale(random.choice(self.results[:-1]), random.random() * 20))

    async def _repeat(self, number: int, call: SimCall, seconds: float) -> None:
        """Deliver a turn once more, now or when it is long over."""
        await pause(seconds)
        try:
            result = await self.attempt(call)
        except AGAIN:
            return
        except DONE as error:
            self._told_done(number, call, error)
        except RehydrateError as error:
            self.surprise(call, error)
        else:
            self.check(number, result)

    def _told_done(self, number: int, call: SimCall, error: RehydrateError) -> None:
        """Check what tells that a turn was done: only who has no key is told so, and once the turn has ended well."""
        expected = AlreadyAnsweredError if call.options["responses"] else (RunExistsError, StaleCheckpointError)
        if "idempotency_key" in call.options or call.tries < 2 or not isinstance(error, expected):
            self.surprise(call, error)
        run = self.world.database.tables.runs[self.run_id]
        if not any(header.turn == number + 1 and header.status in RESTING for header in run.headers.values()):
            self.world.found(f"{self} {call.name}: {type(error).__name__}, and the turn has not ended")

    async def _continue(self, seconds: float) -> None:
        """Go on with what is unfinished, whoever is at it."""
        await pause(seconds)
        call = SimCall("continue", self.plan.workflow, None, {"checkpoint": "latest", "run_id": self.run_id})
        self.world.tried["takeover"] += 1
        try:
            await self.attempt(call, takeover=True)
        except (*AGAIN, RunNotFoundError):
            return
        except RehydrateError as error:
            self.surprise(call, error)

    async def _fork(self, base: int, seconds: float) -> None:
        """Go on from the end of a turn as another run does: it must come to the same end as the run itself."""
        self.world.tried["fork"] += 1
        name = f"{self.name} fork {len(self.forks)}"
        self.forks.append("")
        number = len(self.forks) - 1
        before, turn = self.results[base], self.plan.turns[base + 1]
        options = {"responses": turn.answered(before), "on_pending": turn.pending, "checkpoint": before.checkpoint_id}
        call = SimCall(name, self.plan.workflow, turn.message, {**options, "fork": True, "idempotency_key": name})
        call.journal = name
        await pause(seconds)
        while True:
            try:
                result = await self.attempt(call)
            except AGAIN:
                await pause(self.random.choice((0.5, 5.0, 12.0)))
                continue
            except RehydrateError as error:
                self.surprise(call, error)
                return
            self.forks[number] = result.run_id
            self.check(base + 1, result)
            return

    async def _stale(self, result: WorkflowRunResult, seconds: float) -> None:
        """Bring a message to where the run is no more."""
        await pause(seconds)
        call = SimCall("stale", self.plan.workflow, Order(666), {"checkpoint": result.checkpoint_id})
        self.world.tried["stale"] += 1
        try:
            await self.attempt(call)
        except (StaleCheckpointError, *AGAIN):
            return
        except RehydrateError as error:
            self.surprise(call, error)
        else:
            self.world.found(f"{self}: a message to a checkpoint that is not the head was taken")

    def check(self, number: int, result: WorkflowRunResult) -> None:
        """Compare the end of a turn with its plan."""
        end, expected = end_of(result), self.plan.ends[number]
        if end != expected:
            self.world.found(f"{self} turn {number + 1} ended {end} and not {expected}")


class OneShot(Client):
    """Makes a call that nobody can repeat: without a key, and without an id."""

    def __init__(self, world: World, number: int) -> None:
        super().__init__(world, f"s{number}")
        self.number = 900 + number
        self.run_id: str | None = None

    async def live(self) -> None:
        """Make it."""
        await pause(self.random.random() * 40)
        call = SimCall("once", "desk", Order(self.number), {})
        try:
            self.run_id = (await self.attempt(call)).run_id
        except AGAIN:
            pass
        except RehydrateError as error:
            self.surprise(call, error)
        self.is_over = True


class Member(Client):
    """One of a crowd that brings orders to one run at once, each with a key, and waits for nobody else."""

    def __init__(self, world: World, number: int) -> None:
        super().__init__(world, f"m{number}")
        self.journal = CROWD
        self.number = 100 + number
        self.key = self.name

    async def live(self) -> None:
        """Have the order taken."""
        random = self.random
        await pause(random.random() * 15)
        first = {"run_id": CROWD, "idempotency_key": "the first"}
        call = SimCall("open", TALLY, Order(0), first)
        await self._until_done(call)
        options = {"checkpoint": "latest", "run_id": CROWD, "idempotency_key": self.key}
        result = await self._until_done(SimCall(f"order {self.number}", TALLY, Order(self.number), options))
        if (
            result is not None
            and result.status in RESTING
            and not any(text.startswith(f"{self.number} ") for text in logged(result))
        ):
            self.world.found(f"{self} was told that order {self.number} is done, and it is not in {logged(result)}")
        self.is_over = True

    async def _until_done(self, call: SimCall) -> WorkflowRunResult | None:
        world, random = self.world, self.random
        while True:
            takeover = world.has("takeover") and random.random() < 0.1
            try:
                return await self.attempt(call, takeover=takeover)
            except AGAIN as error:
                if isinstance(error, RunFailedError) and error.result.replayed:
                    return None  # that was its end, and the turn of another member has done its work since
                await pause(random.choice((0.01, 0.5, 5.0, 12.0)))
            except StaleCheckpointError:
                return None  # the same, where it was interrupted
            except RehydrateError as error:
                self.surprise(call, error)
                return None


def logged(result: WorkflowRunResult) -> list[str]:
    """Return what the crowd's run has booked."""
    return list(result.checkpoint.state.get("log", []))  # type: ignore[call-overload]
