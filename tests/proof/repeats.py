"""A call whose process ends at any point, and the same call again: what must have happened by then, and come of it.

Points are before and after each call of the store and each command of the turn. A run is prepared, the call is broken
at one point, the store is looked at, the call is made again, and for one with a key some duplicates follow.
"""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from rehydrate import (
    CheckpointStorage,
    FileCheckpointStorage,
    InMemoryCheckpointStorage,
    SqliteCheckpointStorage,
    Workflow,
    WorkflowRunResult,
)
from rehydrate.errors import (
    AlreadyAnsweredError,
    IdempotencyKeyError,
    RehydrateError,
    RunExistsError,
    StaleCheckpointError,
)
from rehydrate.model.checkpoint import RESTING
from rehydrate.runtime.program import Program
from rehydrate.runtime.runner import Runner
from rehydrate.testing.driving import Crash
from tests.call.desk import Note, World
from tests.differential.facts import CallFacts, call_facts, differences
from tests.proof.traps import Point, Trap, Trapped

STORES: dict[str, type] = {
    "memory": InMemoryCheckpointStorage, "sqlite": SqliteCheckpointStorage, "files": FileCheckpointStorage
}  # fmt: skip


@dataclass(frozen=True)
class _Stage:
    program: Program
    checkpoint_storage: CheckpointStorage


Arguments = Callable[[WorkflowRunResult], dict[str, object]]


@dataclass(frozen=True)
class Scene:
    """A call on a run `r` that was left asking `a?` and `b?`; `build` makes the workflow, with what is around it."""

    build: Callable[[World], Workflow]
    arguments: Arguments
    message: Note | None = None
    key: str | None = None
    stream: bool = False
    store: str = "memory"
    #: Mixed in before the store, to break it.
    mixins: tuple[type, ...] = ()
    #: Calls the workflow in another way, to break that.
    caller: Callable[..., object] | None = None


@dataclass
class Play:
    """One run of a scene in a store of its own."""

    scene: Scene
    folder: Path
    world: World = field(default_factory=World)

    def __post_init__(self) -> None:
        scene = self.scene
        kind = type("Store", (Trapped, *scene.mixins, STORES[scene.store]), {"marks": [], "world": self.world})
        path = () if scene.store == "memory" else (self.folder / "runs",)
        self.store = kind(*path, keep_events=True)

    async def prepare(self) -> None:
        """Let the run ask, or find it as another play has left it."""
        if self.scene.store == "memory" or not (self.folder / "runs").exists():
            self.paused = await self._call(Note("a?,b?"), run_id="r")
        else:
            self.paused = await self._call(None, run_id="r", checkpoint="latest")
        self.given = {"on_pending": "keep", **self.scene.arguments(self.paused)}
        if self.scene.key is not None:
            self.given["idempotency_key"] = self.scene.key
        if self.scene.message is not None and "checkpoint" not in self.given:
            del self.given["on_pending"]
        self.world.diary.clear()

    async def make(self, trap: Trap | None = None, **other: object) -> WorkflowRunResult:
        """Make the call, with a workflow of its own, as a new process would."""
        given = {**self.given, **other}
        message = given.pop("message", self.scene.message)
        self.store.trap = trap
        try:
            if self.scene.caller is not None:
                return await self.scene.caller(self._call, message, trap=trap, **given)
            return await self._call(message, trap=trap, **given)
        finally:
            self.store.trap = None

    async def _call(self, message: object, *, trap: Trap | None = None, **given: object) -> WorkflowRunResult:
        program = self.scene.build(self.world).program
        runner = Runner(_Stage(replace(program, watch=trap) if trap is not None else program, self.store))
        if not self.scene.stream:
            return await runner.run(message, **given)
        stream = runner.run(message, stream=True, **given)
        async for _ in stream:
            pass
        return await stream.result()

    async def picture(self) -> dict[str, bytes]:
        """Return all that the store holds, by run."""
        found = {}
        for header in await self.store.runs(limit=100):
            head = await self.store.head(header.run_id)
            archive = await self.store.archive(header.run_id)
            found[header.run_id] = msgspec.msgpack.encode((head.owner, head.epoch, archive))
        return found


@dataclass(frozen=True)
class Reference:
    """The call undisturbed: what it gives, its diary, and the points it comes by."""

    facts: CallFacts
    diary: Counter[str]
    points: list[Point]


async def undisturbed(scene: Scene, folder: Path) -> Reference:
    """Make the call as it is meant to be."""
    play = Play(replace(scene, caller=None, mixins=()), folder)
    await play.prepare()
    result = await play.make(trap := Trap())
    await play.store.close()
    return Reference(call_facts(result, ()), Counter(play.world.diary), trap.passed)


async def wrong_at(scene: Scene, folder: Path, point: Point, expected: Reference) -> list[str]:
    """Break the call at a point and make it again; return what is wrong."""
    asyncio.get_running_loop().set_exception_handler(_silent)
    play = Play(scene, folder)
    await play.prepare()
    before = await play.picture()
    try:
        await play.make(Trap(point))
        return [f"{point}: it was not come by"]
    except Crash:
        pass
    wrong = []
    after = await play.picture()
    claimed = _epochs(after) != _epochs(before)
    if not claimed and after != before:
        wrong.append("something was stored before the claim")
    if not claimed and play.world.diary:
        wrong.append(f"before the claim there ran {play.world.diary}")
    if claimed and play.store.written == 0:
        wrong.append("nothing was written, and it is claimed")
    if claimed and scene.key is not None:
        wrong += await _another(play)
    saved = play.store.marks[play.store.written - 2] if play.store.written > 1 else 0
    may_repeat = Counter(play.world.diary[saved:])
    try:
        result = await _again(play)
    except Exception as error:  # whatever a broken one raises
        return [f"{point}: again: {type(error).__name__}: {error}"]
    wrong += differences(expected.facts, call_facts(result, ()))
    ran = Counter(play.world.diary)
    if not ran - expected.diary <= may_repeat or not expected.diary <= ran:
        wrong.append(f"there ran {ran} instead of {expected.diary}; only {may_repeat} might run again")
    if scene.key is not None:
        wrong += await _duplicates(play, result, expected)
    await play.store.close()
    return [f"{point}: {text}" for text in wrong]


def _silent(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    """Say nothing of a crash that nobody has waited for."""
    if not isinstance(context.get("exception"), Crash):
        loop.default_exception_handler(context)


def _epochs(picture: dict[str, bytes]) -> dict[str, object]:
    return {run_id: msgspec.msgpack.decode(data)[1] for run_id, data in picture.items()}


async def _again(play: Play) -> WorkflowRunResult:
    """Make the call again; where it has ended well and has no key, it is refused, and the run shows how it stands."""
    try:
        return await play.make()
    except (AlreadyAnsweredError, StaleCheckpointError, RunExistsError):
        run_id = str(play.given.get("run_id", "r"))
        head = await play.store.head(run_id)
        if play.scene.key is not None or head.header.status not in RESTING or head.header.turn <= _turn_before(play):
            raise
        return await play.make(message=None, run_id=run_id, checkpoint="latest", responses=None, on_pending=None)


def _turn_before(play: Play) -> int:
    return play.paused.turn if play.given.get("run_id", "r") == "r" else 0


async def _duplicates(play: Play, first: WorkflowRunResult, expected: Reference) -> list[str]:
    """Deliver the call twice more, and another one with its key."""
    wrong = []
    before, diary = await play.picture(), list(play.world.diary)
    for _ in range(2):
        try:
            result = await play.make()
        except Exception as error:  # whatever a broken one raises
            return [f"a duplicate: {type(error).__name__}: {error}"]
        wrong += [f"a duplicate: {text}" for text in differences(expected.facts, call_facts(result, ()))]
        if not result.replayed or result.checkpoint_id != first.checkpoint_id:
            wrong.append(f"a duplicate gave {result.checkpoint_id}, replayed: {result.replayed}")
    wrong += await _another(play)
    if play.world.diary != diary:
        wrong.append(f"duplicates ran {play.world.diary[len(diary) :]}")
    if await play.picture() != before:
        wrong.append("duplicates have changed what is stored")
    return wrong


async def _another(play: Play) -> list[str]:
    """Deliver another request with the key, and see it refused."""
    try:
        await play.make(run_args=1)
        return ["another request was taken with the same key"]
    except IdempotencyKeyError:
        return []
    except RehydrateError as error:
        return [f"another request with the same key: {type(error).__name__}: {error}"]


async def wrong_of(scene: Scene, folder: Path, every: int = 1, first: int = 0) -> tuple[list[str], int]:
    """Break a call at every n-th of its points in turn; return what is wrong, and how often it was broken."""
    template = folder / "template"
    template.mkdir()
    if scene.store != "memory":
        play = Play(scene, template)
        await play.prepare()
        await play.store.close()
    expected = await undisturbed(scene, _copied(template, folder / "reference"))
    wrong = []
    chosen = expected.points[first % every :: every]
    for number, point in enumerate(chosen):
        place = _copied(template, folder / str(number))
        wrong += await wrong_at(scene, place, point, expected)
        shutil.rmtree(place)
    return wrong, len(chosen)


def _copied(template: Path, place: Path) -> Path:
    shutil.copytree(template, place)
    return place
