"""Whether values match hints, and hints as text."""

import collections
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    Never,
    NewType,
    NotRequired,
    Optional,
    Protocol,
    TypedDict,
    TypeVar,
    runtime_checkable,
)

import pytest

from rehydrate.graph.hint_problems import problem_of
from rehydrate.graph.hints import describe, fields_of, matches, members

T = TypeVar("T")
Number = TypeVar("Number", int, str)
UserId = NewType("UserId", str)


class Animal: ...


class Dog(Animal): ...


@dataclass
class Box(Generic[T]):
    content: T


class Point(TypedDict):
    x: int
    label: NotRequired[str]


class Postponed(TypedDict):
    x: "int"
    label: "NotRequired[str]"


@runtime_checkable
class Named(Protocol):
    name: str


class Unchecked(Protocol):
    name: str


class Person:
    def __init__(self) -> None:
        self.name = "Ada"


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (1, int),
        (True, int),
        (1, float),
        (Dog(), Animal),
        (None, None),
        (None, Optional[int]),  # noqa: UP045  (the other spelling)
        ("a", int | str),
        (1, Any),
        (Dog(), object),
        ([1, 2], list[int]),
        ([1], typing.List),  # noqa: UP006
        ([1, "a"], list[int | str]),
        ([], list[int]),
        ({"a": 1}, dict[str, int]),
        ({"a": [1]}, Mapping[str, Sequence[int]]),
        (collections.Counter("aa"), collections.Counter[str]),
        ((1, "a"), tuple[int, str]),
        ((1, 2, 3), tuple[int, ...]),
        ((), tuple[()]),
        ("abc", Sequence[str]),
        ("a", Literal["a", "b"]),
        ({"x": 1}, Point),
        ({"x": 1, "label": "p"}, Postponed),
        ({"x": 1}, Postponed),
        ([{"x": 1}], list[Point]),
        (Box(1), Box[int]),
        (Person(), Named),
        (1, Annotated[int, "metres"]),
        ("u", UserId),
        ("a", Number),
    ],
)
def test_a_value_matches_its_type(value, hint) -> None:
    """Classes, unions and containers match as type checkers would have it."""
    assert matches(value, hint)


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (1, bool),
        (1.0, int),
        (Animal(), Dog),
        (0, None),
        (1.5, int | str),
        (1, Never),
        ([1, "a"], list[int]),
        ((1, 2), list[int]),
        ({1: 1}, dict[str, int]),
        ({"a": "b"}, dict[str, int]),
        ((1,), tuple[int, str]),
        ((1, "a"), tuple[int, ...]),
        ((1,), tuple[()]),
        (1, Literal[True]),
        ({}, Point),
        ({"x": "1"}, Point),
        ({"x": 1, "label": 2}, Postponed),
        (Dog(), Named),
        (Person(), Unchecked),
        (1.5, Number),
    ],
)
def test_a_value_of_another_type_does_not_match(value, hint) -> None:
    """Elements count, and nothing is converted."""
    assert not matches(value, hint)


@pytest.mark.parametrize(("value", "hint"), [(True, int), (1, float), (1, bool), ([True], list[int])])
def test_an_exact_match_takes_no_number_for_another(value, hint) -> None:
    """An answer of type bool is none for int, an int is none for float."""
    assert not matches(value, hint, exact=True)


@pytest.mark.parametrize(("value", "hint"), [(True, bool), (True, int | bool), (Dog(), Animal), (5, int)])
def test_an_exact_match_still_takes_its_own_type_and_subclasses(value, hint) -> None:
    """Exactness is about numbers that stand for one another."""
    assert matches(value, hint, exact=True)


@pytest.mark.parametrize(
    ("hint", "text"),
    [
        (int, "int"),
        (None, "None"),
        (Any, "Any"),
        (str | None, "None | str"),
        (None | str, "None | str"),
        (Never, "Never"),
        (dict[str, list[Box[int]]], "dict[str, list[Box[int]]]"),
        (tuple[int, ...], "tuple[int, ...]"),
        (tuple[()], "tuple[()]"),
        (Literal["b", "a"], "Literal['a', 'b']"),
        (Point, "Point"),
    ],
)
def test_a_hint_is_described_in_one_way(hint, text) -> None:
    """The text has no modules, and union members are in one order."""
    assert describe(hint) == text


def test_a_local_class_is_described_without_where_it_stands() -> None:
    """A class of a function has the same name as one of a module."""

    class Claim: ...

    assert describe(list[Claim]) == "list[Claim]"


def test_members_of_a_union_are_flat() -> None:
    """Nested and named unions come apart; Never has no members."""
    assert members(Optional[int | Annotated[str, 1]]) == (int, str, type(None))  # noqa: UP045
    assert members(Never) == ()


def test_keys_of_a_typed_dict_know_whether_they_are_required() -> None:
    """Also where the annotations are postponed."""
    assert {key: required for key, (_, required) in fields_of(Postponed).items()} == {"x": True, "label": False}


@pytest.mark.parametrize(
    ("hint", "problem"),
    [
        (int | list[Point], None),
        (5, "5 is not a type"),
        (list[Unchecked], "Unchecked is a protocol that is not @runtime_checkable"),
        (Iterable[Unchecked], None),
        (dict[str, "later"], "'later' is not a type"),  # noqa: F821
    ],
)
def test_a_hint_that_cannot_be_checked_says_why(hint, problem) -> None:
    """Parameters are looked at where elements would be."""
    assert problem_of(hint) == problem
