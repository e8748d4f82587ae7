"""The context of one invocation: records what its handler does, and shows it its run.

Effects are sealed and checked at the handler's line and given back as one value when it ends; after that every call
raises. It must not touch anything that is shared.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, cast

from rehydrate.codecs import ValueCodec, type_name
from rehydrate.engine import reading
from rehydrate.engine.commands import StartInvocation
from rehydrate.engine.plan import invocation_name
from rehydrate.engine.run import Run, known_name
from rehydrate.errors import ClosedContextError, EffectError, NotStorableError, SendTypeError
from rehydrate.graph.context import DONE, WorkflowContext
from rehydrate.graph.definition import LIST_REDUCERS, Definition
from rehydrate.graph.executor import Executor
from rehydrate.graph.hints import describe, matches
from rehydrate.graph.sub_requests import SubWorkflowResponseMessage
from rehydrate.ids import check_key, outer_id, request_name
from rehydrate.model.effects import Ask, Effect, Output, Route, Routes, Send, SetState, UpdateState
from rehydrate.model.events import Emitted, Event
from rehydrate.model.records import TurnRecord
from rehydrate.model.sealed import Items, Listed, Sealed

from .events import Channel
from .outlets import Outlet, Outlets
from .resources import Resources
from .state_view import MISSING, ChainWrites, read_state
from .sub_requests import interceptor, request_message, response


class Surroundings:
    """What all invocations of one turn share; nothing of it is changed by them."""

    __slots__ = ("birth", "channel", "codec", "outlets", "resources", "run", "run_id")

    def __init__(
        self,
        run: Run,
        run_id: str,
        birth: str,
        codec: ValueCodec,
        outlets: Outlets,
        resources: Resources,
        channel: Channel,
    ) -> None:
        self.run = run
        self.run_id = run_id
        self.birth = birth
        self.codec = codec
        self.outlets = outlets
        self.resources = resources
        self.channel = channel

    @property
    def streaming(self) -> bool:
        """Whether live events have a reader: the call is streamed, or somebody follows the run."""
        return self.channel.heard

    def emit(self, event: Event) -> None:
        """Tell a live event to whoever listens."""
        self.channel.live(event)

    @property
    def run_args(self) -> Sealed | None:
        """The run arguments of the newest turn."""
        turn = self.run.get("", "turn", "")
        return turn.run_args if isinstance(turn, TurnRecord) else None


class InvocationContext(WorkflowContext[Any, Any]):
    """See `WorkflowContext`; `sends` and `yields` are what the handler declared."""

    __slots__ = (
        "_around", "_asked", "_attempt", "_chain", "_closed", "_graph", "_outlet", "_own", "_start", "_where",
        "effects", "executor", "messages", "sends", "undecided", "yields",
    )  # fmt: skip

    def __init__(
        self,
        around: Surroundings,
        start: StartInvocation,
        executor: Executor,
        declared: tuple[tuple[object, ...], tuple[object, ...]],
        chain: ChainWrites,
    ) -> None:
        self._around = around
        self._start = start
        self._where = f"{start.path}/{executor.id}" if start.path else executor.id
        self._graph: Definition = around.outlets.graph_at(start.path)
        self._outlet: Outlet = around.outlets.at(self._graph, start.delivery.executor)
        self._chain = chain
        self._own: ChainWrites | None = None
        self._asked = 0
        #: Known once the handler was left.
        self._attempt = 0
        self._closed = ""
        self.executor = executor
        self.sends, self.yields = declared
        self.effects: list[Effect] = []
        #: True once a condition has to be asked where something goes.
        self.undecided = False
        #: What was sent, beside its effect, so that routing needs no second copy.
        self.messages: list[object] = []

    def close(self, why: str) -> None:
        """End the invocation: every call from now on raises and nothing more is recorded."""
        self._closed = why

    def leave(self, why: str) -> None:
        """End an invocation whose handler may go on, unseen: to it, this stays the attempt that it was."""
        self._attempt = self.attempt
        self._closed = why

    @property
    def run_id(self) -> str:
        """The run."""
        return self._around.run_id

    @property
    def path(self) -> str:
        """The scope."""
        return self._start.path

    @property
    def executor_id(self) -> str:
        """The executor."""
        return self._start.delivery.executor

    @property
    def superstep(self) -> int:
        """The superstep."""
        return self._start.superstep

    @property
    def activation(self) -> int:
        """The number of this invocation for its executor in its scope, from 1."""
        return self._start.delivery.activation

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1."""
        if self._attempt:
            return self._attempt
        delivery = self._start.delivery
        return 1 + reading.attempts(self._around.run, self.path, delivery.executor, delivery.activation).started

    @property
    def effect_key(self) -> str:
        """A key for outside systems, the same for every attempt."""
        delivery = self._start.delivery
        name = invocation_name(delivery.executor, delivery.activation)
        return outer_id(self._around.birth, f"effect {known_name(self._around.run, self.path, name)}")

    @property
    def run_args(self) -> Any:
        """The run arguments of the turn, as a fresh copy."""
        sealed = self._around.run_args
        return None if sealed is None else self._around.codec.open(sealed)

    @property
    def resources(self) -> Mapping[str, Any]:
        """The live objects of this call."""
        return self._around.resources

    def send_message(self, message: object, target_id: str | None = None) -> Awaitable[None]:
        """Send along the edges."""
        if self._closed:
            raise self._closed_error("send_message")
        if type(message) not in self.sends:
            self._check_declared(message, self.sends, "send", "sends")
        if isinstance(message, SubWorkflowResponseMessage):
            self.effects.append(response(self._around, self.path, self._where, message))
            return DONE
        whole, apart = self._outlet.check_send(message, target_id, self._where)
        if whole != ():
            self.undecided = self.undecided or whole is None
            self.effects.append(Send(self._seal(message, "a message"), whole, target_id))
            self.messages.append(message)
        if apart:
            self.effects.append(Send(self._seal_apart(message), apart, target_id))
            self.messages.append(message)
        return DONE

    def yield_output(self, value: object) -> Awaitable[None]:
        """Give a value out of the workflow."""
        if self._closed:
            raise self._closed_error("yield_output")
        if type(value) not in self.yields:
            self._check_declared(value, self.yields, "yield", "yields")
        beyond = self._around.outlets.beyond(self.path)
        whole: Routes = ()
        apart: tuple[Route, ...] = ()
        if beyond is not None:
            whole, apart = beyond.check_send(value, None, self._where, f" (forwarded by {beyond.executor_id!r})")
        if whole != () or not apart:
            self.undecided = self.undecided or whole is None
            self.effects.append(Output(self._seal(value, "an output"), whole))
            self.messages.append(value)
        if apart:
            self.effects.append(Output(self._seal_apart(value), apart))
            self.messages.append(value)
        return DONE

    def request_info(self, data: object, *, response_type: object) -> Awaitable[None]:
        """Ask the outside."""
        if self._closed:
            raise self._closed_error("request_info")
        spec = self.executor.response_handler_for(data, response_type)
        sealed = self._seal(data, "the data of a request")
        message, routes = self._asked_of_parent(data, spec.name) if self.path else (data, ())
        self.effects.append(Ask(self._asked, sealed, type_name(response_type), spec.name, routes))
        self.messages.append(message)
        self._asked += 1
        return DONE

    def _asked_of_parent(self, data: object, handler: str) -> tuple[object, Routes]:
        """Return a request as the level that intercepts it sees it, and where it goes there."""
        level = interceptor(self._around.outlets, self.path)
        if level is None:
            return data, ()
        name = request_name(self.path, self.executor_id, self._start.delivery.activation, self._asked)
        message = request_message(self._around, name, handler, data)
        routes, _ = level[1].check_send(message, None, self._where, " (a request to its parent)")
        if routes is None:
            self.undecided = True
        return message, routes

    def emit(self, data: object) -> Awaitable[None]:
        """Stream progress; it is not kept."""
        if self._closed:
            raise self._closed_error("emit")
        # Sealed whether anybody reads or not: what a handler may emit must not depend on that.
        sealed = self._seal(data, "what is emitted", self._around.codec.copies)
        if not self._around.channel.heard:
            return DONE
        delivery = self._start.delivery
        self._around.emit(
            Emitted(
                run_id=self.run_id,
                path=self.path,
                executor_id=delivery.executor,
                superstep=self.superstep,
                activation=delivery.activation,
                live=True,
                data=sealed,
            )
        )
        return DONE

    def get_state(self, key: str, default: object = None, *, start: int | None = None) -> Any:
        """Return a fresh copy of a state value, or `default`."""
        if self._closed:
            raise self._closed_error("get_state")
        around, reducer = self._around, self._graph.reducers.get(key)
        before = self._chain.get(key, [])
        if reducer is not None and reducer.function is not None and len(before) > 1:
            # Put together once, so that a long chain of contributions is not merged again by every read.
            folded = read_state(around.codec, around.run, self.path, key, before, reducer, None)
            before = self._chain[key] = [SetState(key, around.codec.seal(folded))]
        writes = [*before, *self._own.get(key, ())] if self._own else before
        value = read_state(around.codec, around.run, self.path, key, writes, reducer, start)
        return default if value is MISSING else value

    def set_state(self, key: str, value: object) -> Awaitable[None]:
        """Replace a state value as a whole."""
        if self._closed:
            raise self._closed_error("set_state")
        check_key(key, "state key")
        reducer = self._graph.reducers.get(key)
        if reducer is None or reducer.name not in LIST_REDUCERS:
            self._write(SetState(key, self._seal(value, f"state key {key!r}")))
            return DONE
        if not isinstance(value, list):
            problem = f"state key {key!r} grows by {reducer.name!r} and cannot be a {type(value).__name__}"
            raise EffectError(self._where, problem, "Set it to a list.")
        self._write(SetState(key, self._seal_items(key, cast("list[object]", value))))
        return DONE

    def update_state(self, key: str, value: object) -> Awaitable[None]:
        """Contribute through the key's reducer."""
        if self._closed:
            raise self._closed_error("update_state")
        reducer = self._graph.reducers.get(key)
        if reducer is None:
            problem = f"state key {key!r} has no reducer"
            raise EffectError(self._where, problem, f"Declare one: WorkflowBuilder(reducers={{{key!r}: append}}).")
        if reducer.name == "append":
            self._write(UpdateState(key, self._seal_items(key, [value])))
        elif reducer.name == "extend":
            if not isinstance(value, list | tuple):
                problem = f"state key {key!r} is extended by a {type(value).__name__}"
                raise EffectError(self._where, problem, "Pass a list.")
            self._write(UpdateState(key, self._seal_items(key, list(cast("list[object]", value)))))
        else:
            self._write(UpdateState(key, self._seal(value, f"state key {key!r}")))
        return DONE

    def delete_state(self, key: str) -> Awaitable[None]:
        """Remove a state value."""
        if self._closed:
            raise self._closed_error("delete_state")
        self._write(SetState(key, None))
        return DONE

    def _seal(self, value: object, what: str, codec: ValueCodec | None = None) -> Sealed:
        """Seal a value here and now. Raises `NotStorableError` that names what was to be stored."""
        try:
            return (codec or self._around.codec).seal(value)
        except NotStorableError as error:
            raise NotStorableError(error.type, f"{what}: {error.where}".removesuffix(": "), error.why) from None

    def _seal_apart(self, message: object) -> Listed:
        """Seal each item of a list that map edges take apart."""
        items = cast("list[object]", message)
        return Listed(tuple(self._seal(item, f"item {i} of a list") for i, item in enumerate(items)))

    def _seal_items(self, key: str, elements: list[object]) -> Items:
        try:
            return Items(*self._around.codec.seal_items(elements))
        except NotStorableError as error:
            where = f"state key {key!r}: {error.where}".removesuffix(": ")
            raise NotStorableError(error.type, where, error.why) from None

    def _write(self, effect: SetState | UpdateState) -> None:
        if self._own is None:
            self._own = {}
        self._own.setdefault(effect.key, []).append(effect)
        self.effects.append(effect)

    def _closed_error(self, call: str) -> ClosedContextError:
        problem = f"{call} was called after the invocation {self._closed}"
        return ClosedContextError(
            self._where, problem, "Await everything that uses the context before the handler returns."
        )

    def _check_declared(self, value: object, hints: tuple[object, ...], verb: str, argument: str) -> None:
        if any(matches(value, hint) for hint in hints):
            return
        declared = " or ".join(describe(hint) for hint in hints) or "nothing"
        raise SendTypeError(
            self._where,
            f"its handler may {verb} {declared}, not {type(value).__name__}",
            f"Name the type in WorkflowContext[...] or in @handler({argument}=...).",
        )
