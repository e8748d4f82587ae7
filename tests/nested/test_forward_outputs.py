"""`forward_outputs=`: whether what a sub-workflow yields becomes messages or outputs of its parent."""

import asyncio

import pytest

from rehydrate import Workflow, WorkflowBuilder, WorkflowExecutor, executor
from rehydrate.errors import ExecutorDefinitionError, GraphChangedError, WorkflowBuildError


@executor(id="double")
async def double(number: int) -> int:
    return 2 * number


@executor(id="show")
async def show(number: int) -> str:
    return f"shown {number}"


def child() -> Workflow:
    """A workflow that yields numbers."""
    return WorkflowBuilder("child", double).build()


def run(workflow, message, **options):
    """Do one call and wait for it."""
    return asyncio.run(workflow.run(message, **options))


def problems_of(builder) -> tuple[str, ...]:
    """Return what `build()` finds."""
    with pytest.raises(WorkflowBuildError) as error:
        builder.build()
    return error.value.problems


def test_outputs_become_messages_where_an_edge_leads_on() -> None:
    """With the word for it and without."""
    for forward in (None, "message"):
        node = WorkflowExecutor(child(), "child", forward_outputs=forward)
        assert run(WorkflowBuilder("w", node).add_edge(node, show).build(), 2).outputs == ["shown 4"]


def test_outputs_become_the_parents_where_none_does() -> None:
    """With the word for it and without."""
    for forward in (None, "output"):
        node = WorkflowExecutor(child(), "child", forward_outputs=forward)
        assert run(WorkflowBuilder("w", node).build(), 2).outputs == [4]


def test_messages_without_an_edge_are_refused_when_built() -> None:
    """The executor is named."""
    node = WorkflowExecutor(child(), "child", forward_outputs="message")
    assert problems_of(WorkflowBuilder("w", node)) == (
        "executor 'child' has forward_outputs=\"message\" but no outgoing edge; add one, or use"
        ' forward_outputs="output"',
    )


def test_outputs_beside_edges_that_would_carry_nothing_are_refused_when_built() -> None:
    """Only intercepted requests could go along them."""
    node = WorkflowExecutor(child(), "child", forward_outputs="output")
    (problem,) = problems_of(WorkflowBuilder("w", node).add_edge(node, show))
    assert problem.startswith("executor 'child' has outgoing edges but says nothing of what it sends; with forward")


def test_another_word_is_refused_at_the_line() -> None:
    """The words are named; the same for `requests` and `isolation`."""
    for argument, words in (
        ("forward_outputs", "'message' or 'output'"),
        ("requests", "'propagate' or 'intercept'"),
        ("isolation", "'isolated' or 'shared'"),
    ):
        with pytest.raises(ExecutorDefinitionError, match=rf"{argument} is 'other'\. Use {words}\."):
            WorkflowExecutor(child(), **{argument: "other"})


def test_how_a_workflow_is_nested_is_part_of_the_signature() -> None:
    """Records of one way do not fit another; a difference is told by path, and defaults leave no mark."""

    def nested(**options) -> Workflow:
        return WorkflowBuilder("w", WorkflowExecutor(child(), "child", **options)).build()

    plain = run(nested(), 1)
    assert run(nested(forward_outputs="output"), 1, checkpoint=plain).outputs == [2]
    with pytest.raises(GraphChangedError) as error:
        run(nested(isolation="shared"), 1, checkpoint=plain)
    assert error.value.differences == ("child: isolation was nothing, is shared",)
    with pytest.raises(GraphChangedError) as error:
        run(nested(inputs={"a": "b"}), 1, checkpoint=plain)
    assert error.value.differences == ("child: inputs was nothing, is a as b",)
