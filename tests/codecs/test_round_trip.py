"""Round trips: what is sealed opens as the same value of the same type, for every kind of type."""

import gc
import math
import uuid
import weakref
from collections import deque
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path, PurePosixPath, PureWindowsPath
from zoneinfo import ZoneInfo

import pytest

from rehydrate.codecs import TypeRegistry, ValueCodec
from tests.codecs import models as m
from tests.codecs.exact import same

CODEC = ValueCodec(TypeRegistry([m.Everything]))
BERLIN = ZoneInfo("Europe/Berlin")
TREE = m.Claim("c-1", 5000)


def unset() -> m.NoInit:
    value = m.NoInit(1)
    del value.made
    return value


def cached() -> list[object]:
    values = [m.Cached(1), m.FrozenAttrs(1), m.OpenModel(a=1)]
    assert [value.twice for value in values] == [2, 2, 2]
    return values


def with_extra() -> m.OpenModel:
    value = m.OpenModel(a=1, z=[TREE], y=(1,))
    value._secret = 9
    return value


BUILT_IN = {
    "nothing": None,
    "booleans": [True, False],
    "ints": [0, -1, 127, 128, -32, -33, 2**31, 2**63 - 1, -(2**63), 2**64 - 1],
    "ints beyond 64 bits": [2**64, -(2**63) - 1, 2**70, -(2**70), 10**1000],
    "an int beyond 64 bits alone": 2**70,
    "floats": [1.5, 0.0, -0.0, math.inf, -math.inf, math.nan, -math.nan, 5e-324],
    "NaN alone": math.nan,
    "texts": ["", "a", "ä", "日本", "\0", "a\0b", "\U0001f600"],
    "lone surrogates": ["\ud800", "a\udfffb", "\ud83d\ude00", {"\ud800": "\udc00"}],
    "a lone surrogate alone": "\ud800",
    "bytes": [b"", b"\0\xff", b"x" * 70000],
    "bytearray": [bytearray(b"x"), bytearray()],
    "tuples": ((), (1,), (1, (2, [3, (4,)])), [(5,)]),
    "sets": [set(), {1, "a", None}, frozenset(), frozenset({frozenset({1}), (2,)})],
    "deques": [deque(), deque([1, (2,)], maxlen=3), deque(maxlen=0)],
    "dicts with int keys": {1: "a", -5: {2: "b"}},
    "dicts with keys of all kinds": {
        None: 1, True: 2, 2.5: 3, b"x": 4, (1, "a"): 5, frozenset({1}): 6, m.Color.RED: 7, TREE: 8, date(2020, 1, 1): 9,
        2**70: 10, "\ud800": 11, uuid.UUID(int=1): 12, m.Level.LOW: 13, math.inf: 14, "plain": 15, Decimal("1.5"): 16,
    },
    "order of a dict": {"b": 1, "a": 2, "c": 3},
    "sizes of containers": [[0] * 15, [0] * 16, [0] * 65536, dict.fromkeys(range(16)), dict.fromkeys(range(65536))],
    "naive datetimes": [datetime(2026, 3, 29, 1, 2, 3, 456789), datetime.min, datetime.max],  # noqa: DTZ001, DTZ901
    "datetimes in UTC": datetime(2026, 3, 29, tzinfo=UTC),
    "datetimes with an offset": datetime(2026, 3, 29, tzinfo=timezone(timedelta(hours=5, minutes=30, microseconds=1))),
    "datetimes with a named offset": datetime(2026, 3, 29, tzinfo=timezone(timedelta(hours=-5), "EST")),
    "datetimes in a zone": [datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=fold) for fold in (0, 1)],
    "dates": [date.min, date(2026, 2, 28), date.max],
    "times": [time(1, 2, 3, 4), time(2, 30, fold=1), time(1, tzinfo=BERLIN), time(1, tzinfo=UTC)],
    "time spans": [timedelta(1, 2, 3), timedelta.min, timedelta.max, timedelta(-1)],
    "zones": [UTC, timezone(timedelta(hours=1)), timezone(timedelta(hours=1), "X"), BERLIN],
    "UUIDs": [uuid.UUID(int=5), uuid.uuid4(), uuid.UUID(int=1, is_safe=uuid.SafeUUID.safe)],
    "decimals": [Decimal("1.10"), Decimal("-0"), Decimal("1E+400"), Decimal("Infinity"), Decimal("-NaN12")],
    "paths": [Path("a/b"), PurePosixPath("/x"), PureWindowsPath("C:\\x"), Path("\udcff")],
    "complex numbers": [1j, complex(-0.0, math.nan)],
    "ranges": [range(3), range(5, -5, -2), range(2**70, 2**71)],
}  # fmt: skip

CLASSES = {
    "enums": [m.Color.RED, m.Color.GREEN, m.Color.CRIMSON, m.Level.HIGH, m.Mode.FAST],
    "flags": [m.Right.READ, m.Right.READ | m.Right.RUN, m.Right(0), m.Bit.A | m.Bit.B, m.Bit(64)],
    "a frozen dataclass": TREE,
    "an int field that holds something else": m.Claim("c", [1, (2,)]),  # type: ignore[arg-type]
    "a subclass in a field of its base": m.Holder(m.Derived("n", 3), m.Base("b")),
    "a tuple in a list in a field": m.Holder(m.Base("b"), [1, (2, m.Color.RED)]),
    "slots": [m.Slotted(1, (2, 3)), m.SlottedMore(TREE), m.HalfSlotted(1, (2,), ["c"])],
    "fields without init": [m.NoInit(4), unset()],
    "generics": [m.Box(1), m.Box[int](1), m.ClaimBox(TREE)],
    "a class in a class": m.Outer(m.Outer.Inner(1)),
    "no fields": m.Empty(),
    "more fields than a small map has": m.Wide(b6="x"),  # type: ignore[arg-type]
    "named tuples": [m.Point(1), m.Point((1,), math.nan)],  # type: ignore[arg-type]
    "typed dicts": m.Row(claim=TREE),
    "structs": [m.Struct(1, TREE), m.FrozenStruct("a"), m.HookedStruct(a=1)],
    "attrs classes": [m.Attrs(1, TREE), m.FrozenAttrs(1), m.OpenAttrs([m.Color.RED])],
    "models": [m.Model(a=1), m.Model(a=1, b="x"), m.StrictModel(claim=TREE, small=3), m.Root([1]), with_extra()],
    "models made without validation": [
        m.StrictModel.model_construct(claim=TREE, small=99), m.Model.model_construct(b="y"),
    ],
    "generic models": [m.GenericModel[int](value=1), m.GenericModel[m.Claim](value=TREE), m.GenericModel(value=(1,))],
    "subclasses of built-in types": [m.Name("n"), m.Count(2**70), m.Claims([TREE]), m.Table(a=TREE), m.Tags({"x"})],
    "a model with a lone surrogate": m.Model(a=1).model_copy(update={"b": "\ud800"}),
    "an object with an int beyond 64 bits": m.Claim("c", 2**70),
}  # fmt: skip


@pytest.mark.parametrize("name", [*BUILT_IN, *CLASSES])
def test_a_value_comes_back_as_it_was(name: str) -> None:
    """What opens equals what was sealed, in value, type, order and bits."""
    value = {**BUILT_IN, **CLASSES}[name]
    sealed = CODEC.seal(value)
    assert same(CODEC.open(sealed), value)
    assert sealed.type == type(value).__name__.replace("NoneType", "None")


@pytest.mark.parametrize("name", [*BUILT_IN, *CLASSES])
def test_what_is_opened_is_sealed_to_the_same_bytes(name: str) -> None:
    """Sealing is stable: opening and sealing again gives the same bytes."""
    sealed = CODEC.seal({**BUILT_IN, **CLASSES}[name])
    assert CODEC.seal(CODEC.open(sealed)) == sealed


def test_what_a_cached_property_remembers_is_not_stored() -> None:
    """A cached property is computed again after opening, and does not stand in the way of sealing."""
    for value in cached():
        opened = CODEC.open(CODEC.seal(value))
        assert same(opened, value)
        assert "twice" not in getattr(opened, "__dict__", {})
        assert opened.twice == 2


def test_opening_runs_no_constructor_and_no_hook() -> None:
    """Neither `__init__` nor `__post_init__` nor `__setattr__` of a dataclass runs when it is built again."""
    sealed = CODEC.seal([m.NoInit(4), m.Watched(1)])
    m.BUILT.clear()
    opened = CODEC.open(sealed)
    assert m.BUILT == []
    assert opened[0].made == 8
    assert opened[1].a == 1


def test_every_opening_gives_a_fresh_value() -> None:
    """Changing what was opened changes neither the sealed value nor what is opened next."""
    original = {"h": [1]}
    sealed = CODEC.seal(original)
    original["h"].append(5)
    CODEC.open(sealed)["h"].append(2)
    assert CODEC.open(sealed) == {"h": [1]}


def test_the_same_part_twice_becomes_two_parts() -> None:
    """Aliases inside one value are not kept, as the design says."""
    part = [1]
    opened = CODEC.open(CODEC.seal([part, part]))
    opened[0].append(2)
    assert opened == [[1, 2], [1]]


def test_sealing_leaves_the_value_alone() -> None:
    """Sealing neither changes a value nor holds on to it."""
    value = m.Holder(m.Base("b"), {"x": (1,)})
    reference = weakref.ref(value)
    CODEC.seal(value)
    assert value == m.Holder(m.Base("b"), {"x": (1,)})
    del value
    gc.collect()
    assert reference() is None


def test_equal_sets_give_equal_bytes() -> None:
    """The order in which a set was filled does not show."""
    words = [f"word{number}" for number in range(100)]
    forward, backward = set(), set()
    for word in words:
        forward.add((word, 1))
    for word in reversed(words):
        backward.add((word, 1))
    backward.add("gone")
    backward.remove("gone")
    assert CODEC.seal(forward).data == CODEC.seal(backward).data
    assert CODEC.seal({"s": frozenset(forward)}).data == CODEC.seal({"s": frozenset(backward)}).data


def test_a_plain_part_has_the_same_bytes_beside_an_uncommon_one() -> None:
    """An int beyond 64 bits or a lone surrogate elsewhere in a value does not change how the rest is written."""
    rest = {"a": {1: "b", "c": [1, "d"]}, "e": TREE}
    alone = CODEC.seal([rest]).data[1:]
    assert CODEC.seal([rest, 2**70]).data[1:].startswith(alone)
    assert CODEC.seal([rest, "\ud800"]).data[1:].startswith(alone)


@pytest.mark.parametrize(
    "value",
    [
        {"$type": "Claim", "id": "c", "amount": 1},
        {"": "Claim", "id": "c", "amount": 1},
        {"!missing": ["id"], "": ["Claim", 2]},
        {None: "Claim", "id": 1},
        {"type": "Claim", "__type__": "Claim", "$set": [1]},
        {"!set": [], "!extra": {}, "!private": None},
        ["$type", "", "!missing"],
    ],
    ids=repr,
)
def test_the_codecs_own_marks_in_user_data_are_data(value: object) -> None:
    """User data that looks like the codec's own comes back unchanged."""
    assert same(CODEC.open(CODEC.seal(value)), value)
    assert same(CODEC.open(CODEC.seal(m.Holder(m.Base("b"), value))), m.Holder(m.Base("b"), value))


def test_elements_sealed_in_pieces_open_as_one_list() -> None:
    """The bytes of elements can be put one after the other, as a growing list is stored."""
    first, count = CODEC.seal_items([1, (2,), TREE])
    second, more = CODEC.seal_items([2**70] * 20)
    assert (count, more) == (3, 20)
    assert same(CODEC.open_items([first, second], 23), [1, (2,), TREE, *[2**70] * 20])
    assert CODEC.open_items([], 0) == []
    assert CODEC.seal_items([]) == (b"", 0)
