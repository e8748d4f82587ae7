"""Conversations: clients that want the turns of a plan, in order, and repeat each call until it is answered.

They send to any process, several times, at once and late; some turns have a key and some have none. What a client is
told must be what the plan says, whoever did the work.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from rehydrate import WorkflowRunResult
from rehydrate.errors import (
    AlreadyAnsweredError,
    RehydrateError,
    RunExistsError,
    RunNotFoundError,
    StaleCheckpointError,
)
from rehydrate.model.checkpoint import RESTING

from .simulated_clients import AGAIN, DONE, Client, SimCall
from .simulated_loop import pause
from .simulated_plans import SHAPES, end_of, plan
from .simulated_workflows import WORKFLOWS, Order

if TYPE_CHECKING:
    from .simulated_world import World


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
