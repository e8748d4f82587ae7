"""Bounds: depth, size and lengths of stored bytes are checked before anything is decoded."""

import random

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rehydrate.codecs import MAX_DEPTH, TypeRegistry, ValueCodec, check_bounds
from rehydrate.errors import CheckpointCorruptError
from tests.codecs.bytes_by_hand import ONE_LEVEL, nested
from tests.codecs.processes import run_apart

Ext = msgspec.msgpack.Ext
encode = msgspec.msgpack.encode


def refused(data: bytes, **limits: int) -> str:
    with pytest.raises(CheckpointCorruptError) as caught:
        check_bounds(data, **limits)
    return caught.value.problem


@pytest.mark.parametrize("kind", ONE_LEVEL)
def test_the_deepest_value_passes_and_one_level_more_does_not(kind: str) -> None:
    """Each container and each extension that holds values counts one level, however it is written."""
    check_bounds(nested(MAX_DEPTH, ONE_LEVEL[kind]))
    assert refused(nested(MAX_DEPTH + 1, ONE_LEVEL[kind])) == "it is nested deeper than 200 levels"


@pytest.mark.parametrize("kind", ONE_LEVEL)
def test_the_limit_holds_beside_a_lot_of_shallow_data(kind: str) -> None:
    """Thousands of shallow containers before and behind the deep one neither hide it nor count."""
    rows = encode([{"a": [1, "x" * 300]}] * 3000)
    for levels, deep in ((MAX_DEPTH - 1, False), (MAX_DEPTH, True)):
        data = b"\x93" + rows + nested(levels, ONE_LEVEL[kind]) + rows
        if deep:
            assert "nested deeper" in refused(data)
        else:
            check_bounds(data)


def test_what_only_looks_like_containers_does_not_count() -> None:
    """Texts and bytes full of bytes that could open containers are one level, and so are extensions without values."""
    check_bounds(encode(["\u0410\u0411\u0412" * 5000] * 3))  # Cyrillic letters: half of their bytes could open one
    check_bounds(encode([b"\x91" * 100_000, Ext(16, b"\x91" * 100_000)]))
    check_bounds(encode(b"\x91" * 100_000))
    check_bounds(encode(Ext(17, b"\x91" * 100_000)))


INTS = [5, 200, 40_000, 2**31, 2**63, -5, -100, -40_000, -(2**31), -(2**40)]
EXTENSIONS = [Ext(20, b"\x91" * length) for length in (0, 1, 2, 3, 4, 8, 16, 300)]
FILLING = ["", "a", "\u0411" * 20, "\u0411" * 300, b"\x91" * 300, -1.5, None, True, [], {}, *INTS, *EXTENSIONS]


def wrapped(value: object, levels: int) -> object:
    for level in range(levels):
        value = [FILLING, value] if level % 3 else Ext(3, encode({"a": value}))
    return value


containers = st.recursive(
    st.one_of(
        st.integers(-5, 300),
        st.text(max_size=40),
        st.binary(max_size=40),
        st.just(None),
        st.just("\u0411" * 300),
        st.builds(lambda payload: Ext(20, payload), st.binary(max_size=20)),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.text(max_size=3), inner, max_size=4),
        st.builds(lambda value: Ext(3, encode(value)), inner),
        st.builds(lambda value: [*FILLING, value, *FILLING], inner),
        st.builds(wrapped, inner, st.integers(8, 14)),
    ),
    max_leaves=12,
)


def depth_of(value: object) -> int:
    """The reference: levels of containers, counted by recursion."""
    match value:
        case list():
            return 1 + max(map(depth_of, value), default=0)
        case dict():
            return 1 + max(map(depth_of, value.values()), default=0)
        case Ext(code=3):
            return 1 + depth_of(msgspec.msgpack.decode(value.data))
        case _:
            return 0


@settings(deadline=None)
@given(containers)
@example(wrapped([Ext(20, b"\x91" * 70_000), b"\x91" * 70_000, "a" * 70_000, [None] * 70_000], 12))
def test_depth_is_measured_as_by_hand(value: object) -> None:
    """For any value and any limit the answer is that of a plain recursive count."""
    data = encode(value)
    depth = depth_of(value)
    check_bounds(data, max_depth=max(depth, 1))
    for limit in range(1, depth):
        assert "nested deeper" in refused(data, max_depth=limit)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "truncated"),
        (b"\x01\x01", "trailing"),
        (b"\xc1", "invalid"),
        (b"\xdd\xff\xff\xff\xff", "truncated"),
        (b"\xdf\xff\xff\xff\xff", "truncated"),
        (b"\xdb\xff\xff\xff\xffx", "truncated"),
        (b"\xc6\x7f\xff\xff\xffx", "truncated"),
        (b"\xc9\xff\xff\xff\xff\x01", "truncated"),
        (b"\x92" + b"\xdd\x00\xff\xff\xff" * 150, "truncated"),
        (b"\x92" + b"\x91" * 150 + b"\x01" + b"\x90" * 300, "trailing"),
        (nested(190, lambda inner: encode(Ext(2, inner)))[:-1] + b"\xc1", ""),
    ],
    ids=lambda case: str(case)[:30],
)
def test_bytes_that_are_no_value_are_refused(data: bytes, text: str) -> None:
    """Ends, tails and lengths that the bytes do not hold are damage; nothing of their size is allocated."""
    if text:
        assert text in refused(data)
    with pytest.raises(CheckpointCorruptError):
        ValueCodec(TypeRegistry()).open_items([data], 1)


def test_an_extension_with_a_broken_payload_is_refused() -> None:
    """Where depth depends on a payload that is no value, the value is refused."""
    payload = b"\x92" + b"\x90" * 300
    assert "trailing" in refused(encode([Ext(2, payload)] * 2))
    assert "truncated" in refused(encode([Ext(2, b"\xdc\xff\xff" + b"\x90" * 300)] * 2))


def test_size_is_limited() -> None:
    """More bytes than allowed are refused without being looked at."""
    check_bounds(b"\xa3abc", max_bytes=4)
    assert refused(b"\xa3abc", max_bytes=3) == "it has 4 bytes, and 3 are allowed"


def test_the_error_names_what_was_read() -> None:
    """The caller says what the bytes are."""
    with pytest.raises(CheckpointCorruptError, match="the outbox is damaged: Input data was truncated"):
        check_bounds(b"\x91", what="the outbox")


def test_a_caller_that_has_used_its_stack_gets_the_same_answer() -> None:
    """A valid value is not called damaged because the caller is deep in a recursion of its own."""
    data = b"\x92" + nested(150, ONE_LEVEL["a small array"]) + encode([[]] * 300)
    answers: list[str] = []

    def down() -> None:
        try:
            down()
        except RecursionError:
            if len(answers) < 40:  # on the way up: at each level some more of the stack is free
                try:
                    check_bounds(data)
                    answers.append("fits")
                except RecursionError:
                    pass
            raise

    with pytest.raises(RecursionError):
        down()
    assert answers == ["fits"] * 40


@pytest.mark.parametrize("recursion_limit", [0, 1_000_000])
def test_depth_bombs_do_not_overflow_a_small_stack(recursion_limit: int) -> None:
    """Any nesting is refused, and the deepest allowed one is read, in a thread with a stack of 256 KB."""
    assert run_apart("bombs", str(recursion_limit)) == "all refused\n"


def test_a_large_valid_value_is_not_taken_for_a_bomb() -> None:
    """Ten megabytes of rows, texts and nested lists pass."""
    chance = random.Random(5)
    rows = [{"id": number, "text": "x" * 80, "tags": [str(chance.random())] * 3} for number in range(50_000)]
    check_bounds(encode(rows))
    check_bounds(encode({"rows": rows[:100], "text": "\u65e5\u672c" * 1_000_000}))
