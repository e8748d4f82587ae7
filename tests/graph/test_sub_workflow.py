"""A workflow as a node: what goes in and out."""

import pytest

from rehydrate.errors import ExecutorDefinitionError
from rehydrate.graph.sub_workflow import WorkflowExecutor
from rehydrate.graph.traffic import outputs_of, sends, takes, yields
from tests.graph.graphs import Built, defined, edge, graph, node


def nested():
    """Make a workflow that does nothing but run another one."""
    inner = defined(
        graph(node("in", int | str, bytes), node("out", bytes, float), groups=[edge("in", "out")], name="i")
    )
    return WorkflowExecutor(Built(defined(graph(WorkflowExecutor(Built(inner)), name="middle"))))


def test_it_takes_what_the_start_executor_takes_at_any_depth() -> None:
    """Its own handlers are none."""
    sub = nested()
    assert takes(sub) == (int, str)
    assert (sub.can_take(5), sub.can_take("a"), sub.can_take(b"")) == (True, True, False)
    assert sub.handlers == ()


def test_it_sends_on_or_yields_what_the_workflow_yields() -> None:
    """Depending on whether an edge leaves it."""
    sub = nested()
    assert outputs_of(sub.definition) == (float,)
    assert (sends(sub, onward=True), yields(sub, onward=True)) == ((float,), ())
    assert (sends(sub, onward=False), yields(sub, onward=False)) == ((), (float,))


def test_its_id_is_the_name_of_the_workflow_unless_given() -> None:
    """It has no state of its own."""
    sub = nested()
    assert (sub.id, WorkflowExecutor(sub.workflow, id="other").id, sub.has_instance_state) == ("middle", "other", False)


def test_only_a_built_workflow_can_be_a_node() -> None:
    """A builder is not one yet."""
    with pytest.raises(ExecutorDefinitionError, match=r"given a str, which is not a built workflow\. Pass what"):
        WorkflowExecutor("review")
