"""`workflow.describe()`: the whole tree as plain data."""

import json
from dataclasses import asdict

from rehydrate import (
    Case,
    Default,
    Executor,
    Reducer,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    append,
    checkpointable,
    executor,
    handler,
    response_handler,
)
from rehydrate.demo.workflow import audit_workflow
from rehydrate.graph.description import (
    EdgeDescription,
    ExecutorDescription,
    JoinDescription,
    LimitsDescription,
    NestingDescription,
    PoliciesDescription,
    RequestDescription,
    ResourceDescription,
    StateKeyDescription,
    WorkflowDescription,
)
from tests.differential.building import build
from tests.differential.drawing import draw as plan
from tests.graph.graphs import join, node

PLAIN = PoliciesDescription(instance_per_scope=False, in_threads=())


class Client: ...


class Desk(Executor):
    @handler
    def on_amount(self, amount: int, ctx: WorkflowContext[str | bytes, float]) -> None: ...

    @response_handler
    async def on_answer(self, question: str, answer: bool | None, ctx: WorkflowContext[str]) -> None: ...

    def on_checkpoint_save(self) -> dict[str, object]:
        return {}

    def on_checkpoint_restore(self, state: dict[str, object]) -> None: ...


@executor
async def last(text: str | bytes) -> list[int]: ...


def is_big(text: str) -> bool:
    return len(text) > 10


def test_a_workflow_is_described_with_all_below_it() -> None:
    """Name, version, executors with what goes in and out, edges, state, resources and limits."""
    inner = WorkflowBuilder("inner", last, max_supersteps=5).build()
    desk = Desk("desk")
    builder = WorkflowBuilder(
        "outer",
        desk,
        version=3,
        reducers={"lines": append, "best": Reducer("longest", max)},
        resources={"client": Client},
        max_concurrency=4,
    )
    workflow = builder.add_edge(desk, WorkflowExecutor(inner, "node"), is_big).build()
    assert workflow.describe() == WorkflowDescription(
        name="outer",
        version=3,
        start="desk",
        executors=(
            ExecutorDescription(
                id="desk",
                kind="class",
                takes=("int",),
                sends=("str", "bytes"),
                yields=("float",),
                asks=(RequestDescription("str", "None | bool"),),
                policies=PoliciesDescription(instance_per_scope=True, in_threads=("on_amount",)),
            ),
            ExecutorDescription(
                id="node",
                kind="workflow",
                takes=("str", "bytes"),
                sends=(),
                yields=("list[int]",),
                asks=(),
                policies=PLAIN,
                workflow=WorkflowDescription(
                    name="inner",
                    version=1,
                    start="last",
                    executors=(
                        ExecutorDescription(
                            id="last",
                            kind="function",
                            takes=("str", "bytes"),
                            sends=(),
                            yields=("list[int]",),
                            asks=(),
                            policies=PLAIN,
                        ),
                    ),
                    edges=(),
                    joins=(),
                    state=(),
                    resources=(),
                    limits=LimitsDescription(max_supersteps=5, max_concurrency=None),
                ),
                nesting=NestingDescription("isolated", "propagate", "output", (), (), None),
            ),
        ),
        edges=(EdgeDescription("desk", "node", "edge", condition="is_big"),),
        joins=(),
        state=(StateKeyDescription("best", "longest"), StateKeyDescription("lines", "append")),
        resources=(ResourceDescription("client", "Client"),),
        limits=LimitsDescription(max_supersteps=100, max_concurrency=4),
    )


def test_each_kind_of_edge_is_described() -> None:
    """Groups and places are counted from 1; a default has no condition, a lambda no name."""
    a, b, c, d = (node(id) for id in "abcd")
    builder = (
        WorkflowBuilder("kinds", a)
        .add_fan_out_edges(a, [b, c])
        .add_switch_case_edge_group(b, [Case(is_big, d), Default(a)])
        .add_switch_case_edge_group(b, [Case(lambda text: True, d, name="always"), Default(b)])
        .add_multi_selection_edge_group(c, [d, a], lambda text, ids: ids)
        .add_fan_in_edges([d, c], join("j", None))
    )
    description = builder.build().describe()
    assert description.edges == (
        EdgeDescription("a", "b", "fan-out", 1, 1),
        EdgeDescription("a", "c", "fan-out", 1, 2),
        EdgeDescription("b", "d", "switch", 1, 1, "is_big"),
        EdgeDescription("b", "a", "switch", 1, 2),
        EdgeDescription("b", "d", "switch", 2, 1, "always"),
        EdgeDescription("b", "b", "switch", 2, 2),
        EdgeDescription("c", "d", "selection", 1, 1, "(unnamed)"),
        EdgeDescription("c", "a", "selection", 1, 2, "(unnamed)"),
        EdgeDescription("c", "j", "join", 1, 2),
        EdgeDescription("d", "j", "join", 1, 1),
    )
    assert description.joins == (JoinDescription("j", ("d", "c")),)


def test_a_map_is_described_by_its_edges() -> None:
    """What takes the list apart names where it comes together; what leads there is marked, also where it was added."""
    split, work = node("split", int, list[int]), node("work")
    edges = WorkflowBuilder("maps", split).add_map_edge(split, work, into=join("end")).build().describe().edges
    assert edges == (
        EdgeDescription("split", "work", "map", into="end"),
        EdgeDescription("work", "end", "edge", gathers=True),
    )


def test_an_edge_of_a_sub_workflow_says_when_it_passes_on() -> None:
    """At each rest, and into a join once the scope has finished."""
    child = WorkflowExecutor(WorkflowBuilder("child", node("in")).build(), "child")
    start = node("start")
    builder = WorkflowBuilder("parent", start).add_fan_out_edges(start, [child, node("x")]).add_edge(child, node("y"))
    edges = builder.add_fan_in_edges([child, "x"], join("j")).build().describe().edges
    assert [(edge.source, edge.target, edge.forward_when) for edge in edges if edge.source != "start"] == [
        ("child", "y", "rest"),
        ("child", "j", "finished"),
        ("x", "j", None),
    ]


def test_types_have_the_names_that_they_are_stored_by() -> None:
    """As in checkpoints, so that the two can be laid side by side."""

    @checkpointable(name="claim")
    class Claim(dict[str, int]): ...

    @executor
    async def take(claim: Claim) -> None: ...

    (described,) = WorkflowBuilder("named", take).build().describe().executors
    assert described.takes == ("claim",)


def test_a_description_can_be_written_as_json() -> None:
    """Nothing in it is more than text, numbers, truth values, lists and dicts."""
    for workflow in (audit_workflow(), build(plan(8))):
        described = asdict(workflow.describe())
        assert json.loads(json.dumps(described))["name"] == workflow.name
        assert {type(value) for value in flat(described)} <= {str, int, float, bool, type(None)}


def test_two_builds_of_one_graph_have_equal_descriptions() -> None:
    """It may be compared, as in a test of one's own."""
    assert audit_workflow().describe() == audit_workflow().describe()
    assert audit_workflow().describe() != build(plan(0)).describe()


def flat(value):
    """Every leaf of nested lists and dicts."""
    if isinstance(value, dict):
        return [leaf for each in value.values() for leaf in flat(each)]
    if isinstance(value, list | tuple):
        return [leaf for each in value for leaf in flat(each)]
    return [value]
