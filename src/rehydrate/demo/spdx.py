"""SPDX licence expressions: text to tree and back, and what family the whole belongs to.

Takes operators and identifiers in any case, as package metadata does. It guesses nothing: what is not a well-formed
expression is an `ExpressionError` that says where.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from rehydrate.demo.families import LINKING_EXCEPTIONS, Family, canonical_exception, canonical_id, family_of_id

__all__ = ["AllOf", "AnyOf", "Expression", "ExpressionError", "Term", "family", "parse", "terms", "unknown_names"]

MAX_LENGTH: Final = 2_000
MAX_NESTING: Final = 40

_TOKEN: Final = re.compile(r"\s*([()+]|[A-Za-z0-9.:-]+)")
_OPERATORS: Final = frozenset({"AND", "OR", "WITH"})
_OWN_LICENCE: Final = re.compile(r"(?:DocumentRef-[A-Za-z0-9.-]+:)?LicenseRef-[A-Za-z0-9.-]+", re.IGNORECASE)


class ExpressionError(ValueError):
    """A text is not a licence expression."""


@dataclass(frozen=True)
class Term:
    """One licence, with an exception where there is one."""

    licence: str
    or_later: bool = False
    exception: str | None = None

    def __str__(self) -> str:
        base = self.licence + ("+" if self.or_later else "")
        return f"{base} WITH {self.exception}" if self.exception else base


@dataclass(frozen=True)
class AllOf:
    """Every part applies."""

    parts: tuple[Expression, ...]

    def __str__(self) -> str:
        return " AND ".join(f"({part})" if isinstance(part, AnyOf) else str(part) for part in self.parts)


@dataclass(frozen=True)
class AnyOf:
    """One part applies, at the choice of whoever takes the work."""

    parts: tuple[Expression, ...]

    def __str__(self) -> str:
        return " OR ".join(map(str, self.parts))


Expression: TypeAlias = Term | AllOf | AnyOf


def parse(text: str) -> Expression:
    """Read an expression; known identifiers come out in their canonical spelling.

    Raises `ExpressionError` with the place of the fault.
    """
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"longer than {MAX_LENGTH} characters")
    reader = _Reader(_tokens(text))
    expression = reader.any_of(0)
    if reader.here is not None:
        raise ExpressionError(f"{reader.here!r} is not expected there")
    return expression


def terms(expression: Expression) -> Iterator[Term]:
    """Give every licence of an expression, from left to right."""
    if isinstance(expression, Term):
        yield expression
        return
    for part in expression.parts:
        yield from terms(part)


def unknown_names(expression: Expression) -> tuple[str, ...]:
    """Return the licences and exceptions of an expression of which the table knows no family."""
    names: list[str] = []
    for term in terms(expression):
        if family_of_id(term.licence) is Family.UNKNOWN:
            names.append(term.licence)
        if term.exception and canonical_exception(term.exception) is None:
            names.append(term.exception)
    return tuple(dict.fromkeys(names))


def family(expression: Expression) -> Family:
    """Return the family of the whole: of a choice the least demanding one, else the most demanding one."""
    if isinstance(expression, Term):
        return _family_of_term(expression)
    families = [family(part) for part in expression.parts]
    if isinstance(expression, AllOf):
        return max(families, key=lambda each: each.rank)
    return min(families, key=lambda each: each.rank)


def _family_of_term(term: Term) -> Family:
    found = family_of_id(term.licence)
    if found is Family.STRONG_COPYLEFT and term.exception in LINKING_EXCEPTIONS:
        return Family.WEAK_COPYLEFT
    return found


def _tokens(text: str) -> list[str]:
    found: list[str] = []
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise ExpressionError(f"character {text[position:].lstrip()[0]!r} has no place in an expression")
        token = match[1]
        if token == "+" and match.start(1) != position:
            raise ExpressionError("'+' has to stand right behind an identifier")
        found.append(token.upper() if token.upper() in _OPERATORS else token)
        position = match.end()
    return found


class _Reader:
    """Reads a list of tokens by recursive descent; `here` is the next token, None at the end."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._position = 0

    @property
    def here(self) -> str | None:
        return self._tokens[self._position] if self._position < len(self._tokens) else None

    def _accept(self, token: str) -> bool:
        if self.here != token:
            return False
        self._position += 1
        return True

    def any_of(self, depth: int) -> Expression:
        parts = [self._all_of(depth)]
        while self._accept("OR"):
            parts.append(self._all_of(depth))
        return parts[0] if len(parts) == 1 else AnyOf(_flat(parts, AnyOf))

    def _all_of(self, depth: int) -> Expression:
        parts = [self._one(depth)]
        while self._accept("AND"):
            parts.append(self._one(depth))
        return parts[0] if len(parts) == 1 else AllOf(_flat(parts, AllOf))

    def _one(self, depth: int) -> Expression:
        if not self._accept("("):
            return self._term()
        if depth >= MAX_NESTING:
            raise ExpressionError(f"nested deeper than {MAX_NESTING}")
        inside = self.any_of(depth + 1)
        if not self._accept(")"):
            raise ExpressionError("a closing parenthesis is missing")
        return inside

    def _term(self) -> Term:
        name = self._name("a licence")
        if _OWN_LICENCE.fullmatch(name):
            own, or_later = canonical_id(name) or name, False
        else:
            or_later = self._accept("+")
            own, or_later = _canonical_licence(name, or_later)
        if not self._accept("WITH"):
            return Term(own, or_later)
        exception = self._name("an exception")
        return Term(own, or_later, canonical_exception(exception) or exception)

    def _name(self, what: str) -> str:
        token = self.here
        if token is None:
            raise ExpressionError(f"{what} is missing at the end")
        if token in _OPERATORS or token in "()+" or (":" in token and not _OWN_LICENCE.fullmatch(token)):
            raise ExpressionError(f"{what} is expected, not {token!r}")
        self._position += 1
        return token


def _canonical_licence(name: str, or_later: bool) -> tuple[str, bool]:
    # "GPL-2.0+" has an identifier of its own; "MPL-1.1+" keeps its mark.
    if or_later and (both := canonical_id(f"{name}+")):
        return both, False
    return canonical_id(name) or name, or_later


def _flat(parts: list[Expression], kind: type[AllOf] | type[AnyOf]) -> tuple[Expression, ...]:
    flat: list[Expression] = []
    for part in parts:
        if isinstance(part, kind):
            flat.extend(part.parts)
        else:
            flat.append(part)
    return tuple(flat)
