"""What a checkpoint says of itself to who has not the workflow that made it: plain data for people and tools."""

from __future__ import annotations

import msgspec

from .checkpoint import Header
from .plain import Plain


class OpenRequest(msgspec.Struct, frozen=True, gc=False):
    """An open request, readable without the workflow: `data` is in plain values."""

    request_id: str
    path: str
    executor_id: str
    type: str
    response_type: str
    data: Plain


class Inspection(msgspec.Struct, frozen=True, gc=False):
    """A checkpoint, readable without the workflow. `next_executors` are paths with the executors that would run.

    `next_due` is when the first timer is up that a function waits for, in seconds since the epoch.
    """

    header: Header
    requests: tuple[OpenRequest, ...]
    next_executors: tuple[str, ...]
    outputs: tuple[Plain, ...]
    next_due: float | None = None
