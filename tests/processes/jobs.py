"""What processes of a nursery do: a caller makes the calls that it is told and says how they ended.

A caller is told what is to happen to it: where its executors wait, fail or die, and at which commit its process dies.
"""

import asyncio
import os
import signal
from collections.abc import Coroutine

from rehydrate import SqliteCheckpointStorage, WorkflowContext, WorkflowRunResult
from rehydrate.errors import RehydrateError, RunFailedError
from rehydrate.model.checkpoint import Commit
from rehydrate.testing.store_contract import ManualClock
from tests.processes import conversation, shop
from tests.processes.line import Line

#: The workflows that a caller may call, each with the type of its messages.
WORKFLOWS = {"shop": (shop.shop, shop.Order), "conversation": (conversation.conversation, conversation.Order)}


class Fault(Exception):
    """What an executor raises that was told to fail."""


class CallerTools:
    """The tools of a caller's executors; see `shop`. Holds are over when the caller is sent anything."""

    def __init__(self, line: Line, journal: str, name: str) -> None:
        self.holds: list[str] = []
        self.faults: list[str] = []
        self.dies: list[str] = []
        self._line = line
        self._name = name
        self._journal = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._released: asyncio.Task[object] | None = None

    async def at(self, ctx: WorkflowContext, entry: str) -> None:
        os.write(self._journal, f"{ctx.run_id} {self._name} {entry}\n".encode())
        if entry in self.dies:
            os.kill(os.getpid(), signal.SIGKILL)
        if entry in self.holds:
            self._line.send({"holds": entry, "run_id": ctx.run_id})
            if self._released is None:
                self._released = asyncio.create_task(asyncio.to_thread(self._line.receive, None))
            await asyncio.shield(self._released)
        if entry in self.faults:
            raise Fault(entry)


class CallerStore(SqliteCheckpointStorage):
    """The SQLite store, in a process that may die before or after one of its commits, or meet others at a claim."""

    dies_before = dies_after = -1
    commits = 0
    meet: Coroutine[None, None, None] | None = None

    async def commit(self, commit: Commit) -> None:
        number, self.commits = self.commits, self.commits + 1
        if commit.lease.claim and self.meet is not None:
            meet, self.meet = self.meet, None
            await meet
        if number == self.dies_before:
            os.kill(os.getpid(), signal.SIGKILL)
        await super().commit(commit)
        if number == self.dies_after:
            os.kill(os.getpid(), signal.SIGKILL)


def facts(result: WorkflowRunResult) -> dict[str, object]:
    """Return what tests compare of a result, as plain values."""
    return {
        "run_id": result.run_id,
        "checkpoint": result.checkpoint_id,
        "status": result.status.value,
        "turn": result.turn,
        "outputs": result.outputs,
        "requests": [[r.request_id, r.path, r.data.text] for r in result.pending_requests],
        "replayed": result.replayed,
    }


class Caller:
    """Makes calls, one after the other."""

    def __init__(self, line: Line, told: dict[str, object], go: int | None) -> None:
        self.line = line
        self.go = go
        self.tools = CallerTools(line, str(told["journal"]), str(told["name"]))
        self.store = CallerStore(str(told["file"]), clock=ManualClock() if told.get("frozen") else None)
        make, self.message = WORKFLOWS[str(told.get("workflow", "shop"))]
        self.workflow = make(self.store)

    async def listen(self) -> None:
        """Make the calls that come until none comes any more."""
        while True:
            await self.call(self.line.receive(None))

    async def call(self, told: dict[str, object]) -> None:
        self.tells = told.get("tells", False)
        for name in ("holds", "faults", "dies"):
            setattr(self.tools, name, told.get(name, []))
        self.tools._released = None
        self.store.commits = 0
        self.store.dies_before, self.store.dies_after = told.get("dies_before", -1), told.get("dies_after", -1)
        if told.get("meet") == "claim":
            self.store.meet = self.meet()
        if told.get("meet") == "call":
            await self.meet()
        self.line.send(await self.outcome(told["call"]))

    async def outcome(self, call: dict[str, object]) -> dict[str, object]:
        """Make a call; say the number of each committed event as it comes."""
        message = self.message(call.pop("message")) if "message" in call else None
        try:
            stream = self.workflow.run(message, resources={"tools": self.tools}, stream=True, **call)
            async for event in stream:
                if self.tells and not event.live:
                    self.line.send(event.sequence)
            return facts(await stream.result())
        except RunFailedError as error:
            return {"error": "RunFailedError", "text": str(error), **facts(error.result)}
        except RehydrateError as error:
            return {"error": type(error).__name__, "text": str(error)}

    async def meet(self) -> None:
        """Stop until all are here and told to go."""
        self.line.send("here")
        os.read(self.go, 1)


def caller(line: Line, told: dict[str, object], go: int | None = None) -> None:
    """Make the calls that are told, over one store object in one event loop."""
    asyncio.run(Caller(line, told, go).listen())


JOBS = {"caller": caller}
