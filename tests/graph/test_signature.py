"""The signature: what is in it, what is not, and how two of them differ."""

import itertools
from dataclasses import dataclass
from typing import Never

from rehydrate.graph.assembly import assemble
from rehydrate.graph.context import WorkflowContext
from rehydrate.graph.definition import Reducer
from rehydrate.graph.edges import MultiSelectionGroup
from rehydrate.graph.executor import Executor
from rehydrate.graph.graph_spec import unnumbered
from rehydrate.graph.handlers import handler, response_handler
from rehydrate.graph.signature import differences
from rehydrate.graph.sub_workflow import WorkflowExecutor
from tests.graph.graphs import Built, defined, edge, fan_in, fan_out, graph, join, node, switch


@dataclass(frozen=True)
class Claim:
    amount: int


@dataclass(frozen=True)
class Verdict:
    approved: bool


class Assess(Executor):
    @handler
    async def on_claim(self, claim: Claim, ctx: WorkflowContext[Never, Verdict]) -> None: ...

    @response_handler
    async def on_answer(self, claim: Claim, approved: bool, ctx: WorkflowContext[Never, Verdict | None]) -> None: ...


def review():
    """Make a child with one executor."""
    return defined(graph(Assess("assess"), name="review"))


def payment(child, **settings):
    """Make a parent around a child."""
    return defined(
        graph(
            node("intake", Claim, Claim), WorkflowExecutor(Built(child), "review"), node("pay", Verdict | None, str),
            groups=[edge("intake", "review"), edge("review", "pay", bool, "approved")],
            name="payment", **settings,
        )
    )  # fmt: skip


def flow(*groups, nodes="abcde", joins="", **settings):
    """Make a graph of executors of one letter; the first is the start."""
    return defined(graph(*(join(i) if i in joins else node(i) for i in nodes), groups=groups, **settings)).signature


def test_a_signature_tells_everything_of_the_tree_line_by_line() -> None:
    """Nested workflows stand under the path of their executor."""
    total = Reducer("add", None)
    assert payment(review(), version=3, reducers={"total": total}).signature.split("\n") == [
        "(state total): reducer add",
        "(workflow): name payment; version 3; start intake",
        "intake -> review: kind edge",
        "intake: kind function; takes Claim; returns Claim",
        "pay: kind function; takes None, Verdict; returns str",
        "review -> pay: kind edge; condition name approved",
        "review/(workflow): name review; version 1; start assess",
        "review/assess: kind class; takes Claim; yields None, Verdict; asks Claim -> bool",
        "review: kind workflow",
    ]


def test_every_kind_of_edge_is_told_with_its_places() -> None:
    """Order of cases, targets of a selection and sources of a join count; that of a fan-out does not."""
    picked = MultiSelectionGroup((unnumbered("c", "e"), unnumbered("c", "d")), list, "pick")
    signature = flow(
        fan_out("a", "c", "b"), switch("b", ["e", "d", "c"], ("big", None)), picked, fan_in("j", "e", "d"),
        nodes="abcdej", joins="j",
    )  # fmt: skip
    assert [line for line in signature.split("\n") if "->" in line] == [
        "a -> b: kind fan-out; group 1",
        "a -> c: kind fan-out; group 1",
        "b -> c: kind switch; group 1; case default",
        "b -> d: kind switch; group 1; case 2",
        "b -> e: kind switch; group 1; case 1; condition name big",
        "c -> d: kind selection; group 1; place 2; selection name pick",
        "c -> e: kind selection; group 1; place 1; selection name pick",
        "d -> j: kind join; place 2",
        "e -> j: kind join; place 1",
    ]


def test_the_order_of_building_is_not_in_the_signature() -> None:
    """Neither that of groups nor that of executors."""
    groups = [edge("a", "b"), fan_out("b", "d", "c"), switch("c", ["d", "e"]), switch("c", ["e", "d"])]
    signatures = {
        flow(*order, nodes="a" + rest) for order in itertools.permutations(groups) for rest in ("bcde", "edcb")
    }
    assert len(signatures) == 1


def test_policies_code_and_class_names_are_not_in_the_signature() -> None:
    """They may change under a run."""

    class Renamed(Assess): ...

    def other(message: int) -> bool:
        return False

    before = flow(edge("a", "b", bool, "odd"), nodes="ab")
    assert flow(edge("a", "b", other, "odd"), nodes="ab", max_supersteps=3, max_concurrency=1) == before
    assert defined(graph(Renamed("assess"))).signature == defined(graph(Assess("assess"))).signature


def test_names_cannot_forge_a_line() -> None:
    """What structures a line is escaped inside of ids."""
    assert flow(nodes=["a: b -> c; d"]).split("\n") == [
        r"(workflow): name flow; version 1; start a\x3a b -\x3e c\x3b d",
        r"a\x3a b -\x3e c\x3b d: kind function; takes int; returns int",
    ]


def test_stable_names_of_types_are_asked_for() -> None:
    """What names a type in records names it here; it can look like anything."""
    spec = graph(node("a", list[Claim], int))
    assert "a: kind function; takes list[v2\\x3aClaim]; returns v2\\x3aint" in assemble(
        spec, lambda cls: f"v2:{cls.__name__}" if cls is not list else "list"
    ).signature.split("\n")


def test_equal_signatures_do_not_differ() -> None:
    """Nothing is listed."""
    assert differences(payment(review()).signature, payment(review()).signature) == ()


def test_a_lost_and_a_new_executor_are_listed_by_path() -> None:
    """What lies below or belongs to their edges comes with its own line."""
    old = payment(review()).signature
    child = defined(graph(node("c", Claim, Claim), Assess("assess"), groups=[edge("c", "assess")], name="review"))
    assert differences(old, payment(child).signature) == (
        "review/(workflow): start was assess, is c",
        "review/c: new",
        "review/c -> assess: new",
    )
    assert differences(payment(child).signature, old) == (
        "review/(workflow): start was c, is assess",
        "review/c: missing now",
        "review/c -> assess: missing now",
    )


def test_what_is_inside_of_a_lost_sub_workflow_is_not_listed_again() -> None:
    """One line says it."""
    without = defined(
        graph(node("intake", Claim, Verdict), node("pay", Verdict, str), groups=[edge("intake", "pay")], name="payment")
    )
    assert differences(payment(review()).signature, without.signature) == (
        "intake: returns was Claim, is Verdict",
        "intake -> pay: new",
        "intake -> review: missing now",
        "pay: takes was None, Verdict, is Verdict",
        "review: missing now",
        "review -> pay: missing now",
    )


def test_a_changed_fact_is_named_with_both_values() -> None:
    """For an edge its condition or kind, for a workflow its version."""
    old = flow(edge("a", "b", bool, "x"), switch("b", ["c", "d"]), nodes="abcd")
    new = flow(edge("a", "b", bool, "y"), switch("b", ["d", "c"]), nodes="abcd", version=2)
    assert differences(old, new) == (
        "(workflow): version was 1, is 2",
        "a -> b: condition name was x, is y",
        "b -> c: case was 1, is default",
        "b -> d: case was default, is 1",
    )


def test_edges_with_the_same_ends_are_compared_together() -> None:
    """They have one subject."""
    old = flow(edge("a", "b", bool, "x"), edge("a", "b", bool, "y"), nodes="ab")
    new = flow(edge("a", "b", bool, "x"), nodes="ab")
    assert differences(old, new) == ("a -> b: was kind edge; condition name y, is nothing",)
