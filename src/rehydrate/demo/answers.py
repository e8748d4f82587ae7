"""Answers of a person about a licence: from what somebody typed to a licence and its family.

Takes SPDX expressions, the wordings that package metadata uses and names of families. What it does not understand is
refused with the choices; nothing is guessed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rehydrate.demo import spdx
from rehydrate.demo.families import Family, family_of_id
from rehydrate.demo.wording import phrase_options

__all__ = ["AnswerNotUnderstoodError", "Settled", "settle"]

MAX_LENGTH: Final = 500

_FAMILY_NAMES: Final = {family.value: family for family in Family}


class AnswerNotUnderstoodError(ValueError):
    """A person's answer names no licence; the text is one line and says what is taken."""


@dataclass(frozen=True)
class Settled:
    """The licence that a person named."""

    licence: str
    family: Family


def settle(text: str) -> Settled:
    """Return the licence that an answer names.

    Raises `AnswerNotUnderstoodError`.
    """
    answer = " ".join(text.split())
    if not answer or len(answer) > MAX_LENGTH:
        raise AnswerNotUnderstoodError(_refusal(answer))
    family = _FAMILY_NAMES.get(answer.lower().replace("-", " "))
    if family is not None:
        return Settled(f"({family.value}, not named)", family)
    # A wording comes first: "GPL" alone is a well-formed expression of an identifier that does not exist.
    options = phrase_options(answer)
    if options and len(options) == 1:
        (licence,) = options
        return Settled(licence, family_of_id(licence))
    if options:
        raise AnswerNotUnderstoodError(f"{answer!r} can mean {', '.join(sorted(options))}; say which")
    return _from_expression(answer)


def _from_expression(answer: str) -> Settled:
    try:
        expression = spdx.parse(answer)
    except spdx.ExpressionError as error:
        raise AnswerNotUnderstoodError(_refusal(answer)) from error
    unknown = spdx.unknown_names(expression)
    # A licence of their own is for the person to name; any other unknown identifier is a slip of the pen.
    if any("LicenseRef-" not in name for name in unknown):
        raise AnswerNotUnderstoodError(_refusal(answer))
    return Settled(str(expression), spdx.family(expression))


def _refusal(answer: str) -> str:
    shown = answer if len(answer) <= 60 else answer[:57] + "..."
    families = ", ".join(_FAMILY_NAMES)
    return (
        f"{shown!r} is no licence that is known here; give an SPDX expression such as MIT or 'Apache-2.0 OR MIT', "
        f"LicenseRef-NAME, or a family: {families}"
    )
