"""From a spec to a definition: canonical order, numbers of edges, joins, children, hints."""

import itertools
from dataclasses import dataclass

from rehydrate.graph.definition import Reducer
from rehydrate.graph.edges import Edge
from rehydrate.graph.graph_spec import edges_of
from rehydrate.graph.sub_workflow import WorkflowExecutor
from tests.graph.graphs import Built, defined, edge, fan_in, fan_out, graph, join, node, switch


@dataclass(frozen=True)
class Total:
    amount: int


def diamond(groups=None, extra=()):
    """Make a -> (b, c -> d) -> j."""
    nodes = [node("a"), node("d"), node("c"), node("b"), join("j")]
    chosen = [fan_out("a", "c", "b"), edge("c", "d"), fan_in("j", "d", "b")] if groups is None else groups
    return graph(*nodes, groups=[*chosen, *extra])


def test_executors_stand_in_the_order_of_their_distance_and_then_of_their_ids() -> None:
    """Whatever was added first."""
    assert defined(diamond()).order == ("a", "b", "c", "d", "j")
    assert defined(diamond()).position["d"] == 3


def test_edges_have_the_same_numbers_in_any_order_of_building() -> None:
    """The number of an edge stands in records, so it may not hang on the order of calls."""
    groups = [fan_out("a", "c", "b"), edge("c", "d"), fan_in("j", "d", "b"), edge("b", "c", bool, "sometimes")]
    expected = (
        Edge(0, "b", "c"),
        Edge(1, "c", "d"),
        Edge(2, "a", "b"),
        Edge(3, "a", "c"),
        Edge(4, "d", "j", fan_in=True, forward_when="finished"),
        Edge(5, "b", "j", fan_in=True, forward_when="finished"),
    )
    for order in itertools.permutations(groups):
        definition = defined(diamond(order))
        assert definition.edges == expected
        assert [definition.edges[edge.index] for edge in definition.edges] == list(expected)


def test_targets_of_a_switch_and_sources_of_a_join_keep_their_order() -> None:
    """It has a meaning there."""
    spec = graph(node("a"), node("x"), node("b"), node("c"), groups=[switch("a", ["x", "c", "b"])])
    assert [e.target for e in edges_of(defined(spec).outgoing["a"][0])] == ["x", "c", "b"]
    assert defined(diamond()).joins["j"].sources == ("d", "b")


def test_a_fan_in_is_listed_under_each_of_its_sources() -> None:
    """An executor's outgoing groups are all that its messages can take."""
    definition = defined(diamond())
    assert definition.outgoing["b"] == definition.outgoing["d"]
    assert definition.outgoing["j"] == ()
    assert definition.forwards_messages == {"a", "b", "c", "d"}


def test_a_join_knows_from_where_each_source_can_be_reached() -> None:
    """The source itself is among them, the join and what lies behind it is not."""
    definition = defined(diamond(extra=[edge("j", "b", bool)]))
    assert definition.joins["j"].upstream == {"d": {"a", "c", "d"}, "b": {"a", "b"}}


def test_upstream_goes_round_loops_and_through_other_joins() -> None:
    """Only the join in question is never passed."""
    spec = graph(
        node("gate"), node("x"), node("y"), join("j"), node("z"), join("k"),
        groups=[
            fan_out("gate", "x", "y", "z"), fan_in("j", "x", "y"), edge("j", "gate", bool), fan_in("k", "j", "z"),
        ],
    )  # fmt: skip
    joins = defined(spec).joins
    assert joins["j"].upstream == {"x": {"gate", "x"}, "y": {"gate", "y"}}
    assert joins["k"].upstream == {"j": {"gate", "x", "y", "j"}, "z": {"gate", "x", "y", "j", "z"}}


def test_children_are_the_definitions_of_sub_workflows() -> None:
    """One child may stand under two ids; by default the id is its name."""
    child = defined(graph(node("in"), node("out"), groups=[edge("in", "out")], name="child"))
    spec = graph(
        WorkflowExecutor(Built(child)), WorkflowExecutor(Built(child), id="again"), groups=[edge("child", "again")]
    )
    definition = defined(spec)
    assert definition.children == {"child": child, "again": child}


def test_hints_are_those_of_everything_that_is_stored_in_the_tree() -> None:
    """Messages, outputs, what functions return, those of children, and what reducers are annotated with."""

    def larger(current: Total | None, contribution: Total) -> Total: ...

    child = defined(graph(node("in", str, bytes), name="child"))
    spec = graph(
        node("a", int, str | None),
        WorkflowExecutor(Built(child)),
        node("z", bytes, tuple[int, str]),
        groups=[edge("a", "child"), edge("child", "z")],
        reducers={"total": Reducer("larger", larger), "log": Reducer("append")},
    )
    assert defined(spec).hints == (int, str, bytes, tuple[int, str], Total | None, Total)


def test_a_definition_cannot_be_changed_through_its_maps() -> None:
    """It is shared by every run."""
    definition = defined(diamond(extra=()))
    for frozen in (definition.executors, definition.outgoing, definition.joins, definition.reducers):
        assert not hasattr(frozen, "__setitem__")
