"""Functional workflows as drawings and as data: what they call is shown, and what is called yields to them alone."""

import pytest

from rehydrate import FunctionalContext, WorkflowBuilder, WorkflowExecutor, executor, step, workflow
from tests.graph.read_drawings import read_dot, read_mermaid

READERS = {"mermaid": read_mermaid, "dot": read_dot}


@executor
async def double(number: int) -> int:
    return number * 2


@executor
async def halve(number: int) -> float:
    return number / 2


@step
def shown(number: int) -> str:
    return str(number)


doubled = WorkflowBuilder("doubled", double).add_edge(double, halve).build()


@workflow
async def letter(number: int) -> bytes:
    return b"%d" % number


@workflow(calls=[letter, doubled])
async def calling(number: int, ctx: FunctionalContext) -> str:
    (same,) = await ctx.call(doubled, number)
    return f"{same} {await ctx.call(letter, number)!r} {await shown(number)}"


@executor
async def upper(text: str) -> str:
    return text.upper()


def test_the_text_says_what_a_function_calls() -> None:
    """A line below the function for each workflow, whose box stands beside it."""
    assert calling.draw() == (
        "╭─ calling ────────────╮\n"
        "│ ▶ calling ← int      │\n"
        "│   ⇒ str              │\n"
        "│   ├⇄ doubled  calls  │\n"
        "│   └⇄ letter  calls   │\n"
        "│                      │\n"
        "│ ○ doubled            │\n"
        "│   ╭─ doubled ──────╮ │\n"
        "│   │ ▶ double ← int │ │\n"
        "│   │   └→ halve     │ │\n"
        "│   │                │ │\n"
        "│   │ ○ halve ← int  │ │\n"
        "│   │   ⇒ float      │ │\n"
        "│   ╰────────────────╯ │\n"
        "│                      │\n"
        "│ ○ letter             │\n"
        "│   ╭─ letter ───────╮ │\n"
        "│   │ ▶ letter ← int │ │\n"
        "│   │   ⇒ bytes      │ │\n"
        "│   ╰────────────────╯ │\n"
        "╰──────────────────────╯\n"
    )


@pytest.mark.parametrize("format", READERS)
def test_a_call_is_a_line_there_and_a_line_back(format) -> None:
    """The function calls into each box and what that gives comes back to it; only the function leads to the output."""
    seen = READERS[format](calling.draw(format))
    whole, back = {"mermaid": ("-->", "-.->"), "dot": ("", "style=dotted, constraint=false")}[format]
    inside = {"double", "halve", "letter"}
    lines = [(*ends, line) for ends, (_, _, line, _) in zip(seen.shown(), seen.arrows, strict=True)]
    assert [line for line in lines if not inside & set(line[:2])] == [
        ("start", "calling", "", whole),
        ("calling", "start", "calls", whole),
        ("output", "calling", "", back),
        ("calling", "start", "calls", whole),
        ("output", "calling", "", back),
        ("calling", "output", "", whole),
    ]
    round_corners = {"mermaid": "(", "dot": "shape=box, style=rounded"}[format]
    assert {seen.shapes[key] for key, label in seen.nodes.items() if label in {"calling", *inside}} == {round_corners}


def test_a_function_is_described_with_what_it_calls() -> None:
    """The function has its kind and the ids of what it calls, which yields nothing by itself."""
    function, graph, other = calling.describe().executors
    assert (function.kind, function.calls, function.yields) == ("body", ("doubled", "letter"), ("str",))
    assert (graph.kind, graph.calls, graph.yields, graph.sends) == ("workflow", (), (), ())
    assert graph.workflow == doubled.describe()
    assert other.nesting is not None
    assert other.nesting.forward_outputs == "caller"
    assert calling.describe().edges == ()


def test_what_a_function_calls_yields_nothing_to_the_graph_around() -> None:
    """The node behind the function takes what the function returns, and need not take what it has called for."""
    outer = WorkflowBuilder("outer", WorkflowExecutor(calling, "node")).add_chain(["node", upper]).build()
    assert outer.describe().executors[0].sends == ("str",)
    assert outer.run_sync(3).outputs == ["3.0 B'3' 3"]
