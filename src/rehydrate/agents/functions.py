"""Functions that an agent is given and calls itself, such as the one that makes its prompt."""

from __future__ import annotations

import inspect
from collections.abc import Callable


def is_async(function: Callable[..., object]) -> bool:
    """Tell whether a call gives a coroutine or a generator instead of a result, also of an object that is called."""
    called = getattr(type(function), "__call__", None)  # noqa: B004  (it is looked at, not asked for)
    tests = (inspect.iscoroutinefunction, inspect.isasyncgenfunction, inspect.isgeneratorfunction)
    return any(test(inspect.unwrap(given)) for test in tests for given in (function, called) if given is not None)
