"""Differences: what is not the same at two checkpoints, as rows in plain data.

Reads the two checkpoints and nothing else; they may be of different runs. What is the same is never opened.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal, TypeAlias, cast

import msgspec

from rehydrate.errors import WrongCallError
from rehydrate.ids import order_key
from rehydrate.model.plain import Plain
from rehydrate.model.printable import printable
from rehydrate.runtime.call import with_article
from rehydrate.runtime.checkpoint import WorkflowCheckpoint
from rehydrate.runtime.facts import Fact, FactKey, ListFact, elements_shown, facts_of

#: A value whose JSON is longer, in characters, is cut.
BOUND: Final = 2000
#: What is left of a value that is cut, in characters.
_START: Final = 100
#: More places than this in one value are told as one change of the whole.
_PLACES: Final = 20
_LEVELS: Final = 8
_MARKS: Final = {"added": "+", "removed": "-", "changed": "~"}


@dataclass(frozen=True)
class Cut:
    """A value too long to show: how its JSON begins, and how many bytes it takes as it is stored."""

    start: str
    size: int

    def __str__(self) -> str:
        return f"{self.start}... ({self.size:,} bytes)"


Shown: TypeAlias = Plain | Cut
Kind: TypeAlias = Literal["added", "removed", "changed"]


@dataclass(frozen=True)
class Difference:
    """Something that was added, removed or changed: in the scope at `path`, of what kind, by its key.

    `inside` says where in the value: `[3:]` are the elements of a list from the fourth on. `before` is `None` for what
    was added and `after` for what was removed; values too long to show are a `Cut`.
    """

    path: str
    kind: str
    key: str
    inside: str
    change: Kind
    before: Shown
    after: Shown

    def __str__(self) -> str:
        name = " ".join(part for part in (self.kind, printable(f"{self.key}{self.inside}")) if part)
        if self.change == "changed":
            return f"~ {name}: {_text(self.before)} -> {_text(self.after)}"
        return f"{_MARKS[self.change]} {name}: {_text(self.after if self.change == 'added' else self.before)}"


@dataclass(frozen=True)
class Differences:
    """All differences between two checkpoints, by scope path, kind and key; false where there are none."""

    before: WorkflowCheckpoint
    after: WorkflowCheckpoint
    rows: tuple[Difference, ...]

    def __iter__(self) -> Iterator[Difference]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        lines = [f"{_named(self.before)} -> {_named(self.after)}"]
        if not self.rows:
            lines.append("  no differences")
        path: str | None = None
        for row in self.rows:
            if row.path != path:
                path = row.path
                lines.append(path or "the root")
            lines.append(f"  {row}")
        return "\n".join(lines)


def diff_checkpoints(before: WorkflowCheckpoint, after: WorkflowCheckpoint) -> Differences:
    """Return what is not the same at two checkpoints, of one run or of two. Raises `WrongCallError`, and
    `CheckpointCorruptError` for a value that cannot be shown."""
    for given in (before, after):
        if not isinstance(cast("object", given), WorkflowCheckpoint):
            raise WrongCallError(f"{with_article(given)} was given to compare.", "Load it: history.load(...).")
    first, second = facts_of(before), facts_of(after)
    rows: list[Difference] = []
    for key in sorted(first.keys() | second.keys(), key=_order):
        rows += _compared(key, first.get(key), second.get(key))
    return Differences(before, after, tuple(rows))


def _order(key: FactKey) -> tuple[object, ...]:
    return order_key(key[0]), key[1], order_key(key[2])


def _compared(key: FactKey, before: Fact | None, after: Fact | None) -> Iterator[Difference]:
    if before is None or after is None:
        shown = (None if before is None else _whole(before), None if after is None else _whole(after))
        yield Difference(*key, "", "added" if before is None else "removed", *shown)
        return
    if before.same == after.same:
        return
    grown = _grown(key, before, after)
    if grown is not None:
        yield grown
        return
    one, other = before.show(), after.show()
    places = list(islice(_places(one, other, "", 0), _PLACES + 1))
    if not places or len(places) > _PLACES or (len(places) == 1 and not places[0].inside):
        if not places and before.type != after.type:  # values that look the same, such as a tuple and a list
            one, other = {"$type": before.type, "value": one}, {"$type": after.type, "value": other}
        yield Difference(*key, "", "changed", _cut(one, before.size), _cut(other, after.size))
        return
    for place in places:
        yield Difference(*key, place.inside, place.change, _cut(place.before), _cut(place.after))


def _grown(key: FactKey, before: Fact, after: Fact) -> Difference | None:
    """Tell of a list that has more elements than before, or fewer, at its end; the others are not opened."""
    if not isinstance(before, ListFact) or not isinstance(after, ListFact):
        return None
    short, long = (before, after) if before.count <= after.count else (after, before)
    if short.count == long.count or not long.elements.startswith(short.elements):
        return None
    rest = long.elements[len(short.elements) :]
    shown = _cut(elements_shown(rest, long.count - short.count), len(rest))
    inside = f"[{short.count}:]"
    if long is after:
        return Difference(*key, inside, "added", None, shown)
    return Difference(*key, inside, "removed", shown, None)


@dataclass(frozen=True)
class _Place:
    inside: str
    change: Kind
    before: Plain
    after: Plain


def _places(one: Plain, other: Plain, inside: str, level: int) -> Iterator[_Place]:
    """Give the places in which two plain values differ."""
    if level < _LEVELS and isinstance(one, dict) and isinstance(other, dict) and _kind(one) == _kind(other):
        for key in sorted(one.keys() | other.keys()):
            where = f"{inside}[{key!r}]"
            if key not in one:
                yield _Place(where, "added", None, other[key])
            elif key not in other:
                yield _Place(where, "removed", one[key], None)
            else:
                yield from _places(one[key], other[key], where, level + 1)
        return
    if level < _LEVELS and isinstance(one, list) and isinstance(other, list):
        yield from _in_lists(one, other, inside, level)
        return
    if not _equal(one, other):
        yield _Place(inside, "changed", one, other)


def _in_lists(one: list[Plain], other: list[Plain], inside: str, level: int) -> Iterator[_Place]:
    if len(one) == len(other):
        for index, (mine, its) in enumerate(zip(one, other, strict=True)):
            yield from _places(mine, its, f"{inside}[{index}]", level + 1)
        return
    least = min(len(one), len(other))
    first = next((index for index in range(least) if not _equal(one[index], other[index])), least)
    last = next((n for n in range(least - first) if not _equal(one[-1 - n], other[-1 - n])), least - first)
    gone, come = one[first : len(one) - last], other[first : len(other) - last]
    end = "" if not last else str(first + max(len(gone), len(come)))
    where = f"{inside}[{first}:{end}]" if first or last or not gone or not come else inside
    if not gone:
        yield _Place(where, "added", None, come)
    elif not come:
        yield _Place(where, "removed", gone, None)
    else:
        yield _Place(where, "changed", gone, come)


def _kind(value: dict[str, Plain]) -> Plain:
    return value.get("$type")


def _equal(one: Plain, other: Plain) -> bool:
    """Compare as JSON does: `1`, `1.0` and `True` are not the same."""
    return msgspec.json.encode(one) == msgspec.json.encode(other)


def _whole(fact: Fact) -> Shown:
    return _cut(fact.show(), fact.size)


def _cut(value: Plain, size: int = 0) -> Shown:
    text = msgspec.json.encode(value)
    if len(text) <= BOUND:
        return value
    return Cut(text[: _START * 4].decode(errors="ignore")[:_START], size or len(text))


def _text(value: Shown) -> str:
    return printable(str(value) if isinstance(value, Cut) else msgspec.json.encode(value).decode())


def _named(checkpoint: WorkflowCheckpoint) -> str:
    header = checkpoint.header
    return f"{printable(header.run_id)} #{header.seq} {header.status.value}"
