"""Advisories as files in the format of OSV, for an audit where no service can be asked.

Such as a clone of the Python Packaging Advisory Database: `vulns/PACKAGE/ID.yaml`. Nothing here asks anybody.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version


@dataclass(frozen=True)
class Advisories:
    """The advisories below a folder, and the day of the youngest."""

    by_package: Mapping[str, list[Mapping[str, Any]]]
    youngest: str

    @classmethod
    def read(cls, folder: Path) -> "Advisories":
        """Read them. Raises `ValueError` where there are none."""
        found: dict[str, list[Mapping[str, Any]]] = {}
        youngest = ""
        for file in sorted((folder / "vulns").rglob("*.yaml")):
            advisory = yaml.load(file.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
            youngest = max(youngest, str(advisory.get("modified", ""))[:10])
            for name in {affected["package"]["name"] for affected in advisory.get("affected", [])}:
                found.setdefault(canonicalize_name(name), []).append(advisory)
        if not found:
            raise ValueError(f"no advisories in {folder / 'vulns'}: name a clone of the Python advisory database")
        return cls(found, youngest)

    def of(self, name: str, version: str) -> list[str]:
        """Return the ids of those that are about a release and were not withdrawn."""
        return [
            advisory["id"]
            for advisory in self.by_package.get(canonicalize_name(name), [])
            if not advisory.get("withdrawn")
            and any(_is_affected(affected, name, version) for affected in advisory["affected"])
        ]


def _is_affected(affected: Mapping[str, Any], name: str, version: str) -> bool:
    if canonicalize_name(affected["package"]["name"]) != canonicalize_name(name):
        return False
    if version in affected.get("versions", []):
        return True
    ranges = [found["events"] for found in affected.get("ranges", []) if found["type"] == "ECOSYSTEM"]
    return any(_is_between(events, Version(version)) for events in ranges)


def _is_between(events: list[Mapping[str, str]], version: Version) -> bool:
    """Whether the last event that is not above a version opens a range."""
    inside = False
    for at, opens, itself in sorted(_moments(events), key=lambda moment: moment[:2]):
        if at > version or (at == version and not itself):
            break
        inside = opens
    return inside


def _moments(events: list[Mapping[str, str]]) -> Iterator[tuple[Version, bool, bool]]:
    """Give each event's version, whether it opens, and whether it holds from that very version on."""
    for event in events:
        for kind, said in event.items():
            try:
                yield Version(said), kind == "introduced", kind != "last_affected"
            except InvalidVersion:
                continue
