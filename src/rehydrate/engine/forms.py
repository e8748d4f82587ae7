"""Forms: what the keys of records look like, and the trails in them, as the engine writes them.

Whatever takes names apart and counts on in trails may rely on these, whoever wrote the records. What they say of each
other is for `invariants`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from rehydrate.ids import ABOVE_ROOT
from rehydrate.model.records import RECORD_TYPES, Trail

from .requests import LONGEST, name_of
from .run import AnyRecord, Run

#: Deeper paths overflow the stack of whoever follows them; it is far beyond what anybody nests.
DEEPEST: Final = 250
_NUMBER: Final = "(?:0|[1-9][0-9]{0,18})"
_ID: Final = "[^/#\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,200}"
_SEGMENT: Final = f"{_ID}#{_NUMBER}"
_PATH: Final = re.compile(f"{_SEGMENT}(?:/{_SEGMENT})*")
_COUNT: Final = re.compile(_NUMBER)
_PADDED: Final = re.compile("[0-9]{8,18}")
_NOTHING: Final = re.compile("")
_ANY: Final = re.compile(f"(?s:.{{0,{LONGEST}}})")
#: How records of a kind are named, where other records or the record itself do not say it.
_NAMES: Final = {
    **dict.fromkeys(("run", "signature", "turn", "limit", "timer"), _NOTHING),
    **dict.fromkeys(("input", "map", "outbox", "inbox", "pass"), _COUNT),
    **dict.fromkeys(("output", "receipts"), _PADDED),
    **dict.fromkeys(("scope", "step", "rest"), re.compile(_SEGMENT)),
    "failure": _ANY,
    "call": re.compile(f"{_NUMBER}:(?s:.*)"),
    "calls": re.compile(f"{_NUMBER}:[0-9]{{6,18}}"),
}
#: Fields that are counted on from, by kind: what is stored next has to be a number again.
_COUNTED: Final = {
    kind: tuple(field.name for field in msgspec.structs.fields(class_) if field.type is int)
    for kind, class_ in RECORD_TYPES.items()
}
_END: Final = 1 << 63
#: Kinds whose trail is odd: the input, and for each map its number and the item's.
_ON_THE_WAY: Final = frozenset({"input", "request", "join", "map", "gather", "inbox", "pass"})


def misshapen(run: Run) -> list[str]:
    """Return what has no form that is written."""
    found: list[str] = []
    for (path, kind), table in run.tables.items():
        if not _is_place(path, kind):
            found.append(f"I32: records stand at a path ({path!r:.80} has {kind!r:.80})")
            continue
        pattern = _NOTHING if path == ABOVE_ROOT else _NAMES.get(kind)
        if pattern is not None:
            found += [
                f"I33: {kind!r} records have names ({name!r:.80})" for name in table if not pattern.fullmatch(name)
            ]
        found += [f"I34: {kind!r} {name!r:.80} {problem}" for name, problem in _inside(kind, table)]
    return found


def _is_place(path: str, kind: str) -> bool:
    if kind not in RECORD_TYPES:
        return False
    if path == ABOVE_ROOT:
        return kind in {"scope", "step"}
    return not path or (path.count("/") < DEEPEST and _PATH.fullmatch(path) is not None)


def _inside(kind: str, table: dict[str, AnyRecord]) -> Iterator[tuple[str, str]]:
    """Give the records that are named otherwise than they say, or have no trail that can be one."""
    counted = _COUNTED[kind]
    for name, record in table.items():
        for field in counted:
            if not 0 <= getattr(record, field) < _END:
                yield name, f"has a number that none can be ({field})"
        if kind in {"join", "gather"} and name != str(record.number):
            yield name, f"is number {record.number}"
        elif kind == "request" and name != name_of(record):
            yield name, f"is named {name_of(record)!r:.80}"
        if kind in _ON_THE_WAY and not _is_trail(record.trail):
            yield name, f"has the trail {record.trail!r:.80}"
        for trail in _further(kind, record):
            if not _is_trail(trail):
                yield name, f"has the trail {trail!r:.80}"


def _further(kind: str, record: AnyRecord) -> Iterable[Trail]:
    """Return the other trails in a record; that of the root or a shared scope is empty."""
    if kind == "scope":
        trail: Trail = record.trail
        return (trail,) if trail else ()
    if kind == "step":
        return [delivery.trail for delivery in record.deliveries]
    return [group.trail for group in record.groups] if kind == "requests" else ()


def _is_trail(trail: Trail) -> bool:
    return len(trail) % 2 == 1 and min(trail) >= 0
