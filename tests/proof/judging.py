"""The judge of forged checkpoints: takes one through everything that reads it, and lets it go on.

Whatever comes of it is right, as long as it is a result or an error of ours, and soon over.
"""

from __future__ import annotations

import random
import signal
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from rehydrate import InMemoryCheckpointStorage, Workflow, WorkflowCheckpoint
from rehydrate.errors import (
    CheckpointCorruptError,
    InconsistentRunError,
    RehydrateError,
    RunFailedError,
    SaveFailedError,
)
from rehydrate.model.checkpoint import Stored
from rehydrate.model.passes import CallRecord, CallsRecord
from rehydrate.runtime.checkpoint import restored
from rehydrate.runtime.facts import facts_of
from rehydrate.stores.inspection import inspection
from rehydrate.testing import run_virtually
from rehydrate.testing.virtual_time import StuckError

#: What one checkpoint may take, in seconds of CPU; a run of these takes some hundredths.
PATIENCE: Final = 5.0


class Endless(BaseException):
    """It takes too long. A `BaseException`: nothing on the way may take it for an error of a handler."""


@contextmanager
def bounded_time(seconds: float = PATIENCE) -> Generator[None]:
    """Raise `Endless` in the main thread after so much CPU time."""

    def stop(_number: int, _frame: object) -> None:
        raise Endless

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def judge(made: Workflow, stored: Stored, seed: object) -> str:
    """Return what came of a checkpoint: `refused`, `failed`, `erred` or a status. All else that is raised comes out."""
    with bounded_time():
        looks = [lambda: inspection(stored)]
        try:
            checkpoint = restored(stored)
        except (CheckpointCorruptError, InconsistentRunError) as error:
            outcome = f"refused {type(error).__name__}"
            checkpoint = None
        if checkpoint is not None:
            looks += [
                lambda: checkpoint.state,
                lambda: checkpoint.executor_states,
                lambda: checkpoint.pending_request_ids,
                lambda: [fact.show() for fact in facts_of(checkpoint).values()],
                lambda: WorkflowCheckpoint.from_bytes(checkpoint.to_bytes()),
            ]
        for look in looks:
            try:
                look()
            except RehydrateError:
                continue
        return outcome if checkpoint is None else gone_on(made, checkpoint, random.Random(f"{seed} goes on"))


def gone_on(made: Workflow, checkpoint: WorkflowCheckpoint, chance: random.Random) -> str:
    """Let a run go on in one of the ways that there are."""
    options: dict[str, object] = {"checkpoint": checkpoint}
    if chance.random() < 0.3:
        options["checkpoint_storage"] = InMemoryCheckpointStorage(keep_events=True)
    if chance.random() < 0.2:
        options["fork"] = True
    if chance.random() < 0.3:
        options["message"] = "new"
        options["on_unfinished"] = chance.choice(("finish", "discard", "reject"))
        options["on_pending"] = chance.choice(("keep", "cancel", "reject"))
    if chance.random() < 0.6:
        try:
            ids = checkpoint.pending_request_ids
        except RehydrateError:
            ids = ()
        options["responses"] = dict.fromkeys(ids[: chance.choice((1, 2, 100))], True)
        if not options["responses"]:
            del options["responses"]
    try:
        result = run_virtually(_bounded(made, options), patience=0.2)
    except RunFailedError as error:
        cause = error.__cause__
        if cause is not None and not isinstance(cause, RehydrateError) and is_ours(cause):
            raise cause from error
        return "failed"
    except SaveFailedError as error:
        raise error.__cause__ or error from error
    except StuckError:
        if not _has_given_up(checkpoint):
            raise
        return "waits for what its function has given up"
    except RehydrateError as error:
        return f"erred {type(error).__name__}"
    return str(result)


def is_ours(error: BaseException) -> bool:
    """Tell whether an exception was raised in the package, and not by an executor of the workflow."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and "/src/rehydrate/" in trace.tb_frame.f_code.co_filename


def _has_given_up(checkpoint: WorkflowCheckpoint) -> bool:
    calls = [record for key, record in checkpoint.records.records() if key[1] in {"call", "calls"}]
    packed = [call for record in calls if isinstance(record, CallsRecord) for call in record.calls.values()]
    return any(call.given_up for call in (*packed, *calls) if isinstance(call, CallRecord))


async def _bounded(made: Workflow, options: dict[str, object]) -> str:
    given = dict(options)
    message = given.pop("message", None)
    result = await made.run(message, **given)  # type: ignore[arg-type]
    return result.status.value
