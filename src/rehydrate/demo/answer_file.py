"""Answers from a file: licences by the name of the distribution, as JSON or as lines `name = licence`.

Every answer is checked before anything runs; one that names no licence, or a second one for the same, is an error that
says in which line it stands.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import cast

from rehydrate.demo.answers import AnswerNotUnderstoodError, settle
from rehydrate.demo.environment import AuditInputError, normalised_name

__all__ = ["Answers", "read_answers"]


class Answers:
    """Answers by name, or by `name==version` or `name version` where one name has several versions."""

    def __init__(self, by_name: Mapping[str, str]) -> None:
        self._names = {_key(name): name for name in by_name}
        self._licences = {_key(name): licence for name, licence in by_name.items()}

    def find(self, name: str, version: str) -> str | None:
        """Return the answer for a distribution, the more exact one first."""
        found = self._fitting(name, version)
        return self._licences[found[0]] if found else None

    def unused(self, asked: Iterable[tuple[str, str]]) -> tuple[str, ...]:
        """Return the names, as they were written, that fit none of these names and versions."""
        used = {key for name, version in asked for key in self._fitting(name, version)}
        return tuple(name for key, name in self._names.items() if key not in used)

    def _fitting(self, name: str, version: str) -> list[str]:
        # The report shows a dash where there is no version.
        exact = _key(f"{name}=={version or '-'}")
        return [key for key in (exact, _key(name)) if key in self._licences]


def read_answers(path: Path) -> Answers:
    """Read a file of answers.

    Raises `AuditInputError`.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise AuditInputError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise AuditInputError(f"{path}: not a text file in UTF-8") from error
    pairs = _from_json(path, text) if text.lstrip().startswith(("{", "[")) else _from_lines(path, text)
    by_name: dict[str, str] = {}
    places: dict[str, str] = {}
    for place, name, licence in pairs:
        try:
            settle(licence)
        except AnswerNotUnderstoodError as error:
            raise AuditInputError(f"{path}: {place}: {error}") from error
        key = _key(name)
        if key in places:
            raise AuditInputError(f"{path}: {place}: a second answer for {name!r}, after {places[key]}; keep one")
        places[key] = place
        by_name[name] = licence
    return Answers(by_name)


def _key(name: str) -> str:
    """Return one text for all forms of a name, with or without a version."""
    plain, separator, version = name.partition("==")
    if not separator:
        plain, _, version = " ".join(name.split()).rpartition(" ")
        if not plain:
            return normalised_name(version)
    return f"{normalised_name(plain.strip())}=={version.strip().lower()}"


def _from_json(path: Path, text: str) -> Iterator[tuple[str, str, str]]:
    try:
        # As pairs, since a dict would keep the last of two that have one name.
        raw: object = json.loads(text, object_pairs_hook=tuple)
    except (ValueError, RecursionError) as error:
        raise AuditInputError(f"{path}: not valid JSON: {error}") from error
    if not isinstance(raw, tuple):
        raise AuditInputError(f"{path}: the JSON must be one object of names and licences")
    for number, (name, licence) in enumerate(cast("tuple[tuple[str, object], ...]", raw), start=1):
        if not isinstance(licence, str):
            raise AuditInputError(f"{path}: the licence of {name!r} must be a text")
        yield f"entry {number}, {name!r}", name, licence


def _from_lines(path: Path, text: str) -> Iterator[tuple[str, str, str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        # The "==" of "name==1.0 = MIT" parts nothing.
        name, separator, licence = line.replace("==", "\0").partition("=")
        if not separator or not name.strip():
            raise AuditInputError(f"{path}: line {number} is not of the form 'name = licence'")
        yield f"line {number}", name.replace("\0", "==").strip(), licence.replace("\0", "==").strip()
