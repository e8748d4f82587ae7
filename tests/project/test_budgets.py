"""The package keeps its budgets, and the list of exceptions holds only what is needed."""

import pytest

from tests.project.budgets import BUDGETS
from tests.project.exceptions import allowed, complaints, listed_rules
from tests.project.source import PACKAGE, sources
from tests.project.test_test_rules import TEST_RULES

COUNTED = {"file-lines", "function-lines", "parameters", "public-methods", "nesting"}


@pytest.mark.parametrize("rule", BUDGETS)
def test_the_package_keeps_its_budget(rule: str) -> None:
    """Nothing in the package is over a limit unless it is listed, and nothing is listed without need."""
    found = [finding for source in sources(PACKAGE) for finding in BUDGETS[rule](source)]
    assert complaints(found, allowed(rule), counted=rule in COUNTED) == []


def test_every_table_of_the_list_belongs_to_a_rule() -> None:
    """A misspelt rule name in the list is noticed."""
    assert listed_rules() - set(BUDGETS) - set(TEST_RULES) == set()
