"""The builder: from calls to a frozen workflow, or to one error with every problem."""

import logging
import operator
from dataclasses import dataclass

import pytest

from rehydrate import InMemoryCheckpointStorage
from rehydrate.api.builder import Case, Default, WorkflowBuilder
from rehydrate.errors import FrozenExecutorError, WorkflowBuildError
from rehydrate.graph.definition import Reducer
from rehydrate.graph.edges import DirectGroup, FanInGroup, FanOutGroup, MultiSelectionGroup, SwitchGroup
from rehydrate.graph.reducers import append
from rehydrate.graph.sub_workflow import WorkflowExecutor
from tests.graph.graphs import join, node


@dataclass(frozen=True)
class Claim:
    amount: int


def is_large(message: int) -> bool:
    return message > 100


def problems_of(builder):
    """Return what the build of a wrong graph says."""
    with pytest.raises(WorkflowBuildError) as caught:
        builder.build()
    return list(caught.value.problems)


def test_every_kind_of_edge_can_be_built() -> None:
    """Executors are named by object, or by id once added, also later."""
    a, b, c, d = (node(name) for name in "abcd")
    builder = (
        WorkflowBuilder(name="all", start_executor=a)
        .add_edge(a, "b", is_large, name="large")
        .add_fan_out_edges("b", [c, d])
        .add_fan_in_edges(["d", "c"], join("j"))
        .add_switch_case_edge_group("j", [Default("e"), Case(is_large, a), Case(is_large, b, name="again")])
        .add_multi_selection_edge_group(node("e"), [node("g"), node("f")], lambda message, ids: ids[:1], name="first")
        .add_chain(["f", "g", node("h")])
    )
    outgoing = builder.build().definition.outgoing
    (large,), (spread,), (joined,), (switched,), (picked,) = (outgoing[name] for name in "abdje")
    assert isinstance(large, DirectGroup)
    assert (large.edge.target, large.condition, large.name) == ("b", is_large, "large")
    assert isinstance(spread, FanOutGroup)
    assert [edge.target for edge in spread.edges] == ["c", "d"]
    assert isinstance(joined, FanInGroup)
    assert [(edge.source, edge.target) for edge in joined.edges] == [("d", "j"), ("c", "j")]
    assert isinstance(switched, SwitchGroup)
    assert ([edge.target for edge in switched.edges], switched.names) == (["a", "b", "e"], (None, "again"))
    assert isinstance(picked, MultiSelectionGroup)
    assert ([edge.target for edge in picked.edges], picked.name) == (["g", "f"], "first")
    assert [edge.target for group in (*outgoing["f"], *outgoing["g"]) for edge in [group.edge]] == ["g", "h"]


def test_settings_come_into_the_definition() -> None:
    """A function becomes a reducer of its name."""
    definition = (
        WorkflowBuilder(
            name="settings", start_executor=node("a"), version=4, max_supersteps=7, max_concurrency=2,
            reducers={"log": append, "flags": operator.or_, "most": Reducer("largest", max)},
            resources={"client": dict},
        ).build().definition
    )  # fmt: skip
    assert (definition.name, definition.version, definition.max_supersteps, definition.max_concurrency) == (
        "settings", 4, 7, 2,
    )  # fmt: skip
    assert {key: reducer.name for key, reducer in definition.reducers.items()} == {
        "log": "append",
        "flags": "or_",
        "most": "largest",
    }
    assert definition.resources == {"client": dict}


def test_a_build_freezes_executors_and_only_a_good_one_does() -> None:
    """Who corrects a problem may still change them."""
    a = node("a")
    builder = WorkflowBuilder(name="flow", start_executor=a).add_edge(a, "b")
    assert problems_of(builder) == ["edge 'a' -> 'b': there is no executor 'b'; add it by object"]
    a.note = "still open"
    builder.add_edge("b", node("b")).build()
    with pytest.raises(FrozenExecutorError):
        a.note = "closed"


def test_one_executor_can_stand_in_two_workflows() -> None:
    """It holds no run state."""
    a = node("a")
    first = WorkflowBuilder(name="first", start_executor=a).build()
    second = WorkflowBuilder(name="second", start_executor=node("s")).add_edge("s", a).build()
    assert first.definition.executors["a"] is second.definition.executors["a"] is a


def test_a_built_workflow_can_be_a_node_and_its_store_is_noted(caplog) -> None:
    """Nothing is wrong with it; the note is for the log."""
    store = InMemoryCheckpointStorage()
    child = WorkflowBuilder(name="child", start_executor=node("in"), checkpoint_storage=store).build()
    with caplog.at_level(logging.INFO, logger="rehydrate"):
        parent = WorkflowBuilder(name="parent", start_executor=WorkflowExecutor(child)).build()
    assert parent.definition.children == {"child": child.definition}
    (record,) = caplog.records
    assert record.levelname == "INFO"
    assert record.message.startswith("the sub-workflow of executor 'child' has a store of its own, which is not used")


def test_every_problem_is_in_one_error() -> None:
    """Those of calls come first, in their order, then those of the graph, then those of types."""

    def local():
        @dataclass(frozen=True)
        class Claim:
            text: str

        return Claim

    def undecorated(message: int) -> int:
        return message

    child = WorkflowBuilder(name="child", start_executor=node("in")).build()
    builder = (
        WorkflowBuilder(
            name="wrong", start_executor=node("a", Claim, local()), max_supersteps=0,
            reducers={"log": lambda current, contribution: contribution},
        )
        .add_edge("a", undecorated)
        .add_edge("a", child)
        .add_chain(["a"])
        .add_fan_out_edges("a", [])
        .add_fan_in_edges([], "a")
        .add_multi_selection_edge_group("a", "bc", list)
        .add_switch_case_edge_group("a", [is_large])
        .add_switch_case_edge_group("a", [Case(is_large, "a")])
    )  # fmt: skip
    found = problems_of(builder)
    expected = [
        "the reducer of state key 'log' has no name; use a named function or Reducer(name, function)",
        "add_edge was given <function test_every_problem_is_in_one_error.<locals>.undecorated",
        "add_edge was given Workflow('child', version=1, executors=1), which is no executor; wrap the workflow in",
        "add_chain was given fewer than two executors; name at least two",
        "add_fan_out_edges of 'a' names no executor on its other side; name at least one",
        "add_fan_in_edges of 'a' names no executor on its other side; name at least one",
        "add_multi_selection_edge_group was given the text 'bc' for several executors; pass a list",
        "add_switch_case_edge_group was given something that is neither Case nor Default; use only these",
        "max_supersteps is 0; use a whole number from 1 on",
        "switch of 'a' has no default; end it with one Default(target)",
        "edge 'a' -> 'a': 'a' sends Claim, 'a' takes Claim; change one of them or remove the edge",
        f"{__name__}.Claim and {__name__}.test_every_problem_is_in_one_error.<locals>.local.<locals>.Claim would both",
    ]
    assert [text[: len(start)] for text, start in zip(found, expected, strict=True)] == expected


@pytest.mark.parametrize("start", [None, len, "a"])
def test_the_start_has_to_be_an_executor(start) -> None:
    """An id alone names nothing yet."""
    found = problems_of(WorkflowBuilder(name="wrong", start_executor=start))
    assert any("start" in text for text in found)


def test_the_error_lists_the_problems_and_says_what_to_do() -> None:
    """One a line."""
    with pytest.raises(WorkflowBuildError) as caught:
        WorkflowBuilder(name="wrong", start_executor=node("a"), version=0, max_supersteps=0).build()
    assert str(caught.value) == (
        "workflow 'wrong' cannot be built, 2 problems:\n"
        "  - version is 0; use a whole number from 1 on\n"
        "  - max_supersteps is 0; use a whole number from 1 on\n"
        "Correct these and build again."
    )
