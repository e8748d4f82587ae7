"""Records of functional workflows: a pass over a message, and the calls that it has made and remembers.

A pass is one message from its arrival to the function's return, however often the function runs for it. Its number is
the activation of the message; names of calls are those of branch and position in it.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from .effects import Failure
from .sealed import Items, Payload, Sealed

CallKind: TypeAlias = Literal["step", "question", "timer", "value", "workflow"]


class PassRecord(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """A pass that has begun to remember. `seed` is what its random numbers and ids are made from, `version` that of the
    workflow which it began in, `run_args` the run arguments of that turn, `asked` the number of its questions so far.

    While it waits, `payload` is its message and `due` when the first of its timers is up, in seconds since the epoch.
    """

    trail: tuple[int, ...]
    seed: str
    version: int
    asked: int = 0
    payload: Payload | None = None
    due: float | None = None
    run_args: Sealed | None = None


class ReadRecord(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """A state key as a waiting pass has read it (`None`: it was not there); it reads the same when it goes on."""

    value: Sealed | Items | None


class CallRecord(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """One call of a pass: of a step, a question, a timer, a value of the moment, or another workflow.

    It has come back once it has a value or a failure; the value of a workflow is the list of its outputs. `digest` is
    that of its arguments. `failed` counts the attempts of a step that used its retry budget; `due` is when the next one
    may start, or when a timer is up, in seconds since the epoch. `given_up`: the function has cancelled it while it
    waited and then went on, so it never comes back.
    """

    kind: CallKind
    name: str
    digest: bytes
    value: Payload | None = None
    failure: Failure | None = None
    failed: int = 0
    due: float | None = None
    given_up: bool = False


class CallsRecord(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """Many calls that have come back, in one record, so that a long pass does not load a record per call."""

    calls: dict[str, CallRecord]
