"""What the tests of this folder share: time that only moves when it is told to, and chains of steps that can fail.

What a step does depends on its message and its world only, so that a resumed run can be compared with an uninterrupted
one.
"""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from time import perf_counter

import msgspec

from rehydrate import Runner, Status, WorkflowBuilder, WorkflowContext, WorkflowExecutor, executor
from rehydrate.errors import RunFailedError
from rehydrate.model.records import TurnRecord

#: Seconds of real time after which something is not expected any more, on a machine that has much else to do.
_PATIENCE = 60.0
#: Passes of the loop in which whatever needs no thread has come.
_QUIET = 200
_TURN_OF_THREADS = threading.Event()
NOON = 1_800_000_000.0
HOUR = 3600.0


class MovedTime:
    """The time of runs (`now`) and of the event loop that it is given to; it stands still until it is moved.

    The loop's time counts from 0: it compares with a resolution that is lost in seconds since the epoch.
    """

    def __init__(self) -> None:
        self.now = NOON
        self.passed = 0.0

    def time(self) -> float:
        return self.now

    def drive(self) -> None:
        """Let the running event loop have this time."""
        asyncio.get_running_loop().time = lambda: self.passed

    async def move(self, seconds: float) -> None:
        """Let time pass, and everybody do what is due then."""
        self.now += seconds
        self.passed += seconds
        await others()


async def passing(time: MovedTime, work: "asyncio.Task[object]", seconds: float = 0.5) -> object:
    """Let time pass until some work is done, and return what it gives."""
    for _ in range(100_000):
        if work.done():
            return await work
        await time.move(seconds)
    raise AssertionError("it never ended")


async def others() -> None:
    """Let everybody else do what they can without waiting."""
    for _ in range(60):
        await asyncio.sleep(0)


async def until(condition: Callable[[], object]) -> None:
    """Let others run until a condition holds.

    How many passes of the loop that takes says nothing, where a thread waits for the disk: real time ends it.
    """
    ends = perf_counter() + _PATIENCE
    passes = 0
    while not condition():
        if perf_counter() > ends:
            raise AssertionError("it never came to that")
        passes += 1
        if passes > _QUIET:
            # A loop that only turns would keep the threads from the processor that it waits for.
            _TURN_OF_THREADS.wait(0.0005)
        await asyncio.sleep(0)


class Timed:
    """A workflow whose runs have a time of their own."""

    def __init__(self, workflow, time, store=None) -> None:
        self.program = replace(workflow.program, clock=time)
        self.checkpoint_storage = store

    def run(self, message=None, **options):
        return Runner(self).run(message, **options)


class Fault(Exception):  # noqa: N818  (it is told to happen; nothing is wrong)
    """What a step raises that was told to fail."""


class Gate:
    """Lets all wait that come until it is opened."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.opened = asyncio.Event()


class World:
    """What is outside of every run: a log of `step attempt`, how often steps fail, and gates at which they wait."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.fails: dict[str, int] = {}
        self.gates: dict[str, Gate] = {}
        self.keys: set[str] = set()

    async def enter(self, ctx: WorkflowContext) -> None:
        name = ctx.executor_id
        self.log.append(f"{name} {ctx.attempt}")
        self.keys.add(ctx.effect_key)
        gate = self.gates.get(name)
        if gate is not None:
            gate.entered.set()
            await gate.opened.wait()
        if self.fails.get(name, 0) > 0:
            self.fails[name] -= 1
            raise Fault(name)


def step(id: str, world: World, **policies):
    """Make an executor that counts its messages in state and adds its id to the text."""

    @executor(id=id, **policies)
    async def run(text: str, ctx: WorkflowContext) -> str:
        ctx.set_state(id, ctx.get_state(id, 0) + 1)
        ctx.update_state("seen", f"{id} {text}")
        await world.enter(ctx)
        return f"{text} {id}"

    return run


def line(world: World, depth: int = 0, *, max_concurrency: int | None = None, **policies):
    """Make one → two → three, so many levels below the root, in a chain with an `into` and an `out` on each level."""
    steps = [step(id, world, **policies) for id in ("one", "two", "three")]
    options = {"reducers": {"seen": joined}, "max_concurrency": max_concurrency}
    inner = WorkflowBuilder("line", steps[0], **options).add_chain(steps).build()
    for level in range(depth):
        chain = [step("into", world), WorkflowExecutor(inner, id="inner"), step("out", world)]
        inner = WorkflowBuilder(f"line in {level + 1}", chain[0], **options).add_chain(chain).build()
    return inner


def joined(current: str | None, contribution: str) -> str:
    """A reducer in which order matters."""
    return f"{current or ''}|{contribution}"


def path_of(depth: int) -> str:
    """The scope of the steps of a line."""
    return "/".join(["inner#1"] * depth)


def facts(result) -> tuple[Status, list[object], dict[str, str]]:
    """What must be the same of a resumed run and an uninterrupted one: status, outputs and all records."""
    records: dict[str, str] = {}
    for key, record in result.checkpoint.records.records():
        if key[1] == "run":
            continue
        is_turn = isinstance(record, TurnRecord)
        plain = msgspec.structs.replace(record, base=None, digest="", resumed=None) if is_turn else record
        records[" ".join(key)] = repr(plain)
    return result.status, result.outputs, records


async def failing(work) -> RunFailedError:
    """Wait for a run that fails and return its error."""
    try:
        result = await work
    except RunFailedError as error:
        return error
    raise AssertionError(f"the run did not fail: {result!r}")
