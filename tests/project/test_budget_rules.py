"""The budget rules find what they should in small texts, and the judge says what is wrong with a list."""

import pytest

from tests.project.budgets import BUDGETS, Finding
from tests.project.exceptions import complaints
from tests.project.source import Source


def found(rule: str, text: str) -> list[tuple[str, int]]:
    return [(finding.where, finding.amount) for finding in BUDGETS[rule](Source.parse("m.py", text))]


def function_of(lines: int) -> str:
    return "def f():\n" + "    x = 1\n" * (lines - 1)


def class_of(methods: int) -> str:
    return "class C:\n" + "".join(f"    def m{number}(self): ...\n" for number in range(methods))


def nested(levels: int) -> str:
    opened = "".join(f"{'    ' * level}if x:\n" for level in range(1, levels + 1))
    return f"def f():\n{opened}{'    ' * (levels + 1)}pass\n"


@pytest.mark.parametrize(
    ("rule", "text", "amount"),
    [
        ("file-lines", "x = 1\n" * 351, 351),
        ("function-lines", function_of(61), 61),
        ("parameters", "def f(a, b, c, d, e, *f, g, **h): ...", 8),
        ("public-methods", class_of(13), 13),
        ("nesting", nested(5), 5),
    ],
)
def test_one_over_the_limit_is_found_with_its_amount(rule: str, text: str, amount: int) -> None:
    """What is one over a limit is found, and the finding says how much it is."""
    assert [size for _, size in found(rule, text)] == [amount]


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("file-lines", "x = 1\n" * 350),
        ("function-lines", function_of(60)),
        ("parameters", "class C:\n    def f(self, a, b, c, d, e, f, g): ..."),
        ("public-methods", class_of(12) + "    def _private(self): ...\n    @property\n    def p(self): ...\n"),
        ("nesting", nested(4)),
        ("nesting", "def f():\n    if a: pass\n" + "    elif a: pass\n" * 9),
        ("nesting", "def f():\n    for a in b:\n        def g():\n            for c in d:\n                pass\n"),
    ],
)
def test_the_limit_itself_is_allowed(rule: str, text: str) -> None:
    """What just reaches a limit is not found."""
    assert found(rule, text) == []


@pytest.mark.parametrize(
    "text",
    [
        "try: pass\nexcept: pass",
        "try: pass\nexcept Exception: pass",
        "try: pass\nexcept (ValueError, BaseException): pass",
        "with contextlib.suppress(Exception): pass",
    ],
)
def test_every_way_to_catch_all_is_found(text: str) -> None:
    """Catching or suppressing everything is found, however it is written."""
    assert found("broad-except", text) == [("m.py", 1)]


def test_catching_one_kind_is_allowed() -> None:
    """An `except` for a named kind of error needs no exception."""
    assert found("broad-except", "try: pass\nexcept (ValueError, asyncio.CancelledError): pass") == []


@pytest.mark.parametrize("comment", ["# type: ignore", "# type: ignore[arg]", "# pyright: ignore", "# pyright: basic"])
def test_switching_the_type_checker_off_is_found(comment: str) -> None:
    """A comment that switches checks off is found at the innermost definition around it."""
    assert found("type-ignore", f"class C:\n    def m(self):\n        x = 1  {comment}\n") == [("m.py::C.m", 1)]


@pytest.mark.parametrize(
    "text",
    [
        "from typing import Any\ndef f(a: Any): ...",
        "from typing import Any\ndef f() -> dict[str, Any]: ...",
        "from typing import Any as Whatever\ndef f(a: 'list[Whatever]'): ...",
        "import typing\ndef f():\n    return typing.cast(typing.Any, 1)",
    ],
)
def test_any_as_a_type_is_found(text: str) -> None:
    """`Any` in an annotation, a type argument or a cast is found under the function's name."""
    assert {where for where, _ in found("any", text)} == {"m.py::f"}


def test_comparing_with_any_is_allowed() -> None:
    """Code that reads type hints may ask whether one is `Any`."""
    assert found("any", "from typing import Any\ndef f(hint: object) -> bool:\n    return hint is Any") == []


def test_an_import_inside_a_function_is_found() -> None:
    """An import in a function body is found, one under an `if` at the top is not."""
    text = "if True:\n    import a\ndef f():\n    if True:\n        from b import c\n"
    assert found("local-import", text) == [("m.py::f", 1)]


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        (None, ["m.py::f (line 3): 9 is over the limit"]),
        ({"limit": 8, "reason": "wide"}, ["m.py::f (line 3): 9 is over its own limit of 8"]),
        ({"limit": 9, "reason": " "}, ["m.py::f (line 3): listed without a reason"]),
        ("wide", ["m.py::f (line 3): listed without a limit"]),
        ({"limit": 9, "reason": "wide"}, []),
    ],
)
def test_a_counted_finding_needs_a_limit_and_a_reason(entry: dict[str, object] | None, complaint: list[str]) -> None:
    """A finding over a limit passes only with a reason and a limit of its own that holds."""
    listed = {} if entry is None else {"m.py::f": entry}
    assert complaints([Finding("m.py::f", 3, 9)], listed, counted=True) == complaint


def test_an_exception_that_is_no_longer_needed_fails() -> None:
    """The list may only shrink: an entry without a finding is a complaint."""
    assert complaints([], {"m.py": "old"}, counted=False) == ["m.py: listed, but no longer needed; remove the line"]
