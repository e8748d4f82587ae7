"""Answers from a file: licences by the name of the distribution, as JSON or as lines `name = licence`.

Every answer is checked before anything runs; one that names no licence is an error that says in which line it stands.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

from rehydrate.demo.answers import AnswerNotUnderstoodError, settle
from rehydrate.demo.environment import AuditInputError, normalised_name

__all__ = ["Answers", "read_answers"]


class Answers:
    """Answers by name, or by `name==version` where one name has several versions."""

    def __init__(self, by_name: Mapping[str, str]) -> None:
        self._by_name = dict(by_name)

    def find(self, name: str, version: str) -> str | None:
        """Return the answer for a distribution, the more exact one first."""
        plain = normalised_name(name)
        return self._by_name.get(f"{plain}=={version}", self._by_name.get(plain))


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
    for place, name, licence in pairs:
        try:
            settle(licence)
        except AnswerNotUnderstoodError as error:
            raise AuditInputError(f"{path}: {place}: {error}") from error
        by_name[_key(name)] = licence
    return Answers(by_name)


def _key(name: str) -> str:
    plain, separator, version = name.partition("==")
    return normalised_name(plain.strip()) + separator + version.strip()


def _from_json(path: Path, text: str) -> Iterator[tuple[str, str, str]]:
    try:
        raw: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise AuditInputError(f"{path}: not valid JSON: {error}") from error
    if not isinstance(raw, dict):
        raise AuditInputError(f"{path}: the JSON must be one object of names and licences")
    for name, licence in cast("dict[str, object]", raw).items():
        if not isinstance(licence, str):
            raise AuditInputError(f"{path}: the licence of {name!r} must be a text")
        yield repr(name), name, licence


def _from_lines(path: Path, text: str) -> Iterator[tuple[str, str, str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        # The "==" of "name==1.0 = MIT" parts nothing.
        name, separator, licence = line.replace("==", "\0").partition("=")
        if not separator or not name.strip():
            raise AuditInputError(f"{path}: line {number} is not of the form 'name = licence'")
        yield f"line {number}", name.replace("\0", "==").strip(), licence.replace("\0", "==").strip()
