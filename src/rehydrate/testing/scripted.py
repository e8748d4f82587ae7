"""`ScriptedExecutor`: stands in for an executor and answers from a list.

What it gives depends on the run alone, so that a restored run gets the same; what it got is in the test's hands.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from types import NoneType
from typing import cast

from rehydrate.graph.annotations import UNSET
from rehydrate.graph.context import WorkflowContext
from rehydrate.graph.executor import FunctionExecutor
from rehydrate.graph.handlers import Declaration
from rehydrate.graph.hints import Hint
from rehydrate.runtime.context import InvocationContext


class ScriptedExecutor(FunctionExecutor[[object, WorkflowContext], object]):
    """An executor that gives `gives[n]` for the message n that it gets in a scope, counted from 0.

    A value is sent on, or yielded where there is no outgoing edge; `None` is nothing, and an exception is raised.
    `takes` is the type of its messages, `returns` that of what it gives where the values do not tell: `list[int]`, or
    where all are exceptions.
    """

    def __init__(self, id: str, *, takes: Hint, gives: Sequence[object], returns: Hint = UNSET) -> None:
        #: Every message that it was given, in the order in which they came, each attempt anew.
        self.got: list[object] = []
        self.gives = tuple(gives)
        kinds = dict.fromkeys(type(value) for value in gives if value is not None and not _is_raised(value))
        if returns is UNSET:
            returns = reduce(_or, kinds) if kinds else NoneType

        async def scripted(message: object, ctx: WorkflowContext) -> object:
            self.got.append(message)
            number = cast("InvocationContext", ctx).activation
            if number > len(self.gives):
                raise AssertionError(f"executor {id!r} got message {number} and has {len(self.gives)} answer(s)")
            value = self.gives[number - 1]
            if isinstance(value, BaseException):
                raise value
            return value

        super().__init__(scripted, Declaration("executor", (("message", takes),), returns=returns), id)


def _or(one: Hint, other: Hint) -> Hint:
    return cast("type", one) | cast("type", other)


def _is_raised(value: object) -> bool:
    return isinstance(value, BaseException)
