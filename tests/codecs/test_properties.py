"""Properties over any value that can be built from storable parts."""

import json
from collections import deque
from datetime import timedelta, timezone
from decimal import Decimal
from pathlib import PurePosixPath, PureWindowsPath

from hypothesis import given, settings
from hypothesis import strategies as st

from rehydrate.codecs import TypeRegistry, ValueCodec, check_bounds, plain
from tests.codecs import models as m
from tests.codecs.exact import same

CODEC = ValueCodec(TypeRegistry([m.Everything]))

offsets = st.builds(lambda minutes: timezone(timedelta(minutes=minutes)), st.integers(-1439, 1439))
zones = st.one_of(st.none(), offsets, st.timezones())
texts = st.text(st.characters(exclude_categories=()), max_size=8)  # lone surrogates included

hashable_leaves = st.one_of(
    st.none(), st.booleans(), st.integers(), st.integers(-(2**70), 2**70), st.floats(), texts, st.binary(max_size=8),
    st.decimals(allow_nan=False), st.just(Decimal("NaN")), st.uuids(), st.dates(), st.times(), st.timedeltas(),
    st.datetimes(timezones=zones), st.complex_numbers(), st.builds(PurePosixPath, st.text("ab/.", max_size=5)),
    st.sampled_from(["a\\b", "C:x", "C:\\x", ""]).map(PureWindowsPath), st.sampled_from([*m.Color, *m.Level, *m.Mode]),
    st.builds(m.Right, st.integers(0, 7)), st.builds(range, st.integers(), st.integers(), st.integers(1, 9)),
    st.builds(m.Name, texts), st.builds(m.Count, st.integers()), offsets,
)  # fmt: skip
leaves = st.one_of(hashable_leaves, st.builds(bytearray, st.binary(max_size=8)))

hashable = st.recursive(
    hashable_leaves,
    lambda inner: st.one_of(
        st.tuples(inner, inner),
        st.frozensets(inner, max_size=4),
        st.builds(m.Claim, inner, inner),
        st.builds(m.Slotted, inner, inner),
        st.builds(m.Point, inner, inner),
    ),
    max_leaves=6,
)


def open_model(value: object, extra: dict[str, object]) -> m.OpenModel:
    return m.OpenModel.model_construct(a=value, **extra)


anything = st.recursive(
    st.one_of(leaves, hashable),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.builds(tuple, st.lists(inner, max_size=4)),
        st.dictionaries(texts, inner, max_size=4),
        st.dictionaries(hashable, inner, max_size=4),
        st.sets(hashable, max_size=4),
        st.builds(deque, st.lists(inner, max_size=4), st.one_of(st.none(), st.integers(0, 5))),
        st.builds(m.Holder, st.builds(m.Derived, inner, inner), inner),
        st.builds(m.Box, inner),
        st.builds(m.NoInit, st.integers()),
        st.builds(m.Struct, inner, inner),
        st.builds(m.Attrs, inner, inner),
        st.builds(m.Model.model_construct, a=inner, b=inner),
        st.builds(open_model, inner, st.dictionaries(st.sampled_from("xyz"), inner)),
        st.builds(m.Claims, st.lists(inner, max_size=3)),
        st.builds(m.Table, st.dictionaries(texts, inner, max_size=3)),
    ),
    max_leaves=12,
)  # fmt: skip


@settings(deadline=None)
@given(anything)
def test_any_value_comes_back_exactly(value: object) -> None:
    """Whatever is built from storable parts opens as it was, within bounds, and seals to the same bytes again."""
    sealed = CODEC.seal(value)
    check_bounds(sealed.data)
    opened = CODEC.open(sealed)
    assert same(opened, value)
    assert CODEC.seal(opened) == sealed


@settings(deadline=None)
@given(anything)
def test_any_value_can_be_shown_as_json(value: object) -> None:
    """The plain view of any value is something that JSON holds, in UTF-8, without NaN."""
    shown = plain(CODEC.seal(value).data)
    assert json.loads(json.dumps(shown, allow_nan=False, ensure_ascii=False).encode()) == shown


@settings(deadline=None)
@given(st.lists(anything, max_size=6), st.data())
def test_any_list_can_be_sealed_in_pieces(values: list[object], data: st.DataObject) -> None:
    """Wherever a list is cut, the pieces open as the whole."""
    cut = data.draw(st.integers(0, len(values)))
    first, count = CODEC.seal_items(values[:cut])
    second, more = CODEC.seal_items(values[cut:])
    assert same(CODEC.open_items([first, second], count + more), values)
    assert len(first) + len(second) == len(CODEC.seal_items(values)[0])


@settings(deadline=None)
@given(st.lists(hashable, max_size=12, unique=True), st.randoms())
def test_equal_sets_have_equal_bytes(items: list[object], chance: object) -> None:
    """However a set came about, its bytes are the same."""
    shuffled = [*items]
    chance.shuffle(shuffled)
    assert CODEC.seal(set(items)).data == CODEC.seal(set(shuffled)).data
    assert CODEC.seal(frozenset(items)).data == CODEC.seal(frozenset(shuffled)).data
