"""The forms that annotations can have: what they are read as, which message they take, and which they do not."""

from __future__ import annotations

import collections
import decimal
import enum
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Generic,
    Literal,
    LiteralString,
    NamedTuple,
    Never,
    NewType,
    NotRequired,
    Optional,
    Protocol,
    TypeAlias,
    TypedDict,
    TypeVar,
    Union,
    runtime_checkable,
)

import attrs
import msgspec
import pydantic
import pytest

from rehydrate import Executor, WorkflowBuilder, WorkflowContext, checkpointable, executor, handler
from rehydrate.errors import MessageTypeError, WorkflowBuildError

if TYPE_CHECKING:
    pass

#: Named in the texts below, where no tool sees it.
IN_TEXTS = (typing, Annotated, Any, Literal, LiteralString, Iterable, Mapping, Sequence)

T = TypeVar("T")
Bound = TypeVar("Bound", bound=decimal.Decimal)
OneOf = TypeVar("OneOf", int, str)
ByName = TypeVar("ByName", bound="Claim")
UserId = NewType("UserId", int)
UserIds = NewType("UserIds", list[UserId])


@dataclass
class Claim:
    amount: int


@checkpointable
@dataclass
class Urgent(Claim):
    by: str = ""


@dataclass
class Box(Generic[T]):
    content: T


class IntBox(Box[int]): ...


@dataclass
class Tree:
    left: Tree | None = None
    more: list[Tree] = field(default_factory=list)


class Point(TypedDict):
    x: int
    label: NotRequired[str]


class Holder(TypedDict, Generic[T]):
    held: T


class Folder(TypedDict):
    name: str
    inside: list[Folder]


class Pair(NamedTuple):
    number: int
    text: str = ""


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Model(pydantic.BaseModel):
    number: int


class Record(msgspec.Struct):
    number: int


@attrs.define
class Attrs:
    number: int


class Texts(list[str]): ...


@runtime_checkable
class HasAmount(Protocol):
    amount: int


class Unchecked(Protocol):
    amount: int


Claims: TypeAlias = "list[Claim]"
Json = Union[None, int, "list[Json]"]
DEEP: Folder = {"name": "a", "inside": [{"name": "b", "inside": []}]}
SHALLOW = {"name": "a", "inside": [{"name": "b"}]}


def taking(annotation: str) -> Executor:
    """A function whose message is annotated by this text, as after `from __future__ import annotations`."""

    async def take(message, ctx) -> None:
        ctx.yield_output("taken")

    take.__annotations__ = {"message": annotation, "ctx": "WorkflowContext[Never, str]"}
    return executor(take)


@pytest.mark.parametrize(
    ("annotation", "read_as", "fits", "does_not"),
    [
        ("int | str", ("int", "str"), "a", 1.5),
        ("Optional[int]", ("int", "None"), 1, "a"),
        ("Union[int, str, None]", ("int", "str", "None"), "a", 1.5),
        ("Annotated[int, 'metres']", ("int",), 1, "a"),
        ("Annotated[list[int], 'metres'] | None", ("list[int]", "None"), [1], ["a"]),
        ("UserId", ("int",), 5, "a"),
        ("UserIds", ("list[int]",), [5], ["a"]),
        ("Bound", ("Decimal",), decimal.Decimal(1), 1),
        ("OneOf", ("int", "str"), "a", 1.5),
        ("list[OneOf]", ("list[int | str]",), ["a"], [1.5]),
        ("Claim", ("Claim",), Urgent(1), 1),
        ("'Claim'", ("Claim",), Claim(1), 1),
        ("Optional['Claim']", ("Claim", "None"), Claim(1), 1),
        ("Claims", ("list[Claim]",), [Urgent(1)], [1]),
        ("dict[str, list[Claim]]", ("dict[str, list[Claim]]",), {"a": [Claim(1)]}, {"a": [1]}),
        ("typing.Dict[str, typing.List[Claim]]", ("dict[str, list[Claim]]",), {"a": [Claim(1)]}, {"a": [1]}),
        ("Mapping[str, Sequence[int]]", ("Mapping[str, Sequence[int]]",), {"a": (1,)}, {"a": ("b",)}),
        ("Iterable[int]", ("Iterable[int]",), [1], 1),
        ("list[Any]", ("list[Any]",), [1, "a"], (1,)),
        ("list", ("list",), [1, "a"], (1,)),
        ("set[int]", ("set[int]",), {1}, {"a"}),
        ("frozenset[str]", ("frozenset[str]",), frozenset("a"), frozenset([1])),
        ("collections.deque[int]", ("deque[int]",), collections.deque([1]), collections.deque("a")),
        ("tuple[int, ...]", ("tuple[int, ...]",), (1, 2), ("a",)),
        ("tuple[int, str]", ("tuple[int, str]",), (1, "a"), (1,)),
        ("tuple[()]", ("tuple[()]",), (), (1,)),
        ("Box[int]", ("Box[int]",), Box(1), 1),
        ("Box[list[Claim]]", ("Box[list[Claim]]",), Box([Claim(1)]), 1),
        ("Box[int] | Box[str]", ("Box[int]", "Box[str]"), Box("a"), 1),
        ("IntBox", ("IntBox",), IntBox(1), Box(1)),
        ("Tree", ("Tree",), Tree(Tree(), [Tree()]), 1),
        ("Point", ("Point",), {"x": 1}, {"x": "a"}),
        ("Holder[int]", ("Holder[int]",), {"held": 1}, {"held": "a"}),
        ("Holder[Holder[str]]", ("Holder[Holder[str]]",), {"held": {"held": "a"}}, {"held": {"held": 1}}),
        ("Folder", ("Folder",), DEEP, SHALLOW),
        ("list[Folder] | int", ("list[Folder]", "int"), [DEEP], [SHALLOW]),
        ("Pair", ("Pair",), Pair(1), (1, "")),
        ("Literal['a', 1]", ("Literal['a', 1]",), "a", "b"),
        ("Literal['a'] | Literal['b']", ("Literal['a']", "Literal['b']"), "b", "c"),
        ("Literal[Colour.RED]", ("Literal[<Colour.RED: 1>]",), Colour.RED, Colour.BLUE),
        ("Colour", ("Colour",), Colour.BLUE, 2),
        ("LiteralString", ("str",), "a", 1),
        ("float", ("float",), 1, "a"),
        ("bytes", ("bytes",), b"a", "a"),
        ("Model", ("Model",), Model(number=1), 1),
        ("Record", ("Record",), Record(1), 1),
        ("Attrs", ("Attrs",), Attrs(1), 1),
        ("Texts", ("Texts",), Texts("ab"), ["a"]),
        ("HasAmount | Claim", ("HasAmount", "Claim"), Claim(1), 1),
    ],
)
def test_a_form_is_read_and_tells_messages_apart(annotation, read_as, fits, does_not) -> None:
    """What fits runs; what does not is refused before anything is saved."""
    workflow = WorkflowBuilder("forms", taking(annotation)).build()
    (described,) = workflow.describe().executors
    assert described.takes == read_as
    assert workflow.run_sync(fits).output == "taken"
    with pytest.raises(MessageTypeError):
        workflow.run_sync(does_not)


@pytest.mark.parametrize("annotation", ["Any", "object", "T"])
def test_a_form_that_says_nothing_takes_everything(annotation) -> None:
    """`Any`, `object` and a type variable without a bound are the same."""
    workflow = WorkflowBuilder("anything", taking(annotation)).build()
    assert workflow.describe().executors[0].takes == ("Any",)
    assert [workflow.run_sync(message).output for message in (1, "a", [None])] == ["taken"] * 3


@pytest.mark.parametrize(
    ("annotation", "problem"),
    [
        ("Fraction", "the annotation of parameter 'message', Fraction, cannot be resolved (name 'Fraction' is not"),
        ("list[Fraction]", "the annotation of parameter 'message', list[Fraction], cannot be resolved (name"),
        ("(int, str)", "the annotation of parameter 'message', (int, str), cannot be resolved (Forward references"),
        ("int |", "the annotation of parameter 'message', int |, cannot be resolved ("),
        ("Never", "parameter 'message' can have no value (Never)"),
        ("5", "values cannot be checked against its types: 5 is not a type"),
        ("ByName", "values cannot be checked against its types: 'Claim' is only a name, in the bound of a type"),
        ("Json", "values cannot be checked against its types: 'list[Json]' is only a name, in the bound of a type"),
        ("list[Unchecked]", "values cannot be checked against its types: Unchecked is a protocol that is not"),
        ("tuple[int, *tuple[str, ...]]", "values cannot be checked against its types: "),
    ],
)
def test_a_form_that_cannot_be_read_is_a_problem_of_the_build(annotation, problem) -> None:
    """It names the executor, the parameter or type, and what to do."""
    with pytest.raises(WorkflowBuildError) as caught:
        WorkflowBuilder("forms", taking(annotation)).build()
    (found,) = caught.value.problems
    assert found.startswith(f"executor 'take': {problem}"), found
    assert "@executor(message=" in found or "Use classes, unions of them, or containers such as list[int]." in found


class Relay(Executor, Generic[T]):
    @handler
    async def on_message(self, message: T | None, ctx: WorkflowContext[Never, list[T]]) -> None:
        ctx.yield_output([] if message is None else [message])


class ClaimRelay(Relay[Claim]): ...


class Below(ClaimRelay): ...


class Twofold(Executor, Generic[T, OneOf]):
    @handler
    async def on_message(self, message: dict[OneOf, T]) -> None: ...


class Half(Twofold[Box[T], str]): ...


class Whole(Half[int]): ...


def test_a_subclass_says_what_a_type_variable_of_its_base_stands_for() -> None:
    """However far above; one that nobody says stands for anything."""
    assert [cls("r").handlers[0].message for cls in (ClaimRelay, Below)] == [Claim | None, Optional[Claim]]  # noqa: UP045
    assert ClaimRelay("r").handlers[0].yields == (list[Claim],)
    assert Whole("w").handlers[0].message == dict[str, Box[int]]
    assert Relay("r").can_take(object())
    workflow = WorkflowBuilder("relay", ClaimRelay("r")).build()
    assert workflow.run_sync(Urgent(1)).output == [Urgent(1)]
    with pytest.raises(MessageTypeError):
        workflow.run_sync(1)


@dataclass
class Document:
    data: Json
    more: dict[str, Json] = field(default_factory=dict)


def test_a_field_may_be_of_an_alias_of_itself() -> None:
    """What a field holds is not looked at, so it need not be read to its end."""
    document = Document([1, None, [2]], {"a": [None]})
    assert WorkflowBuilder("documents", taking("Document")).build().run_sync(document).output == "taken"


def test_a_callable_can_be_named_and_is_refused_where_it_would_be_stored() -> None:
    """The form is sound; a function has no form that could be stored."""

    @executor
    async def call(message: Callable[[int], str] | int) -> None: ...

    assert WorkflowBuilder("calls", call).build().describe().executors[0].takes == ("Callable[[int], str]", "int")
