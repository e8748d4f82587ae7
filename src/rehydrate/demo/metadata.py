"""Reading of installed metadata: one directory to a `Distribution`, a whole environment to an `Environment`.

Nothing here raises for broken metadata: it becomes a finding. Licence texts are read up to a fixed size, and only
inside the metadata directory, whatever the metadata says.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from email.message import Message
from email.parser import HeaderParser
from importlib import metadata as installed
from pathlib import Path
from typing import Final

from rehydrate.demo.environment import (
    RUNNING,
    Distribution,
    Environment,
    Finding,
    FindingKind,
    metadata_entries,
    normalised_name,
    site_directories,
)

__all__ = ["read_distribution", "read_environment"]

MAX_TEXTS: Final = 16
MAX_TEXT_LENGTH: Final = 64_000
"""Characters kept of one licence text; the longest common one, GPL-3.0, has 35,000."""

_HEADER_FILES: Final = ("METADATA", "PKG-INFO", "")
_LICENCE_NAME: Final = re.compile(r"^(licen[cs]e|copying|unlicense)", re.IGNORECASE)
_OTHERS_CODE: Final = frozenset({"_vendor", "vendor", "vendored", "_vendored", "third_party", "third-party", "extern"})
_FIELD_INDENT: Final = re.compile(r"^[ \t]*\|?[ \t]*", re.MULTILINE)


def read_environment(source: str) -> Environment:
    """Read every distribution of an environment.

    Raises `AuditInputError` if the path is no environment.
    """
    found: dict[str, Distribution] = {}
    findings: list[Finding] = list(_system_packages(source))
    for directory in site_directories(source):
        for entry in _entries(directory, source, findings):
            distribution, faults = read_distribution(entry, source)
            findings.extend(faults)
            if distribution is None:
                continue
            first = found.setdefault(distribution.key, distribution)
            if first is not distribution:
                findings.append(_copy(distribution, first))
    findings.extend(_duplicates(found.values(), source))
    return Environment(source, tuple(found.values()), (), tuple(findings))


def _entries(directory: Path, source: str, findings: list[Finding]) -> tuple[Path, ...]:
    try:
        return metadata_entries(directory)
    except OSError as error:
        findings.append(Finding(FindingKind.UNREADABLE, str(directory), error.strerror or str(error), source))
        return ()


def read_distribution(entry: Path, source: str) -> tuple[Distribution | None, tuple[Finding, ...]]:
    """Read one metadata directory (or the one file that old tools wrote instead)."""
    headers = _headers(entry, source)
    if isinstance(headers, Finding):
        return None, (headers,)
    name = _value(headers, "Name")
    if name is None:
        return None, (Finding(FindingKind.NO_NAME, entry.name, "the metadata has no Name", source),)
    faults: list[Finding] = []
    version = _value(headers, "Version")
    if version is None:
        faults.append(Finding(FindingKind.NO_VERSION, entry.name, f"the metadata of {name} has no Version", source))
    texts, unread = _licence_texts(entry, headers, source)
    faults.extend(unread)
    classifiers = tuple(each for each in _values(headers, "Classifier") if each.startswith("License ::"))
    field = _value(headers, "License")
    distribution = Distribution(
        name=name,
        version=version or "",
        licence_expression=_value(headers, "License-Expression"),
        licence_field=_FIELD_INDENT.sub("", field)[:MAX_TEXT_LENGTH] if field else None,
        classifiers=tuple(dict.fromkeys(classifiers)),
        licence_texts=texts,
        source=source,
        location=str(entry),
    )
    return distribution, tuple(faults)


def _headers(entry: Path, source: str) -> Message | Finding:
    distribution = installed.Distribution.at(entry)
    for name in _HEADER_FILES:
        try:
            text = distribution.read_text(name)
        except (OSError, ValueError) as error:
            return Finding(FindingKind.UNREADABLE, entry.name, f"{name or 'the file'}: {error}", source)
        if text:
            return HeaderParser().parsestr(text)
    return Finding(FindingKind.NO_METADATA, entry.name, "there is no METADATA or PKG-INFO that can be read", source)


def _values(headers: Message, name: str) -> list[str]:
    return [str(value).strip() for value in headers.get_all(name, [])]


def _value(headers: Message, name: str) -> str | None:
    values = _values(headers, name)
    return values[0] if values and values[0] not in {"", "UNKNOWN"} else None


def _licence_texts(
    entry: Path, headers: Message, source: str
) -> tuple[tuple[tuple[str, str], ...], tuple[Finding, ...]]:
    texts: list[tuple[str, str]] = []
    faults: list[Finding] = []
    files = _licence_files(entry, headers)
    if len(files) > MAX_TEXTS:
        detail = f"it has {len(files)} licence files, of which the first {MAX_TEXTS} are read"
        faults.append(Finding(FindingKind.CUT, entry.name, detail, source))
    for path in files[:MAX_TEXTS]:
        name = path.relative_to(entry).as_posix()
        try:
            text = _bounded_text(path)
        except OSError as error:
            faults.append(Finding(FindingKind.UNREADABLE, f"{entry.name}/{name}", str(error), source))
            continue
        if len(text) > MAX_TEXT_LENGTH:
            detail = f"of its licence text the first {MAX_TEXT_LENGTH:,} characters are read"
            faults.append(Finding(FindingKind.CUT, f"{entry.name}/{name}", detail, source))
        if text.strip():
            texts.append((name, text[:MAX_TEXT_LENGTH]))
    return tuple(texts), tuple(faults)


def _licence_files(entry: Path, headers: Message) -> list[Path]:
    """Return the licence files of a distribution itself, those that the metadata names first."""
    if not entry.is_dir():
        return []
    # Metadata can name anything, so its names only choose among what lies in the directory.
    inside = sorted(path for path in entry.rglob("*") if _is_own_licence(path, entry))
    named = [place / name for name in _values(headers, "License-File") for place in (entry / "licenses", entry)]
    return list(dict.fromkeys([*(path for path in named if path in inside), *inside]))


def _is_own_licence(path: Path, entry: Path) -> bool:
    if _LICENCE_NAME.match(path.name) is None or _OTHERS_CODE & set(path.relative_to(entry).parts):
        return False
    return path.is_file() and path.resolve().is_relative_to(entry.resolve())


def _bounded_text(path: Path) -> str:
    """Return the beginning of a file, at least one character more than is kept where there is more."""
    with path.open("rb") as file:
        data = file.read(4 * (MAX_TEXT_LENGTH + 1))  # at most four bytes a character
    return data.decode("utf-8", errors="replace")


def _copy(copy: Distribution, first: Distribution) -> Finding:
    detail = f"{copy.location} says the same as {first.location} and is audited once"
    return Finding(FindingKind.COPY, f"{copy.name} {copy.version}", detail, copy.source)


def _duplicates(distributions: Iterable[Distribution], source: str) -> Iterator[Finding]:
    by_name: dict[str, list[Distribution]] = {}
    for each in distributions:
        by_name.setdefault(normalised_name(each.name), []).append(each)
    for name, several in by_name.items():
        if len(several) > 1:
            places = ", ".join(f"{each.version or 'no version'} in {each.location}" for each in several)
            yield Finding(FindingKind.DUPLICATE, name, f"{places}; each is audited", source)


def _system_packages(source: str) -> Iterator[Finding]:
    settings = Path(sys.prefix if source == RUNNING else source) / "pyvenv.cfg"
    if not settings.is_file():
        return
    text = settings.read_text(encoding="utf-8", errors="replace")
    if re.search(r"^\s*include-system-site-packages\s*=\s*true\s*$", text, re.IGNORECASE | re.MULTILINE):
        detail = "it also uses the packages of the system, which are not looked at; audit them by their own path"
        yield Finding(FindingKind.NOT_FOLLOWED, source, detail, source)
