"""How a workflow is nested as a node: what goes in and out, whose its requests are, how its scopes are kept.

Frozen data that the engine reads, and the check of what a `WorkflowExecutor` was given. It runs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, cast, get_args

from rehydrate.errors import ExecutorDefinitionError, IdError
from rehydrate.ids import check_key

from .policies import AT_MOST, is_time_limit

Requests: TypeAlias = Literal["propagate", "intercept"]
Isolation: TypeAlias = Literal["isolated", "shared"]
ForwardOutputs: TypeAlias = Literal["message", "output"]
_NO_KEYS: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True)
class Nesting:
    """The arguments of a `WorkflowExecutor`, checked.

    `inputs` maps state keys of the parent to keys of the child, `outputs` keys of the child to keys of the parent.
    `forwards` of `None` is "message" where an edge leads on and "output" where none does. `timeout` is in seconds.
    """

    inputs: Mapping[str, str] = field(default_factory=dict[str, str])
    outputs: Mapping[str, str] = field(default_factory=dict[str, str])
    intercepts: bool = False
    shared: bool = False
    forwards: ForwardOutputs | None = None
    timeout: float | None = None


def check_mapping(executor_id: str, name: str, given: object) -> Mapping[str, str]:
    """Return state keys by state keys. Raises `ExecutorDefinitionError` for anything else."""
    if given is None:
        return _NO_KEYS
    if not isinstance(given, Mapping):
        raise ExecutorDefinitionError(
            executor_id, f"{name} is a {type(given).__name__}", f"Pass a dict of state keys: {_form_of(name)}."
        )
    pairs = dict(cast("Mapping[object, object]", given))
    for key in (*pairs, *pairs.values()):
        try:
            check_key(key, "state key")
        except IdError as error:
            raise ExecutorDefinitionError(executor_id, f"{name} has {key!r:.100}", str(error)) from error
    found = cast("dict[str, str]", pairs)
    for target in found.values():
        sources = sorted(key for key, other in found.items() if other == target)
        if len(sources) > 1:
            raise ExecutorDefinitionError(
                executor_id,
                f"{name} copies {' and '.join(map(repr, sources))} to one key {target!r}",
                "Give each a key of its own.",
            )
    return MappingProxyType(found)


def _form_of(name: str) -> str:
    return "{'parent key': 'child key'}" if name == "inputs" else "{'child key': 'parent key'}"


def check_choice(executor_id: str, name: str, given: object, choices: object) -> None:
    """Raise `ExecutorDefinitionError` where something is none of the words of a `Literal`."""
    words = get_args(choices)
    if given not in words:
        raise ExecutorDefinitionError(executor_id, f"{name} is {given!r:.100}", f"Use {' or '.join(map(repr, words))}.")


def check_timeout(executor_id: str, given: object) -> float | None:
    """Return a time limit in seconds. Raises `ExecutorDefinitionError` for anything else."""
    if given is None:
        return None
    if is_time_limit(given):
        return float(cast("float", given))
    raise ExecutorDefinitionError(
        executor_id, f"timeout is {given!r:.100}", f"Use a number of seconds above 0, {AT_MOST}, or None for no limit."
    )
