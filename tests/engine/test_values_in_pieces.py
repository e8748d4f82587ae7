"""Values in state that are set whole and changed little: what lies in the records, and what is written."""

from __future__ import annotations

import random
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from rehydrate.codecs.records import decode_record, encode_record
from rehydrate.engine.invariants import check_run
from rehydrate.engine.rope import Rope, Segment, matches
from rehydrate.engine.run import Draft, Run, delta_of
from rehydrate.engine.splicing import FAN, put_value, sealed_value
from rehydrate.model.records import PartRecord, RunRecord, ScopeRecord, Spliced, StateRecord, TurnRecord
from rehydrate.model.sealed import Items, Sealed

_KB = 1024


def _run() -> Run:
    run = Run()
    run.apply(
        delta_of(
            {
                ("", "run", ""): RunRecord("birth", "flow", 1, "signature"),
                ("", "turn", ""): TurnRecord(1, None, "digest", 1),
                ("/", "scope", ""): ScopeRecord(()),
            }
        )
    )
    return run


def _line(number: int, size: int = _KB) -> bytes:
    return f"{number:08}".encode() + b"x" * (size - 8)


class _Key:
    """A key of a run that is set again and again; counts the bytes of the records that this writes."""

    def __init__(self) -> None:
        self.run = _run()
        self.written = 0

    def set(self, data: bytes) -> int:
        draft = Draft(self.run)
        put_value(draft, "", "key", Sealed("bytes", data))
        delta = draft.delta()
        size = sum(len(encode_record(record)) for table in delta.values() for record in table.values() if record)
        self.run.apply(delta)
        self.written += size
        assert check_run(self.run) == []
        assert self.value() == data
        return size

    def value(self) -> bytes:
        record: StateRecord = self.run.get("", "state", "key")
        stored = decode_record("state", encode_record(record))
        assert stored == record
        return bytes(sealed_value(self.run, "", "key", record).data)

    def parts(self) -> int:
        return len(self.run.table("", "part"))


def test_a_value_that_grows_at_its_end_costs_what_is_new() -> None:
    """A thousand times 1 KB behind a header and before a tail: no save writes 2 KB, but for those that merge parts."""
    key = _Key()
    lines = b""
    sizes: list[int] = []
    for number in range(1000):
        lines += _line(number)
        sizes.append(key.set(b"head %08d" % number + lines + b"tail %d" % number))
    grown = sorted(sizes[3:])
    assert grown[len(grown) * 97 // 100] < 1400
    assert key.written < 2.3 * len(lines)
    assert key.parts() < 2 * FAN + 1000 // FAN


def test_a_value_that_grows_at_its_beginning_costs_what_is_new() -> None:
    """A hundred times 1 KB in front of what is there write less than 250 KB."""
    key = _Key()
    lines = b""
    for number in range(100):
        lines = _line(number) + lines
        key.set(b"head %08d" % number + lines)
    assert key.written < 250 * _KB


def test_a_window_that_slides_costs_what_is_new() -> None:
    """The last hundred of five hundred lines, set at each step: less than 2.5 KB a step, and no heap of old parts."""
    key = _Key()
    lines = [_line(number) for number in range(100)]
    key.set(b"".join(lines))
    before = key.written
    for number in range(100, 500):
        lines = [*lines[1:], _line(number)]
        key.set(b"".join(lines))
    assert key.written - before < 400 * 2.5 * _KB
    held = sum(len(record.items.data) for record in key.run.table("", "part").values())
    assert held <= 2 * 100 * _KB


def test_a_change_in_the_middle_of_a_megabyte_writes_little() -> None:
    """Each of fifty changes of 1 KB somewhere in 1 MB writes less than 3 KB."""
    key = _Key()
    lines = [_line(number) for number in range(1000)]
    key.set(b"".join(lines))
    for number in range(50):
        lines[number * 7919 % 1000] = _line(10_000 + number)
        assert key.set(b"".join(lines)) < 3 * _KB


def test_many_changes_all_over_a_value_stay_far_below_its_size() -> None:
    """Five hundred changes of 100 bytes in 100 KB write less than a tenth of what setting it whole would."""
    key = _Key()
    drawn = random.Random(7)
    value = bytearray(drawn.randbytes(100 * _KB))
    key.set(bytes(value))
    for _ in range(500):
        at = drawn.randrange(len(value) - 100)
        value[at : at + 100] = drawn.randbytes(100)
        key.set(bytes(value))
    assert key.written < 500 * len(value) // 10


def test_a_value_with_nothing_in_common_is_written_whole() -> None:
    """It lies in one part, and nothing is left of the one before."""
    key = _Key()
    drawn = random.Random(1)
    key.set(drawn.randbytes(50_000))
    key.set(drawn.randbytes(60_000))
    assert key.parts() == 1
    assert key.run.get("", "state", "key").value.pieces == ((1, 1),)


def test_a_small_value_stands_in_its_record() -> None:
    """Below 2 KB there are no parts, also where there were some before."""
    key = _Key()
    key.set(b"a" * 5000)
    key.set(b"b" * 100)
    assert key.run.get("", "state", "key") == StateRecord(Sealed("bytes", b"b" * 100))
    assert key.parts() == 0


def test_a_value_in_one_piece_is_not_copied() -> None:
    """What is read is the part's very bytes."""
    key = _Key()
    key.set(b"a" * 100_000)
    record: StateRecord = key.run.get("", "state", "key")
    (part,) = key.run.table("", "part").values()
    assert sealed_value(key.run, "", "key", record).data is part.items.data


_edits = st.lists(
    st.tuples(st.integers(0, 2**32), st.integers(0, 300), st.binary(max_size=40), st.integers(1, 60)), max_size=25
)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), _edits, st.booleans())
def test_any_edits_give_the_value_back(seed: int, edits: list[tuple[int, int, bytes, int]], repeats: bool) -> None:
    """Whatever is cut out and put in, also of bytes that repeat: the pieces are the value and the records fit."""
    drawn = random.Random(seed)
    value = b"abcabd" * 1500 if repeats else drawn.randbytes(9000)
    key = _Key()
    key.set(value)
    for where, cut, put, times in edits:
        at = where % (len(value) + 1)
        value = value[:at] + put * times + value[at + cut :]
        key.set(value)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=400), st.binary(max_size=400), st.integers(1, 50), st.lists(st.integers(0, 400), max_size=5))
def test_what_is_shared_is_the_same_and_in_order(one: bytes, other: bytes, times: int, cuts: list[int]) -> None:
    """Matches are equal ranges of both, in order, and none overlaps another."""
    old, new = one * times + other, other + one * times
    ends = sorted({0, len(old), *(cut for cut in cuts if cut <= len(old))})
    rope = Rope(Segment(old, 0, a, b) for a, b in pairwise(ends))
    assert rope.joined() == old
    old_at = new_at = 0
    for match in matches(rope, new):
        assert match.old >= old_at
        assert match.new >= new_at
        assert old[match.old : match.old + match.size] == new[match.new : match.new + match.size]
        old_at, new_at = match.old + match.size, match.new + match.size


def test_pieces_that_are_not_there_are_seen() -> None:
    """A missing part, a range beyond its end, one part used twice and numbers without end are found, and quickly."""
    part = PartRecord(Items(b"p" * 5000, 0))
    wrong = [
        ((0, 1),),
        ((0, 0, 5001),),
        ((0, 0), (0, 0, 10)),
        ((0, 2**63 + 5),),
        ((-1, 0),),
        ((0, -1),),
        ((0,),),
        ((0, 0, 10, 20),),
    ]
    for pieces in wrong:
        run = _run()
        state = StateRecord(Spliced("bytes", pieces), next=1)
        run.apply(delta_of({("", "part", "key\x1f0"): part, ("", "state", "key"): state}))
        assert [problem[:3] for problem in check_run(run)][:1] == ["I21"], pieces
