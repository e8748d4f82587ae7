"""What processes of a nursery do: a caller makes the calls that it is told and says how they ended.

A caller is told what happens to it: where its executors wait, fail, fork or die, and at which commit its process dies
or stalls.
"""

import asyncio
import os
import signal
import socket
from collections.abc import Awaitable
from typing import TypeVar

from rehydrate import (
    FileCheckpointStorage,
    PostgresCheckpointStorage,
    SqliteCheckpointStorage,
    WorkflowContext,
    WorkflowRunResult,
)
from rehydrate.errors import RehydrateError, RunFailedError
from rehydrate.model.checkpoint import CheckpointRef, Commit, Head, RequestRow, Stored, TurnRow
from rehydrate.testing.store_contract import ManualClock
from tests.processes import conversation, drained, interview, shop
from tests.processes.line import Line
from tests.proof import conversing, fleet, walking
from tests.proof.broken_stores import BROKEN
from tests.proof.p02_child import gated
from tests.proof.talks import talking
from tests.proof.unsafe import UNSAFE

T = TypeVar("T")
#: The workflows that a caller may call, each with the type of its messages. They are built before any process is
#: forked, which costs each of them less than to build its own; a definition holds nothing of a run.
WORKFLOWS = {
    "shop": (shop.shop(), shop.Order),
    "conversation": (conversation.conversation(), conversation.Order),
    "interview": (interview.interview(), conversation.Order),
}


class FaultError(Exception):
    """What an executor raises that was told to fail."""


class Fate:
    """What happens in a call, as it was told: entries of executors, and numbers of commits, from 0."""

    def __init__(self, told: dict[str, object]) -> None:
        self.holds: list[str] = told.get("holds", [])
        self.faults: list[str] = told.get("faults", [])
        self.forks: list[str] = told.get("forks", [])
        self.leaves: bool = told.get("leaves", False)
        self.meets_at: str = told.get("meets_at", "")
        self.dies_before: int = told.get("dies_before", -1)
        self.dies_after: int = told.get("dies_after", -1)
        self.stalls_before: int = told.get("stalls_before", -1)
        self.commits = 0
        #: A place, and how often it is passed before this process dies there.
        self.dies_at, self.dies_after_times = told.get("dies_at", ["", -1])
        self.released: asyncio.Task[object] | None = None

    def comes_by(self, place: str) -> None:
        """Die where that was told."""
        if place == self.dies_at:
            if self.dies_after_times == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            self.dies_after_times -= 1


class Fated:
    """A store of a caller whose process may die at any of its calls, or stall at one of its commits."""

    caller: "Caller"

    async def _around(self, name: str, call: Awaitable[T]) -> T:
        self.caller.fate.comes_by(f"before {name}")
        found = await call
        self.caller.fate.comes_by(f"after {name}")
        return found

    async def head(self, run_id: str) -> Head | None:
        return await self._around("head", super().head(run_id))

    async def load(self, ref: CheckpointRef) -> Stored | None:
        return await self._around("load", super().load(ref))

    async def find_turn(self, workflow: str, key: str) -> TurnRow | None:
        return await self._around("find_turn", super().find_turn(workflow, key))

    async def find_request(self, request_id: str) -> RequestRow | None:
        return await self._around("find_request", super().find_request(request_id))

    async def commit(self, commit: Commit) -> None:
        fate = self.caller.fate
        number, fate.commits = fate.commits, fate.commits + 1
        if commit.lease.claim and fate.meets_at == "claim":
            fate.meets_at = ""
            self.caller.wait_for_go()
        if number == fate.stalls_before:
            self.caller.wait_for_go()
        if number == fate.dies_before:
            os.kill(os.getpid(), signal.SIGKILL)
        await self._around("commit", super().commit(commit))
        if number == fate.dies_after:
            os.kill(os.getpid(), signal.SIGKILL)


class CallerStore(Fated, SqliteCheckpointStorage):
    """Such a store in a file."""


class FileCallerStore(Fated, FileCheckpointStorage):
    """Such a store in a folder."""


class PostgresCallerStore(Fated, PostgresCheckpointStorage):
    """Such a store in PostgreSQL."""


def caller_store(told: dict[str, object]) -> CallerStore | FileCallerStore | PostgresCallerStore:
    """Return the store that a caller is told to use: a URL and a schema, a folder or a file; it may be broken."""
    clock = ManualClock(float(told["now"])) if "now" in told else None
    keep_events = bool(told.get("keep_events"))
    if "postgres" in told:
        url, schema = told["postgres"]
        return PostgresCallerStore(url, schema=schema, clock=clock, keep_events=keep_events)
    kind, path = (FileCallerStore, told["folder"]) if "folder" in told else (CallerStore, told["file"])
    if "broken" in told:
        kind = type("Broken", (BROKEN[str(told["broken"])], kind), {})
    return kind(str(path), clock=clock, keep_events=keep_events)


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
    """Makes calls, and is the tools of their executors. `go` is where it waits for others, `second` a child's line."""

    def __init__(self, line: Line, told: dict[str, object], go: int = -1, second: int = -1) -> None:
        self.line = line
        self.go = go
        self.second = second
        self.name = str(told["name"])
        self.journal = os.open(str(told["journal"]), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self.fate = Fate({})
        self.store = caller_store(told)
        self.store.caller = self
        self.workflow, self.message = WORKFLOWS[str(told.get("workflow", "shop"))]

    async def listen(self) -> None:
        """Make the calls that come, or several at once, until none comes any more."""
        while True:
            told = self.line.receive(None)
            self.fate = Fate(told)
            if self.fate.meets_at == "call":
                self.wait_for_go()
            call = told["call"]
            if isinstance(call, list):
                self.line.send(await asyncio.gather(*(self.outcome(each, tells=False) for each in call)))
            else:
                self.line.send(await self.outcome(call, tells=told.get("tells", False)))

    async def outcome(self, call: dict[str, object], *, tells: bool) -> dict[str, object]:
        """Make a call; where it `tells`, say the number of each committed event as it comes."""
        message = self.message(call.pop("message")) if "message" in call else None
        try:
            stream = self.workflow.run(
                message, resources={"tools": self}, stream=True, checkpoint_storage=self.store, **call
            )
            async for event in stream:
                if tells and not event.live:
                    self.line.send(event.sequence)
            return facts(await stream.result())
        except RunFailedError as error:
            return {"error": "RunFailedError", "text": str(error), **facts(error.result)}
        except RehydrateError as error:
            return {"error": type(error).__name__, "text": str(error)}

    async def at(self, ctx: WorkflowContext, entry: str) -> None:
        """Note that an executor runs; then do what was told for it. A hold is over when the caller is sent anything."""
        os.write(self.journal, f"{ctx.run_id} {self.name} {entry}\n".encode())
        fate = self.fate
        fate.comes_by(f"at {entry}")
        if entry in fate.forks:
            self.fork(ctx.run_id)
        if entry in fate.holds:
            self.line.send({"holds": entry, "run_id": ctx.run_id})
            if fate.released is None:
                fate.released = asyncio.create_task(asyncio.to_thread(self.line.receive, None))
            await asyncio.shield(fate.released)
        if entry in fate.faults:
            raise FaultError(entry)

    def fork(self, run_id: str) -> None:
        """Make a child in the middle of everything; with all objects of its parent it is a caller of its own.

        It says its id and listens; where it `leaves`, it makes a run of its own, says how that ended, and ends.
        """
        leaves = self.fate.leaves
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        if os.fork():
            return
        self.name += "'s child"
        # Its parent's end is known by the end of the line.
        self.line.end.close()
        self.line = Line(socket.socket(fileno=self.second))
        self.fate = Fate({})
        try:
            if leaves:
                own = {"message": f"child of {run_id}", "run_id": f"child of {run_id}"}
                self.line.send(asyncio.run(self.outcome(own, tells=False)))
            else:
                self.line.send(os.getpid())
                asyncio.run(self.listen())
        finally:
            os._exit(0)

    def wait_for_go(self) -> None:
        """Stand still, with all that runs in this process, until told to go."""
        self.line.send("here")
        os.read(self.go, 1)


def caller(line: Line, told: dict[str, object], *descriptors: int) -> None:
    """Make the calls that are told, over one store object in one event loop; it may be told to be `unsafe` first."""
    if "unsafe" in told:
        UNSAFE[str(told["unsafe"])]()
    asyncio.run(Caller(line, told, *descriptors).listen())


JOBS = {
    "caller": caller,
    "drained": drained.drained,
    "chained": drained.chained,
    "forking": drained.forking,
    "gated": gated,
    "talking": talking,
    "ending": drained.ending,
    "fleet": fleet.fleet,
    "answered_once": walking.answered_once,
    "talked": conversing.talked,
}
