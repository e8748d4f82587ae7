"""Reducers that are functions: called at a barrier, between two transitions."""

from __future__ import annotations

from rehydrate.codecs import ValueCodec
from rehydrate.engine.commands import Contribution, MergeState
from rehydrate.engine.inputs import MergeBroken, StateMerged
from rehydrate.errors import ReducerError
from rehydrate.graph.definition import Definition
from rehydrate.model.sealed import Sealed

from .causes import failure_of, told


def merge_state(
    codec: ValueCodec, graph: Definition, command: MergeState
) -> tuple[StateMerged | MergeBroken, BaseException | None]:
    """Return the merged values, or that a reducer raised, with its exception."""
    values: dict[str, Sealed] = {}
    for item in command.contributions:
        try:
            values[item.key] = _merge(codec, graph, item)
        except Exception as error:  # user code
            failed = ReducerError(command.path, item.key, told(error))
            failed.__cause__ = error
            return MergeBroken(command.path, item.key, failure_of(failed, "merge")), failed
    return StateMerged(command.path, values), None


def _merge(codec: ValueCodec, graph: Definition, item: Contribution) -> Sealed:
    function = graph.reducers[item.key].function
    assert function is not None  # noqa: S101  (the engine asks only for reducers that are functions)
    value = None if item.base is None else codec.open(item.base)
    for contribution in item.values:
        value = function(value, codec.open(contribution))
    return codec.seal(value)
