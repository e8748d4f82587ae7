"""Claims: what each source in the metadata of a distribution says about the licence, in comparable form.

Turns words into sets of SPDX identifiers and compares two claims. Which claim wins is not decided here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from rehydrate.demo import spdx
from rehydrate.demo.environment import Distribution
from rehydrate.demo.fingerprints import recognise
from rehydrate.demo.wording import Options, classifier_options, phrase_options

__all__ = ["Claim", "ClaimKind", "Slots", "agreement", "gather"]

Slots = tuple[Options, ...]
"""One set of possible identifiers for each licence that a source names."""

_LONG_FIELD: Final = 300
"""A `License` field longer than this, or of many lines, is a licence text that somebody pasted there."""


class ClaimKind(Enum):
    """Where a claim stands."""

    EXPRESSION = "licence expression"
    FIELD = "licence field"
    CLASSIFIERS = "classifiers"
    TEXT = "licence file"


@dataclass(frozen=True)
class Claim:
    """What one source says; with an `expression` where it says how its licences are joined, a `fault` if unsound."""

    kind: ClaimKind
    said: str
    slots: Slots = ()
    expression: spdx.Expression | None = None
    fault: str = ""


def gather(distribution: Distribution) -> tuple[Claim, ...]:
    """Return the claims of a distribution, the most formal first."""
    return tuple(_claims(distribution))


def agreement(one: Slots, other: Slots, *, partial: bool = False) -> Slots | None:
    """Return what two claims have in common, or None if either names a licence that the other does not.

    `partial`: the other one may leave out licences that the first one names; the first one stands.
    """
    if any(not any(a & b for a in one) for b in other):
        return None
    if partial:
        return one
    shared = [[a & b for b in other if a & b] for a in one]
    if not all(shared):
        return None
    # Where one side is vague about several ("BSD" against two BSD licences), the exact side stands.
    return tuple(dict.fromkeys(common for row in shared for common in row))


def _claims(distribution: Distribution) -> Iterator[Claim]:
    if distribution.licence_expression:
        yield _expression_claim(distribution.licence_expression)
    if distribution.licence_field:
        yield _field_claim(distribution.licence_field)
    if distribution.classifiers:
        yield _classifier_claim(distribution.classifiers)
    for name, text in distribution.licence_texts:
        yield _text_claim(name, text)


def _expression_claim(text: str) -> Claim:
    kind = ClaimKind.EXPRESSION
    try:
        expression = spdx.parse(text)
    except spdx.ExpressionError as error:
        return Claim(kind, text, fault=f"the licence expression {text[:80]!r} is not valid: {error}")
    unknown = spdx.unknown_names(expression)
    if unknown:
        return Claim(kind, text, fault=f"the licence expression names {', '.join(unknown)}, of which nothing is known")
    return Claim(kind, text, _slots_of(expression), expression)


def _slots_of(expression: spdx.Expression) -> Slots:
    return tuple(dict.fromkeys(frozenset({term.licence}) for term in spdx.terms(expression)))


def _field_claim(text: str) -> Claim:
    kind = ClaimKind.FIELD
    if len(text) > _LONG_FIELD or text.count("\n") > 2:
        return _text_claim("the licence field", text)
    options = phrase_options(text)
    if options:
        return Claim(kind, text, (options,))
    try:
        expression = spdx.parse(text)
    except spdx.ExpressionError:
        return Claim(kind, text)
    # One unknown word is well-formed, too: only what is known counts in a field of free text.
    if spdx.unknown_names(expression):
        return Claim(kind, text)
    return Claim(kind, text, _slots_of(expression), expression)


def _classifier_claim(classifiers: tuple[str, ...]) -> Claim:
    said = "; ".join(each.removeprefix("License :: ").removeprefix("OSI Approved :: ") for each in classifiers)
    options = dict.fromkeys(found for each in classifiers if (found := classifier_options(each)))
    # "GPL" beside "GPLv2+" is not a second licence.
    exact = tuple(each for each in options if not any(other < each for other in options))
    return Claim(ClaimKind.CLASSIFIERS, said, exact)


def _text_claim(name: str, text: str) -> Claim:
    slots = recognise(text)
    fault = "" if slots else f"{name} is a licence text that is not known"
    return Claim(ClaimKind.TEXT, f"{name}: {text[:200]}", slots, fault=fault)
