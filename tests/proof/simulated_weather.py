"""What goes wrong by itself in a simulated world: processes, clocks and the network, and what handlers meet outside.

Each kind happens again and again until the world is quiet. Must not touch what clients do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from rehydrate.runtime.draining import drain

from .simulated_loop import SimClock, SimProcess, pause
from .simulated_plans import effect
from .simulated_workflows import TroubleError

if TYPE_CHECKING:
    from .simulated_world import World


@dataclass
class Machine:
    """Where one process runs after another."""

    name: str
    clock: SimClock
    process: SimProcess


class Tools:
    """What handlers of one process meet outside."""

    def __init__(self, world: World, client: str) -> None:
        self._world = world
        self._client = client

    async def at(self, ctx: Any, what: object) -> None:
        """Take effect outside, once for an effect key."""
        world = self._world
        random = world.random("tools")
        if world.has("fail") and random.random() < 0.1:
            world.tried["fail"] += 1
            raise TroubleError("before")
        world.effects.setdefault(self._client, {}).setdefault(ctx.effect_key, set()).add(effect(ctx, what))
        world.tried["effect"] += 1
        chance = random.random()
        if world.has("slow") and chance < 0.25:
            world.tried["slow"] += 1
            await pause(random.choice((0.2, 2.0, 20.0, 70.0)) * random.random())
        elif chance < 0.7:
            await pause(random.random() * 0.1)
        if world.has("fail") and random.random() < 0.05:
            world.tried["fail"] += 1
            raise TroubleError("after")


class Weather:
    """What happens to the machines of a world."""

    def __init__(self, world: World) -> None:
        self._world = world

    def kinds(self) -> Iterator[Any]:
        """Return what is to run until it is quiet."""
        world = self._world
        if "skew" in world.kinds:
            yield self._skew(world.random("skew"))
        for machine in world.machines:
            for kind, seconds, happen in (
                ("crash", 40.0, self._crash),
                ("stall", 40.0, self._stall),
                ("cut", 40.0, self._cut),
                ("jump", 30.0, self._jump),
                ("drain", 60.0, self._drain),
            ):
                if kind in world.kinds:
                    yield self._again(machine, kind, seconds, happen)

    async def _again(self, machine: Machine, kind: str, seconds: float, happen: Callable[..., Any]) -> None:
        random = self._world.random(f"{kind} {machine.name}")
        while True:
            await pause(random.expovariate(1 / seconds))
            if not machine.process.dead:
                self._world.tried[kind] += 1
                self._world.note(f"{kind} {machine.process}")
                await happen(machine, machine.process, random)

    async def _skew(self, random: Random) -> None:
        """Set the clock of the database: leases are over too early, or too late."""
        while True:
            await pause(random.expovariate(1 / 40.0))
            self._world.tried["skew"] += 1
            seconds = random.choice((-31.0, 31.0, 3600.0))
            self._world.note(f"the database's clock is set by {seconds:.0f}")
            self._world.database.clock.offset += seconds

    async def _crash(self, machine: Machine, process: SimProcess, random: Random) -> None:
        self._world.lose(process)

    async def _stall(self, machine: Machine, process: SimProcess, random: Random) -> None:
        process.stalled = True
        await pause(random.choice((1.0, 10.0, 35.0, 60.0)))
        if process.stalled:
            self._world.note(f"{process} goes on")
            process.go_on()

    async def _cut(self, machine: Machine, process: SimProcess, random: Random) -> None:
        self._world.network.cut.add(machine.name)
        await pause(random.choice((1.0, 10.0, 40.0)))
        self._world.network.cut.discard(machine.name)

    async def _jump(self, machine: Machine, process: SimProcess, random: Random) -> None:
        machine.clock.offset += random.choice((-3600.0, -31.0, 31.0, 3600.0))

    async def _drain(self, machine: Machine, process: SimProcess, random: Random) -> None:
        process.leaving = True
        task = process.spawn(drain(random.choice((0.0, 2.0, 10.0))))
        await asyncio.wait([task], timeout=40.0)
        if machine.process is process and not process.dead:
            self._world.note(f"{process} leaves")
            self._world.lose(process)
