"""The package keeps its budgets, and the list of exceptions holds only what is needed."""

from tests.project.budgets import BUDGETS
from tests.project.exceptions import judged, listed_rules
from tests.project.source import PACKAGE
from tests.project.test_test_rules import TEST_RULES

COUNTED = {"file-lines", "function-lines", "parameters", "public-methods", "nesting"}


def test_the_package_keeps_its_budgets() -> None:
    """Nothing in the package is over a limit unless it is listed, and nothing is listed without need."""
    assert judged(PACKAGE, BUDGETS, counted=COUNTED) == {}


def test_every_table_of_the_list_belongs_to_a_rule() -> None:
    """A misspelt rule name in the list is noticed."""
    assert listed_rules() - set(BUDGETS) - set(TEST_RULES) == set()
