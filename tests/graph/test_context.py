"""The context protocol: its parameters at run time, and what effects return."""

import asyncio
from typing import Never

import pytest

from rehydrate.graph.context import DONE, WorkflowContext, context_types


@pytest.mark.parametrize(
    ("annotation", "types"),
    [
        (WorkflowContext, (Never, Never)),
        (WorkflowContext[int], (int, Never)),
        (WorkflowContext[int, str], (int, str)),
        (WorkflowContext[int | str, Never], (int | str, Never)),
        (WorkflowContext[Never, list[int]], (Never, list[int])),
    ],
)
def test_a_context_says_what_may_be_sent_and_yielded(annotation, types) -> None:
    """Missing parameters are Never, also where Python knows no defaults of type variables."""
    assert context_types(annotation) == types


def test_another_annotation_is_no_context() -> None:
    """Only WorkflowContext is read as one."""
    assert context_types(list[int]) is None


def test_what_effects_return_can_be_awaited_again_and_again() -> None:
    """One shared object serves every await and gives None."""

    async def twice() -> list[None]:
        return [await DONE, await DONE]

    assert asyncio.run(twice()) == [None, None]
