"""The tests keep their own rules: a sentence each, no sleeping, no mocks."""

import ast
from collections.abc import Callable, Iterator

import pytest

from tests.project.budgets import Finding
from tests.project.exceptions import judged
from tests.project.source import FUNCTIONS, TESTS, Source, called_name


def without_sentence(source: Source) -> Iterator[Finding]:
    """Tests without a docstring."""
    for place, node in source.places:
        if isinstance(node, FUNCTIONS) and node.name.startswith("test_") and not ast.get_docstring(node):
            yield Finding(f"{source.name}::{place.name}", node.lineno)


def sleeping(source: Source) -> Iterator[Finding]:
    """Calls that let real time pass; `asyncio.sleep(0)` only lets others run."""
    if "sleep" not in source.text:
        return
    for place, node in source.places:
        if not isinstance(node, ast.Call) or called_name(node) not in {"time.sleep", "asyncio.sleep", "sleep"}:
            continue
        passes_on = called_name(node) != "time.sleep" and [ast.unparse(argument) for argument in node.args] == ["0"]
        if not passes_on:
            yield Finding(f"{source.name}::{place.name}", node.lineno)


def mocking(source: Source) -> Iterator[Finding]:
    """Imports of mock libraries."""
    if "mock" not in source.text:
        return
    for place, node in source.places:
        match node:
            case ast.Import():
                modules = [alias.name for alias in node.names]
            case ast.ImportFrom(module=str(module)):
                modules = [module, *(f"{module}.{alias.name}" for alias in node.names)]
            case _:
                continue
        if any(module.split(".")[:2] == ["unittest", "mock"] or module == "mock" for module in modules):
            yield Finding(f"{source.name}::{place.name}", node.lineno)


TEST_RULES: dict[str, Callable[[Source], Iterator[Finding]]] = {
    "test-sentence": without_sentence,
    "test-sleep": sleeping,
    "test-mock": mocking,
}


def test_the_tests_keep_their_rules() -> None:
    """Every test says in a sentence what it shows, lets no real time pass and mocks nothing."""
    assert judged(TESTS, TEST_RULES, counted=set()) == {}


@pytest.mark.parametrize(
    ("rule", "text", "places_found"),
    [
        ("test-sentence", "def test_a(): pass", ["t.py::test_a"]),
        ("test-sentence", "def test_a(): 'It adds.'\ndef helper(): pass", []),
        ("test-sleep", "import time\ndef test_a():\n time.sleep(1)", ["t.py::test_a"]),
        ("test-sleep", "async def test_a():\n await asyncio.sleep(0.1)", ["t.py::test_a"]),
        ("test-sleep", "async def test_a():\n await asyncio.sleep(0)", []),
        ("test-mock", "from unittest import mock", ["t.py::"]),
        ("test-mock", "from unittest.mock import patch", ["t.py::"]),
        ("test-mock", "import unittest", []),
    ],
)
def test_a_rule_finds_what_breaks_it(rule: str, text: str, places_found: list[str]) -> None:
    """Each rule for tests finds a breach where there is one, and nothing else."""
    assert [finding.where for finding in TEST_RULES[rule](Source.parse("t.py", text))] == places_found
