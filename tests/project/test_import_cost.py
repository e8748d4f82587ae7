"""What it costs to depend on the package: time to import it, packages it needs, and what it never does."""

import ast
import re
import statistics
import subprocess
import sys
import time
import tomllib

import pytest

import rehydrate
from tests.project.source import PACKAGE, ROOT, Source, called_name, sources

BUDGET_MS = 100
REQUIREMENTS = 4
ROUNDS = 5
PAIRS = 5

FORBIDDEN_MODULES = {
    "cloudpickle", "code", "codeop", "dill", "imp", "joblib", "marshal", "pickle", "pkgutil", "runpy", "shelve",
}  # fmt: skip
FORBIDDEN_CALLS = {"__import__", "compile", "eval", "exec"}
#: It loads the file that a person names on the command line, by its path; see docs/decisions/0025-command-line.md.
LOADS_THE_APP = "hosts/cli/app.py:9"
ALLOWED_OF_IMPORTLIB = {"importlib.metadata", "importlib.resources"}


def project() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def milliseconds(statement: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-I", "-c", statement], check=True)
    return (time.perf_counter() - started) * 1000


def extra_cost() -> float:
    """Median over interleaved pairs, so that a slow moment hits both sides."""
    return statistics.median(milliseconds("import rehydrate") - milliseconds("pass") for _ in range(PAIRS))


def test_importing_costs_at_most_a_tenth_of_a_second() -> None:
    """Importing the package takes at most 100 ms more than a bare interpreter."""
    milliseconds("import rehydrate")  # writes the byte code, which users have too
    best = extra_cost()
    for _ in range(ROUNDS - 1):
        if best <= BUDGET_MS:
            break
        best = min(best, extra_cost())
    assert best <= BUDGET_MS


SELDOM_NEEDED = (
    "rehydrate.graph.description",
    "rehydrate.graph.drawing",
    "rehydrate.service",
    "rehydrate.stores.encrypted",
    "rehydrate.stores.file",
    "rehydrate.stores.key_ring",
    "rehydrate.stores.memory",
    "rehydrate.stores.postgres",
    "rehydrate.stores.sqlite",
    "sqlite3",
)


@pytest.mark.parametrize(
    ("use", "loaded"),
    [
        ("rehydrate.WorkflowBuilder", []),
        ("rehydrate.InMemoryCheckpointStorage", ["rehydrate.stores.memory"]),
        ("rehydrate.checkpoint_storage_from_url('memory:')", ["rehydrate.stores.memory", "sqlite3"]),
        ("rehydrate.SqliteCheckpointStorage", ["rehydrate.stores.sqlite", "sqlite3"]),
        ("rehydrate.RunHistory", ["rehydrate.service"]),
        ("rehydrate.WorkflowDescription", ["rehydrate.graph.description"]),
    ],
)
def test_only_the_stores_and_services_that_are_used_are_loaded(use: str, loaded: list[str]) -> None:
    """Whoever builds a workflow loads none, and whoever names one loads no other."""
    shown = f"import sys, rehydrate; {use}; print(*(m for m in {SELDOM_NEEDED} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", shown], check=True, capture_output=True, text=True)
    assert done.stdout.split() == loaded


def test_the_core_needs_at_most_four_packages() -> None:
    """The core depends on no more than four packages."""
    dependencies = project()["dependencies"]
    assert isinstance(dependencies, list)
    assert len(dependencies) <= REQUIREMENTS


def test_no_upper_bound_on_python() -> None:
    """A new Python version may be tried without a release of ours."""
    assert project()["requires-python"] == ">=3.11"


def test_the_package_says_that_it_is_typed() -> None:
    """Type checkers of users read our annotations."""
    assert (PACKAGE / "py.typed").is_file()


def test_every_public_name_is_there() -> None:
    """All of `rehydrate.__all__` can be had from the root, each name listed once."""
    assert len(rehydrate.__all__) > 0
    assert [name for name in rehydrate.__all__ if not hasattr(rehydrate, name)] == []
    assert sorted(set(rehydrate.__all__)) == sorted(rehydrate.__all__)


def runs_stored_bytes_or_names(source: Source) -> list[str]:
    """Every place in a file that could turn bytes or a name into running code."""
    return [
        f"{source.name}:{getattr(node, 'lineno', 0)}"
        for node in ast.walk(source.tree)
        if any(_is_forbidden(module) for module in _imported(node))
        or (isinstance(node, ast.Call) and re.sub("^builtins\\.", "", called_name(node)) in FORBIDDEN_CALLS)
    ]


def _imported(node: ast.AST) -> list[str]:
    match node:
        case ast.Import():
            return [alias.name for alias in node.names]
        case ast.ImportFrom(module=str(module)):
            return [module if module in ALLOWED_OF_IMPORTLIB else f"{module}.{alias.name}" for alias in node.names]
        case _:
            return []


def _is_forbidden(module: str) -> bool:
    top = module.partition(".")[0]
    return top in FORBIDDEN_MODULES or (top == "importlib" and module not in ALLOWED_OF_IMPORTLIB)


def test_nothing_in_the_package_runs_bytes_or_names() -> None:
    """No pickle, marshal, eval, exec or import by name anywhere in the package, but for the app of the command line."""
    assert [place for source in sources(PACKAGE) for place in runs_stored_bytes_or_names(source)] == [LOADS_THE_APP]


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from marshal import loads",
        "import importlib",
        "from importlib import import_module",
        "import importlib.util",
        "eval('1')",
        "builtins.exec('1')",
        "__import__('a')",
    ],
)
def test_each_way_to_run_bytes_or_names_is_seen(text: str) -> None:
    """The test above would notice each of these."""
    assert runs_stored_bytes_or_names(Source.parse("m.py", text)) == ["m.py:1"]


@pytest.mark.parametrize(
    "text", ["from importlib.metadata import version", "import importlib.resources", "re.compile('a')"]
)
def test_reading_metadata_and_compiling_patterns_is_allowed(text: str) -> None:
    """Harmless neighbours of what is forbidden are not taken for it."""
    assert runs_stored_bytes_or_names(Source.parse("m.py", text)) == []
