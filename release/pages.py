"""The index's pages of projects, which say what is known of newest releases: for an audit where no service answers.

A mirror of the index often has these (`pypi.org/pypi/NAME/json`) and no page of a single release, which `pip-audit`
asks for. Of a release that is not the newest one they say nothing, and so neither does this.
"""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from packaging.version import Version

INDEX: Final = "https://pypi.org/pypi"
_SECONDS = 30


class _NothingSaidError(Exception):
    """A page that says nothing of a release; its text is the reason."""


def looked_up(there: Mapping[str, str], index: str = INDEX) -> tuple[list[str], list[str]]:
    """Return what is known of releases by name and version, and of which nothing was found out; one line each."""

    def of(name: str) -> tuple[list[str], str | None]:
        try:
            return [f"{name} {there[name]}: {known}" for known in _known(index, name, there[name])], None
        except _NothingSaidError as error:
            return [], f"{name} {there[name]}: {error}"

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(of, sorted(there)))
    return [line for found, _ in answers for line in found], [reason for _, reason in answers if reason is not None]


def _known(index: str, name: str, version: str) -> list[str]:
    try:
        page = json.loads(_read(f"{index}/{name}/json"))
        newest = page["info"]["version"]
        known = [one["id"] for one in page["vulnerabilities"] if not one.get("withdrawn")]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _NothingSaidError(f"{type(error).__name__}: {error}") from None
    if Version(newest) != Version(version):
        raise _NothingSaidError(f"the page speaks of {newest} only")
    return known


def _read(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=_SECONDS) as answer:
            return answer.read()
    except urllib.error.HTTPError as error:
        # It is the answer, too, and keeps its connection.
        error.close()
        raise
