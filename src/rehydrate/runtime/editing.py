"""Editing: a new checkpoint of a run with other values in the state of one scope, made from outside of a turn.

It finds, checks and commits as a call does, claims and releases in one commit, and starts nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn, TypedDict, cast

from rehydrate.engine import reading
from rehydrate.engine.editing import edited
from rehydrate.engine.run import Delta, Run, birth_of
from rehydrate.errors import CommitConflictError, IdError, NotStorableError, RunExistsError, WrongCallError
from rehydrate.graph.definition import LIST_REDUCERS, Reducer
from rehydrate.ids import check_key, slot
from rehydrate.model.checkpoint import Cause, Status
from rehydrate.model.effects import SetState
from rehydrate.model.sealed import Items, Sealed

from .call import Call, SealedCall, seal_named, with_article
from .checkpoint import WorkflowCheckpoint
from .finding import Finder, Found, check_owner
from .migrating import fitting
from .opening import Opened, copied
from .program import Program
from .state_view import committed_parts
from .turn import CLAIM_TRIES, ledger_and_saver

#: Characters of a reason; it stands in the checkpoint's header, which lists of checkpoints read.
REASON_LENGTH: Final = 1000
#: The lease that an edit leaves of a run whose process was lost: over at once, so that the loss is still to be seen.
_LAPSED: Final = 5e-324
#: So many names are listed in an error.
_LISTED: Final = 10


class EditOptions(TypedDict, total=False):
    """The keyword arguments of every way to edit a run, but for the reason."""

    run_id: str | None
    path: str
    delete: Sequence[str]
    fork: bool
    takeover: bool


@dataclass(frozen=True)
class Edit:
    """What is to change, as it was given: values by key of the scope at `path`, keys to delete, and why."""

    state: Mapping[str, object]
    delete: tuple[str, ...]
    path: str
    reason: str

    @classmethod
    def of(cls, state: object, reason: object, options: EditOptions) -> Edit:
        """Return the edit. Raises `WrongCallError` for what can be none."""
        unknown = sorted(options.keys() - EditOptions.__annotations__.keys())
        if unknown:
            raise TypeError(f"edit() got an unexpected keyword argument {unknown[0]!r}")
        path, delete = cast("tuple[object, object]", (options.get("path", ""), options.get("delete", ())))
        state = {} if state is None else state
        if not isinstance(state, Mapping):
            raise WrongCallError(f"state is {with_article(state)}.", 'Pass {"key": value}, or {} with delete=.')
        if isinstance(delete, str) or not isinstance(delete, Iterable):
            raise WrongCallError(f"delete is {with_article(delete)}.", 'Pass a list of keys, such as delete=["key"].')
        if not isinstance(path, str):
            raise WrongCallError(f"path is {with_article(path)}.", 'Pass a scope\'s path; "" is the root.')
        given = cast("Mapping[str, object]", state)
        keys = tuple(cast("Iterable[str]", delete))
        for key in (*given, *keys):
            _check_key(key)
        both = sorted(given.keys() & set(keys))
        if both:
            raise WrongCallError(f"state key {both[0]!r} is to be set and deleted.", "Do one of both.")
        if not given and not keys:
            raise WrongCallError("nothing is to be changed.", 'Pass {"key": value}, or delete=["key"].')
        return cls(dict(given), tuple(dict.fromkeys(keys)), path, _checked_reason(reason))


def _check_key(key: object) -> None:
    try:
        check_key(key, "state key")
    except IdError as error:
        raise WrongCallError(error.text(), error.action()) from None


def _checked_reason(reason: object) -> str:
    fix = "Say why in a sentence; it is kept in the checkpoint's header."
    if not isinstance(reason, str) or not reason.strip():
        raise WrongCallError("no reason was given for the edit.", fix)
    if len(reason) > REASON_LENGTH:
        raise WrongCallError(f"the reason has {len(reason)} characters, and {REASON_LENGTH} are kept.", fix)
    if any("\ud800" <= char <= "\udfff" for char in reason):
        raise WrongCallError("the reason holds half of a surrogate pair, which no encoding stores.", fix)
    return reason


async def edit(program: Program, call: Call, change: Edit) -> WorkflowCheckpoint:
    """Commit an edit and return its checkpoint. Raises what a call raises before its claim; then nothing has
    changed."""
    row = call.check()
    # Like no turn's: an edit is never the same call as one.
    digest = hashlib.sha256(f"edit\n{change.path}\n{change.reason}".encode()).hexdigest()
    finder = Finder(call, row, SealedCall(None, None, digest), program)
    for _ in range(CLAIM_TRIES - 1):
        try:
            return await _try(finder, change)
        except CommitConflictError:  # another call came in between: the head is looked at again
            continue
    return await _try(finder, change)


async def _try(finder: Finder, change: Edit) -> WorkflowCheckpoint:
    found = await finder.find()
    assert found is not None  # noqa: S101  (it names a checkpoint)
    call, program = finder.call, finder.program
    if not call.fork:
        check_owner(call, found, same=False)
    checkpoint = fitting(program, found.checkpoint)
    if checkpoint.migrated is not None:
        raise WrongCallError(
            f"checkpoint {checkpoint.checkpoint_id!r} was made by an older version of workflow {program.graph.name!r}.",
            "Edit it with that version, or continue it with this one first: run(checkpoint=...).",
        )
    writes = _writes(program, checkpoint, change)
    return await _commit(call, program, await _opened(finder, found), found, (change, writes))


async def _opened(finder: Finder, found: Found) -> Opened:
    """Return what the commit goes on from: the run as it stands, or a copy of it."""
    checkpoint, call = found.checkpoint, finder.call
    if not call.fork:
        imported = call.store is not None and found.head is None
        return Opened(
            checkpoint.run_id, checkpoint.records.copy(), checkpoint.header, found.head, None,
            imported=imported, digests=checkpoint.digests,
        )  # fmt: skip
    run_id = finder.forked_run_id()
    head = await call.store.head(run_id) if call.store is not None else None
    if head is not None:
        raise RunExistsError(run_id, head.header.checkpoint_id)
    run = copied(finder.program, checkpoint.records, checkpoint.checkpoint_id, finder.sealed.digest)
    return Opened(run_id, run, None, None, None, imported=True)


async def _commit(
    call: Call, program: Program, opened: Opened, found: Found, asked: tuple[Edit, list[SetState]]
) -> WorkflowCheckpoint:
    change, writes = asked
    run, status = opened.run, found.checkpoint.status
    ledger, saver = ledger_and_saver(program, call, opened, birth_of(run))
    ledger.status, ledger.cause, ledger.reason = status, Cause.EDIT, change.reason
    delta: Delta = edited(run, change.path, writes)
    run.apply(delta)
    if saver is None:
        return WorkflowCheckpoint(ledger.next_header(run, delta), run)
    if opened.imported:
        delta = run.tables
    if status is Status.RUNNING and not found.handed_on:
        saver.left = _LAPSED
    return WorkflowCheckpoint(await saver.save(run, delta, (), ends=True), run)


def _writes(program: Program, checkpoint: WorkflowCheckpoint, change: Edit) -> list[SetState]:
    """Return what an edit writes, sealed. Raises for a scope or a key that is not there, and what cannot be stored."""
    run, path = checkpoint.records, change.path
    parent, segment = slot(path)
    if run.get(parent, "scope", segment) is None:
        _refuse(f"no scope {path!r} in checkpoint {checkpoint.checkpoint_id!r}", "paths", list(reading.scopes(run)))
    missing = [key for key in change.delete if run.get(path, "state", key) is None]
    if missing:
        where = f"state of {path or 'the root'}"
        _refuse(f"no key {missing[0]!r} in the {where}", "keys", sorted(run.table(path, "state")))
    reducers = reading.graph_at(program.graph, path).reducers
    writes: list[SetState] = []
    for key, value in change.state.items():
        sealed = _sealed(program, reducers.get(key), key, value)
        if not (isinstance(sealed, Items) and _has(run, path, key, sealed)):
            writes.append(SetState(key, sealed))
    return writes + [SetState(key, None) for key in change.delete]


def _has(run: Run, path: str, key: str, items: Items) -> bool:
    """Tell whether a list in state has these very elements: then it keeps the parts that it has."""
    if run.get(path, "state", key) is None:
        return False
    parts = committed_parts(run, path, key)
    return sum(part.count for part in parts) == items.count and b"".join(part.data for part in parts) == items.data


def _sealed(program: Program, reducer: Reducer | None, key: str, value: object) -> Sealed | Items:
    if reducer is None or reducer.name not in LIST_REDUCERS:
        return seal_named(program.codec, value, f"state key {key!r}")
    if not isinstance(value, list):
        raise WrongCallError(
            f"state key {key!r} grows by {reducer.name!r} and cannot be {with_article(value)}.", "Set it to a list."
        )
    try:
        return Items(*program.codec.seal_items(cast("list[object]", value)))
    except NotStorableError as error:
        where = f"state key {key!r}: {error.where}".removesuffix(": ")
        raise NotStorableError(error.type, where, error.why) from None


def _refuse(problem: str, what: str, there: list[str]) -> NoReturn:
    listed = ", ".join(repr(name) for name in there[:_LISTED]) or "none"
    more = f" and {len(there) - _LISTED} more" if len(there) > _LISTED else ""
    raise WrongCallError(f"there is {problem}.", f"Use one of its {what}: {listed}{more}.")
