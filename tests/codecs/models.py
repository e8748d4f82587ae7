"""Classes of every kind that can be stored, for the tests of the codec. Their hints are postponed on purpose."""

from __future__ import annotations

import enum
from collections import deque
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Generic, NamedTuple, NotRequired, TypedDict, TypeVar

import attrs
import msgspec
import pydantic

from rehydrate.codecs import checkpointable

T = TypeVar("T")


class Color(enum.Enum):
    RED = "red"
    GREEN = "green"
    CRIMSON = "red"  # noqa: PIE796  (another name of RED, as enums may have)


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Mode(enum.StrEnum):
    FAST = "fast"


class Right(enum.Flag):
    READ = 1
    WRITE = 2
    RUN = 4


class Bit(enum.IntFlag):
    A = 1
    B = 2


@dataclass(frozen=True)
class Claim:
    id: str
    amount: int


@dataclass
class Base:
    name: str


@checkpointable
@dataclass
class Derived(Base):
    extra: int = 0


@dataclass
class Holder:
    base: Base
    anything: Any = None


@dataclass(frozen=True, slots=True)
class Slotted:
    a: int
    b: tuple[int, ...] = ()


@checkpointable
@dataclass(slots=True)
class SlottedMore:
    one: Claim


@dataclass(frozen=True)
class HalfSlotted(Slotted):
    c: list[str] = field(default_factory=list)


@dataclass
class NoInit:
    given: int
    made: int = field(init=False)
    kept: str = field(init=False, default="x")

    def __post_init__(self) -> None:
        self.made = self.given * 2
        BUILT.append("NoInit")


#: Which constructors and hooks ran; opening a value must run none.
BUILT: list[str] = []


@dataclass
class Watched:
    a: int

    def __init__(self, a: int) -> None:
        BUILT.append("Watched.__init__")
        self.a = a

    def __setattr__(self, name: str, value: object) -> None:
        BUILT.append("Watched.__setattr__")
        object.__setattr__(self, name, value)


@dataclass
class Box(Generic[T]):
    value: T


@dataclass
class ClaimBox(Box[Claim]):
    pass


@dataclass
class Cached:
    a: int

    @cached_property
    def twice(self) -> int:
        return self.a * 2


@dataclass
class Outer:
    inner: Outer.Inner

    @dataclass
    class Inner:
        a: int


@dataclass
class Empty:
    pass


@dataclass
class Wide:
    a0: int = 0
    a1: int = 1
    a2: int = 2
    a3: int = 3
    a4: int = 4
    a5: int = 5
    a6: int = 6
    a7: int = 7
    a8: int = 8
    a9: int = 9
    b0: int = 10
    b1: int = 11
    b2: int = 12
    b3: int = 13
    b4: int = 14
    b5: int = 15
    b6: int = 16


class Point(NamedTuple):
    x: int
    y: float = 0.5


class Row(TypedDict):
    claim: Claim
    note: NotRequired[str]


class Struct(msgspec.Struct):
    a: int
    b: Claim | None = None


class FrozenStruct(msgspec.Struct, frozen=True, array_like=True, tag="frozen", rename="camel", gc=False):
    first_name: str
    last_name: str = "x"


class HookedStruct(msgspec.Struct, kw_only=True):
    a: int

    def __post_init__(self) -> None:
        self.a += 1


@attrs.define
class Attrs:
    a: int
    b: Claim | None = None
    _hidden: int = attrs.field(init=False, default=3)


@attrs.frozen
class FrozenAttrs:
    a: int

    @cached_property
    def twice(self) -> int:
        return self.a * 2


@attrs.define(slots=False)
class OpenAttrs:
    a: list[Color]


class Model(pydantic.BaseModel):
    a: int
    b: str = "x"
    when: datetime | None = None


class StrictModel(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True)
    claim: Claim
    small: int = pydantic.Field(lt=10)


class OpenModel(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    a: int
    _secret: int = pydantic.PrivateAttr(default=7)

    @cached_property
    def twice(self) -> int:
        return self.a * 2


class GenericModel(pydantic.BaseModel, Generic[T]):
    value: T


class Root(pydantic.RootModel[list[int]]):
    pass


class Name(str):
    __slots__ = ()


class Count(int):
    pass


class Claims(list[Claim]):
    pass


class Table(dict[str, Claim]):
    pass


class Tags(frozenset[str]):
    pass


@dataclass
class Everything:
    """Leads to all of the above, so that one registry has them."""

    parts: (
        Color
        | Level
        | Mode
        | Right
        | Bit
        | Claim
        | Holder
        | Slotted
        | SlottedMore
        | HalfSlotted
        | NoInit
        | Watched
        | ClaimBox
    )
    more: Cached | Outer | Empty | Wide | Point | Row | Struct | FrozenStruct | HookedStruct | Attrs | FrozenAttrs
    rest: OpenAttrs | Model | StrictModel | OpenModel | GenericModel[int] | GenericModel[Claim] | GenericModel | Root
    subclasses: Name | Count | Claims | Table | Tags
    queue: deque[Claim]
    boxes: list[Box[int]]
