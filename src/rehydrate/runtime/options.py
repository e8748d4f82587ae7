"""The keyword arguments of every way to call a workflow; what they mean stands in the page on the resume table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypedDict, get_type_hints

from rehydrate.engine.inputs import OnPending, OnUnfinished

from .actor import Durability
from .call import CheckpointArgument
from .requests import Responses


class TurnOptions(TypedDict, total=False):
    """The keyword arguments that every way to go on with a run takes; see the page on the resume table."""

    run_id: str | None
    responses: Responses | None
    run_args: object
    resources: Mapping[str, object] | None
    idempotency_key: str | None
    on_pending: OnPending | None
    on_unfinished: OnUnfinished
    durability: Durability
    fork: bool
    takeover: bool


class CallOptions(TurnOptions, total=False):
    """Those, and the checkpoint to go on from."""

    checkpoint: CheckpointArgument


#: The names of all of them.
KNOWN_OPTIONS: Final = frozenset(get_type_hints(CallOptions))
