"""The context of a running pass: what the function calls, carried out by the pass and its calls.

See `FunctionalContext`. State, progress and outputs are those of an invocation's context.
"""

from __future__ import annotations

import hashlib
import random
import uuid
from collections.abc import Awaitable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from rehydrate.errors import EffectError
from rehydrate.graph.step import AnyValue
from rehydrate.graph.sub_workflow import HasDefinition
from rehydrate.model.effects import Again, Effect, SetState
from rehydrate.model.passes import CallRecord, ReadRecord
from rehydrate.model.sealed import Sealed

from .calls import Calls
from .context import InvocationContext
from .invocation import declared_effects

if TYPE_CHECKING:
    from .functional_pass import Pass


class RunningState:
    """See `FunctionalState`."""

    __slots__ = ("_context",)

    def __init__(self, context: RunningContext) -> None:
        self._context = context

    def get(self, key: str, default: object = None, *, start: int | None = None) -> AnyValue:
        """Return a fresh copy of a value, or `default`."""
        self._context.check()
        self._context.note_read(key)
        return self._context.inner.get_state(key, default, start=start)

    def set(self, key: str, value: object) -> None:
        """Replace a value as a whole."""
        self._context.check()
        self._context.inner.set_state(key, value)

    def update(self, key: str, value: object) -> None:
        """Contribute to a value through its reducer."""
        self._context.check()
        self._context.inner.update_state(key, value)

    def delete(self, key: str) -> None:
        """Remove a value."""
        self._context.check()
        self._context.inner.delete_state(key)


class RunningContext:
    """See `FunctionalContext`."""

    def __init__(self, current: Pass) -> None:
        self._pass = current
        around, start = current.around, current.start
        self._recorded = self._reads()
        writes = {**current.writes, **self._recorded}
        declared = declared_effects(current.body.handlers[0], around, start)
        self.inner = InvocationContext(around, start, current.body, declared, writes)
        self.calls = Calls(current)
        #: State keys that were read and are not in the record yet.
        self.keys_read: set[str] = set()

    def _reads(self) -> dict[str, list[AnyValue]]:
        """Return what the pass has read before it waited; it reads the same now."""
        prefix = f"{self._pass.number}:"
        table: Mapping[str, ReadRecord] = self._pass.around.run.table(self._pass.path, "read")
        return {
            name[len(prefix) :]: [SetState(name[len(prefix) :], record.value)]
            for name, record in table.items()
            if name.startswith(prefix)
        }

    def check(self) -> None:
        """Raise where the pass is over, or a step uses the context."""
        self._pass.refuse_if_closed("state")
        self._pass.waiting.check()

    def note_read(self, key: str) -> None:
        """Note that a state key was read: while the pass waits, it is to stay what it was."""
        if key not in self._recorded:
            self.keys_read.add(key)

    @property
    def run_id(self) -> str:
        """The run."""
        return self.inner.run_id

    @property
    def path(self) -> str:
        """The scope."""
        return self.inner.path

    @property
    def version(self) -> int:
        """The version in which the pass began."""
        record = self._pass.record
        return self._pass.around.outlets.graph_at(self.path).version if record is None else record.version

    @property
    def run_args(self) -> AnyValue:
        """The run arguments of the turn in which the pass began."""
        record, codec = self._pass.record, self._pass.around.codec
        if record is None:
            return self.inner.run_args
        return None if record.run_args is None else codec.open(record.run_args)

    @property
    def resources(self) -> Mapping[str, AnyValue]:
        """The live objects of this call."""
        return self.inner.resources

    @property
    def state(self) -> RunningState:
        """State of the scope."""
        return RunningState(self)

    def request_info(self, data: object, *, response_type: object) -> Awaitable[AnyValue]:
        """Ask the outside and wait for the answer."""
        return self.calls.question(data, response_type)

    def sleep(self, seconds: float) -> Awaitable[None]:
        """Wait so long."""
        return self.calls.timer(seconds)

    def gather(self, *awaitables: Awaitable[AnyValue]) -> Awaitable[tuple[AnyValue, ...]]:
        """Run branches side by side."""
        return self.calls.gather(awaitables)

    def call(self, workflow: HasDefinition, message: object) -> Awaitable[AnyValue]:
        """Run another workflow as a scope of its own."""
        return self.calls.workflow(workflow, message)

    async def continue_as_new(self, message: object) -> AnyValue:
        """End here and begin anew."""
        current = self._pass
        if not current.closed:
            sealed = self.calls.sealed(message, "the message to continue with")
            if not current.body.can_take(message):
                problem = f"it does not take a {type(message).__name__}, with which it is to continue"
                raise EffectError(
                    current.where, problem, "Continue with a message of the type that it is annotated with."
                )
            current.finish((*self.inner.effects, Again(sealed)))
        await current.gone()

    def emit(self, data: object) -> None:
        """Stream progress, unless the function only comes by again."""
        current = self._pass
        if current.memory.left and not current.closed:
            return
        self.inner.emit(data)

    def now(self) -> datetime:
        """Return the time of the first time here."""
        current = self._pass
        current.refuse_if_closed("now")
        call = current.memory.enter("value", "now", b"")
        if call is None:
            return datetime.fromtimestamp(current.clock.time(), UTC)  # the pass has failed
        if call.record is None:
            value = datetime.fromtimestamp(current.clock.time(), UTC)
            sealed = current.around.codec.seal(value)
            saved = current.memory.note(call, CallRecord("value", "now", b"", value=sealed))
            if saved is not None:
                current.memory.unsaved.add(saved)
                saved.add_done_callback(current.memory.unsaved.discard)
            return value
        return cast("datetime", current.around.codec.open(cast("Sealed", call.record.value)))

    def random(self) -> random.Random:
        """Return a source of random numbers, seeded by the place."""
        return random.Random(self._hash("random"))  # noqa: S311  (to be repeated, not to be secret)

    def uuid(self) -> uuid.UUID:
        """Return an id made from the place."""
        return uuid.UUID(bytes=self._hash("uuid")[:16], version=4)

    def _hash(self, what: str) -> bytes:
        current = self._pass
        current.refuse_if_closed(what)
        place = current.waiting.branch(what).next_seed()
        return hashlib.sha256(f"{current.seed}\n{what}\n{place}".encode()).digest()

    def ended_with(self, value: object) -> tuple[Effect, ...]:
        """Return the effects of a pass whose function has returned."""
        if value is not None:
            self.inner.yield_output(value)
        return tuple(self.inner.effects)
