"""The registry: which types hints lead to, how they are called, and which names clash."""

from __future__ import annotations

import enum
import typing
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Never, NewType, Optional, TypedDict, TypeVar, Union

import attrs
import msgspec
import pydantic
import pytest

from rehydrate.codecs import TypeRegistry, ValueCodec, checkpointable, type_name
from rehydrate.errors import DefinitionError
from rehydrate.errors.codec import (
    MarkError,
    NotStorableError,
    TypeNameConflictError,
    UnknownTypeError,
    UnresolvedTypeError,
)
from tests.codecs import models as m
from tests.codecs.processes import run_apart

if TYPE_CHECKING:
    from decimal import Decimal

T = TypeVar("T", bound=m.Claim)
ClaimId = NewType("ClaimId", m.Name)


@dataclass(frozen=True)
class Inside:
    number: int


@checkpointable(name="outside")
@dataclass(frozen=True)
class Outside:
    inside: Inside | None


@dataclass
class Hidden:
    price: Decimal


class Kind(enum.Enum):
    A = 1


@pytest.mark.parametrize(
    ("hint", "names"),
    [
        (m.Claim, ["Claim"]),
        (list[m.Claim], ["Claim"]),
        (dict[m.Color, tuple[m.Claim, ...]], ["Claim", "Color"]),
        (Optional[m.Claim], ["Claim"]),  # noqa: UP045
        (Union[m.Claim, m.Color, None], ["Claim", "Color"]),  # noqa: UP007
        (m.Claim | m.Point, ["Claim", "Point"]),
        (Annotated[m.Claim, "note"], ["Claim"]),
        (Literal[Kind.A], ["Kind"]),
        (Mapping[str, Sequence[m.Claim]], ["Claim"]),
        (m.Box[m.Claim], ["Box", "Claim", "ClaimBox"][:2]),
        (m.ClaimBox, ["Claim", "ClaimBox"]),
        (m.Claims, ["Claim", "Claims"]),
        (m.Row, ["Claim"]),
        (T, ["Claim"]),
        (ClaimId, ["Name"]),
        (m.Outer, ["Outer", "Outer.Inner"]),
        (m.Struct, ["Claim", "Struct"]),
        (m.Attrs, ["Attrs", "Claim"]),
        (m.StrictModel, ["Claim", "StrictModel"]),
        (m.GenericModel[m.Claim], ["Claim", "GenericModel[Claim]"]),
        (m.Root, ["Root"]),
        (Counter[str], ["Counter"]),
        (Callable[[m.Claim], m.Point], []),
        (type[m.Claim], []),
        (Any, []),
        (Never, []),
        (object, []),
        (None, []),
        (int | list[str] | Path | datetime | deque[int], []),
    ],
    ids=str,
)
def test_a_hint_leads_to_its_types(hint: object, names: list[str]) -> None:
    """Unions, parameters, fields, literals and bases are followed; built-in types need no registration."""
    assert list(TypeRegistry([hint]).names()) == names


def test_a_marked_subclass_comes_with_its_base() -> None:
    """A subclass is found through its base where it is marked, however far below."""

    @checkpointable(name="deep")
    @dataclass
    class Deep(m.Derived):
        pass

    assert {"Base", "Derived", "deep"} <= set(TypeRegistry([m.Base]).names())
    assert TypeRegistry([m.Base]).type_of("deep") is Deep


def test_a_class_that_slots_replaced_is_no_second_class() -> None:
    """`dataclass(slots=True)` makes a second class; the first one, marked as well, does not clash with it."""

    @dataclass
    class Root:
        pass

    @dataclass(slots=True)
    @checkpointable
    class Leaf(Root):
        a: int

    registry = TypeRegistry([Root])
    assert registry.names() == ("Leaf", "Root")
    assert registry.type_of("Leaf") is Leaf


def test_names_have_neither_module_nor_function() -> None:
    """A class is called by its qualified name behind `<locals>`, or as its mark says."""

    @dataclass
    class Local:
        pass

    @checkpointable(name="named/v1")
    @dataclass
    class Named:
        pass

    registry = TypeRegistry([Local, Named, m.Outer])
    assert registry.names() == ("Local", "Outer", "Outer.Inner", "named/v1")
    assert registry.name_of(Named) == "named/v1"
    assert registry.name_of(m.Outer.Inner) == "Outer.Inner"
    assert registry.name_of(int) == "int"
    assert registry.name_of(type(None)) == "None"
    assert registry.type_of("Local") is Local
    assert registry.type_of("datetime") is datetime
    assert "Local" in registry
    assert "list" in registry
    assert "Other" not in registry


def test_a_mark_does_not_pass_to_subclasses() -> None:
    """A subclass of a marked class has its own name."""

    @checkpointable(name="base")
    @dataclass
    class One:
        pass

    @dataclass
    class Two(One):
        pass

    assert TypeRegistry([One, Two]).names() == ("Two", "base")


def test_unknown_types_and_names_are_errors() -> None:
    """Asking for what is not registered is an error that says what to do."""
    with pytest.raises(NotStorableError, match="Claim cannot be stored: its type is not registered"):
        TypeRegistry().name_of(m.Claim)
    with pytest.raises(UnknownTypeError, match=r"'Gone' is not registered .* @checkpointable\(name="):
        TypeRegistry().type_of("Gone")


def test_two_types_of_one_name_are_an_error() -> None:
    """The error names both types and the way out; a name of its own for one of them is that way."""

    def other(name: str | None) -> type:
        @checkpointable(name=name)
        @dataclass
        class Claim:
            pass

        return Claim

    with pytest.raises(
        TypeNameConflictError, match=r"Claim and .*Claim would both .* @checkpointable\(name="
    ) as caught:
        TypeRegistry([m.Claim, other(None)])
    assert isinstance(caught.value, DefinitionError)
    assert TypeRegistry([m.Claim, other("other")]).names() == ("Claim", "other")


def test_a_name_of_a_built_in_type_is_taken() -> None:
    """A class cannot be called like a built-in type."""

    @checkpointable(name="deque")
    @dataclass
    class Own:
        pass

    with pytest.raises(TypeNameConflictError, match="deque"):
        TypeRegistry([Own])


def test_a_hint_that_exists_for_checkers_only_is_an_error() -> None:
    """A field whose type is imported under TYPE_CHECKING is reported with class, name and ways out."""
    with pytest.raises(UnresolvedTypeError, match=r"type hint of Hidden .*'Decimal'.*TYPE_CHECKING"):
        TypeRegistry([list[Hidden]])


def test_classes_of_one_function_find_each_other() -> None:
    """Postponed hints between local classes resolve where both are known."""

    @dataclass
    class Leaf:
        a: int

    @dataclass
    class Tree:
        leaf: Leaf
        more: list[Tree]

    assert TypeRegistry([Tree, Leaf]).names() == ("Leaf", "Tree")
    with pytest.raises(UnresolvedTypeError, match="'Leaf'"):
        TypeRegistry([Tree])


@pytest.mark.parametrize("hint", ["Claim", list["Claim"], typing.List["Claim"]], ids=str)  # noqa: F821, UP006
def test_a_bare_name_is_an_error(hint: object) -> None:
    """A type given by its name only is refused instead of being looked up somewhere."""
    with pytest.raises(UnresolvedTypeError, match="'Claim' is only a name"):
        TypeRegistry([hint])


def test_an_incomplete_model_is_an_error() -> None:
    """A pydantic model that waits for a type is reported with the way to complete it."""

    class Open(pydantic.BaseModel):
        later: Missing  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(UnresolvedTypeError, match="model_rebuild"):
        TypeRegistry([Open])


def test_types_without_annotations_are_found() -> None:
    """An attrs class may give the type of a field as an argument, and a typed dict may hold further types."""

    @attrs.define
    class Old:
        a = attrs.field(type=m.Claim)

    class Wrapped(TypedDict):
        point: m.Point

    assert TypeRegistry([Old, Wrapped]).names() == ("Claim", "Old", "Point")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [({"name": ""}, "name"), ({"name": "a\n"}, "name"), ({"version": 0}, "version"), ({"upcast": dict}, "version 1")],
    ids=str,
)
def test_a_wrong_mark_is_refused(arguments: dict[str, Any], text: str) -> None:
    """Wrong arguments of `@checkpointable` are an error at the class."""
    with pytest.raises(MarkError, match=text):
        checkpointable(**arguments)(m.Claim)


def test_a_marked_class_that_nothing_leads_to_joins_when_it_is_sealed() -> None:
    """A mark is enough: the class joins at its first value, with what its fields lead to."""
    codec = ValueCodec(TypeRegistry())
    sealed = codec.seal(m.Derived("x"))
    assert (sealed.type, codec.open(sealed)) == ("Derived", m.Derived("x"))


def test_a_marked_class_is_found_by_its_stored_name_when_it_is_opened() -> None:
    """Another process opens what it never sealed, by the names of its marked classes."""
    sealed = ValueCodec(TypeRegistry([m.Derived])).seal([m.Derived("x")])
    assert ValueCodec(TypeRegistry()).open(sealed) == [m.Derived("x")]


def test_a_class_in_a_field_of_a_marked_one_is_found_by_its_name_when_that_is_opened() -> None:
    """What is inside is read first; without the marked one beside it, and under other names, it stays unknown."""
    sealed = ValueCodec(TypeRegistry()).seal([Outside(Inside(1)), Outside(None)])
    assert ValueCodec(TypeRegistry()).open(sealed) == [Outside(Inside(1)), Outside(None)]
    forged = msgspec.structs.replace(sealed, data=sealed.data.replace(b"Inside", b"Unsaid"))
    with pytest.raises(UnknownTypeError, match="Unsaid"):
        ValueCodec(TypeRegistry()).open(forged)
    alone = ValueCodec(TypeRegistry([Inside])).seal([Inside(1)])
    with pytest.raises(UnknownTypeError, match="Inside"):
        ValueCodec(TypeRegistry()).open(alone)


def test_two_marked_classes_of_one_name_are_not_guessed_between() -> None:
    """A stored name that two living marked classes share opens as neither."""

    @checkpointable(name="twin")
    @dataclass
    class One:
        a: int

    @checkpointable(name="twin")
    @dataclass
    class Two:
        a: int

    sealed = ValueCodec(TypeRegistry()).seal(One(1))
    assert ValueCodec(TypeRegistry([Two])).open(sealed) == Two(1)
    with pytest.raises(UnknownTypeError, match="twin"):
        ValueCodec(TypeRegistry()).open(sealed)


def test_a_mark_leaves_the_class_as_it_is() -> None:
    """The decorator returns the very class, with and without arguments, for every kind of class."""
    for cls in (m.Derived, m.Struct, m.Attrs, m.Model, m.Color, m.Point):
        marked = checkpointable(cls)
        assert marked is cls
        del marked.__rehydrate_mark__
    m.Derived = checkpointable(m.Derived)


@pytest.mark.parametrize(
    ("hint", "text"),
    [
        (int, "int"),
        (None, "None"),
        (type(None), "None"),
        (list[m.Claim], "list[Claim]"),
        (Union[str, m.Claim], "Claim | str"),  # noqa: UP007
        (str | m.Claim, "Claim | str"),
        (m.Claim | str, "Claim | str"),
        (Optional[m.Claim], "Claim | None"),  # noqa: UP045
        (Never, "Never"),
        (Any, "Any"),
        (object, "Any"),
        (m.Outer.Inner, "Outer.Inner"),
        (Annotated[m.Claim, 1], "Claim"),
        (dict[str, list[m.Claim | int]], "dict[str, list[Claim | int]]"),
        (tuple[int, ...], "tuple[int, ...]"),
        (typing.List[int], "list[int]"),  # noqa: UP006
        (Literal["b", "a"], "Literal['a', 'b']"),
        (m.Box[m.Claim], "Box[Claim]"),
        (ClaimId, "Name"),
        (Path, "Path"),
    ],
    ids=str,
)
def test_a_hint_has_one_canonical_text(hint: object, text: str) -> None:
    """The text of a hint has stored names, no modules, and union members in order."""
    assert type_name(hint) == text


def test_the_text_of_a_hint_has_the_given_name() -> None:
    """A class with a name of its own is called so in texts, too."""

    @checkpointable(name="claim/1")
    class Own:
        pass

    assert type_name(list[Own]) == "list[claim/1]"


def test_a_registry_serves_a_codec_of_its_own_types_only() -> None:
    """What one codec stores another one, without the type, does not open."""
    sealed = ValueCodec(TypeRegistry([m.Claim])).seal([m.Claim("c", 1)])
    with pytest.raises(UnknownTypeError, match="'Claim'"):
        ValueCodec(TypeRegistry()).open(sealed)


def test_libraries_for_models_are_not_loaded_by_the_codec() -> None:
    """pydantic and attrs are supported where the program has loaded them, and never loaded otherwise."""
    assert run_apart("unloaded") == ""
