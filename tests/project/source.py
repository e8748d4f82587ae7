"""Source files as syntax trees, and where in them a node stands.

Reads files only; it must not import what it reads.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "rehydrate"
TESTS = ROOT / "tests"

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef
DEFINITIONS = (ast.ClassDef, *FUNCTIONS)


@dataclass(frozen=True)
class Source:
    """One file: its name as findings show it, its text and its tree."""

    name: str
    text: str
    tree: ast.Module

    @classmethod
    def parse(cls, name: str, text: str) -> "Source":
        return cls(name, text, ast.parse(text, name))

    @cached_property
    def places(self) -> "list[tuple[Place, ast.AST]]":
        """Every node with its place; many rules ask for them."""
        return list(places(self.tree))


class Place(NamedTuple):
    """What encloses a node, outermost first; a definition encloses itself."""

    chain: tuple[ast.AST, ...] = ()

    @property
    def name(self) -> str:
        return ".".join(node.name for node in self.chain if isinstance(node, (ast.ClassDef, *FUNCTIONS)))

    @property
    def in_function(self) -> bool:
        return any(isinstance(node, FUNCTIONS) for node in self.chain)

    @property
    def parent(self) -> ast.AST | None:
        """The definition around a definition."""
        return self.chain[-2] if len(self.chain) > 1 else None


def sources(folder: Path) -> Iterator[Source]:
    """All Python files under a folder, in order of their names. Whoever has several rules gives each file to all of
    them: to read all files takes seconds, and to keep them hundreds of megabytes."""
    for file in sorted(folder.rglob("*.py")):
        yield Source.parse(file.relative_to(folder).as_posix(), file.read_text(encoding="utf-8"))


TOP = Place()


def places(node: ast.AST, place: Place = TOP) -> Iterator[tuple[Place, ast.AST]]:
    """Every node below one, with its place; a node comes before what is in it, and before those that follow it."""
    waiting = [(place, child) for child in ast.iter_child_nodes(node)][::-1]
    while waiting:
        outer, child = waiting.pop()
        inner = Place((*outer.chain, child)) if isinstance(child, DEFINITIONS) else outer
        yield inner, child
        waiting += [(inner, below) for below in ast.iter_child_nodes(child)][::-1]


def called_name(call: ast.Call) -> str:
    """The dotted name that a call uses, or an empty string where it is not a plain name."""
    return dotted(call.func)


def dotted(node: ast.AST) -> str:
    """`a.b.c` of a name or an attribute chain, or an empty string."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr}" if before else ""
    return ""
