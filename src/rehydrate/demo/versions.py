"""Comparison of an installed version with the clauses of a requirement.

Knows plain release numbers only. Whatever has more than that (pre-releases, local parts) is compared for equality of
text and is otherwise unclear, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from typing import Final

__all__ = ["Fit", "fit"]

_RELEASE: Final = re.compile(r"v?(\d{1,9}(?:\.\d{1,9}){0,20})", re.IGNORECASE)
_Release = tuple[int, ...]


class Fit(Enum):
    """Whether a version satisfies what is asked for."""

    YES = "yes"
    NO = "no"
    UNCLEAR = "unclear"


def fit(version: str, clauses: Iterable[tuple[str, str]]) -> Fit:
    """Return whether a version satisfies every clause, each a pair of operator and version."""
    results = [_fit_one(version, operator, wanted) for operator, wanted in clauses]
    if Fit.NO in results:
        return Fit.NO
    return Fit.UNCLEAR if Fit.UNCLEAR in results else Fit.YES


def _fit_one(version: str, operator: str, wanted: str) -> Fit:
    if operator in {"==", "==="} and version.lower() == wanted.lower():
        return Fit.YES
    have, want = _release(version), _release(wanted.removesuffix(".*"))
    if have is None or want is None:
        return Fit.UNCLEAR
    if wanted.endswith(".*"):
        return _starts_with(have, want, operator)
    return _known(_compare(have, want, operator))


def _starts_with(have: _Release, want: _Release, operator: str) -> Fit:
    if operator not in {"==", "!="}:
        return Fit.UNCLEAR
    return _known((_padded(have, len(want))[: len(want)] == want) is (operator == "=="))


def _compare(have: _Release, want: _Release, operator: str) -> bool:
    length = max(len(have), len(want))
    left, right = _padded(have, length), _padded(want, length)
    if operator == "~=":
        return left >= right and left[: len(want) - 1] == want[:-1]
    outcomes = {"<": left < right, ">": left > right, "<=": left <= right, ">=": left >= right, "!=": left != right}
    return outcomes.get(operator, left == right)


def _known(outcome: bool) -> Fit:
    return Fit.YES if outcome else Fit.NO


def _release(text: str) -> _Release | None:
    match = _RELEASE.fullmatch(text)
    return tuple(int(part) for part in match[1].split(".")) if match else None


def _padded(release: _Release, length: int) -> _Release:
    return release + (0,) * (length - len(release))
