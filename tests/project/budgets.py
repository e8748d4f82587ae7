"""The budgets as functions over a source file: each yields what is over the limit or only allowed by name.

Knows no exceptions; `exceptions.py` judges what is found here.
"""

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tests.project.source import FUNCTIONS, TOP, Function, Place, Source, called_name, dotted

FILE_LINES = 350
FUNCTION_LINES = 60
PARAMETERS = 7
PUBLIC_METHODS = 12
NESTING = 4

BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.TryStar, ast.With, ast.AsyncWith, ast.Match)
BROAD = {"Exception", "BaseException", "builtins.Exception", "builtins.BaseException"}
SWITCHED_OFF = re.compile(r"#\s*(type:\s*ignore|pyright:(?!\s*strict))")


@dataclass(frozen=True)
class Finding:
    """Something that needs an exception: where (`file::qualified name`, or a file) and how much."""

    where: str
    line: int
    amount: int = 1


def file_lines(source: Source) -> Iterator[Finding]:
    """Files longer than the limit."""
    amount = len(source.text.splitlines())
    if amount > FILE_LINES:
        yield Finding(source.name, 1, amount)


def function_lines(source: Source) -> Iterator[Finding]:
    """Functions longer than the limit, from `def` to the last line, docstring included."""
    for place, function in _functions(source):
        amount = (function.end_lineno or function.lineno) - function.lineno + 1
        if amount > FUNCTION_LINES:
            yield _found(source, place, function, amount)


def parameters(source: Source) -> Iterator[Finding]:
    """Functions with too many parameters; what the call binds by itself (`self`, `cls`) is not counted."""
    for place, function in _functions(source):
        amount = _parameter_count(place, function)
        if amount > PARAMETERS:
            yield _found(source, place, function, amount)


def public_methods(source: Source) -> Iterator[Finding]:
    """Classes with too many public methods. Properties are attributes, overloads are one method."""
    for place, node in source.places:
        if not isinstance(node, ast.ClassDef):
            continue
        methods = [child for child in node.body if isinstance(child, FUNCTIONS)]
        names = {method.name for method in methods if not method.name.startswith("_") and not _is_property(method)}
        if len(names) > PUBLIC_METHODS:
            yield _found(source, place, node, len(names))


def nesting(source: Source) -> Iterator[Finding]:
    """Functions with blocks nested too deep; an `elif` is no deeper than its `if`, an inner function starts anew."""
    for place, function in _functions(source):
        amount = _depth(function.body)
        if amount > NESTING:
            yield _found(source, place, function, amount)


def broad_except(source: Source) -> Iterator[Finding]:
    """Files that catch or suppress everything."""
    for _, node in source.places:
        if any(kind is None or dotted(kind) in BROAD for kind in _caught(node)):
            yield Finding(source.name, getattr(node, "lineno", 0))


def type_ignore(source: Source) -> Iterator[Finding]:
    """Comments that switch the type checker off, for a line or a file."""
    if not SWITCHED_OFF.search(source.text):
        return
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type == tokenize.COMMENT and SWITCHED_OFF.match(token.string):
            yield Finding(_where(source, _place_at(source, token.start[0])), token.start[0])


def any_type(source: Source) -> Iterator[Finding]:
    """`Any` as a type: in annotations, type arguments and casts. Comparing with it is no use of it."""
    if "Any" not in source.text:
        return
    names = _names_of_any(source)
    for place, node in source.places:
        if any(_mentions(hint, names) for hint in _hints(node)):
            yield _found(source, place, node)


def local_import(source: Source) -> Iterator[Finding]:
    """Imports inside functions."""
    for place, node in source.places:
        if isinstance(node, ast.Import | ast.ImportFrom) and place.in_function:
            yield _found(source, place, node)


BUDGETS: dict[str, Callable[[Source], Iterator[Finding]]] = {
    "file-lines": file_lines,
    "function-lines": function_lines,
    "parameters": parameters,
    "public-methods": public_methods,
    "nesting": nesting,
    "broad-except": broad_except,
    "type-ignore": type_ignore,
    "any": any_type,
    "local-import": local_import,
}


def _functions(source: Source) -> Iterator[tuple[Place, Function]]:
    for place, node in source.places:
        if isinstance(node, FUNCTIONS):
            yield place, node


def _where(source: Source, place: Place) -> str:
    return f"{source.name}::{place.name}" if place.name else source.name


def _found(source: Source, place: Place, node: ast.AST, amount: int = 1) -> Finding:
    return Finding(_where(source, place), getattr(node, "lineno", 0), amount)


def _parameter_count(place: Place, function: Function) -> int:
    given = function.args
    positional = len(given.posonlyargs) + len(given.args)
    decorators = {dotted(decorator) for decorator in function.decorator_list}
    if isinstance(place.parent, ast.ClassDef) and "staticmethod" not in decorators:
        positional -= 1
    return positional + len(given.kwonlyargs) + (given.vararg is not None) + (given.kwarg is not None)


def _is_property(method: Function) -> bool:
    decorators = [dotted(decorator) for decorator in method.decorator_list]
    return any(name.endswith(("property", ".setter", ".deleter")) for name in decorators)


def _depth(body: list[ast.stmt]) -> int:
    return max((_block_depth(statement) for statement in body if isinstance(statement, BLOCKS)), default=0)


def _block_depth(block: ast.stmt) -> int:
    inside = [getattr(block, field, []) for field in ("body", "orelse", "finalbody")]
    inside += [part.body for field in ("handlers", "cases") for part in getattr(block, field, [])]
    return max((_depth(body) + (not _is_elif(block, body)) for body in inside), default=1)


def _is_elif(block: ast.stmt, body: list[ast.stmt]) -> bool:
    if not isinstance(block, ast.If) or body is not block.orelse or len(body) != 1:
        return False
    return isinstance(body[0], ast.If) and body[0].col_offset == block.col_offset


def _caught(node: ast.AST) -> Sequence[ast.expr | None]:
    match node:
        case ast.ExceptHandler(type=ast.Tuple(elts=kinds)):
            return kinds
        case ast.ExceptHandler():
            return [node.type]
        case ast.Call() if called_name(node) in {"suppress", "contextlib.suppress"}:
            return node.args
        case _:
            return []


def _place_at(source: Source, line: int) -> Place:
    around = TOP
    for place, node in source.places:
        if not isinstance(node, (ast.ClassDef, *FUNCTIONS)):
            continue
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        if first <= line <= (node.end_lineno or first):
            around = place
    return around


def _names_of_any(source: Source) -> set[str]:
    names = {"typing.Any", "typing_extensions.Any"}
    for _, node in source.places:
        if isinstance(node, ast.ImportFrom) and node.module in {"typing", "typing_extensions"}:
            names |= {alias.asname or alias.name for alias in node.names if alias.name == "Any"}
        if isinstance(node, ast.Import):
            names |= {f"{alias.asname}.Any" for alias in node.names if alias.name == "typing" and alias.asname}
    return names


def _hints(node: ast.AST) -> Sequence[ast.expr | None]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return [node.returns]
        case ast.arg():
            return [node.annotation]
        case ast.AnnAssign():
            return [node.annotation, node.value if dotted(node.annotation).endswith("TypeAlias") else None]
        case ast.Subscript():
            return [node.slice]
        case ast.Call() if called_name(node) in {"cast", "typing.cast"}:
            return node.args[:1]
        case ast.keyword(arg="bound" | "default"):
            return [node.value]
        case _:
            return []


def _mentions(hint: ast.expr | None, names: set[str]) -> bool:
    if hint is None:
        return False
    for node in ast.walk(hint):
        if dotted(node) in names:
            return True
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _text_mentions(node.value, names):
            return True
    return False


def _text_mentions(text: str, names: set[str]) -> bool:
    try:
        return _mentions(ast.parse(text, mode="eval").body, names)
    except SyntaxError:  # a string that is not a hint, such as the key of a dict
        return False
