"""Open requests as a caller sees them, and answers as a call brings them.

An answer is checked against its request before anything is saved.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

import msgspec

from rehydrate.codecs import MAX_DEPTH, ValueCodec, type_name
from rehydrate.codecs.bounds import is_deep_json
from rehydrate.codecs.marks import marked_as
from rehydrate.codecs.registry import BUILT_IN
from rehydrate.engine import reading
from rehydrate.engine.inputs import Answer
from rehydrate.engine.receipts import receipts
from rehydrate.engine.request_list import find_by_ids
from rehydrate.engine.run import Run, birth_of
from rehydrate.errors import (
    AlreadyAnsweredError,
    AnswerTypeError,
    ForeignRequestError,
    RequestCancelledError,
    UnknownRequestError,
    WrongCallError,
)
from rehydrate.graph.definition import Definition
from rehydrate.graph.executor import Executor
from rehydrate.graph.hints import describe, matches
from rehydrate.ids import outer_id
from rehydrate.model.sealed import Sealed
from rehydrate.ports import CheckpointStorage

from .json_fields import json_shape
from .json_input import from_json
from .json_keys import key_twice
from .json_models import MisfitError


@dataclass(frozen=True)
class RequestAnswer:
    """An answer to one request, made by `request.answer(value)`."""

    request_id: str
    value: object


@dataclass(frozen=True)
class JsonAnswer:
    """An answer as JSON text, for code that knows only the id of a request: read by the type that the request expects.

    The call raises `AnswerTypeError` for one that does not fit, before anything has run.
    """

    json: str | bytes

    def sealed(self) -> Sealed:
        """Return it in bytes by which the same answer again is known, however it is spaced."""
        data = self.json.encode("utf-8", "surrogatepass") if isinstance(self.json, str) else self.json
        with contextlib.suppress(msgspec.MsgspecError, ValueError, RecursionError):  # it is refused where it is read
            if not is_deep_json(data, MAX_DEPTH) and key_twice(data) is None:
                data = msgspec.json.encode(msgspec.json.decode(data), order="sorted")
        return Sealed("JSON", data)


Responses: TypeAlias = Iterable[RequestAnswer] | Mapping[str, object]


@dataclass(frozen=True)
class PendingRequest:
    """A question that the run asks of the outside. `path` is the scope's, `response_type` the expected type.

    Made by `ctx.request_info()`. `intercepted`: an executor of the run was to answer it and has not; the outside
    still can.
    """

    request_id: str
    path: str
    executor_id: str
    data: object
    response_type: object
    intercepted: bool = False

    def answer(self, value: object) -> RequestAnswer:
        """Return the answer to pass as one of `responses`. Raises `AnswerTypeError` for another type."""
        if not fits(value, self.response_type):
            raise AnswerTypeError(self.request_id, describe(self.response_type), type(value).__name__)
        return RequestAnswer(self.request_id, value)

    def parse(self, json: str | bytes) -> RequestAnswer:
        """Return the answer that a JSON text says. Raises `AnswerTypeError` where it does not fit."""
        return self.answer(_read(JsonAnswer(json), self.request_id, self.response_type))

    @property
    def shape(self) -> str:
        """What JSON of an answer looks like, such as `{"id": str, "amount": int}`."""
        return json_shape(self.response_type)


def _read(answer: JsonAnswer, request_id: str, hint: object) -> object:
    try:
        return from_json(answer.json, hint)
    except MisfitError as error:
        given = f"what the JSON says ({error})"
        raise AnswerTypeError(request_id, describe(hint), given, json_shape(hint)) from error


def fits(value: object, hint: object) -> bool:
    """Tell whether an answer has the type its request asks for; a bool is no int."""
    return matches(value, hint, exact=True)


def response_hint(graph: Definition, codec: ValueCodec, opened: reading.OpenedRequest) -> object:
    """Return the type that a request expects, as its executor declares it."""
    here, record = reading.graph_at(graph, opened.path), opened.record
    if here.body is not None:
        return hint_named(here.executors[here.body], codec, record.response_type) or object
    return response_hint_of(here, record.executor, record.handler)


def hint_named(body: Executor, codec: ValueCodec, name: str) -> object | None:
    """Return the type of the answers to a question of a function, by its name: declared, built in, or marked."""
    for hint in body.stored_types:
        if type_name(hint) == name:
            return hint
    found: list[type] = [cls for cls, known in BUILT_IN.items() if known == name]
    if not found and name in codec.registry:
        found = [codec.registry.type_of(name)]
    found = found or marked_as(name)
    return found[0] if len(found) == 1 else None


def response_hint_of(graph: Definition, executor_id: str, handler: str) -> object:
    """Return the type of the answers that a response handler of an executor takes."""
    for spec in graph.executors[executor_id].response_handlers:
        if spec.name == handler:
            return spec.response
    return object


def pending_request(opened: reading.OpenedRequest, graph: Definition, codec: ValueCodec) -> PendingRequest:
    """Return an open request as its caller gets it."""
    record = opened.record
    data, hint = codec.open(record.data), response_hint(graph, codec, opened)
    return PendingRequest(opened.request_id, opened.path, record.executor, data, hint, record.intercepted)


def collect(responses: Responses | None) -> dict[str, object]:
    """Return answers by request id. Raises `WrongCallError` for another form, or where one is answered twice."""
    fix = "Pass a list of request.answer(value), or a mapping of request ids to values."
    if responses is None:
        return {}
    if isinstance(responses, Mapping):
        given = dict(cast("Mapping[object, object]", responses))
        if all(isinstance(key, str) for key in given):
            return cast("dict[str, object]", given)
        raise WrongCallError("responses has a key that is no request id.", fix)
    if isinstance(cast("object", responses), str | bytes) or not isinstance(cast("object", responses), Iterable):
        raise WrongCallError(f"responses is a {type(responses).__name__}.", fix)
    found: dict[str, object] = {}
    for item in responses:
        if not isinstance(cast("object", item), RequestAnswer):
            raise WrongCallError(f"responses holds a {type(item).__name__}.", fix)
        if item.request_id in found:
            raise WrongCallError(f"request {item.request_id!r} is answered twice in one call.", "Answer it once.")
        found[item.request_id] = item.value
    return found


async def check_answers(
    given: Mapping[str, object],
    run: Run,
    run_id: str,
    graph: Definition,
    codec: ValueCodec,
    store: CheckpointStorage | None,
) -> tuple[Answer, ...]:
    """Return the answers by request. Raises an `AnswerError` for the first that cannot be taken; then none is."""
    known = find_by_ids(run, given)
    answers: list[Answer] = []
    for request_id, value in given.items():
        opened = known.get(request_id)
        if opened is None:
            raise await _refusal(request_id, run, run_id, store)
        typed = _checked(value, opened, graph, codec)
        answers.append(Answer(opened.path, opened.name, codec.seal(typed)))
    return tuple(answers)


def check_sealed_answers(
    given: Sequence[tuple[str, Sealed]], run: Run, run_id: str, graph: Definition, codec: ValueCodec
) -> tuple[Answer, ...]:
    """Do the same with answers that were sealed before, in their order."""
    known = find_by_ids(run, [request_id for request_id, _ in given])
    answers: list[Answer] = []
    for request_id, sealed in given:
        opened = known.get(request_id)
        if opened is None:
            raise receipt_error(request_id, run, run_id) or UnknownRequestError(request_id)
        _checked(codec.open(sealed), opened, graph, codec)
        answers.append(Answer(opened.path, opened.name, sealed))
    return tuple(answers)


def _checked(value: object, opened: reading.OpenedRequest, graph: Definition, codec: ValueCodec) -> object:
    """Return an answer as a value of the type that its request expects. Raises `AnswerTypeError`."""
    hint = response_hint(graph, codec, opened)
    if isinstance(value, JsonAnswer):
        value = _read(value, opened.request_id, hint)
    if not fits(value, hint):
        raise AnswerTypeError(opened.request_id, describe(hint), type(value).__name__)
    return value


async def _refusal(
    request_id: str, run: Run, run_id: str, store: CheckpointStorage | None
) -> AlreadyAnsweredError | RequestCancelledError | ForeignRequestError | UnknownRequestError:
    """Return why a request cannot be answered: answered, cancelled, another run's, or unknown."""
    told = receipt_error(request_id, run, run_id)
    if told is not None:
        return told
    row = await store.find_request(request_id) if store is not None else None
    return (
        UnknownRequestError(request_id)
        if row is None or row.run_id == run_id
        else ForeignRequestError(request_id, run_id)
    )


def receipt_error(request_id: str, run: Run, run_id: str) -> AlreadyAnsweredError | RequestCancelledError | None:
    """Return what a run's receipts say of a request."""
    birth = birth_of(run)
    for name, record in receipts(run).items():
        if outer_id(birth, name) != request_id:
            continue
        error = RequestCancelledError if record.state == "cancelled" else AlreadyAnsweredError
        return error(request_id, run_id)
    return None
