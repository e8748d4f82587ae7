"""One invocation: an executor handles one message, and what it did comes back as one value.

User code runs here and in `merging`, nowhere else. Nothing here changes the run.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import cast

from rehydrate.codecs import ValueCodec
from rehydrate.engine.commands import StartInvocation
from rehydrate.engine.inputs import InvocationBroken, InvocationFinished
from rehydrate.engine.run import Run
from rehydrate.errors import EffectError, NoHandlerError, NotStorableError, PredicateError, SaveHookError
from rehydrate.graph.executor import Executor, FunctionExecutor
from rehydrate.graph.handlers import HandlerSpec, ResponseHandlerSpec
from rehydrate.model.effects import ROUTED_EFFECTS, Effect, Output, Send
from rehydrate.model.records import DoneRecord, InstanceRecord
from rehydrate.model.sealed import Listed, Payload, Sealed

from .causes import failure_of, told
from .context import InvocationContext, Surroundings
from .state_view import ChainWrites
from .threads import in_thread


def open_payload(codec: ValueCodec, payload: Payload) -> object:
    """Return a message as a handler gets it: a fresh copy, or a list of them."""
    if isinstance(payload, Listed):
        return [codec.open(item) for item in payload.items]
    return codec.open(payload)


class Invocation:
    """One attempt of one executor at one message."""

    __slots__ = ("_answer", "_message", "_spec", "around", "chain", "context", "executor", "start")

    def __init__(self, around: Surroundings, start: StartInvocation, executor: Executor, chain: ChainWrites) -> None:
        self.around = around
        self.start = start
        self.executor = executor
        self.chain = chain
        self.context: InvocationContext | None = None

    async def run(self) -> tuple[InvocationFinished, PredicateError | None]:
        """Call the handler and return its effects, routed, and the error of a condition that raised.

        Raises what the handler raises.
        """
        delivery = self.start.delivery
        message = open_payload(self.around.codec, self.start.payloads[0])
        if delivery.kind == "answer":
            spec: HandlerSpec | ResponseHandlerSpec = response_handler_named(self.executor, delivery.handler)
            data = open_payload(self.around.codec, self.start.payloads[1])
            arguments: tuple[object, ...] = (data, message)
        else:
            spec = self._handler(message)
            arguments = (message,)
        context = self.context = InvocationContext(
            self.around, self.start, self.executor, declared_effects(spec, self.around, self.start), self.chain
        )
        function = cast("Callable[..., object]", getattr(self.executor, spec.name))
        if spec.takes_context:
            arguments = (*arguments, context)
        try:
            if spec.is_async:
                returned = await cast("Awaitable[object]", function(*arguments))
            else:
                returned = await in_thread(function, *arguments)
            if returned is not None:
                self._take_returned(context, returned)
        finally:
            context.close("had ended")
        instance = None
        if self.executor.has_instance_state:
            instance = await save_instance(self.around.codec, self.executor, self._place())
        path = self.start.path
        if not context.undecided:
            effects = tuple(context.effects)
            return InvocationFinished(path, delivery.executor, delivery.activation, effects, instance), None
        effects, error = _route(self.around, path, delivery.executor, context.effects, context.messages)
        failure = failure_of(error, "routing") if error is not None else None
        return InvocationFinished(path, delivery.executor, delivery.activation, effects, instance, failure), error

    def _place(self) -> str:
        path = self.start.path
        return f"{path}/{self.executor.id}" if path else self.executor.id

    def _handler(self, message: object) -> HandlerSpec:
        spec = self.executor.handler_for(message)
        if spec is None:
            raise NoHandlerError(self._place(), f"a message of type {type(message).__name__}")
        return spec

    def _take_returned(self, context: InvocationContext, returned: object) -> None:
        """What a function executor returns is sent on, or yielded where it has no outgoing edge."""
        if not isinstance(self.executor, FunctionExecutor):
            problem = f"its handler returned a {type(returned).__name__}, but class handlers return nothing"
            raise EffectError(self._place(), problem, "Use ctx.send_message or ctx.yield_output.")
        graph = self.around.outlets.graph_at(self.start.path)
        if self.start.delivery.executor in graph.forwards_messages:
            context.send_message(returned)
        else:
            context.yield_output(returned)


def declared_effects(
    spec: HandlerSpec | ResponseHandlerSpec, around: Surroundings, start: StartInvocation
) -> tuple[tuple[object, ...], tuple[object, ...]]:
    """Return what a handler may send and yield; what a function returns counts for where it goes."""
    returns = spec.returns if isinstance(spec, HandlerSpec) else ()
    if not returns:
        return spec.sends, spec.yields
    graph = around.outlets.graph_at(start.path)
    if start.delivery.executor in graph.forwards_messages:
        return spec.sends + returns, spec.yields
    return spec.sends, spec.yields + returns


def response_handler_named(executor: Executor, name: str) -> ResponseHandlerSpec:
    """Return the response handler that was chosen when the request was made."""
    for spec in executor.response_handlers:
        if spec.name == name:
            return spec
    raise NoHandlerError(executor.id, f"an answer that {name!r} was to take")


def route_again(
    around: Surroundings, path: str, executor_id: str, done: DoneRecord
) -> tuple[tuple[Effect, ...], PredicateError | None]:
    """Decide what was left undecided by a condition that raised."""
    messages = [open_payload(around.codec, e.value) for e in done.effects if isinstance(e, ROUTED_EFFECTS)]
    return _route(around, path, executor_id, list(done.effects), messages)


def _route(
    around: Surroundings, path: str, executor_id: str, effects: list[Effect], messages: list[object]
) -> tuple[tuple[Effect, ...], PredicateError | None]:
    """Decide where messages go; where a condition raises, that one and the rest stay undecided."""
    outlets = around.outlets
    own = outlets.at(outlets.graph_at(path), executor_id)
    rest = iter(messages)
    for index, effect in enumerate(effects):
        if not isinstance(effect, ROUTED_EFFECTS):
            continue
        message = next(rest)
        if effect.routes is not None or isinstance(effect.value, Listed):
            continue
        outlet = own if isinstance(effect, Send) else outlets.beyond(path)
        target = effect.target if isinstance(effect, Send) else None
        try:
            routes = outlet.route(message, effect.value, target) if outlet is not None else ()
        except PredicateError as error:
            return tuple(effects), error
        effects[index] = (
            Send(effect.value, routes, target) if isinstance(effect, Send) else Output(effect.value, routes)
        )
    return tuple(effects), None


async def save_instance(codec: ValueCodec, executor: Executor, where: str) -> Sealed:
    """Call the save hook of an executor that has instance state. Raises `SaveHookError`."""
    try:
        given: object = executor.on_checkpoint_save()
        if inspect.isawaitable(given):
            given = await given
    except Exception as error:  # user code
        raise SaveHookError(where, "on_checkpoint_save", told(error)) from error
    if not isinstance(given, dict) or not all(isinstance(key, str) for key in cast("dict[object, object]", given)):
        raise SaveHookError(
            where, "on_checkpoint_save", f"it returned {type(given).__name__}, not a dict with string keys"
        )
    try:
        return codec.seal(cast("object", given))
    except NotStorableError as error:
        raise SaveHookError(where, "on_checkpoint_save", str(error)) from error


async def make_instance(
    around: Surroundings, run: Run, prototype: Executor, start: StartInvocation, before: Sealed | None
) -> Executor:
    """Return a new instance for a scope, restored from its newest record. Raises `SaveHookError`."""
    instance = prototype.new_instance()
    sealed = before
    if sealed is None:
        record = run.get(start.path, "instance", start.delivery.executor)
        sealed = record.value if isinstance(record, InstanceRecord) else None
    if sealed is None:
        return instance
    where = f"{start.path}/{prototype.id}" if start.path else prototype.id
    try:
        given: object = instance.on_checkpoint_restore(cast("dict[str, object]", around.codec.open(sealed)))
        if inspect.isawaitable(given):
            await given
    except Exception as error:  # user code
        raise SaveHookError(where, "on_checkpoint_restore", told(error)) from error
    return instance


def broken(start: StartInvocation, error: BaseException) -> InvocationBroken:
    """Return what the engine is told of a handler that raised."""
    delivery = start.delivery
    return InvocationBroken(start.path, delivery.executor, delivery.activation, failure_of(error, "handler"))
