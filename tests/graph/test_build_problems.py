"""All that a build finds at once: every kind of problem beside others, each with its code, place and next action."""

import ast
import copy
import pickle
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Never

import pytest

from rehydrate import (
    Case,
    Default,
    Executor,
    Reducer,
    SubWorkflowResponseMessage,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    append,
    executor,
    handler,
    response_handler,
)
from rehydrate.errors import WorkflowBuildError
from tests.docs.pages import DOCS, rows
from tests.graph.graphs import join, node
from tests.project.source import PACKAGE

if TYPE_CHECKING:
    from decimal import Decimal
    from fractions import Fraction

MAKERS = {"problem", "problem_at", "BuildProblem", "self._refuse"}


class Silent(Executor): ...


class Twice(Executor):
    @handler
    async def one(self, message: int) -> None: ...

    @handler
    async def other(self, message: int) -> None: ...

    @response_handler
    async def yes(self, request: int, response: bool) -> None: ...

    @response_handler
    async def no(self, request: int, response: bool) -> None: ...


class Wrong(Executor):
    @handler
    async def one(self, message) -> None: ...

    @handler
    async def other(self, message: "Fraction") -> None: ...


class HalfHooked(Executor):
    @handler
    async def on_int(self, message: int) -> None: ...

    def on_checkpoint_save(self) -> dict[str, object]:
        return {}


class Sends(Executor):
    @handler
    async def on_int(self, message: int, ctx: WorkflowContext[int]) -> None: ...


class SaysNothing(Executor):
    @handler
    async def on_int(self, message: int, ctx: WorkflowContext[Never, int]) -> None: ...


class HasHandler(WorkflowExecutor):
    @handler
    async def on_int(self, message: int) -> None: ...


class Ints(Executor):
    @handler
    async def on_ints(self, values: list[int]) -> None: ...

    @handler
    async def on_texts(self, values: list[str]) -> None: ...


@dataclass
class Unresolved:
    price: "Fraction"


@dataclass
class UnresolvedToo:
    price: "Decimal"


def same_name() -> type:
    """Another class of a name that the workflow has."""

    @dataclass
    class Item:
        text: str

    return Item


@dataclass
class Item:
    number: int


async def waits(message: int) -> bool:
    return True


def nested(levels: int) -> Workflow:
    """A workflow with as many below it."""
    workflow = WorkflowBuilder("deep", node("in")).build()
    for _ in range(levels):
        workflow = WorkflowBuilder("deep", WorkflowExecutor(workflow, "in")).build()
    return workflow


def mistaken() -> WorkflowBuilder:
    """A graph with every mistake that does not keep others from being looked for."""
    a = node("a", int, int | bytes)
    builder = WorkflowBuilder(
        "bad/name",
        a,
        version=0,
        reducers={"": append, "k": lambda old, new: old, "five": 5, "named": Reducer("a\nb", max)},
        resources={"client": 5},
        max_supersteps=0,
        max_concurrency=0,
        migrate={"one": 1},
    )
    silent = Silent("s")
    silent.id = "s/s"
    return (
        builder.add_edge(a, waits)
        .add_chain([a])
        .add_chain("ab")
        .add_fan_out_edges(a, [])
        .add_switch_case_edge_group(a, ["b"])
        .add_switch_case_edge_group(a, [Default(node("d1"))])
        .add_switch_case_edge_group(a, [Case(bool, node("d2")), Case(waits, node("d3"))])
        .add_multi_selection_edge_group(a, [node("twin"), "twin"], list)
        .add_edge(a, node("twin"))
        .add_edge(a, node("five"), condition=5)
        .add_edge(a, node("named"), name="name alone")
        .add_edge(a, node("forwarded"), forward_when="finished")
        .add_edge("forwarded", node("forwarded too"), forward_when="later")
        .add_edge(a, node("same"), bool)
        .add_edge(a, "same", bool)
        .add_edge(a, node("second"))
        .add_edge(a, "second")
        .add_edge(a, node("text", str, None))
        .add_fan_out_edges(a, [silent, Twice("t"), Wrong("w"), HalfHooked("h"), Sends("sends")])
        .add_fan_out_edges(a, [WorkflowExecutor(nested(64), "deep"), HasHandler(nested(0), "has")])
        .add_fan_out_edges(a, [node("i", int, int), node("j", int, str), SaysNothing("quiet")])
        .add_edge("quiet", node("behind"))
        .add_fan_in_edges(["i", "j"], Ints("joined"))
        .add_fan_in_edges(["i", "again"], join("again"))
        .add_fan_in_edges(["j"], "again")
        .add_edge("a", node("item", int, Item))
        .add_edge("a", node("other item", int, same_name()))
        .add_edge("a", node("price", int, Unresolved))
        .add_edge("a", node("price too", int, UnresolvedToo))
        .add_edge(node("far", int, str | bytes), node("gone", str, None))
    )


def lost() -> WorkflowBuilder:
    """A graph whose start and one end are unknown, with mistakes beside it."""
    builder = WorkflowBuilder("lost", "nowhere", reducers=[append])
    return builder.add_edge(node("a"), "nobody").add_edge("a", node("b", str, None)).add_edge("a", partial(print))


def mapped() -> WorkflowBuilder:
    """A graph in which every map is wrong."""
    start = node("start", int, list[int])
    builder = WorkflowBuilder("maps", start)
    for name in ("end", "join", "way", "hook", "inner"):
        builder.add_edge(start, node(name, list[int], list[int]))
    return (
        builder.add_map_edge("end", node("itself"), into="itself")
        .add_map_edge("join", node("to join"), into=join("joined"))
        .add_fan_in_edges([node("beside", list[int], int)], "joined")
        .add_edge(start, "beside")
        .add_map_edge("way", node("astray"), into=join("never"))
        .add_edge("astray", node("elsewhere"))
        .add_edge(start, "elsewhere")
        .add_map_edge("hook", HalfHooked("hooked"), into=join("hooks"))
        .add_map_edge("inner", node("back", int, int), into=join("around"))
        .add_edge("back", start)
        .add_edge("back", "around")
    )


def wrongly_nested() -> WorkflowBuilder:
    """A graph whose sub-workflows have no way for what they yield and ask, and copy state where it does not fit."""
    start, inner = node("start", int, list[int]), WorkflowBuilder("inner", node("in", int, int)).build()
    builder = WorkflowBuilder("nested", start, reducers={"lines": append})
    return (
        builder.add_map_edge(start, WorkflowExecutor(inner, "shared", isolation="shared"), into=join("end"))
        .add_edge(start, node("each", list[int], int))
        .add_edge("each", WorkflowExecutor(inner, "alone", forward_outputs="message", inputs={"lines": "text"}))
        .add_edge("each", WorkflowExecutor(inner, "asks", requests="intercept"))
        .add_edge("asks", node("deaf", int, None))
    )


def answering_nobody() -> WorkflowBuilder:
    """An executor that would answer requests, where none comes by."""
    return WorkflowBuilder("answering", node("answers", int, SubWorkflowResponseMessage))


def found(builder: WorkflowBuilder):
    """The problems of a build."""
    with pytest.raises(WorkflowBuildError) as caught:
        builder.build()
    return caught.value.problems


def codes_in_source() -> set[str]:
    """Every code that the package makes a problem with."""
    codes = set()
    for file in sorted(PACKAGE.rglob("*.py")):
        for each in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(each, ast.Call) or ast.unparse(each.func) not in MAKERS:
                continue
            place = 1 if ast.unparse(each.func) == "BuildProblem" else 0
            if isinstance(each.args[place], ast.Constant):
                codes.add(each.args[place].value)
    return codes


OF_ERRORS = {"id", "executor-definition", "unresolved-type", "type-name-conflict"}


def test_every_kind_of_problem_is_found_beside_the_others() -> None:
    """No kind hides another, but for what cannot be known without a start."""
    codes = {problem.code for problem in found(mistaken())}
    without_start = {problem.code for problem in found(lost())}
    assert without_start == {"start", "unknown-end", "no-mapping", "no-executor", "edge-types"}
    maps = {problem.code for problem in found(mapped())}
    nesting = {problem.code for builder in (wrongly_nested(), answering_nobody()) for problem in found(builder)}
    assert nesting == {"map-shared", "forward-nowhere", "mapping-lists", "requests-not-taken", "responses-nowhere"}
    assert codes | without_start | maps | nesting == codes_in_source() | OF_ERRORS
    assert codes & {"start", "unknown-end"} == set()


def test_several_of_one_kind_are_each_reported() -> None:
    """Also two types that cannot be resolved, and two handlers of one class that are wrong."""
    counts = Counter(problem.code for problem in found(mistaken()))
    assert (counts["unresolved-type"], counts["executor-definition"], counts["async-condition"]) == (2, 2, 1)
    assert (counts["id"], counts["duplicate-id"], counts["same-names"], counts["second-edge"]) == (4, 1, 1, 1)


def test_each_problem_says_where_it_is_and_what_to_do() -> None:
    """The sentence ends with the action, and no two problems are the same."""
    problems = [*found(mistaken()), *found(lost()), *found(mapped())]
    for problem in problems:
        assert problem.endswith(problem.action)
        assert len(problem.action) > 8
        assert problem.place
        assert "\n" not in problem
    assert len(set(problems)) == len(problems)


@pytest.mark.parametrize(
    ("code", "place", "sentence"),
    [
        (
            "condition", "edge 'a' -> 'five'",
            "edge 'a' -> 'five' is decided by 5, which is no function; pass a function of the message",
        ),
        (
            "async-condition", "switch of 'a'",
            "switch of 'a' is decided by 'waits', which is async; pass a plain `def`; what has to wait belongs into an"
            " executor before the edge",
        ),
        (
            "name-alone", "edge 'a' -> 'named'",
            "edge 'a' -> 'named' has the name 'name alone' of a condition, and no condition; pass condition=, or leave"
            " name= out",
        ),
        (
            "reducer", "the reducer of state key 'five'",
            "the reducer of state key 'five' is 5, which is no function; use one of the library, a named function or"
            " Reducer(name, function)",
        ),
        ("no-list", "add_chain", "add_chain was given the text 'ab' for several executors; pass a list"),
        (
            "edge-types", "edge 'a' -> 'text'",
            "edge 'a' -> 'text': 'a' sends bytes | int, 'text' takes str; change one of them or remove the edge",
        ),
        (
            "not-taken", "executor 'far'",
            "executor 'far' sends bytes, which none of its targets takes ('gone'); add a handler for it to one of them,"
            " or an edge to one that has it",
        ),
        (
            "nesting", "executor 'deep'",
            "executor 'deep' would nest workflows 65 levels deep; 64 are possible: use a loop inside of one workflow",
        ),
    ],
)  # fmt: skip
def test_a_problem_can_be_told_by_code_and_place(code, place, sentence) -> None:
    """For tools; the sentence is for people."""
    (one,) = [problem for problem in found(mistaken()) if problem.code == code and problem.place == place]
    assert one == sentence


def test_a_problem_can_be_copied_and_sent_to_another_process() -> None:
    """With the error that holds it."""
    with pytest.raises(WorkflowBuildError) as caught:
        lost().build()
    for twin in (copy.deepcopy(caught.value), pickle.loads(pickle.dumps(caught.value))):
        assert twin.problems == caught.value.problems
        assert [problem.code for problem in twin.problems] == [problem.code for problem in caught.value.problems]


def test_a_loop_without_an_exit_can_be_built() -> None:
    """Its limit ends it; whether a condition ever holds nobody can tell."""
    a, b = node("a"), node("b")
    assert WorkflowBuilder("loop", a).add_chain([a, b, a]).build().describe().limits.max_supersteps == 100


def test_cases_and_executors_may_come_from_a_generator() -> None:
    """They are looked at once."""

    @executor
    async def last(number: int) -> None: ...

    a = node("a")
    builder = WorkflowBuilder("generated", a).add_fan_out_edges(a, (node(id) for id in "bc"))
    builder.add_switch_case_edge_group("b", (case for case in [Case(bool, last), Default(a)]))
    assert len(builder.build().describe().edges) == 4


def test_the_page_on_errors_has_every_problem() -> None:
    """Each code of a problem has one row, in alphabetical order."""
    listed = [row[0].strip("`") for row in rows(DOCS / "errors.md", "Problems of a build")]
    assert listed == sorted(codes_in_source() | OF_ERRORS)
