"""Messages and answers as JSON: read by the types of the workflow, and nothing is guessed."""

import enum
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, Never, NotRequired, TypedDict, TypeVar

import attrs
import msgspec
import pydantic
import pytest

from rehydrate import Executor, JsonAnswer, WorkflowBuilder, WorkflowContext, WorkflowExecutor, handler, workflow
from rehydrate.errors import AnswerTypeError, IdempotencyKeyError, MessageShapeError
from rehydrate.runtime.json_fields import json_shape
from rehydrate.runtime.json_input import from_json
from rehydrate.runtime.json_keys import key_twice
from rehydrate.runtime.json_models import MisfitError
from tests.call.desk import Note, desk

T = TypeVar("T")


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Claim:
    id: str
    amount: int


@dataclass(frozen=True)
class Small:
    id: str


@dataclass(frozen=True)
class Twin:
    id: str


@dataclass
class Order:
    claim: Claim | Small
    tags: list[str] = field(default_factory=list)
    when: datetime | None = None
    price: float | int = 0


@dataclass
class Box(Generic[T]):
    item: T


@dataclass
class Node:
    number: int
    below: "list[Node]" = field(default_factory=list)


@dataclass
class Add:
    inner: "Add | Mul | int"


@dataclass
class Mul:
    inner: "Add | Mul | int"


@attrs.define
class Paint:
    color: Color
    _coats: int = 1


class Struct(msgspec.Struct, rename="camel", tag=True):
    some_name: int
    claim: Claim | None = None


class Model(pydantic.BaseModel):
    number: int
    when: datetime | None = None
    other: str = pydantic.Field("x", alias="Other")


class Outer(pydantic.BaseModel):
    models: list[Model] = []
    by_name: dict[str, Claim] = {}


class Loose(pydantic.BaseModel, extra="ignore"):
    number: int


class Numbers(pydantic.RootModel[list[int]]):
    pass


class Pair(NamedTuple):
    a: int
    b: str = "b"


class Keys(TypedDict):
    a: int
    b: NotRequired[str]


@dataclass(frozen=True)
class Even:
    number: int

    def __post_init__(self) -> None:
        if self.number % 2:
            raise ValueError("it is odd")


CLAIM = '{"id": "c", "amount": 5}'


@pytest.mark.parametrize(
    ("hint", "text", "value"),
    [
        (int, "5", 5),
        (int, "123456789012345678901234567890", 123456789012345678901234567890),
        (float, "5", 5.0),
        (int | float, "5", 5),
        (float | int, "5.0", 5.0),
        (bool, "true", True),
        (type(None), "null", None),
        (str, '"5"', "5"),
        (Decimal, "1.10", Decimal("1.10")),
        (datetime, '"2026-01-31T12:00:00Z"', datetime(2026, 1, 31, 12, tzinfo=UTC)),
        (bytes, '"aGk="', b"hi"),
        (Path, '"a/b"', Path("a/b")),
        (Color, '"red"', Color.RED),
        (Literal["a", 1], "1", 1),
        (object, '{"a": [1]}', {"a": [1]}),
        (Any | Claim, CLAIM, Claim("c", 5)),
        (Any | Claim, '{"id": "c"}', {"id": "c"}),
        (list[int], "[1, 2]", [1, 2]),
        (Sequence[Claim], f"[{CLAIM}]", [Claim("c", 5)]),
        (tuple[int, str], '[1, "a"]', (1, "a")),
        (frozenset[int], "[1]", frozenset({1})),
        (deque[str], '["a"]', deque(["a"])),
        (Mapping[int, Claim], f'{{"7": {CLAIM}}}', {7: Claim("c", 5)}),
        (Claim, CLAIM, Claim("c", 5)),
        (Claim, '{"$type": "Claim", "id": "c", "amount": 5}', Claim("c", 5)),
        (Claim | Small, '{"id": "c"}', Small("c")),
        (Twin | Small, '{"$type": "Twin", "id": "c"}', Twin("c")),
        (Order, '{"claim": {"id": "c"}, "tags": ["x"], "price": 1}', Order(Small("c"), ["x"], None, 1)),
        (Box[int], '{"item": 5}', Box(5)),
        (Box[Claim], f'{{"item": {CLAIM}}}', Box(Claim("c", 5))),
        (Node, '{"number": 1, "below": [{"number": 2}]}', Node(1, [Node(2)])),
        (Paint, '{"color": "blue", "_coats": 2}', Paint(Color.BLUE, 2)),
        (Struct, f'{{"type": "Struct", "someName": 1, "claim": {CLAIM}}}', Struct(1, Claim("c", 5))),
        (Model, '{"number": 1, "when": "2026-01-31T12:00:00Z", "Other": "y"}',
         Model(number=1, when=datetime(2026, 1, 31, 12, tzinfo=UTC), Other="y")),
        (Outer, f'{{"models": [{{"number": 1}}], "by_name": {{"x": {CLAIM}}}}}',
         Outer(models=[Model(number=1)], by_name={"x": Claim("c", 5)})),
        (Model, '{"$type": "Model", "number": 1}', Model(number=1)),
        (Loose, '{"number": 1, "more": 2}', Loose(number=1)),
        (Numbers, "[1]", Numbers([1])),
        (Pair, '{"a": 1}', Pair(1)),
        (Keys, '{"a": 1}', {"a": 1}),
        (Even, '{"number": 2}', Even(2)),
    ],
)  # fmt: skip
def test_json_that_fits_gives_the_typed_value(hint, text, value):
    """Standard types, containers, unions, and classes of every kind that can be stored."""
    found = from_json(text, hint)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("hint", "text", "problem"),
    [
        (int, '"5"', "expected `int`, got `str`"),
        (int, "5.0", "expected `int`, got `float`"),
        (int, "true", "expected `int`, got `bool`"),
        (bool, "1", "expected `bool`, got `int`"),
        (str, "hello", "it is no JSON (JSON is malformed: invalid character (byte 0)); a text stands in double quotes"),
        (int, "", "it is no JSON (Input data was truncated)"),
        (Color, '"RED"', "invalid enum value 'RED'"),
        (Claim, "[]", "expected an object for Claim"),
        (Claim, '{"id": "c"}', "the field 'amount' of Claim is missing"),
        (Claim, '{"id": "c", "amount": 5, "amuont": 5}', "there is no field 'amuont' in Claim"),
        (Claim, '{"$type": "Twin", "id": "c", "amount": 5}', "its '$type' is not Claim"),
        (Order, '{"claim": {"id": "c", "amount": "5"}}',
         "at claim: Claim: at amount: expected `int`, got `str`; Small: there is no field 'amount' in Small"),
        (Twin | Small, '{"id": "c"}', 'it fits Twin and Small; say which is meant with "$type"'),
        (Node, '{"number": 1, "below": [{"number": 2}, {"number": "3"}]}',
         "at below[1].number: expected `int`, got `str`"),
        (Box[int], '{"item": "5"}', "at item: expected `int`, got `str`"),
        (Struct, '{"type": "Other", "someName": 1}', "its 'type' is not 'Struct'"),
        (Model, '{"number": "1"}', "at number: Input should be a valid integer"),
        (Model, '{"number": 1, "more": 2}', "there is no field 'more' in Model"),
        (Model, '{"number": 1, "other": "y"}', "there is no field 'other' in Model"),
        (Model, '{"$type": "Outer", "number": 1}', "its '$type' is not Model"),
        (Outer, '{"models": [{"number": 1}, {"number": 1, "more": 2}]}',
         "at models[1]: there is no field 'more' in Model"),
        (Outer, '{"by_name": {"x": {"id": "c", "amount": 5, "more": 2}}}',
         "at by_name.x: there is no field 'more' in Claim"),
        (Keys, '{"b": "x"}', "the field 'a' of Keys is missing"),
        (tuple[int, str], "[1]", "expected 2 elements, and there are 1"),
        (set[list[int]], "[[1]]", "unhashable type: 'list'"),
        (dict[str, int], "[]", "expected an object"),
        (list[int], "{}", "expected a list"),
        (Even, '{"number": 1}', "it is odd"),
        (Annotated[int, msgspec.Meta(ge=5)], "3", "expected `int` >= 5"),
        (list[object], "[" * 100_000 + "]" * 100_000, "it is nested too deep"),
        (Add | Mul, '{"inner": ' * 60 + "1" + "}" * 60,
         'it could be too many types; say which are meant with "$type"'),
        (Node, '{"number": 1, "below": [' * 400 + "]}" * 400, "it is nested too deep"),
        (Claim, '{"id": "c", "amount": 5, "amount": 9}', "the key 'amount' stands twice in one object"),
        (Claim, r'{"id": "c", "amount": 5, "\u0061mount": 9}', "the key 'amount' stands twice in one object"),
        (Claim | Small, '{"$type": "Small", "id": "c", "$type": "Claim"}',
         "the key '$type' stands twice in one object"),
        (Node, '{"number": 1, "below": [{"number": 2}, {"number": 3, "below": [], "number": 4}]}',
         "at below[1]: the key 'number' stands twice in one object"),
        (Outer, '{"models": [{"number": 1, "number": 2}]}',
         "at models[0]: the key 'number' stands twice in one object"),
        (Loose, '{"number": 1, "more": {"a": 1, "a": 2}}', "at more: the key 'a' stands twice in one object"),
        (object, '[[1, [{}, {"a": {"b": 1, "b": 2}}]]]', "at [0][1][1].a: the key 'b' stands twice in one object"),
        (dict[datetime, int], '{"2026-01-31T12:00:00Z": 1, "2026-01-31T12:00:00+00:00": 2}',
         "at 2026-01-31T12:00:00+00:00: the same key stands there already, written in another way"),
        (object, b'{"a": "\xff"}',
         "it is no JSON ('utf-8' codec can't decode byte 0xff in position 7: invalid start byte)"),
    ],
)  # fmt: skip
def test_json_that_does_not_fit_says_where_and_why(hint, text, problem):
    """A text is no number, an unknown field is an error, and so is what fits two types."""
    with pytest.raises(MisfitError) as error:
        from_json(text, hint)
    assert str(error.value) == problem


@pytest.mark.parametrize(
    "text",
    ["9" * 3_000_000, "[" + "[]," * 1_000_000 + "0]", "[" * 200 + "{}," * 700_000 + "0" + "]" * 200,
     "{" + ",".join(f'"{number}": {{}}' for number in range(200_000)) + "}"],
    ids=["one number", "short lists", "objects far inside", "keys"],
)  # fmt: skip
def test_looking_for_keys_that_stand_twice_takes_a_moment(text):
    """However a text of some megabytes is made: the time grows with its length and with nothing else."""
    began = time.process_time()
    assert key_twice(text.encode()) is None
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("hint", "shape"),
    [
        (Claim | None, '{"id": str, "amount": int} | null'),
        (Color, '"red" | "blue"'),
        (Literal["a", 1], '"a" | 1'),
        (bool, "true | false"),
        (dict[str, list[Path]], '{str: ["a/path", ...], ...}'),
        (dict[int, Color], '{int: "red" | "blue", ...}'),
        (dict[Color, int], '{"red" | "blue": int, ...}'),
        (dict, "{str: any JSON, ...}"),
        (tuple[int, str], "[int, str]"),
        (Box[Claim], '{"item": {"id": str, "amount": int}}'),
        (Model, '{"number": int, "when"?: "2026-01-31T12:00:00+00:00" | null, "Other"?: str}'),
        (Keys, '{"a": int, "b"?: str}'),
        (object, "any JSON"),
    ],
)
def test_the_shape_of_a_type(hint, shape):
    """What a person has to write, with `?` behind what may be left out."""
    assert json_shape(hint) == shape


def test_the_shape_of_a_class_that_contains_itself_ends():
    """Some levels down it is only named."""
    assert json_shape(Node).endswith('"below"?: [Node, ...]}, ...]}')


class Taker(Executor):
    """Takes claims and texts."""

    @handler
    async def on_claim(self, claim: Claim, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output(claim.id)

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output(text)


@workflow
async def twice(number: int) -> int:
    return number * 2


def test_a_workflow_reads_its_message():
    """A graph by the handlers of its start executor, one that starts with a nested graph by those of that, a function
    by its argument."""
    inner = WorkflowBuilder("inner", Taker("taker")).build()
    outer = WorkflowBuilder("outer", WorkflowExecutor(inner, "inner")).build()
    assert outer.run_sync(outer.parse(CLAIM)).outputs == ["c"]
    assert outer.run_sync(outer.parse('"t"')).outputs == ["t"]
    assert twice.run_sync(twice.parse(b"21")).output == 42
    with pytest.raises(MessageShapeError) as error:
        outer.parse("5")
    assert error.value.shapes == ('{"id": str, "amount": int}', "str")
    assert str(error.value).endswith('Expected is JSON of this shape: {"id": str, "amount": int} or str')


@workflow
async def echo(value: int | None) -> int | None:
    return value


def test_null_is_no_message():
    """A call would take it for a message that was not given, so it is refused also where its type is taken."""
    assert echo.parse("1") == 1
    with pytest.raises(MessageShapeError, match="null stands for no message at all"):
        echo.parse("null")


def test_an_answer_as_json_is_read_by_the_type_that_its_request_expects(world, anywhere):
    """Code that knows only the id gives the text; one that does not fit is refused, and nothing has changed."""
    flow = desk(world, anywhere)
    paused = flow.run_sync(Note("a?"), run_id="r")
    (request,) = paused.pending_requests
    with pytest.raises(AnswerTypeError, match="expects an answer of type bool") as error:
        flow.run_sync(checkpoint=paused, responses={request.request_id: JsonAnswer("1")})
    assert error.value.shape == request.shape == "true | false"
    result = flow.run_sync(checkpoint=paused, responses={request.request_id: JsonAnswer(b" true ")})
    assert result.outputs == ["1: a? yes"]


def test_the_same_call_with_an_answer_as_json_is_the_same_turn(world, store):
    """However the text is spaced; another answer is another call."""
    flow = desk(world, store)
    paused = flow.run_sync(Note("a?"), run_id="r")
    request_id = paused.pending_requests[0].request_id

    def call(text: str):
        answer = {request_id: JsonAnswer(text)}
        return flow.run_sync(checkpoint=paused, responses=answer, idempotency_key="k")

    first, second = call("true"), call(" true")
    assert (first.replayed, second.replayed, second.checkpoint_id) == (False, True, first.checkpoint_id)
    with pytest.raises(IdempotencyKeyError):
        call("false")
