"""A call: the arguments of `run`, taken apart by the resume table, before anything is loaded.

Which arguments go together is data here; what each row then does is in `opening`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeAlias, cast
from weakref import WeakSet

from rehydrate.codecs import ValueCodec
from rehydrate.engine.inputs import OnPending, OnUnfinished
from rehydrate.errors import IdError, NoStoreError, NotStorableError, WrongCallError
from rehydrate.graph.definition import Definition
from rehydrate.ids import check_id
from rehydrate.model.sealed import Sealed
from rehydrate.ports import CheckpointStorage

from .actor import Durability
from .checkpoint import WorkflowCheckpoint
from .requests import JsonAnswer
from .result import WorkflowRunResult

LATEST = "latest"
#: An id, a checkpoint, a result (which stands for its checkpoint), or `"latest"`.
CheckpointArgument: TypeAlias = str | WorkflowCheckpoint | WorkflowRunResult | None


class Row(Enum):
    """The rows of the resume table that can be carried out."""

    NEW_RUN = "message"
    CONTINUE = "checkpoint"
    ANSWER = "checkpoint and answers"
    NEW_TURN = "message and checkpoint"
    ANSWER_AND_NEW_TURN = "message, checkpoint and answers"
    FIND_AND_ANSWER = "answers"


#: (message, checkpoint, answers) -> row; the two that are missing are wrong calls.
ROWS: dict[tuple[bool, bool, bool], Row] = {
    (True, False, False): Row.NEW_RUN,
    (False, True, False): Row.CONTINUE,
    (False, True, True): Row.ANSWER,
    (True, True, False): Row.NEW_TURN,
    (True, True, True): Row.ANSWER_AND_NEW_TURN,
    (False, False, True): Row.FIND_AND_ANSWER,
}
#: Rows that take `on_pending` and `on_unfinished`.
POLICY_ROWS = frozenset({Row.ANSWER, Row.NEW_TURN, Row.ANSWER_AND_NEW_TURN, Row.FIND_AND_ANSWER})


@dataclass(frozen=True, kw_only=True)
class Call:
    """The arguments of one call, as they were given."""

    message: object = None
    run_id: str | None = None
    checkpoint: CheckpointArgument = None
    responses: Mapping[str, object] = field(default_factory=dict[str, object])
    run_args: object = None
    resources: Mapping[str, object] = field(default_factory=dict[str, object])
    idempotency_key: str | None = None
    on_pending: OnPending | None = None
    on_unfinished: OnUnfinished = "finish"
    durability: Durability = "superstep"
    fork: bool = False
    takeover: bool = False
    store: CheckpointStorage | None = None
    #: Names of arguments that a conversation filled in; they are no part of the caller's request.
    supplied: frozenset[str] = frozenset()

    @property
    def row(self) -> Row:
        """The row of the table. Raises `WrongCallError` for a combination that has none."""
        given = (self.message is not None, self.checkpoint is not None, bool(self.responses))
        row = ROWS.get(given)
        if row is not None:
            return row
        if given[0]:
            raise WrongCallError(
                "a message and answers were given without the checkpoint they belong to.",
                'Name the checkpoint, or pass checkpoint="latest" with its run_id.',
            )
        raise WrongCallError(
            "neither a message, nor a checkpoint, nor answers were given.",
            "Pass a message (a new run), checkpoint= (continue), checkpoint= and responses= (answer), or a message and"
            " checkpoint= (a new turn), with or without responses=.",
        )

    @property
    def is_latest(self) -> bool:
        """True for `checkpoint="latest"`."""
        return isinstance(self.checkpoint, str) and self.checkpoint == LATEST

    def check(self) -> Row:
        """Return the row, after everything that can be checked without loading. Raises `CallError`s."""
        self._check_kinds()
        self._check_flags()
        row = self.row
        _check_id(self.run_id, "run_id")
        _check_id(self.idempotency_key, "idempotency_key")
        self._check_choices()
        self._check_store(row)
        if row is Row.CONTINUE and self.idempotency_key is not None and not self.fork:
            raise WrongCallError(
                "idempotency_key was given for a continuation, which brings no input.",
                "Leave it out: a continuation may be repeated as it is.",
            )
        if row not in POLICY_ROWS and (self.on_pending not in (None, "keep") or self.on_unfinished != "finish"):
            raise WrongCallError(
                f"on_pending and on_unfinished mean nothing for a call with {row.value} only.",
                "Leave them out, or bring a message or answers with the checkpoint.",
            )
        if self.is_latest and self.run_id is None and not self.fork:
            raise WrongCallError('checkpoint="latest" was given without run_id.', "Pass run_id= of the run.")
        if self.fork and self.checkpoint is None:
            raise WrongCallError("fork=True was given without a checkpoint.", "Name the checkpoint to copy.")
        if self.fork and self.is_latest and self.run_id is None:
            raise WrongCallError('fork=True with "latest" needs the source\'s run_id.', "Pass run_id= of the source.")
        return row

    def _check_kinds(self) -> None:
        given = cast("object", self.checkpoint)
        if not isinstance(given, str | WorkflowCheckpoint | WorkflowRunResult | None):
            raise WrongCallError(
                f"checkpoint is {with_article(given)}.", 'Pass an id, a checkpoint, a result, or "latest".'
            )
        if not isinstance(cast("object", self.resources), Mapping):
            raise WrongCallError("resources is no mapping.", 'Pass resources={"name": object}.')

    def _check_flags(self) -> None:
        for name, value in (("fork", self.fork), ("takeover", self.takeover)):
            if not isinstance(cast("object", value), bool):
                raise WrongCallError(f"{name} is {with_article(value)}.", "Pass True or False.")

    def _check_choices(self) -> None:
        for name, value, choices in (
            ("on_pending", self.on_pending, (None, "keep", "cancel", "reject")),
            ("on_unfinished", self.on_unfinished, ("finish", "discard", "reject")),
            ("durability", self.durability, ("superstep", "turn", "off")),
        ):
            if value not in choices:
                allowed = ", ".join(repr(choice) for choice in choices if choice)
                raise WrongCallError(f"{name}={value!r} is not known.", f"Use one of {allowed}.")

    def _check_store(self, row: Row) -> None:
        if self.idempotency_key is not None:
            if self.store is None:
                raise NoStoreError("idempotency_key")
            if self.durability == "off":
                raise WrongCallError(
                    'durability="off" saves nothing, so idempotency_key cannot be kept.', "Leave one of them out."
                )
        if self.store is not None:
            return
        if isinstance(self.checkpoint, str):
            raise NoStoreError(f"checkpoint={self.checkpoint!r:.60}")
        if row is Row.FIND_AND_ANSWER:
            raise NoStoreError("finding the run of answers")

    @property
    def checkpoint_object(self) -> WorkflowCheckpoint | None:
        """The checkpoint, where an object was given."""
        if isinstance(self.checkpoint, WorkflowRunResult):
            return self.checkpoint.checkpoint
        return self.checkpoint if isinstance(self.checkpoint, WorkflowCheckpoint) else None

    @property
    def base(self) -> str | None:
        """The checkpoint id that the call names; `None` for `"latest"` and none."""
        found = self.checkpoint_object
        if found is not None:
            return found.checkpoint_id
        return None if self.is_latest or self.checkpoint is None else str(self.checkpoint)


#: Classes whose objects were seen to be stores.
_STORES: WeakSet[type] = WeakSet()
#: What a store has.
_CALLS: Final = [name for name in vars(CheckpointStorage) if not name.startswith("_")]


def with_article(value: object) -> str:
    """Return a value's class with its article."""
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def check_storage(storage: object) -> None:
    """Refuse what is no store: a path, a store's class instead of an object of it, or one that lacks calls."""
    if storage is None or type(storage) in _STORES:
        return
    if isinstance(storage, type):
        raise WrongCallError(f"checkpoint_storage is the class {storage.__name__}.", "Pass an object of it.")
    # Not by isinstance: from Python 3.12 on that sees no call which a store hands on with `__getattr__`.
    lacking = [name for name in _CALLS if getattr(storage, name, None) is None]
    if not lacking:
        _STORES.add(type(storage))  # looking at all names takes long, and each call asks
        return
    if "commit" not in lacking:
        fix = "Add what is missing; rehydrate.CheckpointStorage says what each does."
        named = f"{with_article(storage)}, which lacks {', '.join(lacking)}"
        raise WrongCallError(f"checkpoint_storage is {named}.", fix)
    example = f"SqliteCheckpointStorage({storage!r:.80})" if isinstance(storage, str) else "a store"
    raise WrongCallError(f"checkpoint_storage is {with_article(storage)}.", f"Pass {example}.")


def _check_id(value: object, argument: str) -> None:
    """Refuse an id that has come from outside in a form that is not allowed."""
    if value is None:
        return
    if not isinstance(value, str):
        raise WrongCallError(f"{argument} is {with_article(value)}.", "Pass a text.")
    try:
        check_id(value, argument)
    except IdError as error:
        raise WrongCallError(error.text(), error.action()) from None


def check_given(checkpoint: CheckpointArgument, verb: str = "resume") -> None:
    """Refuse to resume nothing, which would start a new run, and to edit nothing."""
    if checkpoint is None:
        raise WrongCallError(f"{verb} was given no checkpoint.", 'Pass an id, a checkpoint, a result, or "latest".')


@dataclass(frozen=True)
class SealedCall:
    """A call's input in bytes, and the digest by which the same call again is known. The message is not yet checked."""

    message: Sealed | None
    run_args: Sealed | None
    digest: str


def seal_call(call: Call, codec: ValueCodec, graph: Definition) -> SealedCall:
    """Seal what a call brings. Raises `NotStorableError`."""
    message = None if call.message is None else _seal_input(codec, call.message)
    run_args = None if call.run_args is None else seal_named(codec, call.run_args, "run_args")
    answers = [(request_id, _seal_input(codec, call.responses[request_id])) for request_id in sorted(call.responses)]
    digest = hashlib.sha256()
    facts: list[tuple[str, bytes]] = [("workflow", graph.name.encode())]
    if message is not None:
        facts.append((f"message {message.type}", message.data))
    if run_args is not None:
        facts.append((f"run_args {run_args.type}", run_args.data))
    facts += [(f"answer {request_id} {value.type}", value.data) for request_id, value in answers]
    facts += [
        ("run_id", b"" if "run_id" in call.supplied else (call.run_id or "").encode()),
        ("on_pending", (call.on_pending or "").encode()),
        ("on_unfinished", call.on_unfinished.encode()),
        ("fork", b"1" if call.fork else b""),
    ]
    for name, data in facts:
        label = name.encode()
        digest.update(len(label).to_bytes(4, "big") + label + len(data).to_bytes(8, "big") + data)
    return SealedCall(message, run_args, digest.hexdigest())


def seal_named(codec: ValueCodec, value: object, argument: str) -> Sealed:
    """Seal a value; the error for one that cannot be stored names the argument."""
    try:
        return codec.seal(value)
    except NotStorableError as error:
        raise NotStorableError(error.type, f"{argument}: {error.where}".removesuffix(": "), error.why) from None


def _seal_input(codec: ValueCodec, value: object) -> Sealed:
    """Seal a message or an answer for the digest; one that cannot be stored is refused at its own step, later."""
    if isinstance(value, JsonAnswer):
        return value.sealed()
    try:
        return codec.seal(value)
    except NotStorableError:
        return Sealed("", b"")
