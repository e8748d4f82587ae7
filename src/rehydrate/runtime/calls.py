"""The calls of a pass: steps, questions, timers, other workflows, branches.

Each is named when it is called, in the line of the function, and carried out when it is awaited; one that came back
before gives what it gave. What is recorded goes through the pass.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable
from math import isfinite
from typing import TYPE_CHECKING, Final, cast

import msgspec

from rehydrate.codecs import ValueCodec, type_name
from rehydrate.errors import EffectError, MessageTypeError, NotStorableError, StepFailedError
from rehydrate.graph.hints import describe
from rehydrate.graph.policies import LONGEST
from rehydrate.graph.step import AnyStep, AnyValue, Running
from rehydrate.graph.sub_workflow import HasDefinition
from rehydrate.ids import child_path
from rehydrate.model.effects import Failure
from rehydrate.model.passes import CallRecord
from rehydrate.model.sealed import Listed, Sealed

from .requests import hint_named
from .step_run import codec_of, run_step, settle

if TYPE_CHECKING:
    from .functional_pass import Pass
    from .remembering import Call

_DIGEST: Final = 16


class Calls:
    """Makes the calls of one pass."""

    def __init__(self, current: Pass) -> None:
        self._pass = current
        self._codec = current.around.codec

    def call_step(self, step: AnyStep, args: tuple[object, ...], kwargs: dict[str, object]) -> Running[AnyValue]:
        """Name a call of a step, and return what runs it or gives what it gave."""
        current = self._pass
        if current.closed:
            return current.gone()
        codec = codec_of(current, step)
        sealed = _sealed(codec, step.arguments(args, kwargs), f"an argument of step {step.name!r}")
        digest = _digest(sealed)
        call = current.memory.enter("step", step.name, digest)
        if call is None:
            return current.gone()
        record = call.record
        if record is None:
            record = CallRecord("step", step.name, digest)
        elif record.given_up:
            return current.waiting.for_nothing()
        elif record.value is not None:
            return self._given(call, record, codec)
        elif record.failure is not None:
            return self._failed(call, step, record.failure)
        return run_step(current, step, sealed, call, record)

    def question(self, data: object, response_type: object) -> Awaitable[AnyValue]:
        """Name a question, and return what waits for its answer."""
        current = self._pass
        if current.closed:
            return current.gone()
        name = type_name(response_type)
        if hint_named(current.body, self._codec, name) is None:
            fix = f"Declare it: @workflow(types=[{describe(response_type)}])."
            raise EffectError(current.where, f"answers of type {describe(response_type)} are not declared", fix)
        sealed = self.sealed(data, "the data of a request")
        digest = _digest(Sealed(f"{name}\n{sealed.type}", sealed.data))
        call = current.memory.enter("question", sealed.type, digest)
        if call is None:
            return current.gone()
        record = call.record
        if record is not None and record.value is not None:
            return self._given(call, record, self._codec)
        if record is None:
            current.memory.note(call, CallRecord("question", sealed.type, digest), waits=False)
        if call.name not in current.memory.open:
            current.memory.ask(call, data, sealed, name)
        return self._answer(call)

    async def _answer(self, call: Call) -> AnyValue:
        current = self._pass
        try:
            await current.waiting.outside()
        except asyncio.CancelledError:
            if not current.closed:  # the function waits for it no more, so nobody is asked
                current.memory.questions.pop(call.name, None)
            raise

    def timer(self, seconds: float) -> Awaitable[None]:
        """Name a timer, and return what waits until it is up."""
        current = self._pass
        if current.closed:
            return current.gone()
        given = cast("object", seconds)
        if isinstance(given, bool) or not isinstance(given, int | float) or not isfinite(given):
            raise EffectError(current.where, f"it sleeps for {given!r:.100}", "Use a number of seconds.")
        seconds = min(max(0.0, float(given)), LONGEST)
        digest = _digest(self._codec.seal(seconds))
        call = current.memory.enter("timer", "", digest)
        if call is None:
            return current.gone()
        saved = None
        record = call.record
        if record is None:
            record = CallRecord("timer", "", digest, due=current.clock.time() + seconds)
            saved = current.memory.note(call, record)
        if record.given_up:
            return current.waiting.for_nothing()
        return self._time(call, record.due or 0.0, saved)

    async def _time(self, call: Call, due: float, saved: asyncio.Future[None] | None) -> None:
        current = self._pass
        if saved is None and due <= current.clock.time():
            await self._in_order(call, current.memory.known[call.name])
            return
        current.timers[call.name] = due
        try:
            if saved is not None:
                await current.waiting.wait(saved)
            while (left := due - current.clock.time()) > 0:
                up: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                timer = asyncio.get_running_loop().call_later(left, settle, up)
                try:
                    await current.waiting.wait(up)
                finally:
                    timer.cancel()
        except asyncio.CancelledError:
            current.memory.give_up(call, current.memory.known[call.name])
            raise
        finally:
            del current.timers[call.name]
        await self._in_order(call, current.memory.known[call.name])

    def workflow(self, workflow: HasDefinition, message: object) -> Awaitable[AnyValue]:
        """Name a call of another workflow, and return what waits for its outputs."""
        current = self._pass
        if current.closed:
            return current.gone()
        graph = current.around.outlets.graph_at(current.path)
        definition = cast("object", getattr(workflow, "definition", None))
        callee = next((name for name, child in graph.children.items() if child is definition), None)
        if callee is None:
            shown = getattr(definition, "name", type(workflow).__name__)
            raise EffectError(
                current.where, f"it calls {shown!r}, which it does not name", "Name it: @workflow(calls=[...])."
            )
        child = graph.children[callee]
        if not child.executors[child.start].can_take(message):
            taken = tuple(describe(spec.message) for spec in child.executors[child.start].handlers)
            raise MessageTypeError(child.name, child.start, type(message).__name__, taken)
        sealed = self.sealed(message, "a message")
        digest = _digest(sealed)
        call = current.memory.enter("workflow", callee, digest)
        if call is None:
            return current.gone()
        alone = child.body is not None
        record = call.record
        number = call.branch.next_called(current.number, callee)
        if record is not None and record.given_up:
            return current.waiting.for_nothing()
        path = child_path(current.path, callee, number)
        if record is None or (record.value is None and current.memory.is_lost(call, path)):
            current.memory.start_called(call, CallRecord("workflow", callee, digest), number, sealed)
        return self._called(call, path, alone=alone)

    async def _called(self, call: Call, path: str, *, alone: bool) -> AnyValue:
        current = self._pass
        record = current.memory.known[call.name]
        if record.value is None:
            current.waiting.called[call.name] = path
            try:
                record = await current.memory.come_back(call)
            except asyncio.CancelledError:
                current.memory.give_up(call, record)
                raise
            finally:
                current.waiting.called.pop(call.name, None)
        await self._in_order(call, record)
        items = [self._codec.open(item) for item in cast("Listed", record.value).items]
        if not alone:
            return items
        return items[0] if items else None

    def gather(self, awaitables: tuple[Awaitable[AnyValue], ...]) -> Awaitable[tuple[AnyValue, ...]]:
        """Number branches, and return what runs them side by side."""
        current = self._pass
        if current.closed:
            for awaitable in awaitables:
                if asyncio.iscoroutine(awaitable):
                    awaitable.close()
            return current.gone()
        branch = current.waiting.branch(f"gather-{len(awaitables)}")
        return self._side_by_side(branch.next_gather(), awaitables)

    async def _side_by_side(self, name: str, awaitables: tuple[Awaitable[AnyValue], ...]) -> tuple[AnyValue, ...]:
        current = self._pass
        branch = current.waiting.branch("gather")
        tasks = [current.waiting.add_branch(f"{name}.{i}", branch, item) for i, item in enumerate(awaitables)]
        try:
            return tuple(await current.waiting.wait(asyncio.gather(*tasks)))
        except BaseException:
            for task in tasks:
                if not task.cancelling():  # else it was cancelled with this one, and may clean up after that
                    task.cancel()
            raise

    async def _given(self, call: Call, record: CallRecord, codec: ValueCodec) -> AnyValue:
        await self._in_order(call, record)
        return codec.open(cast("Sealed", record.value))

    async def _in_order(self, call: Call, record: CallRecord) -> None:
        """Let what came back before be given first; what came back while nobody ran comes after that, and is noted."""
        current = self._pass
        await current.order.turn(record.order)
        if not record.order and not current.closed:
            current.memory.note(call, msgspec.structs.replace(record, order=current.order.next_number()), waits=False)

    async def _failed(self, call: Call, step: AnyStep, failure: Failure) -> AnyValue:
        await self._in_order(call, cast("CallRecord", call.record))
        error = StepFailedError(self._pass.where, step.name, failure.type, failure.text)
        self._pass.memory.failures.add(error, call.name)
        raise error

    def sealed(self, value: object, what: str) -> Sealed:
        """Seal a value here and now. Raises `NotStorableError` that names what was to be stored."""
        return _sealed(self._codec, value, what)


def _sealed(codec: ValueCodec, value: object, what: str) -> Sealed:
    try:
        return codec.seal(value)
    except NotStorableError as error:
        raise NotStorableError(error.type, f"{what}: {error.where}".removesuffix(": "), error.why) from None


def _digest(sealed: Sealed) -> bytes:
    return hashlib.sha256(sealed.type.encode() + b"\0" + sealed.data).digest()[:_DIGEST]
