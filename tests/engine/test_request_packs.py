"""Open requests that share records: the same as if each had one of its own, whatever is opened and closed when."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rehydrate.codecs.records import decode_record, encode_record
from rehydrate.engine import reading
from rehydrate.engine.invariants import check_run
from rehydrate.engine.reading import OpenedRequest
from rehydrate.engine.request_list import find_by_ids, stretches
from rehydrate.engine.requests import (
    MOST,
    SMALL,
    clear_requests,
    close_request,
    get_request,
    has_requests,
    name_of,
    pack_requests,
    renew_ids,
    requests_in,
    standing_requests,
    take_requests,
    unpack_requests,
)
from rehydrate.engine.run import Draft, Run, delta_of
from rehydrate.errors import CheckpointCorruptError, InconsistentRunError
from rehydrate.ids import order_key, outer_id
from rehydrate.model.checkpoint import Head, Stored, key_text
from rehydrate.model.records import (
    AliasRecord,
    InputRecord,
    Record,
    RequestRecord,
    RunRecord,
    ScopeRecord,
    TurnRecord,
)
from rehydrate.model.request_packs import ClosedRecord, RequestGroup, RequestsRecord
from rehydrate.model.sealed import Sealed
from rehydrate.runtime.checkpoint import restored
from rehydrate.testing.store_contract import CommitMaker

_SCOPE = "child#1"


def _run() -> Run:
    """A run with a shared scope, whose inputs are the trails of what it asks."""
    return Run(
        [
            (("", "run", ""), RunRecord("birth", "flow", 1, "signature")),
            (("", "turn", ""), TurnRecord(1, None, "digest", 1)),
            (("/", "scope", ""), ScopeRecord(())),
            (("", "scope", _SCOPE), ScopeRecord(())),
            *(((_SCOPE, "input", str(number)), InputRecord((number,))) for number in range(1, 9)),
        ]
    )


def _asked(executor: str, activation: int, count: int, size: int = 1) -> RequestRecord:
    """A question; those of one invocation have one trail."""
    data = Sealed("str", b"x" * size)
    return RequestRecord(executor, activation, count, data, "bool", "on_answer", (activation % 4 + 1,))


def _ask(run: Run, asked: list[RequestRecord], apart: int = 32) -> None:
    draft = Draft(run)
    take_requests(draft, _SCOPE, list(asked), apart)
    _apply(run, draft)


def _close(run: Run, *names: str) -> list[RequestRecord]:
    draft = Draft(run)
    closed = [close_request(draft, _SCOPE, name) for name in names]
    _apply(run, draft)
    return closed


def _by_id(run: Run, request_id: str) -> OpenedRequest | None:
    return find_by_ids(run, [request_id]).get(request_id)


def _apply(run: Run, draft: Draft) -> None:
    totals = draft.totals
    run.apply(draft.delta())
    assert run.totals == totals
    assert check_run(run) == []


def _reloaded(run: Run) -> Run:
    """The run as a restore finds it: nothing is opened."""
    return Run((key, decode_record(key[1], encode_record(record))) for key, record in run.records())


def _written(run: Run, draft: Draft) -> int:
    """How many bytes the records of a change have."""
    return sum(len(encode_record(record)) for table in draft.delta().values() for record in table.values() if record)


def _same(run: Run, expected: dict[str, RequestRecord]) -> None:
    """Everything that may be asked of open requests says that they are these."""
    names = sorted(expected, key=order_key)
    assert requests_in(run, _SCOPE) == [(name, expected[name]) for name in names]
    assert has_requests(run, _SCOPE) == bool(expected)
    assert run.totals["request"] == len(expected)
    assert set(standing_requests(run, _SCOPE)) == {(r.executor, r.trail) for r in expected.values()}
    listed = stretches(run)
    assert [opened.name for stretch in listed for opened in stretch.requests(run)] == names
    assert [len(stretch.requests(run)) for stretch in listed] == [stretch.size for stretch in listed]
    for name in ("a1#1?0", "a#2?1", "b#7?2"):
        assert get_request(run, _SCOPE, name) == expected.get(name)
        opened = _by_id(run, outer_id("birth", f"{_SCOPE}/{name}"))
        assert (None if opened is None else (opened.name, opened.record)) == (
            (name, expected[name]) if name in expected else None
        )


_places = st.tuples(st.sampled_from(["a", "a1", "a10", "b"]), st.integers(1, 9), st.integers(0, 3))
_moves = st.one_of(
    st.tuples(st.just("ask"), st.lists(_places, min_size=1, max_size=12, unique=True)),
    st.tuples(st.just("close"), st.lists(st.integers(0, 50), min_size=1, max_size=6)),
    st.tuples(st.sampled_from(["clear", "migrate", "reload"]), st.none()),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(_moves, min_size=1, max_size=14), st.integers(1, 6))
def test_packed_requests_are_the_same_as_single_ones(moves: list, apart: int) -> None:
    """After any moves names, ids, order, trails and numbers are those of a plain table of requests."""
    run, expected = _run(), dict[str, RequestRecord]()
    asked: set[str] = set()
    for move, given_ in moves:
        if move == "ask":
            new = [_asked(*place) for place in given_ if name_of(_asked(*place)) not in asked]
            asked |= {name_of(request) for request in new}
            _ask(run, new, apart)
            expected |= {name_of(request): request for request in new}
        elif move == "close":
            names = list(dict.fromkeys(sorted(expected)[place] for place in given_ if place < len(expected)))
            assert _close(run, *names) == [expected.pop(name) for name in names]
        elif move == "clear":
            draft = Draft(run)
            clear_requests(draft, _SCOPE)
            _apply(run, draft)
            expected.clear()
        elif move == "migrate":
            unpack_requests(run)
            assert not {kind for _, kind in run.tables} & {"requests", "closed"}
            _same(run, expected)
            pack_requests(run, apart)
        run = _reloaded(run)
        _same(run, expected)
        assert {name: get_request(run, _SCOPE, name) for name in asked} == {name: expected.get(name) for name in asked}


def test_few_requests_have_records_of_their_own_and_many_share() -> None:
    """Thirty-one stay apart; one more, and all of them are one record."""
    run = _run()
    _ask(run, [_asked("a", 1, count) for count in range(31)])
    assert (run.count(_SCOPE, "request"), run.count(_SCOPE, "requests")) == (31, 0)
    _ask(run, [_asked("a", 2, 0)])
    assert (run.count(_SCOPE, "request"), list(run.table(_SCOPE, "requests"))) == (0, ["a#1?0"])


def test_what_is_large_stays_apart_and_a_pack_is_bounded() -> None:
    """A request with much data has a record of its own; a record holds 256 requests, or 64 KB of them."""
    run = _run()
    _ask(run, [_asked("a", 1, count) for count in range(600)])
    assert [pack.count for _, pack in run.items(_SCOPE, "requests")] == [256, 256, 88]
    _ask(run, [_asked("b", 1, count, SMALL) for count in range(40)] + [_asked("c", 1, 0, SMALL + 1)])
    assert [pack.count for _, pack in run.items(_SCOPE, "requests")[3:]] == [16, 16, 8]
    assert list(run.table(_SCOPE, "request")) == ["c#1?0"]


def test_where_only_large_ones_are_asked_nothing_is_looked_for_among_what_is_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However many large requests are open, asking one more lists none of them; a small one does."""
    run, listed = _run(), list[str]()
    _ask(run, [_asked("a", 1, count, SMALL + 1) for count in range(40)])
    items = Draft.items

    def listing(draft: Draft, path: str, kind: str) -> list:
        listed.append(kind)
        return items(draft, path, kind)

    monkeypatch.setattr(Draft, "items", listing)
    _ask(run, [_asked("a", 2, 0, SMALL + 1)])
    assert listed == []
    _ask(run, [_asked("a", 3, 0)])
    assert listed == ["request"]
    assert run.count(_SCOPE, "request") == 42


def test_an_answer_opens_one_pack_and_writes_little() -> None:
    """Of ten thousand open requests one is found by its id and closed: that opens one pack and writes some bytes."""
    run = _run()
    _ask(run, [_asked("a", 1, count) for count in range(10_000)])
    run = _reloaded(run)
    opened = _by_id(run, outer_id("birth", f"{_SCOPE}/a#1?7777"))
    assert opened is not None
    draft = Draft(run)
    assert close_request(draft, _SCOPE, opened.name).count == 7777
    assert len(run.packs) == 1
    assert _written(run, draft) < 60
    run.apply(draft.delta())
    assert run.totals["request"] == 9_999
    assert _by_id(run, opened.request_id) is None


def test_closing_all_of_a_pack_writes_it_again_a_few_times_only() -> None:
    """All that is written while one after the other is closed is less than twice the pack and its marks."""
    run = _run()
    _ask(run, [_asked("a", 1, count, 60) for count in range(MOST)])
    (pack,) = run.table(_SCOPE, "requests").values()
    whole, written, rewritten = len(encode_record(pack)), 0, 0
    for count in range(MOST):
        draft = Draft(run)
        close_request(draft, _SCOPE, f"a#1?{count * 7 % MOST}")
        rewritten += (_SCOPE, "requests") in draft.delta()
        written += _written(run, draft)
        _apply(run, draft)
    assert rewritten == 9  # 128, 64, 32, 16, 8, 4, 2, 1, 0 are left
    assert written < whole + MOST * 55
    assert not has_requests(run, _SCOPE)


def test_a_request_that_was_renamed_is_found_by_the_id_that_the_outside_knows() -> None:
    """The pack's ids are made from the name that an alias keeps."""
    run = _run()
    unpack_requests(run)
    known = AliasRecord("old#1/a#1?3")
    run.apply(delta_of({(_SCOPE, "alias", "a#1?3"): known}))
    _ask(run, [_asked("a", 1, count) for count in range(40)])
    opened = _by_id(_reloaded(run), outer_id("birth", "old#1/a#1?3"))
    assert opened is not None
    assert opened.name == "a#1?3"


def test_another_birth_gives_other_ids() -> None:
    """A copy finds its requests by its own ids, at once where it made the packs' ids anew, else by looking at all."""
    run = _run()
    _ask(run, [_asked("a", 1, count) for count in range(300)])
    run.apply(delta_of({("", "run", ""): RunRecord("other", "flow", 1, "signature")}))
    stale = _reloaded(run)
    renew_ids(run)
    fresh = _reloaded(run)
    wanted = outer_id("other", f"{_SCOPE}/a#1?299")
    for found in (stale, fresh):
        opened = _by_id(found, wanted)
        assert opened is not None
        assert opened.name == "a#1?299"
    assert (len(stale.packs), len(fresh.packs)) == (2, 1)


def test_many_ids_are_found_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Single ones are hashed once, however many are wanted, and of the packs only what they say they have."""
    run = _run()
    large = [_asked("b", 1, count, SMALL + 1) for count in range(30)]
    _ask(run, [_asked("a", 1, count) for count in range(600)] + large)
    run, hashed = _reloaded(run), list[str]()

    def hashing(birth: str, name: str) -> str:
        hashed.append(name)
        return outer_id(birth, name)

    monkeypatch.setattr(reading, "outer_id", hashing)
    names = [f"b#1?{count}" for count in range(0, 30, 2)] + [f"a#1?{count}" for count in range(256, 276)]
    wanted = {outer_id("birth", f"{_SCOPE}/{name}"): name for name in names}
    assert {key: opened.name for key, opened in find_by_ids(run, wanted).items()} == wanted
    assert len(hashed) <= 20 + 30
    assert len(run.packs) == 1
    assert len(find_by_ids(run, [*wanted, "f" * 32])) == len(wanted)
    assert len(run.packs) == 3


@pytest.mark.parametrize("request_id", ["", "zz", "0", "00", "no id at all", "\udc80" * 8, "f" * 32, "ä" * 40])
def test_no_text_that_is_no_id_finds_anything(request_id: str) -> None:
    """What a caller passes as an id may be any text."""
    run = _run()
    _ask(run, [_asked("a", 1, count) for count in range(40)])
    assert _by_id(run, request_id) is None


@pytest.mark.parametrize("name", ["", "a", "a#1", "a#1?99", "b#1?0", "a#" + "9" * 5000 + "?1", "a#1?0/x"])
def test_no_name_that_is_not_there_finds_anything(name: str) -> None:
    """Names that an executor of a parent sends may be any text."""
    run = _run()
    _ask(run, [_asked("a", 1, count) for count in range(40)])
    assert get_request(run, _SCOPE, name) is None


_PACK = RequestsRecord(
    "a#1?0", "a#1?0", (RequestGroup("a", (2,), 1),), b"1234", msgspec.msgpack.encode([_asked("a", 1, 0)])
)


@pytest.mark.parametrize(
    ("records", "broken"),
    [
        ({"requests": msgspec.structs.replace(_PACK, ids=b"")}, "I23"),
        ({"requests": msgspec.structs.replace(_PACK, ids=b"123456")}, "I23"),
        ({"requests": msgspec.structs.replace(_PACK, groups=())}, "I23"),
        ({"requests": msgspec.structs.replace(_PACK, groups=(RequestGroup("a", (2,), 1 << 60),))}, "I23"),
        ({"requests": msgspec.structs.replace(_PACK, groups=(*_PACK.groups, RequestGroup("a", (2,), 0)))}, "I23"),
        ({"closed": ClosedRecord(b"\x01")}, "I24"),
        ({"requests": _PACK, "closed": ClosedRecord(b"\x01")}, "I24"),
        ({"requests": _PACK, "closed": ClosedRecord(b"")}, "I24"),
        ({"requests": _PACK, "closed": ClosedRecord(b"\xff" * 1000)}, "I24"),
    ],
)
def test_records_that_do_not_fit_together_are_told(records: dict[str, Record], broken: str) -> None:
    """Number, groups and marks of a pack are checked with the run, before anything is opened."""
    run = _run()
    run.apply({(_SCOPE, kind): {"a#1?0": record} for kind, record in records.items()})
    assert [text[:3] for text in check_run(run)] == [broken]


_ENDLESS = "9" * 5000


@pytest.mark.parametrize(
    ("kind", "name", "record"),
    [
        ("request", f"a#{_ENDLESS}?0", _asked("a", 1, 0)),
        ("request", "a#1?0", _asked(_ENDLESS, 1, 0)),
        ("requests", "a#1?0", msgspec.structs.replace(_PACK, low=f"a#{_ENDLESS}?0")),
        ("requests", "a#1?0", msgspec.structs.replace(_PACK, high=f"a#{_ENDLESS}?0")),
        ("scope", f"a#{_ENDLESS}", ScopeRecord(())),
    ],
)
def test_a_name_with_a_number_that_cannot_be_read_is_told_when_a_run_is_loaded(
    kind: str, name: str, record: Record
) -> None:
    """Nothing that orders requests or scopes meets such a number."""
    run = _run()
    run.apply({(_SCOPE, kind): {name: record}})
    header = CommitMaker().claim().header
    records = {key_text(*key): encode_record(one) for key, one in run.records()}
    with pytest.raises(InconsistentRunError, match=r"I25|I33|I34"):
        restored(Stored(header, records, {}, Head(header, None, 1, False)))


@pytest.mark.parametrize(
    "changed",
    [
        {"body": b"\xc1"},
        {"body": b"\x91" * 100_000},
        {"body": msgspec.msgpack.encode([_asked("a", 1, 0), _asked("a", 1, 1)])},
        {"body": msgspec.msgpack.encode([_asked("b", 1, 0)])},
        {"low": "a#1?1"},
        {
            "body": msgspec.msgpack.encode([_asked("a", 1, 0), _asked("9" * 5000, 1, 0), _asked("a", 1, 1)]),
            "groups": (RequestGroup("a", (2,), 1), RequestGroup("9" * 5000, (2,), 1), RequestGroup("a", (2,), 1)),
            "high": "a#1?1",
            "ids": b"123412341234",
        },
        {"groups": (RequestGroup("a", (3,), 1),)},
    ],
)
def test_a_pack_that_says_something_else_of_itself_is_damage(changed: dict[str, object]) -> None:
    """It is found when it is opened, and is an error of its own."""
    run = _run()
    run.apply({(_SCOPE, "requests"): {"a#1?0": msgspec.structs.replace(_PACK, **changed)}})
    with pytest.raises(CheckpointCorruptError):
        requests_in(run, _SCOPE)
