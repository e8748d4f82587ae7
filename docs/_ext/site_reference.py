"""The reference: the directive `api`, which documents public names of one module from their source.

Each line of its body is a name; `Workflow` below `{api} rehydrate` is documented as `rehydrate.Workflow`, wherever its
code is, and types in signatures lead to the public name of what they mean. Docstrings are Markdown as far as their
`code` goes. Nothing here decides what is public: tests/docs/test_reference.py does.
"""

import ast
import builtins
import importlib
import inspect
import re
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import get_origin

from docutils import nodes
from docutils.statemachine import StringList
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective
from sphinx.util.inspect import TypeAliasForwardRef, safe_getattr
from sphinx.util.nodes import find_pending_xref_condition

#: An alias inside another type would be shown as a call.
TypeAliasForwardRef.__repr__ = lambda alias: alias.name

PAGES = Path(__file__).parents[1] / "reference"
#: A block of the directive, with its module and its names.
BLOCK = re.compile(r"^```\{api\} (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: How a docstring says that users do not call a class.
MADE = re.compile(r"(?<!are )\bmade by\b", re.IGNORECASE)
CODE = re.compile(r"`([^`\n]+)`")
#: How defaults look in a signature, and how they are written in code.
DEFAULTS = (
    (re.compile(r"<factory>"), "..."),
    (re.compile(r"<class '(?:\w+\.)*(\w+)'>"), r"\1"),
    (re.compile(r"<(\w+\.\w+): [^>]*>"), r"\1"),
)
DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")


def place_of(it: object) -> str:
    """Where the code of a class or a function is."""
    return f"{safe_getattr(it, '__module__', '')}.{safe_getattr(it, '__qualname__', '')}"


def is_code(it: object) -> bool:
    """Tell whether something has its own docstring; a value and an alias have a comment."""
    return get_origin(it) is None and (isinstance(it, type) or inspect.isroutine(it))


@cache
def public_names() -> dict[str, str]:
    """The name under which each class and function is documented, by the place of its code."""
    found: dict[str, str] = {}
    for page in sorted(PAGES.glob("*.md")):
        for module, names in BLOCK.findall(page.read_text(encoding="utf-8")):
            for name in names.split():
                if is_code(it := getattr(importlib.import_module(module), name)):
                    found.setdefault(place_of(it), f"{module}.{name}")
    return found


@cache
def short_names() -> dict[str, str]:
    """The full public name of each class and function, by its last part, which is how docstrings name it."""
    return {full.rpartition(".")[2]: full for full in reversed(public_names().values())}


class Api(SphinxDirective):
    """Documents the names in its body, one a line, which are those of the module in its argument."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        module = importlib.import_module(self.arguments[0])
        lines = ["```{eval-rst}"]
        for name in self.content:
            lines += [*documented(module, name), ""]
        container = nodes.Element()
        self.state.nested_parse(StringList([*lines, "```"], self.get_source_info()[0]), self.content_offset, container)
        return container.children


def documented(module: ModuleType, name: str) -> list[str]:
    """The reStructuredText that documents a name."""
    it, full = getattr(module, name), f"{module.__name__}.{name}"
    if not is_code(it):
        return of_value(full, name, it)
    if not isinstance(it, type):
        return [f".. autofunction:: {full}"]
    return [f".. autoclass:: {full}", *(f"   :{option}" for option in class_options(it))]


def class_options(kind: type) -> list[str]:
    """What is told of a class: all public members that no public class above it has, and those classes."""
    above = [base for base in kind.__mro__[1:] if place_of(base) in public_names()]
    foreign = [base.__name__ for base in kind.__mro__ if not base.__module__.startswith("rehydrate")]
    told = [base.__name__ for base in above if not is_protocol(base)] + foreign
    hidden = [name for name in dir(kind) if name.startswith("test_")]
    hidden += [name for base in above if is_protocol(base) for name in vars(base) if name not in vars(kind)]
    if not is_protocol(kind) and set(stores_have()) <= set(dir(kind)):
        hidden += stores_have()
    if issubclass(kind, Exception) and above:
        hidden += ["text", "action"]  # what `str()` of it says, in other words for each
    options = ["members:", "undoc-members:", f"inherited-members: {', '.join(told)}"]
    options += ["show-inheritance:"] if any(base in above for base in kind.__bases__) else []
    return options + ([f"exclude-members: {', '.join(hidden)}"] if hidden else [])


def is_protocol(kind: type) -> bool:
    """Tell whether a class is a protocol, about which autodoc cannot ask whether others are below it."""
    return bool(safe_getattr(kind, "_is_protocol", False))


def stores_have() -> list[str]:
    """The calls that every store has."""
    return [name for name in vars(importlib.import_module("rehydrate").CheckpointStorage) if not name.startswith("_")]


def of_value(full: str, name: str, it: object) -> list[str]:
    """Document a value or an alias with the comment above the line that defines it, and with what it is if short."""
    module, comment = home_of(name, it)
    (line,) = [
        node.value
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name and node.value
    ]
    shown = ast.unparse(line)
    value = [f"   :value: {shown}"] if len(shown) < 100 else []
    return [f".. py:data:: {full}", *value, "", *(f"   {text}" for text in marked_up(comment))]


def home_of(name: str, it: object) -> tuple[ModuleType, list[str]]:
    """The module that defines a value, and the comment that begins with `#:` above it."""
    for module in [each for key, each in sys.modules.items() if key.startswith("rehydrate.")]:
        if vars(module).get(name) is it:
            comments = ModuleAnalyzer.for_module(module.__name__).find_attr_docs()
            if ("", name) in comments:
                return module, comments["", name]
    raise LookupError(f"{name} has no comment that begins with #: where it is defined")


def marked_up(lines: list[str]) -> list[str]:
    """A docstring as reStructuredText: its code is marked, and public names lead to where they are documented."""
    return CODE.sub(lambda code: marked(code[1]), "\n".join(lines)).split("\n")


def marked(code: str) -> str:
    """One piece of code; a public name, or a member of one, becomes a link."""
    name = code.removeprefix("@").removesuffix("()")
    first, _, member = name.partition(".")
    named = name != code or member or code[0].isupper()  # `executor` may be an argument, `@executor` is none
    if named and DOTTED.fullmatch(name) and first in short_names():
        full = short_names()[first]
        module, _, last = full.rpartition(".")
        if not member or hasattr(getattr(importlib.import_module(module), last), member):
            return f":py:obj:`{code} <{full}{'.' if member else ''}{member}>`"
    return f"``{code}``"


def mark_up(app: Sphinx, what: str, name: str, it: object, options: object, lines: list[str]) -> None:
    """Turn a docstring into reStructuredText, and add the keyword arguments that a typed dict holds."""
    lines[:] = marked_up(lines)
    if arguments := keyword_arguments(it):
        lines += ["", "Keyword arguments: " + ", ".join(f"``{each}``" for each in arguments) + "."]


def keyword_arguments(it: object) -> list[str]:
    """The arguments behind `**options: Unpack[...]`, with their types."""
    if not (inspect.isroutine(it) and callable(it)):
        return []
    for parameter in inspect.signature(it).parameters.values():
        if packed := re.fullmatch(r"Unpack\[(\w+)\]", str(parameter.annotation)):
            fields = inspect.unwrap(it).__globals__[packed[1]]
            return [f"{name}: {hint.__forward_arg__}" for name, hint in fields.__annotations__.items()]
    return []


def sign(
    app: Sphinx, what: str, name: str, it: type, options: object, signature: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """Leave out how a class is called where users do not call it, and write defaults as they are written in code."""
    made = MADE.search(inspect.getdoc(it) or "") or hasattr(it, "__members__")
    if (isinstance(it, type) and issubclass(it, BaseException)) or (what == "class" and (made or is_protocol(it))):
        return "", ""
    for shown, written in DEFAULTS:
        signature = shown.sub(written, signature or "")
    return signature or None, returned


def name_bases(app: Sphinx, name: str, it: type, options: object, bases: list[object]) -> None:
    """Name only those bases that are public."""
    bases[:] = [base for base in bases if place_of(get_origin(base) or base) in public_names()]


def find(app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, shown: nodes.Element) -> nodes.Element | None:
    """Lead a name as the code has it to its public name; what is not public, or is Python's own, is no link."""
    target = node.get("reftarget", "")
    if node.get("refdomain") != "py":
        return None
    if full := public_names().get(target) or short_names().get(target):
        return env.get_domain("py").resolve_xref(env, node["refdoc"], app.builder, "obj", full, node, shown)
    return shown if DOTTED.fullmatch(target) and ("." not in target or exists(target)) else None


@cache
def exists(name: str) -> bool:
    """Tell whether there is something of this dotted name."""
    module, _, last = name.rpartition(".")
    try:
        return hasattr(importlib.import_module(module), last)
    except (ImportError, ValueError):
        return False


def leave_builtins(app: Sphinx, doctree: nodes.document) -> None:
    """Make names of builtins no links, before a field that is called like one is found for them."""
    for link in list(doctree.findall(addnodes.pending_xref)):
        if link.get("refdomain") == "py" and hasattr(builtins, link["reftarget"]):
            shown = find_pending_xref_condition(link, "resolved")
            link.replace_self(shown.children if shown else link.children)


def list_only_names(app: Sphinx, doctree: nodes.document) -> None:
    """Keep members out of the table of contents beside a page: names are enough, and thousands of entries take long."""
    for outer in doctree.findall(addnodes.desc_content):
        for member in outer.findall(addnodes.desc_signature):
            member["_toc_name"] = ""


def setup(app: Sphinx) -> dict[str, object]:
    app.add_directive("api", Api)
    app.connect("autodoc-process-docstring", mark_up)
    app.connect("autodoc-process-signature", sign)
    app.connect("autodoc-process-bases", name_bases)
    app.connect("doctree-read", list_only_names, priority=100)  # before the table of contents is made
    app.connect("doctree-read", leave_builtins)
    app.connect("missing-reference", find)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
