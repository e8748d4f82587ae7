"""What a pass remembers: its calls by their names, what is noted of them, and who waits until that is saved.

The records are the engine's; here is what a running pass has read of them and what it tells. Nothing here is run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import msgspec

from rehydrate.engine.commands import TellPass
from rehydrate.engine.inputs import CallNoted, Input
from rehydrate.engine.passes import has_come_back
from rehydrate.engine.requests import requests_in
from rehydrate.engine.run import Run
from rehydrate.errors import NonDeterminismError
from rehydrate.ids import order_key, slot
from rehydrate.model.passes import CallKind, CallRecord
from rehydrate.model.sealed import Sealed

from .branches import Branch
from .raised_failures import RaisedFailures
from .waiting import Waiting

Tell = Callable[[Input, BaseException | None], None]


def nobody(item: Input, cause: BaseException | None) -> None:
    """Tell nobody."""
    del item, cause


class Call:
    """A call at its place: the branch, its name, and what is remembered of it."""

    __slots__ = ("branch", "name", "record")

    def __init__(self, branch: Branch, name: str, record: CallRecord | None) -> None:
        self.branch = branch
        self.name = name
        self.record = record


class Question:
    """A question that is new: it is asked when the pass waits."""

    __slots__ = ("data", "response_type", "sealed")

    def __init__(self, data: object, sealed: Sealed, response_type: str) -> None:
        self.data = data
        self.sealed = sealed
        self.response_type = response_type


class Memory:
    """The calls of one pass. `fault` ends the pass where the function has changed."""

    def __init__(
        self,
        run: Run,
        place: tuple[str, str, int],
        waiting: Waiting,
        tell: Tell,
        fault: Callable[[BaseException], None],
    ) -> None:
        self._run = run
        self._path, self._body, self._number = place
        self._where = f"{self._path}/{self._body}" if self._path else self._body
        self._waiting = waiting
        self._tell = tell
        self._fault = fault
        self.known: dict[str, CallRecord] = dict(self._remembered())
        #: Calls that are remembered and were not made yet in this run of the function.
        self.left = set(self.known)
        #: Calls whose questions are open.
        self.open = self._open_questions()
        self.questions: dict[str, Question] = {}
        self.failures = RaisedFailures()
        #: Values of the moment that are not saved yet.
        self.unsaved: set[asyncio.Future[None]] = set()
        #: Calls that the function has cancelled, until it is seen to go on.
        self._given_up: dict[str, CallRecord] = {}
        self._saves: dict[str, asyncio.Future[None]] = {}
        self._backs: dict[str, asyncio.Future[None]] = {}

    def _remembered(self) -> Iterator[tuple[str, CallRecord]]:
        run, prefix = self._run, f"{self._number}:"
        for pack in run.table(self._path, "calls").values():
            yield from ((name[len(prefix) :], call) for name, call in pack.calls.items() if name.startswith(prefix))
        for name, call in run.table(self._path, "call").items():
            if name.startswith(prefix):
                yield name[len(prefix) :], call

    def never_called(self) -> NonDeterminismError | None:
        """Return the error of a function that has returned and did not call all that is remembered."""
        if not self.left:
            return None
        first = min(self.left, key=order_key)
        return NonDeterminismError(self._where, first, shown(self.known[first]), "not called any more")

    def _open_questions(self) -> set[str]:
        found = requests_in(self._run, self._path)
        return {record.handler for _, record in found if record.activation == self._number}

    def enter(self, kind: CallKind, name: str, digest: bytes) -> Call | None:
        """Return the call at this place; `None` where the function has changed, which ends the pass."""
        branch = self._waiting.branch(f"{name or kind}-{digest[:4].hex()}")
        at = branch.next_name()
        record = self.known.get(at)
        self.left.discard(at)
        same = record is not None and (record.kind, record.name) == (kind, name)
        # A migration that has changed a type takes digests away.
        if record is not None and not (same and (record.digest == digest or not record.digest)):
            now = "called with other arguments" if same else shown(CallRecord(kind, name, digest))
            self._fault(NonDeterminismError(self._where, at, shown(record), now))
            return None
        self.failures.calls += 1
        self._waiting.moved()
        return Call(branch, at, record)

    def note(self, call: Call, record: CallRecord, *, waits: bool = True) -> asyncio.Future[None] | None:
        """Put a call, or what came back, into the record; return what is done once that is saved."""
        self.note_given_up()
        self.known[call.name] = call.record = record
        item = CallNoted(self._path, self._number, call.name, record, waits)
        saved = asyncio.get_running_loop().create_future() if waits else None
        if saved is not None:
            self._saves[call.name] = saved
        self._tell(item, None)
        return saved

    def ask(self, call: Call, data: object, sealed: Sealed, response_type: str) -> None:
        """Ask something of the outside, once the pass waits."""
        self.questions[call.name] = Question(data, sealed, response_type)

    def start_called(self, call: Call, record: CallRecord, number: int, message: Sealed) -> None:
        """Let a workflow begin that is called."""
        self.note_given_up()
        self.known[call.name] = call.record = record
        item = CallNoted(
            self._path, self._number, call.name, record, waits=False, number=number, message=message
        )  # fmt: skip
        self._tell(item, None)

    def give_up(self, call: Call, record: CallRecord) -> None:
        """Note that the function has cancelled a call that was under way.

        Where it goes on, that is remembered, so that it goes the same way when it runs anew, and nothing is done twice.
        """
        if not self._waiting.closed:
            known = self.known.get(call.name, record)
            self._given_up[call.name] = msgspec.structs.replace(known, due=None, given_up=True)

    def note_given_up(self) -> None:
        """Note what the function has cancelled, as it goes on after that."""
        while self._given_up:
            name, record = self._given_up.popitem()
            self.known[name] = record
            self._tell(CallNoted(self._path, self._number, name, record, waits=False), None)

    def is_lost(self, call: Call, path: str) -> bool:
        """Tell whether a workflow that was called before is not there; one that has come back, unheard yet, is not."""
        if self._run.get(slot(path)[0], "scope", slot(path)[1]) is not None:
            return False
        record = next((record for name, record in self._remembered() if name == call.name), None)
        return record is None or record.value is None

    def let_go(self) -> None:
        """Tell nobody any more, and refer to nobody who could be told."""
        self._tell = nobody
        del self._fault

    def told(self, order: TellPass) -> None:
        """Take in that a call is saved, or that it came back."""
        self.known[order.name] = order.record
        saved = self._saves.pop(order.name, None)
        if saved is not None and not saved.done():
            saved.set_result(None)
        back = self._backs.get(order.name) if has_come_back(order.record) else None
        if back is not None and not back.done():
            back.set_result(None)

    async def come_back(self, call: Call) -> CallRecord:
        """Wait until a called workflow is over."""
        back = self._backs[call.name] = asyncio.get_running_loop().create_future()
        try:
            await self._waiting.wait(back)
        finally:
            self._backs.pop(call.name, None)
        return self.known[call.name]


def shown(record: CallRecord) -> str:
    """Return what a call is, for people."""
    return f"{record.kind} {record.name!r}" if record.name else record.kind
