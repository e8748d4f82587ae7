"""Drawings: every kind of edge, nested boxes, and ids of any characters, in each format."""

import unicodedata
from dataclasses import dataclass
from typing import Never

import pytest

from rehydrate import (
    Case,
    Default,
    Executor,
    Retry,
    SubWorkflowRequestMessage,
    SubWorkflowResponseMessage,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    executor,
    handler,
    response_handler,
)
from rehydrate.demo.workflow import audit_workflow
from rehydrate.errors import WrongCallError
from rehydrate.graph.drawing_parts import visible
from tests.differential.building import build
from tests.differential.drawing import draw as plan
from tests.graph.graphs import join, node
from tests.graph.read_drawings import read_dot, read_mermaid

READERS = {"mermaid": read_mermaid, "dot": read_dot}
ODD = [
    "end", "subgraph", "graph", "node", "digraph", "strict", "default", "class", "a b", 'say "hi"', "it's", "brack]et",
    "pi|pe", "<b>bold</b>".replace("/", "\\"), "&lt;&amp;", "&amp;", "größe", "日本語", "😀", "e\u0301", "`code`",
    "**x**", "_it_", "1. one", "- item", "+ item", "back\\slash\\", "\\N\\G\\l", "%%{init: {}}%%", "%% remark",
    "fa:fa-car", ";", "{curly}", "(par)", "$$x^2$$", "o--", "x-->y", "@{ shape: start }", ":::cls",
    "\u202eevil", "\u200b", "\u00a0", " ", "-", ".", "_", "x" * 200,
]  # fmt: skip


@dataclass(frozen=True)
class Question:
    text: str


class Ask(Executor):
    @handler
    async def on_number(self, number: int, ctx: WorkflowContext[Never, int]) -> None: ...

    @response_handler
    async def on_answer(self, question: Question, answer: bool | None, ctx: WorkflowContext[Never, int]) -> None: ...


def is_big(number: int) -> bool:
    return number > 10


def pick(number: int, ids: list[str]) -> list[str]:
    return ids[:number]


def every_kind() -> Workflow:
    """One of each kind of edge, with and without a name."""
    a, b, c, d, e = (node(id) for id in "abcde")
    last = join("last", None)
    return (
        WorkflowBuilder("kinds", a)
        .add_fan_out_edges(a, [b, c])
        .add_switch_case_edge_group(b, [Case(is_big, d), Case(lambda number: number < 0, e), Default(b)])
        .add_multi_selection_edge_group(c, [d, e], pick)
        .add_multi_selection_edge_group(c, [e, c], lambda number, ids: ids, name="by hand")
        .add_edge(d, a, is_big)
        .add_edge(d, e, lambda number: number == 7)
        .add_fan_in_edges([e, d], last)
        .build()
    )


def twice() -> Workflow:
    """A child that stands behind two nodes, and a grandchild in it."""
    inner = WorkflowBuilder("inner", Ask("ask")).build()
    child = WorkflowBuilder("child", WorkflowExecutor(inner, "inner"), version=2).build()
    left, right = WorkflowExecutor(child, "left"), WorkflowExecutor(child, "right")
    start, last = node("start"), join("last", str)
    builder = WorkflowBuilder("parent", start).add_fan_out_edges(start, [left, right])
    return builder.add_fan_in_edges([right, left], last).build()


def settings() -> Workflow:
    """Each way in which an executor is run that is not the default."""

    @executor(id="flaky", retry=Retry(attempts=4), timeout=2.5)
    async def flaky(number: int) -> int:
        return number

    @executor(id="gather", timeout=1)
    async def gather(numbers: list[int]) -> int:
        return len(numbers)

    @executor(id="answer")
    async def answer(
        asked: SubWorkflowRequestMessage, ctx: WorkflowContext[SubWorkflowResponseMessage | int]
    ) -> None: ...

    inner = WorkflowBuilder("inner", Ask("ask")).build()
    shared = WorkflowExecutor(
        inner,
        "shared",
        isolation="shared",
        requests="intercept",
        forward_outputs="output",
        timeout=60,
        inputs={"above": "below", "an order that came": "order"},
        outputs={"made": "kept"},
    )
    kept, last = WorkflowExecutor(inner, "kept", inputs={"above": "below"}), node("last")
    builder = WorkflowBuilder("settings", flaky).add_edge(flaky, shared).add_edge(flaky, kept)
    builder.add_edge(kept, last, is_big, forward_when="finished").add_edge(shared, answer)
    return builder.add_fan_in_edges([kept, answer], gather).build()


def mapped() -> Workflow:
    """A list taken apart, a condition on the way, and one list of what came of it."""
    split, work, check, gather = node("split", int, list[int]), node("work"), node("check"), node("gather", list[int])
    builder = WorkflowBuilder("mapped", split).add_map_edge(split, work, into=gather)
    return builder.add_edge(work, check).add_edge(check, gather, is_big).build()


def starlike(ids: list[str]) -> Workflow:
    """A start, and an executor of each id behind it."""
    start = node("start")
    return WorkflowBuilder("star", start).add_fan_out_edges(start, [node(id) for id in ids]).build()


def cells(line: str) -> int:
    return sum(
        2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in line if not unicodedata.combining(char)
    )


def test_the_text_of_a_workflow_can_be_read_in_a_terminal() -> None:
    """The start, what is taken, asked and yielded, and the edges below each executor; workflows are boxes."""
    assert twice().draw() == (
        "╭─ parent ───────────────────────────────╮\n"
        "│ ▶ start ← int                          │\n"
        "│   ├→ left   fan-out                    │\n"
        "│   └→ right  fan-out                    │\n"
        "│                                        │\n"
        "│ ○ left                                 │\n"
        "│   ╭─ child (version 2) ──────────────╮ │\n"
        "│   │ ▶ inner                          │ │\n"
        "│   │   ╭─ inner ────────────────────╮ │ │\n"
        "│   │   │ ▶ ask ← int                │ │ │\n"
        "│   │   │   ? Question → None | bool │ │ │\n"
        "│   │   │   ⇒ int                    │ │ │\n"
        "│   │   ╰────────────────────────────╯ │ │\n"
        "│   ╰──────────────────────────────────╯ │\n"
        "│   └→ last  join 2 of 2                 │\n"
        "│                                        │\n"
        "│ ○ right                                │\n"
        "│   ╭─ child (version 2) ──────────────╮ │\n"
        "│   │ ▶ inner                          │ │\n"
        "│   │   ╭─ inner ────────────────────╮ │ │\n"
        "│   │   │ ▶ ask ← int                │ │ │\n"
        "│   │   │   ? Question → None | bool │ │ │\n"
        "│   │   │   ⇒ int                    │ │ │\n"
        "│   │   ╰────────────────────────────╯ │ │\n"
        "│   ╰──────────────────────────────────╯ │\n"
        "│   └→ last  join 1 of 2                 │\n"
        "│                                        │\n"
        "│ ○ last ← list[int]                     │\n"
        "│   & right, left                        │\n"
        "│   ⇒ str                                │\n"
        "╰────────────────────────────────────────╯\n"
    )


def test_the_text_names_what_decides() -> None:
    """Conditions, cases, selections and places in joins stand beside the target; `↑` is one above."""
    text = every_kind().draw("text")
    lines = [line.strip("│ ").rstrip() for line in text.splitlines()]
    assert [line for line in lines if "→" in line] == [
        "├→ b  fan-out",
        "└→ c  fan-out",
        "├→ d    case 1: is_big",
        "├→ e    case 2",
        "└→ b ↑  default",
        "├→ d    selection 1: pick",
        "├→ e    selection 1: pick",
        "├→ e    selection 2: by hand",
        "└→ c ↑  selection 2: by hand",
        "├→ a ↑   if is_big",
        "├→ e     if (unnamed)",
        "└→ last  join 2 of 2",
        "└→ last  join 1 of 2",
    ]


def test_the_text_says_how_an_executor_is_run() -> None:
    """Only what is not the default: attempts, seconds, and how a sub-workflow is nested; what is too long for a line
    goes on in the next."""
    lines = [line.strip("│ ").rstrip() for line in settings().draw().splitlines()]
    assert [line for line in lines if line.startswith("~")] == [
        "~ 4 attempts, 2.5 s at most",
        "~ above in as below",
        "~ 60 s at most, shared, requests intercepted, outputs leave",
        "~ above in as below, an order that came in as order, made out as kept",
        "~ 1 s at most",
    ]
    assert [line for line in lines if "→" in line and "Question" not in line] == [
        "├→ kept",
        "└→ shared",
        "├→ last    if is_big, when finished",
        "└→ gather  join 1 of 2",
        "└→ answer",
        "└→ gather  join 2 of 2",
    ]


@pytest.mark.parametrize("format", READERS)
def test_small_print_says_how_an_executor_is_run(format) -> None:
    """The words of the text drawing, in short lines; those of a sub-workflow stand in its box."""
    seen = READERS[format](settings().draw(format))
    assert {seen.boxes.get(key) or seen.nodes[key]: rules for key, rules in seen.rules.items()} == {
        "flaky": ["4 attempts, 2.5 s at most"],
        "kept: inner": ["above in as below"],
        "shared: inner": [
            "60 s at most, shared",
            "requests intercepted",
            "outputs leave",
            "above in as below",
            "an order that came in as order",
            "made out as kept",
        ],
        "gather": ["1 s at most"],
    }
    assert [each for each in seen.shown() if "finished" in each[2]] == [("output", "last", "if is_big, when finished")]


@pytest.mark.parametrize("format", READERS)
def test_small_print_may_have_any_characters(format) -> None:
    """State keys are in it, and the ids that stand above it are escaped as without."""

    def retried(id: str) -> Executor:
        @executor(id=id, retry=Retry(attempts=3), message=int, sends=(), yields=(), returns=int)
        def run(message): ...

        return run

    start = node("start")
    keys = {key: f"k{number}" for number, key in enumerate([*ODD, "a/b", "&#38;", "#38;", "</small>", "</font>>"])}
    sub = WorkflowExecutor(WorkflowBuilder("inner", node("only", int, None)).build(), "sub", inputs=keys)
    workflow = WorkflowBuilder("odd", start).add_fan_out_edges(start, [sub, *map(retried, ODD)]).build()
    seen = READERS[format](workflow.draw(format))
    small = {seen.nodes[key]: rules for key, rules in seen.rules.items() if key in seen.nodes}
    assert small == {visible(id): ["3 attempts"] for id in ODD}
    (box,) = [rules for key, rules in seen.rules.items() if key in seen.boxes]
    assert ", ".join(box) == ", ".join(visible(f"{key} in as {keys[key]}") for key in sorted(keys))


@pytest.mark.parametrize("format", READERS)
def test_the_edges_of_each_kind_are_told_apart(format) -> None:
    """By their labels, and by the style of the line."""
    seen = READERS[format](every_kind().draw(format))
    conditional, whole, joined = {
        "mermaid": ("-.->", "-->", "==>"),
        "dot": ("style=dashed", "", "style=bold"),
    }[format]
    assert [(*ends, line) for ends, (_, _, line, _) in zip(seen.shown(), seen.arrows, strict=True)] == [
        ("start", "a", "", whole),
        ("a", "b", "fan-out", whole),
        ("a", "c", "fan-out", whole),
        ("b", "d", "case 1: is_big", conditional),
        ("b", "e", "case 2", conditional),
        ("b", "b", "default", conditional),
        ("c", "d", "selection 1: pick", conditional),
        ("c", "e", "selection 1: pick", conditional),
        ("c", "e", "selection 2: by hand", conditional),
        ("c", "c", "selection 2: by hand", conditional),
        ("d", "a", "if is_big", conditional),
        ("d", "e", "if (unnamed)", conditional),
        ("d", "last", "join 2 of 2", joined),
        ("e", "last", "join 1 of 2", joined),
    ]


def test_the_text_of_a_map_says_what_is_taken_apart_and_where_it_comes_together() -> None:
    """The edge to the worker names the end; the end names whose items it gets."""
    assert mapped().draw() == (
        "╭─ mapped ───────────────────────────────╮\n"
        "│ ▶ split ← int                          │\n"
        "│   └→ work  map: each item, into gather │\n"
        "│                                        │\n"
        "│ ○ work ← int                           │\n"
        "│   └→ check                             │\n"
        "│                                        │\n"
        "│ ○ check ← int                          │\n"
        "│   └→ gather  if is_big, one list       │\n"
        "│                                        │\n"
        "│ ○ gather ← list[int]                   │\n"
        "│   & the items of split                 │\n"
        "│   ⇒ int                                │\n"
        "╰────────────────────────────────────────╯\n"
    )


@pytest.mark.parametrize("format", READERS)
def test_a_map_has_lines_of_its_own(format) -> None:
    """Bold where a list is taken apart and where one comes together, as at a join."""
    seen = READERS[format](mapped().draw(format))
    bold, whole = {"mermaid": ("==>", "-->"), "dot": ("style=bold", "")}[format]
    assert [(*ends, line) for ends, (_, _, line, _) in zip(seen.shown(), seen.arrows, strict=True)][1:-1] == [
        ("split", "work", "map: each item, into gather", bold),
        ("work", "check", "", whole),
        ("check", "gather", "if is_big, one list", bold),
    ]
    assert seen.shapes["n4"] == {"mermaid": "{{", "dot": "shape=hexagon"}[format]


@pytest.mark.parametrize("format", READERS)
def test_a_child_used_twice_is_two_boxes(format) -> None:
    """Case 54: each with a start, an executor, a question and an output of its own, and boxes in boxes."""
    seen = READERS[format](twice().draw(format))
    assert list(seen.boxes.values()) == [
        "parent",
        "left: child (version 2)",
        "inner",
        "right: child (version 2)",
        "inner",
    ]
    outer, left, inner_left, right, inner_right = seen.boxes
    assert [seen.within[key] for key in seen.boxes] == ["", outer, left, outer, right]
    for box in (inner_left, inner_right):
        inside = [seen.nodes[key] for key in seen.nodes if seen.within[key] == box]
        assert inside == ["start", "ask", "asks Question → None | bool", "output"]


@pytest.mark.parametrize("format", READERS)
def test_arrows_lead_through_a_box(format) -> None:
    """Into its start, out of its output, and a question hangs on who asks it."""
    seen = READERS[format](twice().draw(format))
    paths = {
        (seen.within[source], seen.nodes[source], seen.within[target], seen.nodes[target])
        for source, target, _, _ in seen.arrows
    }
    outer, left, inner, *_ = seen.boxes
    assert {
        (outer, "start", left, "start"),
        (left, "start", inner, "start"),
        (inner, "start", inner, "ask"),
        (inner, "ask", inner, "asks Question → None | bool"),
        (inner, "ask", inner, "output"),
        (inner, "output", left, "output"),
        (left, "output", outer, "last"),
        (outer, "last", outer, "output"),
    } <= paths


@pytest.mark.parametrize("format", READERS)
def test_ids_of_any_characters_are_shown_as_they_are(format) -> None:
    """Case 54: what has a meaning in the format is escaped; what cannot be printed is shown as an escape."""
    seen = READERS[format](starlike(ODD).draw(format))
    shown = [label for label in seen.nodes.values() if label not in ("start", "output")]
    assert sorted(shown) == sorted(visible(id) for id in ODD)
    assert {visible("\u202eevil"), visible("\u200b"), visible("\u00a0")} == {"\\u202eevil", "\\u200b", "\\xa0"}


@pytest.mark.parametrize("format", READERS)
def test_names_of_conditions_and_boxes_may_have_any_characters(format) -> None:
    """They are labels like ids; the middle of one without end is left out."""
    a, b = node('a"]'), node("b")
    builder = WorkflowBuilder('a "work"flow]', WorkflowExecutor(WorkflowBuilder('in|ner"', a).build(), "<i>"))
    builder.add_edge("<i>", b, is_big, name='"; end]|').add_edge("<i>", b, is_big, name="very " * 40)
    seen = READERS[format](builder.build().draw(format))
    assert list(seen.boxes.values()) == ['a "work"flow]', '<i>: in|ner"']
    first, second = (label for _, _, label in seen.shown() if label)
    assert first == 'if "; end]|'
    assert (len(second), second[:8], second.count("…")) == (200, "if very ", 1)


def test_the_lines_of_the_text_end_below_each_other() -> None:
    """Wide and combining characters are counted as a terminal does, and no id makes a line too long."""
    for workflow in (starlike(ODD), every_kind(), twice(), mapped(), settings(), audit_workflow()):
        widths = {cells(line) for line in workflow.draw().splitlines()}
        assert len(widths) == 1
        assert max(widths) <= 80


@pytest.mark.parametrize("seed", range(20))
def test_every_random_graph_can_be_drawn(seed) -> None:
    """Loops, joins, switches and children at any depth; both readers see the same."""
    workflow = build(plan(seed))
    mermaid, dot = read_mermaid(workflow.draw("mermaid")), read_dot(workflow.draw("dot"))
    assert (mermaid.boxes, mermaid.nodes, mermaid.within) == (dot.boxes, dot.nodes, dot.within)
    assert mermaid.rules == dot.rules
    assert mermaid.shown() == dot.shown()
    assert len({cells(line) for line in workflow.draw("text").splitlines()}) == 1


@pytest.mark.parametrize("format", ["text", "svg", *READERS])
def test_the_order_of_building_does_not_show(format) -> None:
    """The same graph gives the same drawing."""
    nodes = {id: node(id) for id in "abc"}

    def built(*targets: str) -> Workflow:
        builder = WorkflowBuilder("same", nodes["a"])
        for target in targets:
            builder.add_edge(nodes["a"], nodes[target])
        return builder.build()

    assert built("b", "c").draw(format) == built("c", "b").draw(format)


def test_a_format_that_is_none_is_refused() -> None:
    """The error names those that there are."""
    with pytest.raises(WrongCallError) as caught:
        starlike(["a"]).draw("png")
    assert str(caught.value) == "there is no drawing of the format 'png'. Use one of 'text', 'mermaid', 'dot', 'svg'."


def test_functions_and_classes_have_shapes_of_their_own() -> None:
    """A join's target has another, whatever it is."""

    @executor
    async def last(numbers: list[int]) -> int: ...

    class Wide(Executor):
        @handler
        async def on_number(self, number: int, ctx: WorkflowContext[int]) -> None: ...

    start, wide = node("start"), Wide("wide")
    workflow = WorkflowBuilder("shapes", start).add_edge(start, wide).add_fan_in_edges([wide], last).build()
    seen = read_mermaid(workflow.draw("mermaid"))
    by_label = {seen.nodes[key]: shape for key, shape in seen.shapes.items() if key[-1].isdigit()}
    assert by_label == {"start": "(", "wide": "[", "last": "{{"}
