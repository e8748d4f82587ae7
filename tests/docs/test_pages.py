"""The pages hang together, and list all of what they say they list."""

import inspect
import re
from collections import Counter
from pathlib import Path
from typing import get_args

import pytest

import rehydrate
import rehydrate.testing
from rehydrate import FunctionalContext, Reducer, Status, WorkflowBuilder, WorkflowContext, errors
from rehydrate.api.functional import FunctionalOptions
from rehydrate.api.workflow import RunOptions
from rehydrate.model.events import Event
from rehydrate.model.records import RECORD_TYPES
from rehydrate.runtime.call import ROWS
from rehydrate.runtime.draining import DrainEnd
from tests.docs.pages import DOCS, ROOT, anchors, links, name_of, pages, prose, rows

BRANCHES = {
    "Definition": errors.DefinitionError,
    "Call": errors.CallError,
    "Restore": errors.WorkflowCheckpointException,
    "Run": errors.RunError,
    "Store": errors.StoreError,
}
PAGES = pages()


def first_cells(page: str, heading: str) -> list[str]:
    """The first cells of a table, without the marks of code."""
    return [row[0].replace("`", "") for row in rows(DOCS / page, heading)]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    """Every link to a file of the checkout leads to one, and every link to a heading to one that is there."""
    for target in links(page):
        name, _, anchor = target.partition("#")
        there = (page.parent / name).resolve() if name else page
        assert there.exists(), target
        assert ROOT in there.parents, target
        assert not anchor or anchor in anchors(there), target


def test_every_page_can_be_reached_from_the_first() -> None:
    """Following links from the first page comes by every page."""
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        found = [(page.parent / target.partition("#")[0]).resolve() for target in links(page)]
        waiting += [there for there in found if there.suffix == ".md"]
    assert set(PAGES) - reached == set()


def test_the_index_names_every_page_and_example() -> None:
    """Each page beside the index, the decisions and each example is linked from there."""
    there = {(DOCS / target.partition("#")[0]).resolve() for target in links(DOCS / "index.md")}
    expected = {
        *DOCS.glob("*.md"),
        *DOCS.glob("howto/*.md"),
        *(ROOT / "examples").glob("*.py"),
        DOCS / "decisions" / "README.md",
    }
    assert expected - there == {DOCS / "index.md"}


def test_the_list_of_decisions_names_each() -> None:
    """The list has one line for each page, in the order of their numbers."""
    listed = [number for number, _ in rows(DOCS / "decisions" / "README.md", "Decisions")]
    assert listed == [f"[{page.name[:4]}]({page.name})" for page in sorted((DOCS / "decisions").glob("0*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_names_no_place_of_one_machine(page: Path) -> None:
    """No page names a folder that only the machine of its writer has."""
    assert re.findall(r"(?<![\w.:/])/(?:home|root|tmp|work|Users|opt)\b", page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("branch", BRANCHES)
def test_the_table_of_a_branch_has_all_its_errors(branch: str) -> None:
    """Each error of the branch has one row: its name, what else it is, its code, when it comes and what to do."""
    base = BRANCHES[branch]
    listed = {error: code for error, code, *rest in rows(DOCS / "errors.md", branch) if all(rest)}
    expected = {}
    for kind in (getattr(errors, name) for name in errors.__all__):
        if not issubclass(kind, base) or kind is base:
            continue
        python = [other.__name__ for other in (ValueError, TypeError) if issubclass(kind, other)]
        expected[f"`{kind.__name__}`" + "".join(f" (`{name}`)" for name in python)] = f"`{kind.code}`"
    assert listed == expected


def test_the_branches_are_those_of_the_library() -> None:
    """Every error is in one of the five branches, and the table of branches names each base and code."""
    listed = {base: code for _, base, code, _ in rows(DOCS / "errors.md", "Errors")}
    assert listed == {f"`{base.__name__}`": f"`{base.code}`" for base in BRANCHES.values()}
    kinds = [getattr(errors, name) for name in errors.__all__]
    outside = [kind for kind in kinds if not issubclass(kind, tuple(BRANCHES.values()))]
    assert outside == [errors.RehydrateError]


def test_no_two_errors_share_a_code() -> None:
    """A code leads to one class."""
    codes = Counter(getattr(errors, name).code for name in errors.__all__)
    assert [code for code, number in codes.items() if number > 1] == []


def test_the_glossary_has_every_status() -> None:
    """The statuses of the glossary are those of the library, in its order."""
    assert first_cells("glossary.md", "Statuses") == [status.value for status in Status]


def test_the_glossary_has_every_event() -> None:
    """The events of the glossary are those of the closed union, in its order."""
    assert first_cells("glossary.md", "Events") == [kind.__name__ for kind in get_args(Event)]


def test_the_page_on_operations_has_every_end_of_a_drained_turn() -> None:
    """The table has each way in which a turn ends when its process is drained, in the order of the code."""
    assert first_cells("operations.md", "Draining a process") == list(get_args(DrainEnd))


def test_the_page_on_testing_has_every_tool() -> None:
    """Each function and class of the testing tools is on the page; types of arguments and results need not be."""
    text = (DOCS / "testing.md").read_text(encoding="utf-8")
    names = set(rehydrate.testing.__all__) - {"Answers", "Driven", "Replayed", "StoreMaker", "Workflows"}
    assert [name for name in sorted(names) if name not in text] == []


def test_the_page_on_checkpoints_has_every_kind_of_record() -> None:
    """The kinds on the page are those that a checkpoint may hold, in their order."""
    assert first_cells("checkpoint.md", "The kinds of records") == list(RECORD_TYPES)


def test_the_page_on_resuming_has_every_row() -> None:
    """The table has the eight combinations once each; the two without a meaning are those that the library refuses."""
    meanings = {
        tuple(cell == "yes" for cell in row[:3]): row[3]
        for row in rows(DOCS / "resume.md", "Resume: one call to restore and go on")
    }
    assert len(meanings) == 8
    assert {given for given, meaning in meanings.items() if "error" not in meaning} == set(ROWS)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_has_one_title(page: Path) -> None:
    """A page begins with its title and has no second one."""
    assert page.read_text(encoding="utf-8").startswith("# ")
    assert len(re.findall(r"^# ", prose(page), re.MULTILINE)) == 1


def test_the_page_on_building_has_every_member_of_the_context() -> None:
    """The table has each public member of a context once."""
    listed = [cell.partition("(")[0] for cell in first_cells("building.md", "The context")]
    assert sorted(listed) == sorted(name for name in vars(WorkflowContext) if not name.startswith("_"))


def test_the_page_on_building_uses_every_call_of_the_builder() -> None:
    """Each call that adds edges, and each argument of the builder, is on the page."""
    text = (DOCS / "building.md").read_text(encoding="utf-8")
    calls = {name for name in vars(WorkflowBuilder) if not name.startswith("_")}
    assert [name for name in sorted(calls) if f"{name}(" not in text] == []
    given = set(inspect.signature(WorkflowBuilder).parameters) - {"name", "start_executor", "version"}
    assert [name for name in sorted(given) if f"{name}=" not in text] == []


def test_the_page_on_functions_has_every_member_of_the_context() -> None:
    """The table has each public member of the context of a function once."""
    listed = [name for row in rows(DOCS / "functional.md", "The clock, chance and ids") for name in names_in(row[0])]
    assert sorted(listed) == sorted(name for name in vars(FunctionalContext) if not name.startswith("_"))


def test_the_page_on_functions_has_every_argument_of_the_decorator() -> None:
    """The table has each argument of `@workflow` once."""
    listed = [name.removesuffix("=") for row in rows(DOCS / "functional.md", "Words") for name in names_in(row[0])]
    assert sorted(listed) == sorted(FunctionalOptions.__annotations__)


def names_in(cell: str) -> list[str]:
    """What a cell has as code."""
    return re.findall(r"`([^`]+)`", cell)


def test_the_page_on_building_has_every_reducer() -> None:
    """The table names the reducers that come with the library."""
    there = {name for name in rehydrate.__all__ if isinstance(getattr(rehydrate, name), Reducer)}
    assert set(first_cells("building.md", "State and reducers")) == there | {"a named function"}


def test_the_how_to_on_stores_names_every_call() -> None:
    """The order in which a store is written has each call of the protocol once."""
    below = (DOCS / "howto" / "write-a-store.md").read_text(encoding="utf-8").split("## From nothing\n", 1)[1]
    steps = re.findall(r"^\d\. (.*?)(?=^\d\. |^$)", below, re.MULTILINE | re.DOTALL)
    calls = [name for name in vars(rehydrate.CheckpointStorage) if not name.startswith("_")]
    assert {name for step in steps for name in names_in(step)} - {"False"} == set(calls)


def test_the_reference_explains_every_argument_of_a_call() -> None:
    """The table below the calls of a workflow has each argument of `run` once."""
    listed = [name.removesuffix("=") for name in first_cells("reference/running.md", "Arguments of a call")]
    assert sorted(listed) == sorted({"message", "stream", *RunOptions.__annotations__})


def test_the_handler_on_the_page_catches_what_the_table_says() -> None:
    """The statuses of a web handler are the same in its code and in the table, and every class is an error."""
    table = {
        row[0]: set(re.findall(r"`(\w+)`", row[1])) for row in rows(DOCS / "errors.md", "What a web handler catches")
    }
    code = (DOCS / "resume.md").read_text(encoding="utf-8").split("BY_STATUS = {\n", 1)[1].split("\n}\n", 1)[0]
    in_code = {
        status: set(re.findall(r"errors\.(\w+)", kinds))
        for status, kinds in re.findall(r"^    (\d+): \((.*?)\),$", code, re.MULTILINE | re.DOTALL)
    }
    assert table == in_code
    how_to = (DOCS / "howto" / "web-handler.md").read_text(encoding="utf-8")
    in_how_to = how_to.split("STATUSES = {\n", 1)[1].split("\n}\n", 1)[0]
    assert table == {
        status: set(re.findall(r"[A-Z]\w+", names))
        for status, names in re.findall(r"^    (\d+): (.*?),$", in_how_to, re.MULTILINE | re.DOTALL)
    }
    assert set().union(*table.values()) <= set(errors.__all__)
