"""Versions: what happens to stored values when their types change."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, Flag

import msgspec
import pytest

from rehydrate.codecs import TypeRegistry, ValueCodec, checkpointable
from rehydrate.errors import CheckpointFormatError, WorkflowCheckpointException
from rehydrate.errors.codec import TypeChangedError, UnknownTypeError
from rehydrate.model.sealed import Sealed


@dataclass
class First:
    name: str
    amount: int


@checkpointable(name="First", version=2)
@dataclass
class Second:
    name: str
    cents: int


def cents(version: int, fields: dict[str, object]) -> dict[str, object]:
    assert version == 1
    return {"name": fields["name"], "cents": int(str(fields["amount"])) * 100}


@checkpointable(name="First", version=3, upcast=lambda version, fields: {**fields, "cents": version})
@dataclass
class Third:
    name: str
    cents: int


def codec(*types: object) -> ValueCodec:
    return ValueCodec(TypeRegistry(types))


def again(upcast: Callable[[int, dict[str, object]], object]) -> type:
    @checkpointable(name="First", version=2, upcast=upcast)
    @dataclass
    class Second:
        name: str
        cents: int

    return Second


def test_an_older_value_is_brought_up_to_date() -> None:
    """`upcast` gets the stored version and fields, and what it returns is built, at any depth."""
    sealed = codec(First).seal([First("a", 5), {"k": First("b", 6)}])
    new = again(cents)
    assert codec(new).open(sealed) == [new("a", 500), {"k": new("b", 600)}]


def test_each_stored_version_is_named() -> None:
    """A value stored by version 2 is told to be of version 2."""
    assert codec(Third).open(codec(Second).seal(Second("a", 5))) == Third("a", 2)


def test_the_same_version_is_not_changed() -> None:
    """A value of today's version does not pass through `upcast`."""
    assert codec(Third).open(codec(Third).seal(Third("a", 77))) == Third("a", 77)


def test_a_newer_value_is_refused() -> None:
    """A value of a version that this code does not know is a format error that names type and versions."""
    sealed = codec(Third).seal(Third("a", 1))
    with pytest.raises(CheckpointFormatError, match=r"'First' has format 3; this version reads up to 1.*upgrade"):
        codec(First).open(sealed)
    with pytest.raises(CheckpointFormatError, match="format 3"):
        codec(Second).open(sealed)


def test_an_older_value_without_a_way_is_refused() -> None:
    """A version without `upcast` cannot read the one before."""
    with pytest.raises(TypeChangedError, match=r"version 1, and version 2 has no upcast=.*Raise the type's version"):
        codec(Second).open(codec(First).seal(First("a", 1)))


@pytest.mark.parametrize(
    ("upcast", "text"),
    [
        (lambda _version, fields: fields, "it has no cents and nothing takes its amount"),
        (lambda _version, _fields: {"name": "a"}, "it has no cents"),
        (lambda _version, _fields: None, "upcast returned NoneType"),
        (lambda _version, fields: fields["gone"], "upcast raised KeyError for version 1: 'gone'"),
        (lambda _version, _fields: int("x"), "upcast raised ValueError"),
    ],
    ids=["unchanged", "incomplete", "nothing", "raises", "raises another"],
)
def test_a_wrong_upcast_is_named(upcast: Callable[[int, dict[str, object]], object], text: str) -> None:
    """What `upcast` returns has to fit, and what it raises is reported as its own error."""
    with pytest.raises(TypeChangedError, match=text):
        codec(again(upcast)).open(codec(First).seal(First("a", 1)))


def test_changed_fields_without_a_new_version_are_an_error() -> None:
    """A class whose fields changed silently does not get old values with attributes missing."""

    @checkpointable(name="First")
    @dataclass
    class Changed:
        name: str
        amount: int
        more: int = 0

    sealed = codec(First).seal(First("a", 1))
    with pytest.raises(TypeChangedError, match="'First' does not fit today's definition: it has no more") as caught:
        codec(Changed).open(sealed)
    assert isinstance(caught.value, WorkflowCheckpointException)
    back = codec(Changed).seal(Changed("a", 1))
    with pytest.raises(TypeChangedError, match="nothing takes its more"):
        codec(First).open(back)


def test_a_member_that_is_gone_is_an_error() -> None:
    """An enum member or flag that no longer exists is named."""
    old, new = Enum("Kind", "A B"), Enum("Kind", "A C")
    with pytest.raises(TypeChangedError, match=r"'Kind' .*no member 'B'"):
        codec(new).open(codec(old).seal(old.B))
    wide, narrow = Flag("Right", "A B"), Flag("Right", "A")
    with pytest.raises(TypeChangedError, match="no flags 2"):
        codec(narrow).open(codec(wide).seal(wide.B))


def test_a_hook_of_a_struct_that_refuses_is_named() -> None:
    """A struct's `__post_init__` runs, because msgspec knows no other way, and what it raises is reported."""

    class Old(msgspec.Struct):
        a: int

    @checkpointable(name="Old")
    class New(msgspec.Struct):
        a: int

        def __post_init__(self) -> None:
            raise ZeroDivisionError("never")

    with pytest.raises(TypeChangedError, match="__post_init__ raised ZeroDivisionError: never"):
        codec(New).open(codec(Old).seal(Old(1)))


def test_a_renamed_class_keeps_its_stored_name() -> None:
    """Renaming a class needs no migration where the mark keeps the old name."""

    @checkpointable(name="First")
    @dataclass
    class Renamed:
        name: str
        amount: int

    assert codec(Renamed).open(codec(First).seal(First("a", 1))) == Renamed("a", 1)


def test_a_type_that_is_gone_is_named_with_the_ways_out() -> None:
    """An unknown type is its own error, at the top and inside of a value."""
    for sealed in (codec(First).seal(First("a", 1)), codec(First).seal([First("a", 1)]), Sealed("First", b"\x01")):
        with pytest.raises(UnknownTypeError, match=r"'First' is not registered.*Import.*renamed.*keep the class"):
            codec().open(sealed)
