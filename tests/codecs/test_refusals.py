"""Refusals: what cannot be stored exactly is refused at the line, with type, place and reason."""

import threading
from collections import OrderedDict, UserDict, defaultdict, deque
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import PureWindowsPath
from types import MappingProxyType

import attrs
import msgspec
import pytest

from rehydrate.codecs import MAX_DEPTH, TypeRegistry, ValueCodec, checkpointable
from rehydrate.errors import CallError
from rehydrate.errors.codec import NotStorableError
from tests.codecs import models as m

CODEC = ValueCodec(TypeRegistry([m.Everything]))


class Plain:
    pass


class OwnZone(tzinfo):
    def utcoffset(self, _when: object) -> None:
        return None


@dataclass
class Unregistered:
    a: int


class OwnText(str):
    __slots__ = ()


class Later(datetime):
    pass


def refused(value: object, codec: ValueCodec = CODEC) -> NotStorableError:
    with pytest.raises(NotStorableError) as caught:
        codec.seal(value)
    return caught.value


@pytest.mark.parametrize(
    ("value", "where"),
    [
        (Plain(), "Plain"),
        (print, "builtin_function_or_method"),
        (int, "type"),
        ([1, Unregistered(1)], "list[1]"),
        ({"a": {"b": (1, {len})}}, "dict['a']['b'][1]{<builtin_function_or_method>}"),
        (m.Holder(m.Base("b"), [1, {"k": object()}]), "Holder.anything[1]['k']"),
        ({(1, OwnText("x")): 1}, "dict key <tuple>[1]"),
        ({OwnText("x"): 1}, "dict key <OwnText>"),
        (deque([1, Plain()]), "deque[1]"),
        ([OwnText("x")], "list[0]"),
        (OrderedDict(a=1), "OrderedDict"),
        (defaultdict(int), "defaultdict"),
        (UserDict(a=1), "UserDict"),
        (MappingProxyType({}), "mappingproxy"),
        (iter([]), "list_iterator"),
        (memoryview(b"x"), "memoryview"),
        ([memoryview(b"x")], "list[0]"),
        (Later(2026, 1, 1, tzinfo=UTC), "Later"),
        (datetime(2026, 1, 1, tzinfo=OwnZone()), "datetime"),
        (threading.Lock(), "lock"),
        ([msgspec.msgpack.Ext(1, b"x")], "list[0]"),
        ({"a": msgspec.Raw(b"\x01")}, "dict['a']"),
        (Ellipsis, "ellipsis"),
        ({10**5000: len}, "dict[<int>]"),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_a_value_without_an_exact_form_is_refused_with_its_place(value: object, where: str) -> None:
    """The error names the part of the value that cannot be stored; nothing is approximated."""
    error = refused(value)
    assert error.where == where
    assert str(error).startswith(f"a value of type {error.type}")
    assert "@checkpointable" in str(error)
    assert isinstance(error, CallError | TypeError)


def test_a_type_that_was_never_registered_is_named() -> None:
    """The error for a class that could be stored says that it is not registered."""
    error = refused({"claim": Unregistered(1)})
    assert (error.type, error.where) == ("Unregistered", "dict['claim']")
    assert "is not registered" in str(error)


def test_a_subclass_that_is_not_marked_is_refused() -> None:
    """A subclass in a field of its base is refused where it is not registered, and is not stored as its base."""

    @dataclass
    class Below(m.Base):
        pass

    error = refused(m.Holder(Below("x")))
    assert (error.type, error.where) == ("Below", "Holder.base")


@pytest.mark.parametrize(
    "make", [list, lambda part: {"a": part}, lambda part: deque([part])], ids=["list", "dict", "deque"]
)
def test_a_cycle_is_refused(make: object) -> None:
    """A value that contains itself is refused and named as that."""
    part: list[object] = []
    part.append(make([part]) if make is not list else part)
    assert "contains itself" in refused(part).why


def test_a_cycle_through_an_object_is_refused() -> None:
    """A cycle that leads through a field is found, too."""
    holder = m.Holder(m.Base("b"))
    holder.anything = [holder]
    error = refused(holder)
    assert (error.where, error.why) == ("Holder.anything[0]", "it contains itself")


def nested(levels: int, kind: type) -> object:
    value: object = 1
    for _ in range(levels):
        value = kind([value]) if kind is not dict else {"a": value}
    return value


@pytest.mark.parametrize(
    ("kind", "levels"), [(list, MAX_DEPTH), (dict, MAX_DEPTH), (tuple, MAX_DEPTH // 2), (deque, MAX_DEPTH // 2)]
)
def test_the_deepest_value_is_stored_and_one_level_more_is_refused(kind: type, levels: int) -> None:
    """Lists and dicts may be nested 200 deep, everything that needs an extension 100; what is sealed can be opened."""
    assert CODEC.open(CODEC.seal(nested(levels, kind))) == nested(levels, kind)
    assert "nested deeper" in refused(nested(levels + 1, kind)).why


@pytest.mark.parametrize("kind", [list, dict, tuple, frozenset, deque])
def test_a_value_of_any_depth_is_refused_on_a_small_stack(kind: type) -> None:
    """A hundred thousand levels are refused like 201, also in a thread with a stack of 256 KB."""
    value, errors = nested(100_000, kind), []

    def seal() -> None:
        errors.append(refused(value))

    on_small_stack(seal)
    assert "nested deeper" in errors[0].why
    while value != 1:  # taken apart level by level, because the interpreter would do it by recursion
        value = value["a"] if kind is dict else next(iter(value))


def on_small_stack(work: object) -> None:
    before = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=work)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()


def test_what_an_object_holds_beside_its_fields_is_not_lost() -> None:
    """An attribute that is no field makes an instance unstorable instead of getting lost."""
    claim = m.Cached(1)
    claim.note = "x"
    assert "'note' is no field" in refused(claim).why
    names = m.Count(3)
    names.note = "x"
    assert "'note' is no field" in refused(names).why
    model = m.Model(a=1)
    object.__setattr__(model, "__dict__", {**model.__dict__, "note": 1})
    assert "'note' is no field" in refused(model).why


def test_a_private_attribute_that_cannot_be_stored_is_refused() -> None:
    """A model's private attribute is part of it, so one that cannot be stored is refused."""
    model = m.OpenModel(a=1)
    model._secret = threading.Lock()
    assert refused(model).type == "lock"


def test_a_class_that_keeps_state_of_its_own_is_refused() -> None:
    """A dataclass or subclass whose base keeps state that Python does not see is refused with that reason."""

    @dataclass
    class Problem(Exception):  # noqa: N818
        text: str

    class Kept(OrderedDict[str, int]):
        pass

    @attrs.frozen(cache_hash=True)
    class Hashed:
        a: int

    codec = ValueCodec(TypeRegistry([Problem, Kept, Hashed]))
    assert "its base Exception keeps state" in refused(Problem("x"), codec).why
    assert "its base OrderedDict keeps state" in refused(Kept(), codec).why
    hashed = Hashed(1)
    hash(hashed)
    assert "no field" in refused(hashed, codec).why


def test_a_marked_class_without_fields_is_refused() -> None:
    """A mark does not make a class storable that declares no fields."""

    @checkpointable
    class Handle:
        pass

    assert refused(Handle(), ValueCodec(TypeRegistry([Handle]))).why == "its class declares no fields"


def test_an_unset_field_of_a_struct_is_refused() -> None:
    """A struct with a deleted field cannot be made again, so it is refused."""
    value = m.Struct(1)
    del value.a
    assert "not set" in refused(value).why


def test_too_many_keys_of_one_hash_are_refused() -> None:
    """Sealing refuses the sets and dicts that opening would refuse, because building them takes quadratic time."""

    class Same(int):
        def __hash__(self) -> int:
            return 1

    codec = ValueCodec(TypeRegistry([Same]))
    assert len(codec.open(codec.seal({Same(number) for number in range(256)}))) == 256
    assert "same hash" in refused({Same(number) for number in range(257)}, codec).why
    assert "same hash" in refused({Same(number): 1 for number in range(257)}, codec).why


def test_a_path_comes_back_exactly_or_is_refused() -> None:
    """Older Pythons read the text of some network paths as another path; there they are refused."""
    path = PureWindowsPath("\\\\a\\")
    if type(path)(str(path)) == path:
        assert CODEC.open(CODEC.seal(path)) == path
    else:
        assert refused([path]).where == "list[0]"
