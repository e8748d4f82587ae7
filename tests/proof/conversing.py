"""The turns of a conversation, each a call that restores the run with everything built anew, and what they cost."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from rehydrate import CheckpointStorage, SqliteCheckpointStorage, Status, WorkflowRunResult
from rehydrate.engine.receipts import PACK
from rehydrate.engine.state import FAN
from rehydrate.errors import RehydrateError
from tests.processes.line import Line
from tests.proof.talking import LIMIT, MAKES, ROUNDS, Question, Said, World, expected

#: What a turn does to the world, in its order.
DONE = ["hear", "look", "try", "try"]


@dataclass
class Talk:
    """A conversation, by turns from 1. `sizes` and `written`: bytes that each has saved, and scopes in which."""

    make: str
    store: CheckpointStorage
    last: int = -1
    sizes: dict[int, int] = field(default_factory=dict)
    written: dict[int, int] = field(default_factory=dict)

    async def wrong(self, number: int) -> list[str]:
        """Make a turn and name what is not of this turn alone. The tenth asks, each 25th reaches its limit."""
        try:
            found = await self._turn(number)
        except RehydrateError as error:
            found = [f"{type(error).__name__}: {error}"]
        return [f"{self.make}, turn {number}: {text}" for text in found]

    async def _turn(self, number: int) -> list[str]:
        asks, long = number % 10 == 0, number % 25 == 7
        rounds = LIMIT + ROUNDS if long else ROUNDS
        world = World(f"t{number}")
        result = await self._call(world, Said(number, rounds, asks), number)
        wrong: list[str] = []
        if long:
            wrong += self._stopped(result, Status.LIMIT_REACHED, world)
            result = await self._call(world)
        if asks:
            wrong += self._stopped(result, Status.IDLE_WITH_PENDING_REQUESTS, world)
            asked = [request.data for request in result.pending_requests]
            wrong += [] if asked == [Question(number)] else [f"asked {asked}"]
            world.now = "later"
            result = await self._call(world, responses=[each.answer("!") for each in result.pending_requests])
        wanted = [expected(number, rounds, "!" if asks else "", "later" if asks else "")]
        wrong += [] if result.outputs == wanted else [f"{result.outputs} instead of {wanted}"]
        wrong += [] if world.done == DONE else [f"did {world.done}"]
        wrong += [] if (result.status, result.pending_requests) == (Status.IDLE, ()) else [f"ended {result.status}"]
        wrong += await self._cost(number, result)
        return wrong

    def _stopped(self, result: WorkflowRunResult, status: Status, world: World) -> list[str]:
        found = (result.status, result.outputs, world.done)
        return [] if found == (status, [], ["hear"]) else [f"stopped with {found}"]

    async def _call(
        self, world: World, said: Said | None = None, number: int = 0, **options: object
    ) -> WorkflowRunResult:
        flow = MAKES[self.make](self.store)
        if said is not None:
            options["run_args"] = {"turn": number}
        if said is None or number > 1:
            options["checkpoint"] = "latest"
        return await flow.run(said, run_id="talk", resources={"world": world}, **options)

    async def _cost(self, number: int, result: WorkflowRunResult) -> list[str]:
        """Note what the turn has saved; what there is after it are few records, and parts that are packed at times."""
        headers = [header for header in await self.store.history("talk", limit=50) if header.seq > self.last]
        self.last = result.checkpoint.header.seq
        self.sizes[number] = sum(header.size for header in headers)
        self.written[number] = sum(header.changed for header in headers)
        records = result.checkpoint.header.records
        return [f"there are {records} records"] if records > FAN + PACK + 20 else []

    def dearer(self, early: range, late: range) -> list[str]:
        """Name what late turns cost more than early ones did, in the middle and at most."""
        wrong: list[str] = []
        for what, costs, allowed in (("bytes", self.sizes, 1.15), ("scopes written", self.written, 1.0)):
            one, other = (sorted(costs[number] for number in turns) for turns in (early, late))
            middles = one[len(one) // 2], other[len(other) // 2]
            if middles[1] > middles[0] * allowed:
                wrong.append(f"{what} of a turn: {middles[0]} early, {middles[1]} late")
        return wrong


async def wrong_in_talk(make: str, store: CheckpointStorage, turns: int) -> list[str]:
    """Make so many turns; name what is wrong, also with what the last fifth costs more than the first."""
    talk = Talk(make, store)
    wrong = [text for number in range(1, turns + 1) for text in await talk.wrong(number)]
    return wrong or talk.dearer(range(2, 3 + turns // 5), range(turns - turns // 5, turns + 1))


def talked(line: Line, told: dict[str, object]) -> None:
    """A process of a nursery: make some turns over a file and say what is wrong."""

    async def some() -> list[str]:
        async with SqliteCheckpointStorage(str(told["file"])) as store:
            talk = Talk(str(told["make"]), store)
            return [text for number in told["turns"] for text in await talk.wrong(number)]

    line.send(asyncio.run(some()))
