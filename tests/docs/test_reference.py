"""The reference has every public name once, and the site's list of pages has every page."""

import importlib
import inspect
import re
from collections import Counter
from types import ModuleType

import pytest

import rehydrate
from rehydrate.graph import description
from tests.docs.pages import DOCS, ROOT


def is_described(it: object) -> bool:
    """Tell whether something is one of the classes of which a description is made."""
    return isinstance(it, type) and it.__module__ == description.__name__ and it.__name__ not in rehydrate.__all__


REFERENCE = DOCS / "reference"
#: Public modules that list their names.
LISTED = (
    "rehydrate",
    "rehydrate.agents",
    "rehydrate.errors",
    "rehydrate.ports",
    "rehydrate.testing",
    "rehydrate.testing.store_contract",
)
#: Public modules in which every class and alias is public that is defined there.
WHOLE = ("rehydrate.model.events", "rehydrate.model.checkpoint")
#: What has a place in the reference and is in no list: a base for stores, what needs an extra or a notebook, and what
#: public members give.
GIVEN = {
    "rehydrate.agents.pydantic_ai.PydanticAgent",
    "rehydrate.agents.pydantic_ai.PydanticSettings",
    "rehydrate.hosts.notebook.show_progress",
    "rehydrate.stores.around.StoreAround",
    "rehydrate.errors.definition.BuildProblem",
    "rehydrate.graph.functional_context.FunctionalState",
    "rehydrate.runtime.pending.PendingRequests",
    *(f"rehydrate.graph.description.{name}" for name, it in vars(description).items() if is_described(it)),
}
DEFINED = re.compile(r"^(?:class )?([A-Z]\w+)(?:\(.*|: TypeAlias = .*)$", re.MULTILINE)
BLOCK = re.compile(r"^```\{api\} (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CELL = re.compile(r"^\| *\[[^\]]+\]\(([^)#\s]+\.md)\) *\|", re.MULTILINE)


def names_of(module: ModuleType) -> set[str]:
    """The full names of what a module lists, or else of the classes and aliases that its source defines."""
    names = getattr(module, "__all__", None) or DEFINED.findall(inspect.getsource(module))
    return {f"{module.__name__}.{name}" for name in names}


def public_names() -> set[str]:
    """The full name of all that is public; what the root has, too, goes by the shorter name."""
    names = set.union(*(names_of(importlib.import_module(module)) for module in (*LISTED, *WHOLE)))
    longer = {name for name in names if name.count(".") > 1 and name.rpartition(".")[2] in rehydrate.__all__}
    return (names | GIVEN) - longer


def documented() -> list[str]:
    """The full names in the blocks of all pages of the reference, as often as they are there."""
    found: list[str] = []
    for page in sorted(REFERENCE.glob("*.md")):
        for module, names in BLOCK.findall(page.read_text(encoding="utf-8")):
            found += [f"{module}.{name}" for name in names.split()]
    return found


def test_every_public_name_is_in_the_reference() -> None:
    """What the library lists as public is documented on some page."""
    assert public_names() - set(documented()) == set()


def test_nothing_else_is_in_the_reference() -> None:
    """A name that is documented is public, and is so on one page only."""
    assert [name for name, times in Counter(documented()).items() if times > 1 or name not in public_names()] == []


def test_no_other_module_lists_public_names() -> None:
    """The folders of the package that a user imports from are those whose names are compared here."""
    shown = {
        module
        for page in (ROOT / "README.md", *DOCS.glob("*.md"), *DOCS.glob("howto/*.md"))
        for module in re.findall(r"^from (rehydrate[\w.]*) import", page.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert shown - {*LISTED, *WHOLE} <= {name.rpartition(".")[0] for name in GIVEN}


@pytest.mark.parametrize("folder", ["", "reference", "decisions"])
def test_the_menu_of_the_site_has_every_page(folder: str) -> None:
    """The tables of the list of a folder, of which the site makes its menu, link to each page of it once."""
    place = DOCS / folder
    listing = place / ("README.md" if folder else "index.md")
    linked = Counter((place / target).resolve() for target in CELL.findall(listing.read_text(encoding="utf-8")))
    pages = {*place.glob("*.md")} - {listing}
    if not folder:
        pages |= {DOCS / "reference" / "README.md", DOCS / "decisions" / "README.md", *DOCS.glob("howto/*.md")}
    assert linked == Counter(dict.fromkeys(pages, 1))
