"""How hints relate: covering, accepting, and which is more exact."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, NotRequired, Protocol, TypedDict, TypeVar, runtime_checkable

import pytest

from rehydrate.graph.exactness import accepts, ambiguous, covers, depends_on_value, most_exact, narrower

T = TypeVar("T")


class Animal: ...


class Dog(Animal): ...


class Puppy(Dog): ...


class Swimmer: ...


class Otter(Animal, Swimmer): ...


class Names(list[str]): ...


@dataclass
class Box(Generic[T]):
    content: T


class Crate(Box[T]): ...


class Point(TypedDict):
    x: int


class Labelled(TypedDict):
    x: int
    label: NotRequired[str]


class Holder(TypedDict, Generic[T]):
    held: T


class Folder(TypedDict):
    inside: list["Folder"]


class NamedFolder(TypedDict):
    name: str
    inside: list["NamedFolder"]


@runtime_checkable
class Named(Protocol):
    name: str


@dataclass
class Person:
    name: str


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        (Animal, Puppy),
        (int | str, int),
        (int | str | None, str | None),
        (Any, int),
        (object, list[int]),
        (list, list[int]),
        (list[Animal], list[Dog]),
        (Sequence[int], list[bool]),
        (Sequence[str], str),
        (list[str], Names),
        (tuple[int, ...], tuple[int, int]),
        (Sequence[int | str], tuple[int, str]),
        (Mapping[str, object], dict[str, int]),
        (Sequence, tuple[int]),
        (str, Literal["a"]),
        (Literal["a", "b"], Literal["a"]),
        (dict, Point),
        (dict[str, int | str], Labelled),
        (Point, Labelled),
        (Box[Any], Crate[int]),
        (Box[int], Crate[int]),
        (Named, Person),
        (float, int),
        (Holder[int | str], Holder[str]),
        (Folder, NamedFolder),
        (dict[str, list[Any]], Folder),
    ],
)
def test_the_wider_hint_covers_the_narrower(wide, narrow) -> None:
    """Covering goes one way only."""
    assert (covers(wide, narrow), covers(narrow, wide)) == (True, False)
    assert narrower(narrow, wide)


def test_open_parameters_are_the_same_as_any() -> None:
    """`list` and `list[Any]` cover each other, so neither is more exact."""
    assert (covers(list[Any], list), covers(list, list[Any])) == (True, True)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (int, str),
        (list[int], list[str]),
        (list[int], tuple[int, ...]),
        (tuple[int], tuple[int, int]),
        (list[int], Names),
        (Box[int], Crate[str]),
        (dict[str, int], Labelled),
        (Literal["a"], Literal["b"]),
        (Animal, Swimmer),
        (Named, int),
        (Holder[int], Holder[str]),
        (Point, Folder),
    ],
)
def test_unrelated_hints_cover_neither(one, other) -> None:
    """Hints that share values or none at all are not in an order."""
    assert (covers(one, other), covers(other, one)) == (False, False)


@pytest.mark.parametrize(
    ("target", "sent", "taken"),
    [
        (Animal, Dog, True),
        (Dog, Animal, True),
        (int | str, str, True),
        (int, int | str, False),
        (Any, int | str, True),
        (int, Any, True),
        (float, int, True),
        (int, float, False),
        (int, bool, True),
        (bool, int, False),
        (list[int], list, True),
        (list[int], list[str], False),
        (dict[str, Dog], dict[str, Animal], True),
        (Named, Person, True),
        (Named, int, False),
    ],
)
def test_a_target_accepts_what_may_turn_out_to_fit(target, sent, taken) -> None:
    """A declared base may be the subclass; every member of a union needs a place."""
    assert accepts(target, sent) is taken


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (int, int, True),
        (int, int | str, False),
        (int | str, int | bytes, True),
        (int | str, int | str | bytes, False),
        (Animal, Dog | str, False),
        (list[int], list[str], False),
        (Box[int], Box[str], True),
        (Box, Box[int], False),
        (Any, object, True),
        (Literal["a", "b"], Literal["b", "c"], True),
        (Literal["a", "b"], Literal["b"], False),
        (Literal["a"], Literal["b"], False),
        (Literal[1], Literal[True], False),
        (Holder[int], Holder[str], False),
        (Folder, NamedFolder, False),
        (Folder, Folder, True),
    ],
)
def test_equally_exact_hints_are_ambiguous(one, other, equal) -> None:
    """Whether two handlers could claim one message shows at build."""
    assert ambiguous(one, other) is equal
    assert ambiguous(other, one) is equal


@pytest.mark.parametrize(
    ("value", "hints", "best"),
    [
        (5, [Any, int | str, int], [int]),
        (True, [int, bool], [bool]),
        (5, [float, int], [int]),
        (5, [float], [float]),
        (Dog(), [Animal, object], [Animal]),
        (Puppy(), [Animal, Dog | str], [Dog | str]),
        (Otter(), [Swimmer, Animal], [Animal]),
        ([1], [list, list[int], list[str]], [list[int]]),
        ([], [list[int], list[str]], [list[int], list[str]]),
        ({"x": 1, "label": "p"}, [Point, Labelled], [Labelled]),
        ("a", [str, Literal["a"]], [Literal["a"]]),
        (1.5, [int, str], []),
    ],
)
def test_the_most_exact_hint_wins(value, hints, best) -> None:
    """Subclass before base, member before union, elements before none; the nearest of two bases."""
    assert list(most_exact(value, hints, lambda hint: hint)) == best


@pytest.mark.parametrize(
    ("hint", "cls", "looks"),
    [
        (int | str, int, False),
        (list[int], list, True),
        (list[int], int, False),
        (list, list, False),
        (Literal["a"], str, True),
        (Literal["a"], int, False),
        (Point, dict, True),
        (Named, Person, True),
        (Box[int], Box, False),
    ],
)
def test_it_is_known_whether_the_class_alone_decides(hint, cls, looks) -> None:
    """Only then may the choice of a handler be remembered by class."""
    assert depends_on_value(hint, cls) is looks
