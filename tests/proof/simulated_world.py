"""A world made from one seed: processes, a database behind a network, clients, and what goes wrong until it is quiet.

Everything is drawn from the seed, each kind of fault from a source of its own, so that one can be left out and the
others stay as they are. What was found wrong ends the world.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final

from rehydrate.errors import InconsistentRunError
from rehydrate.runtime.program import Program
from rehydrate.testing import VirtualClock

from .simulated_checks import Checks
from .simulated_clients import Client
from .simulated_conversations import Conversation
from .simulated_crowd import Member, OneShot
from .simulated_ending import check_end
from .simulated_loop import PROCESS, Killed, SimClock, SimProcess, run_world, settle
from .simulated_plans import built
from .simulated_store import Database, Handle, Network
from .simulated_weather import Machine, Tools, Weather

#: Kinds of what goes wrong; a world has some of them.
KINDS: Final = (
    "delay", "lose", "double", "cut", "crash", "kill", "stall", "jump", "drift", "drain",
    "slow", "fail", "cancel", "takeover", "repeat", "stale", "fork", "skew",
)  # fmt: skip
#: How long things go wrong, and how long after that everything may take, in virtual seconds.
FAULTY_SECONDS: Final = 90.0
QUIET_SECONDS: Final = 600.0


@dataclass
class Report:
    """What became of a world."""

    seed: int
    found: list[str] = field(default_factory=list)
    trace: list[str] = field(default_factory=list)
    #: What was tried, by kind.
    tried: Counter[str] = field(default_factory=Counter)

    @property
    def digest(self) -> str:
        """The digest of the whole trace."""
        return hashlib.sha256("\n".join(self.trace).encode()).hexdigest()


class _Ids:
    """Ids from a seed."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def new_id(self) -> str:
        return f"{self._random.getrandbits(128):032x}"


@dataclass(frozen=True)
class Stage:
    """A workflow as a process has it."""

    program: Program
    checkpoint_storage: Handle


class World:
    """One world. `without` are kinds of faults that are left out."""

    handle_class: type[Handle] = Handle
    database_class: type[Database] = Database

    def __init__(self, seed: int, without: frozenset[str] = frozenset()) -> None:
        self.seed = seed
        self.report = Report(seed)
        self.tried = self.report.tried
        self._randoms: dict[str, Random] = {}
        shape = self.random("shape")
        drawn = [kind for kind in KINDS if self.random(f"has {kind}").random() < 0.55]
        self.tried["drift"] += "drift" in drawn
        self.kinds = frozenset(drawn) - without
        self.clock = VirtualClock(1_000_000.0)
        self.quiet = False
        #: By client and effect key: what was done outside.
        self.effects: dict[str, dict[str, set[tuple[str, str]]]] = {}
        self.machines: list[Machine] = []
        self._started = 0
        self._broken: asyncio.Future[None] | None = None
        self._stages: dict[tuple[str, str], Stage] = {}
        self.conversations = [Conversation(self, number) for number in range(shape.randint(1, 3))]
        self.shots = [OneShot(self, number) for number in range(shape.randint(0, 2))]
        self.crowd = [Member(self, number) for number in range(shape.choice((0, 0, 2, 4)))]

    @property
    def clients(self) -> list[Client]:
        """All clients."""
        return [*self.conversations, *self.shots, *self.crowd]

    def random(self, what: str) -> Random:
        """Return a source of chance of its own for something."""
        found = self._randoms.get(what)
        if found is None:
            found = self._randoms[what] = Random(f"{self.seed} {what}")
        return found

    def has(self, kind: str) -> bool:
        """Tell whether a kind of fault happens now."""
        return not self.quiet and kind in self.kinds

    def note(self, text: str) -> None:
        """Write a line of the trace."""
        self.report.trace.append(f"{self.clock.passed:11.4f} {text}")

    def found(self, text: str) -> None:
        """Note something that must not be."""
        self.note(f"WRONG: {text}")
        self.report.found.append(f"at {self.clock.passed:.4f}: {text}")
        if self._broken is not None:
            settle(self._broken, None)

    async def main(self) -> None:
        """Live."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._unhandled)
        self._broken = loop.create_future()
        shape = self.random("shape")
        rate = 1.0 + shape.uniform(-0.01, 0.01) if self.has("drift") else 1.0
        self.checks = Checks(self.found)
        self.network = Network(self.random("network"), self.note, self.tried)
        self.database = self.database_class(SimClock(self.clock, shape.uniform(-50, 50), rate), self.checks, self.note)
        self._set_network(shape)
        for number in range(shape.randint(2, 3)):
            rate = 1.0 + shape.uniform(-0.05, 0.05) if self.has("drift") else 1.0
            clock = SimClock(self.clock, shape.uniform(-5, 5), rate)
            machine = Machine(f"p{number}", clock, SimProcess("", 0, clock, shape))
            self.machines.append(machine)
            self.start(machine)
        clients = [asyncio.ensure_future(client.live()) for client in self.clients]
        weather = [asyncio.ensure_future(work) for work in Weather(self).kinds()]
        over = asyncio.gather(*clients)
        await asyncio.wait([over, self._broken], timeout=FAULTY_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        for task in weather:
            task.cancel()
        self.calm()
        if not over.done():
            await asyncio.wait([over, self._broken], timeout=QUIET_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if self.report.found:
            return
        if not over.done():
            waiting = [str(client) for client in self.clients if not client.is_over]
            self.found(f"{', '.join(waiting)} waited {QUIET_SECONDS:.0f} seconds in a quiet world")
            return
        over.result()
        check_end(self)

    def _unhandled(self, loop: object, facts: dict[str, Any]) -> None:
        if "never retrieved" not in facts["message"]:
            self.found(f"{facts['message']}: {facts.get('exception')!r}")

    def _set_network(self, random: Random) -> None:
        network = self.network
        network.loses = random.choice((0.02, 0.1)) if self.has("lose") else 0.0
        network.doubles = random.choice((0.05, 0.2)) if self.has("double") else 0.0
        network.delays = random.choice((0.05, 0.2)) if self.has("delay") else 0.0

    def start(self, machine: Machine) -> None:
        """Start a process on a machine."""
        self._started += 1
        random = Random(f"{self.seed} process {self._started}")
        machine.process = SimProcess(machine.name, self._started, machine.clock, random)
        self.note(f"start {machine.process}")

    def stage(self, process: SimProcess, workflow: str) -> Stage:
        """Return a workflow as a process has it."""
        place = str(process), workflow
        stage = self._stages.get(place)
        if stage is None:
            program = replace(
                built(workflow, process.number).program,
                clock=process.clock,
                ids=_Ids(process.random),
                watch=self._watch if self.has("kill") else None,
            )
            handle = self.handle_class(process, self.database, self.network)
            stage = self._stages[place] = Stage(program, handle)
        return stage

    def _watch(self, kind: str, moment: str, turn: object) -> None:
        process = PROCESS.get()
        if process is None or not self.has("kill") or process.dead or self.random("kill").random() >= 0.01:
            return
        self.tried["kill"] += 1
        self.note(f"{process} is killed {moment} {kind}")
        self.lose(process)
        raise Killed(f"{moment} {kind}")

    def lose(self, process: SimProcess) -> None:
        """End a process, and start another in its place some time later."""
        process.crash()
        machine = next(machine for machine in self.machines if machine.process is process)
        seconds = self.random("restart").choice((0.1, 3.0, 30.0))
        asyncio.get_running_loop().call_later(seconds, self._restart, machine, process, context=Context())

    def _restart(self, machine: Machine, process: SimProcess) -> None:
        if machine.process is process:
            self.start(machine)

    def tools(self, client: str) -> Tools:
        """Return what handlers meet outside that work for a client."""
        return Tools(self, client)

    def pick(self, random: Random, last: SimProcess | None = None) -> SimProcess | None:
        """Choose a process that takes calls, the same one as before or another."""
        up = [machine.process for machine in self.machines if not machine.process.dead and not machine.process.leaving]
        if last in up and random.random() < 0.4:
            return last
        return random.choice(up) if up else None

    def calm(self) -> None:
        """Let nothing go wrong any more."""
        self.quiet = True
        self.note("quiet")
        network = self.network
        network.loses = network.doubles = network.delays = 0.0
        network.cut.clear()
        for machine in self.machines:
            if machine.process.stalled:
                machine.process.go_on()
            if machine.process.leaving:
                machine.process.crash()
            if machine.process.dead:
                self.start(machine)


@contextmanager
def silent() -> Iterator[None]:
    """Let the library's log be silent: worlds are full of what it warns of."""
    logger = logging.getLogger("rehydrate")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def simulate(seed: int, without: frozenset[str] = frozenset(), world_class: type[World] = World) -> Report:
    """Let a world live, and return what became of it."""
    world = world_class(seed, without)
    with silent():
        try:
            run_world(world.main(), world.clock)
        except InconsistentRunError as error:  # wherever it came out
            world.report.found.append(f"{type(error).__name__}: {error}")
    return world.report
