"""Whether a person is asked before a tool is called: always, never, or where a function of the arguments says so.

The function is checked where the tool is made; a call that a model has already asked for is no place to find out.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TypeAlias

from rehydrate.errors import ExecutorDefinitionError
from rehydrate.graph.annotations import signature_of

from .functions import is_async

Approve: TypeAlias = bool | Callable[..., bool]


class Approval:
    """What `approve` of a tool says of a call. Raises `ExecutorDefinitionError` where it cannot be asked."""

    def __init__(self, tool: str, approve: Approve, of: inspect.Signature) -> None:
        self._approve = approve
        self._defaults = {
            name: parameter.default
            for name, parameter in of.parameters.items()
            if parameter.default is not parameter.empty
        }
        self._takes = () if isinstance(approve, bool) else _parameters_of(tool, approve, list(of.parameters))

    def is_needed(self, arguments: Mapping[str, object]) -> bool:
        """Tell whether a person is asked before a call with these arguments; what is left out is the tool's default."""
        if isinstance(self._approve, bool):
            return self._approve
        whole = {**self._defaults, **arguments}
        return self._approve(**{name: whole[name] for name in self._takes})


def _parameters_of(tool: str, approve: Callable[..., bool], names: list[str]) -> tuple[str, ...]:
    """Return the names of a function's parameters; one with `**` takes all of the tool's."""
    if not callable(approve):
        raise _wrong(tool, f"is {approve!r:.100}", "Say True, False, or a function of the tool's arguments.")
    if is_async(approve):
        fix = "Write a plain `def`; what has to wait belongs into the tool, which may raise instead of acting."
        raise _wrong(tool, "is asynchronous, and a coroutine says neither yes nor no", fix)
    try:
        parameters = signature_of(approve).parameters.values()
    except (TypeError, ValueError) as error:  # of a built-in one
        raise _wrong(tool, "does not say what it takes", "Write a function of the tool's arguments.") from error
    found: list[str] = []
    for parameter in parameters:
        if parameter.kind is parameter.VAR_KEYWORD:
            return tuple(names)
        if parameter.kind in {parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL}:
            fix = "Let it take the tool's arguments by name, as in `lambda amount: amount > 100`."
            raise _wrong(tool, f"takes {parameter.name!r} by position only", fix)
        if parameter.name not in names:
            fix = f"Let it take some of the tool's own parameters: {', '.join(names) or 'it has none'}."
            raise _wrong(tool, f"takes {parameter.name!r}, which the tool does not", fix)
        found.append(parameter.name)
    return tuple(found)


def _wrong(tool: str, problem: str, fix: str) -> ExecutorDefinitionError:
    return ExecutorDefinitionError(tool, f"its `approve` {problem}", fix, "tool")
