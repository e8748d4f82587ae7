"""The SVG drawing: what stands in it, that nothing lies over another, and that no text is read as something else."""

from itertools import combinations, pairwise
from xml.etree import ElementTree as ET

import pytest

from rehydrate import Workflow, WorkflowBuilder, WorkflowExecutor
from rehydrate.demo.workflow import audit_workflow
from rehydrate.graph.drawing_boxes import Box, boxes_of
from rehydrate.graph.drawing_parts import visible
from rehydrate.graph.drawing_places import Placed, placed
from tests.differential.building import build
from tests.differential.drawing import draw as plan
from tests.graph.graphs import node
from tests.graph.read_drawings import read_dot
from tests.graph.test_drawing import ODD, every_kind, is_big, mapped, settings, starlike, twice

SVG = "{http://www.w3.org/2000/svg}"
MADE = {"kinds": every_kind, "twice": twice, "settings": settings, "mapped": mapped, "audit": audit_workflow}


def texts(workflow: Workflow) -> list[str]:
    """What a reader sees written: a text's own words, or all of them where it was cut."""
    root = ET.fromstring(workflow.draw("svg"))
    return [found.findtext(f"{SVG}title") or found.text or "" for found in root.iter(f"{SVG}text")]


def boxes(place: Placed):
    yield place
    for each in place.inside:
        if isinstance(each.thing, Box):
            yield from boxes(each)


def whole(workflow: Workflow) -> Placed:
    return placed(boxes_of(workflow.describe()))


def apart(one: Placed, other: Placed) -> bool:
    return (
        one.x + one.width <= other.x
        or other.x + other.width <= one.x
        or one.y + one.height <= other.y
        or other.y + other.height <= one.y
    )


def is_in(point, place: Placed, by: float = 0.0) -> bool:
    x, y = point
    return place.x - by <= x <= place.x + place.width + by and place.y - by <= y <= place.y + place.height + by


@pytest.mark.parametrize("name", MADE)
def test_the_picture_says_all_that_the_graph_for_graphviz_says(name) -> None:
    """Titles, ids, questions, small print and labels of edges; marks have a tooltip instead of a text."""
    workflow = MADE[name]()
    seen = read_dot(workflow.draw("dot"))
    loops = [label for source, target, _, label in seen.arrows if source == target]
    labels = [label for source, target, _, label in seen.arrows if label and source != target]
    nodes = [label for key, label in seen.nodes.items() if not key.endswith(("in", "out"))]
    rules = [rule for some in seen.rules.values() for rule in some]
    assert sorted(texts(workflow)) == sorted([*seen.boxes.values(), *nodes, *rules, *labels, *loops])


@pytest.mark.parametrize("workflow", [*(make() for make in MADE.values()), *(build(plan(seed)) for seed in range(7))])
def test_nothing_lies_over_another(workflow) -> None:
    """Nodes and boxes side by side, all inside of their box, also of random graphs with loops and children."""
    for box in boxes(whole(workflow)):
        assert all(apart(one, other) for one, other in combinations(box.inside, 2))
        for each in box.inside:
            assert 0 < each.x < each.x + each.width < box.width
            assert 20 < each.y < each.y + each.height < box.height


@pytest.mark.parametrize("workflow", [*(make() for make in MADE.values()), *(build(plan(seed)) for seed in range(7))])
def test_lines_lead_from_end_to_end_and_through_nothing_else(workflow) -> None:
    """Each begins and ends at its nodes, or in their boxes, and meets no other on the way."""
    for box in boxes(whole(workflow)):
        by_key = {}
        for each in box.inside:
            key = each.thing.key
            by_key.update({f"{key}in": each, f"{key}out": each} if isinstance(each.thing, Box) else {key: each})
        arrows = [a for a in box.thing.arrows if by_key[a.source] is not by_key[a.target]]
        lines = [line for line in box.lines if not line.loop]
        for arrow, line in zip(arrows, lines, strict=True):
            source, target = by_key[arrow.source], by_key[arrow.target]
            assert is_in(line.points[0], source, 0.1)
            assert is_in(line.points[-1], target, 0.1)
            ways = [point for start, end in pairwise(line.points) for point in sampled(start, end)]
            others = [each for each in box.inside if each is not source and each is not target]
            assert not [each.label for each in others if any(is_in(point, each, -0.1) for point in ways)]


def sampled(start, end):
    """Points of a stretch as it is drawn: a curve that begins and ends upright."""
    for step in range(11):
        t = step / 10
        eased = 3 * t * t - 2 * t * t * t
        aside = start[0] + (end[0] - start[0]) * eased
        yield aside, start[1] + (end[1] - start[1]) * (1.5 * t - 1.5 * t * t + t * t * t)


def test_ids_of_any_characters_are_words_in_the_picture() -> None:
    """They parse as they are; what cannot be printed is an escape, and nothing is a tag, an entity or a script."""
    shown = [text for text in texts(starlike(ODD)) if text not in ("fan-out", "star", "start")]
    assert sorted(shown) == sorted(visible(id) for id in ODD)
    root = ET.fromstring(starlike([*ODD, "<script>alert(1)<\\script>", "]]>", "\ufffe"]).draw("svg"))
    assert {element.tag for element in root.iter()} == {
        f"{SVG}{tag}" for tag in ("svg", "g", "title", "text", "rect", "circle", "path")
    }
    names = {name for element in root.iter() for name in element.attrib}
    assert not {name for name in names if name in {"id", "style", "class", "href"} or name.startswith("on")}


def test_a_long_text_is_cut_and_whole_in_its_tooltip() -> None:
    """So that one long id or condition does not make the picture as wide."""
    workflow = starlike(["x" * 200])
    root = ET.fromstring(workflow.draw("svg"))
    (found,) = [text for text in root.iter(f"{SVG}text") if (text.text or "").startswith("xxx")]
    assert (len(found.text), found.findtext(f"{SVG}title")) == (44, "x" * 200)
    assert float(root.get("width")) < 500


def test_a_loop_to_the_node_itself_stands_beside_it_with_all_its_labels() -> None:
    """Two loops of one node are one line with both labels."""
    a = node("a")
    workflow = WorkflowBuilder("loops", a).add_edge(a, a, is_big).add_edge(a, a, is_big, name="again").build()
    (loop,) = [line for line in whole(workflow).lines if line.loop]
    assert (loop.style, loop.label) == ("conditional", "if is_big; if again")


def test_styles_of_lines_tell_the_kinds_of_edges_apart() -> None:
    """Those that not every message takes have gaps, and lists are bold."""
    root = ET.fromstring(every_kind().draw("svg"))
    lines = [path for path in root.iter(f"{SVG}path") if path.get("fill") == "none"]
    assert len([line for line in lines if line.get("stroke-dasharray") == "5 3"]) == 9
    assert len([line for line in lines if line.get("stroke-width") == "2.2"]) == 2
    assert len(lines) == 14


def test_a_box_in_a_box_stands_in_it() -> None:
    """The picture is nested as the workflows are, and its texts keep that order."""
    inner = WorkflowBuilder("inner", node("only")).build()
    middle = WorkflowBuilder("middle", WorkflowExecutor(inner, "inner")).build()
    workflow = WorkflowBuilder("outer", WorkflowExecutor(middle, "middle")).build()
    root = ET.fromstring(workflow.draw("svg"))
    (deep,) = root.findall(f"{SVG}g/{SVG}g/{SVG}g")
    assert [text.text for text in deep.iter(f"{SVG}text")] == ["inner", "only"]


def test_the_same_graph_is_the_same_picture() -> None:
    """Byte by byte, however often it is drawn."""
    assert every_kind().draw("svg") == every_kind().draw("svg")
    assert build(plan(3)).draw("svg") == build(plan(3)).draw("svg")
