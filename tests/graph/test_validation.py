"""What a build must find: each problem names its place and what to do."""

from dataclasses import replace
from typing import Never

import pytest

from rehydrate.graph.context import WorkflowContext
from rehydrate.graph.definition import Reducer
from rehydrate.graph.edges import MultiSelectionGroup
from rehydrate.graph.executor import Executor, executor
from rehydrate.graph.graph_spec import unnumbered
from rehydrate.graph.handlers import handler, response_handler
from rehydrate.graph.problems import problem_at
from rehydrate.graph.sub_workflow import WorkflowExecutor
from rehydrate.graph.validation import notes, problems
from tests.graph.graphs import Built, defined, edge, fan_in, fan_out, graph, join, node, switch


class Silent(Executor): ...


class Twice(Executor):
    @handler
    async def one(self, message: int | str) -> None: ...

    @handler
    async def other(self, message: str | bytes) -> None: ...

    @response_handler
    async def yes(self, request: int, response: bool) -> None: ...

    @response_handler
    async def no(self, request: int, response: bool) -> None: ...


class Wrong(Executor):
    @handler
    async def one(self, message) -> None: ...


class HalfHooked(Executor):
    @handler
    async def on_int(self, message: int) -> None: ...

    def on_checkpoint_save(self) -> dict[str, object]:
        return {}


class Sends(Executor):
    @handler
    async def on_int(self, message: int, ctx: WorkflowContext[int]) -> None: ...


class HasHandler(WorkflowExecutor):
    @handler
    async def on_int(self, message: int) -> None: ...


def flow(*groups, nodes="ab", joins="", **settings):
    """Make a graph of executors of one letter that take and return int; the first is the start."""
    return graph(*(join(i) if i in joins else node(i) for i in nodes), groups=groups, **settings)


def child(takes=int, gives=int):
    """Make a small workflow."""
    return defined(graph(node("in", takes, gives), name="child"))


def selection(source, *targets):
    """Make a multi-selection."""
    return MultiSelectionGroup(tuple(unnumbered(source, target) for target in targets), list)


def test_a_right_graph_has_no_problems() -> None:
    """Loops, joins, switches and sub-workflows included."""
    spec = graph(
        node("a"), node("b", int, str), node("c", int, int | str | None), node("d", str, int), join("j", of=int | str),
        WorkflowExecutor(Built(child(str | int, str)), "sub"), Sends("e"),
        groups=[
            fan_out("a", "b", "c"), fan_in("j", "b", "c"), switch("j", ["sub", "a"]), edge("sub", "d"),
            edge("d", "e"), edge("e", "a", bool),
        ],
    )  # fmt: skip
    assert problems(spec) == []


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (flow(nodes="a", name="a/b"), "workflow name 'a/b' is not allowed."),
        (flow(nodes="a", version="2"), "version is '2'; use a whole number from 1 on"),
        (flow(nodes="a", version=[2]), "version is [2]; use a whole number from 1 on"),
        (flow(nodes="a", version=True), "version is True; use a whole number from 1 on"),
        (flow(nodes="a", max_supersteps=0), "max_supersteps is 0; use a whole number from 1 on"),
        (flow(nodes="a", max_concurrency=0), "max_concurrency is 0; use a whole number from 1 on, or None"),
        (flow(nodes="a", reducers={"": Reducer("add")}), "state key of a reducer '' is not allowed."),
        (flow(nodes="a", resources={"client": 5}), "resource 'client' is declared as 5; declare it by its class"),
        (flow(nodes="a", start="z"), "start executor 'z' is not in the graph; pass the executor itself"),
        (flow(nodes="aa"), "2 different executors have the id 'a'; give each an id of its own"),
        (flow(nodes="abc"), "executor 'c' cannot be reached from the start 'a'; add an edge to it or leave it out"),
        (flow(edge("a", "b"), edge("b", "z")), "edge 'b' -> 'z': there is no executor 'z'; add it by object"),
        (flow(edge("a", "b"), edge("a", "b")), "there is more than one edge 'a' -> 'b' and one has no condition"),
        (flow(edge("a", "b"), fan_out("a", "b")), "there is more than one edge 'a' -> 'b' and one has no condition"),
        (flow(fan_out("a", "b", "b")), "there is more than one edge 'a' -> 'b' and one has no condition"),
        (flow(edge("a", "b"), edge("a", "b", bool)), "there is more than one edge 'a' -> 'b' and one has no condition"),
        (
            flow(edge("a", "b", bool), edge("a", "b", bool)),
            "there are two of edge 'a' -> 'b' with the same names; name their conditions differently",
        ),
        (
            flow(switch("a", ["b", "c"]), switch("a", ["b", "c"]), nodes="abc"),
            "there are two of switch 'a' -> 'b', 'c' with the same names; name their conditions differently",
        ),
        (flow(switch("a", ["b"], cases=1)), "switch of 'a' has no default; end it with one Default(target)"),
        (
            flow(switch("a", ["b", "c", "d"], cases=1), nodes="abcd"),
            "switch of 'a' has 2 defaults; end it with one Default(target)",
        ),
        (flow(switch("a", ["b"])), "switch of 'a' has no case; add a Case, or use add_edge"),
        (flow(selection("a", "b", "b")), "selection of 'a' names 'b' 2 times; name each executor once"),
        (flow(fan_in("b", "a", "a"), joins="b"), "fan-in of 'b' names 'a' 2 times; name each executor once"),
        (
            flow(fan_in("b", "a", "b"), joins="b"),
            "fan-in into 'b' has 'b' among its sources; leave it out, a join cannot wait for itself",
        ),
        (
            flow(edge("a", "c"), fan_in("b", "a"), fan_in("b", "c"), nodes="abc", joins="b"),
            "2 fan-ins lead to 'b'; an executor can be the target of one only: join in steps",
        ),
        (graph(Silent("s")), "executor 's' has no handler; mark a method with @handler"),
        (
            graph(Twice("t")),
            "executor 't': handlers 'one' (int | str) and 'other' (bytes | str) can be equally exact for one message",
        ),
        (graph(Twice("t")), "executor 't': response handlers 'yes' and 'no' both take the pair (int, bool)"),
        (graph(Wrong("w")), "executor 'Wrong.one': parameter 'message' has no annotation."),
        (
            graph(HalfHooked("h")),
            "executor 'h' overrides only on_checkpoint_save; override both checkpoint hooks or neither",
        ),
        (
            graph(HasHandler(Built(child()), "c")),
            "executor 'c' runs a workflow and cannot have handlers; put them into an executor beside it",
        ),
    ],
)  # fmt: skip
def test_a_problem_is_found(spec, expected) -> None:
    """The text names executor or edge and says what to do."""
    assert [text for text in problems(spec) if text.startswith(expected)], problems(spec)


def test_an_id_that_was_changed_after_the_executor_was_made_is_checked() -> None:
    """Only the constructor checks it otherwise."""
    changed = node("a")
    changed.id = "a/b"
    assert problems(graph(changed))[0].startswith("executor id 'a/b' is not allowed.")


def test_problems_that_the_builder_met_come_first() -> None:
    """They are of the same list."""
    spec = replace(flow(nodes="abc"), problems=(problem_at("few-executors", "add_chain", "was given one", "add one"),))
    assert problems(spec)[0] == "add_chain was given one; add one"
    assert len(problems(spec)) == 3


def test_all_problems_are_reported_at_once() -> None:
    """One build is enough to see everything that is to be done."""
    spec = graph(
        node("a"), Silent("s"), Wrong("w"), groups=[edge("a", "s"), edge("a", "s"), edge("s", "w")], max_supersteps=-1
    )
    assert len(problems(spec)) == 4


@pytest.mark.parametrize(
    ("executors", "groups", "expected"),
    [
        (
            [node("a", int, int), node("b", str, None)],
            [edge("a", "b")],
            ["edge 'a' -> 'b': 'a' sends int, 'b' takes str; change one of them or remove the edge"],
        ),
        (
            [node("a", int, int | str), node("b", str, None), node("c", bytes | str, None)],
            [fan_out("a", "b", "c")],
            [
                "executor 'a' sends int, which none of its targets takes ('b', 'c'); add a handler for it to one of"
                " them, or an edge to one that has it"
            ],
        ),
        (
            [node("a", int, None), node("b")],
            [edge("a", "b")],
            [
                "executor 'a' has outgoing edges but says nothing of what it sends; annotate its context"
                " WorkflowContext[...], or what its function returns, or remove the edges"
            ],
        ),
        (
            [Sends("a")],
            [],
            [
                "executor 'a' says that it sends int but has no outgoing edge; add one, or use ctx.yield_output and"
                " WorkflowContext[Never, ...]"
            ],
        ),
        (
            [node("a"), node("j", int)],
            [fan_in("j", "a")],
            ["edge 'a' -> 'j': 'a' sends a list of int, 'j' takes int; change one of them or remove the edge"],
        ),
        (
            [WorkflowExecutor(Built(child(int, str)), "sub"), node("b", int, None)],
            [edge("sub", "b")],
            ["edge 'sub' -> 'b': 'sub' sends str, 'b' takes int; change one of them or remove the edge"],
        ),
        (
            [node("a", int, bytes), WorkflowExecutor(Built(child(int, str)), "sub")],
            [edge("a", "sub")],
            ["edge 'a' -> 'sub': 'a' sends bytes, 'sub' takes int; change one of them or remove the edge"],
        ),
        (
            [WorkflowExecutor(Built(child(int, None)), "sub"), node("b")],
            [edge("sub", "b")],
            [
                "executor 'sub' has outgoing edges but says nothing of what it sends; let an executor of the workflow"
                " yield something, or remove the edges"
            ],
        ),
    ],
)  # fmt: skip
def test_declared_types_must_fit_along_edges(executors, groups, expected) -> None:
    """A type that nothing takes, an edge that takes nothing, and sends without edges are problems."""
    assert problems(graph(*executors, groups=groups)) == expected


def test_a_join_needs_one_handler_for_what_all_its_sources_send() -> None:
    """A list holds something of each source."""

    class Join(Executor):
        @handler
        async def on_ints(self, values: list[int]) -> None: ...

        @handler
        async def on_texts(self, values: list[str]) -> None: ...

    spec = graph(
        node("s"), node("a", int, int), node("b", int, str), Join("j"),
        groups=[fan_out("s", "a", "b"), fan_in("j", "a", "b")],
    )  # fmt: skip
    assert problems(spec) == [
        "fan-in into 'j': one handler has to take a list of int | str, and it has handlers for list[int] |"
        " list[str]; let one of them take them all"
    ]


def test_workflows_cannot_be_nested_deeper_than_scopes_can() -> None:
    """It would fail in the run otherwise."""
    definition = child()
    for _ in range(64):
        definition = defined(graph(WorkflowExecutor(Built(definition), "in"), name="child"))
    assert problems(graph(WorkflowExecutor(Built(definition), "sub"))) == [
        "executor 'sub' would nest workflows 65 levels deep; 64 are possible: use a loop inside of one workflow"
    ]


def test_a_declared_base_class_is_no_problem() -> None:
    """What is sent may turn out to be the subclass that the target takes."""

    class Event: ...

    class Paid(Event): ...

    spec = graph(node("a", int, Event), node("b", Paid, None), groups=[edge("a", "b")])
    assert problems(spec) == []


def test_a_store_of_a_sub_workflow_is_noted_and_no_problem() -> None:
    """The parent's checkpoint holds the child either way."""
    spec = graph(WorkflowExecutor(Built(child(), checkpoint_storage=object()), "sub"), name="parent")
    assert problems(spec) == []
    assert notes(spec) == [
        "the sub-workflow of executor 'sub' has a store of its own, which is not used inside of workflow 'parent': the"
        " parent's checkpoint holds the whole tree"
    ]
    assert notes(graph(WorkflowExecutor(Built(child())))) == []


def test_a_function_can_yield_and_return() -> None:
    """What it returns is an output where no edge leaves it."""

    @executor
    async def last(message: int, ctx: WorkflowContext[Never, str]) -> bytes: ...

    assert problems(graph(last)) == []
