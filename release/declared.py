"""What pyproject.toml declares: the version, what the package needs, its extras, and the lowest release of each need.

Reads only that file.
"""

import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
#: The extra with all that the tests need.
DEV = "dev"
#: Extras with tools of this project. Nobody who uses the package installs them.
TOOLS = {DEV, "docs", "lint"}


@dataclass(frozen=True)
class Declared:
    """What a pyproject.toml says of its project."""

    name: str
    version: str
    requires_python: str
    needs: tuple[Requirement, ...]
    extras: Mapping[str, tuple[Requirement, ...]]
    #: Such as 3.11, in the order in which the classifiers name them.
    pythons: tuple[str, ...]
    build_needs: tuple[str, ...]
    #: Extras that forbid the lowest release of something else, and the tests that need them.
    apart: Mapping[str, tuple[str, ...]]

    @property
    def offered(self) -> list[str]:
        """The extras that are for users, in order of their names."""
        return sorted(self.extras.keys() - TOOLS)

    def all_needs(self) -> Iterator[Requirement]:
        """Everything that the package or an extra needs, without the package itself."""
        yield from self.needs
        for extra in self.extras:
            yield from self.needs_of(extra)

    def needs_of(self, extra: str, without: Collection[str] = ()) -> Iterator[Requirement]:
        """What an extra needs, with what it names of our other extras, but for those that are left out."""
        for need in self.extras[extra]:
            if canonicalize_name(need.name) != canonicalize_name(self.name):
                yield need
                continue
            for other in need.extras - set(without):
                yield from self.needs_of(other, without)


def declared(text: str | None = None) -> Declared:
    """Return what a pyproject.toml says; without a text, that of this project."""
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8") if text is None else text)
    project = whole["project"]
    start = "Programming Language :: Python :: 3."
    return Declared(
        project["name"],
        project["version"],
        project["requires-python"],
        tuple(map(Requirement, project.get("dependencies", []))),
        {name: tuple(map(Requirement, needs)) for name, needs in project.get("optional-dependencies", {}).items()},
        tuple("3." + line.removeprefix(start) for line in project.get("classifiers", []) if line.startswith(start)),
        tuple(whole["build-system"]["requires"]),
        {extra: tuple(tests) for extra, tests in whole.get("tool", {}).get("release", {}).get("apart", {}).items()},
    )


def lowest(needs: Iterable[Requirement]) -> list[str]:
    """Return a constraint on the lowest release of each need. Raises `ValueError` where a need has none.

    What is needed in two places with two bounds has to be at least the higher one.
    """
    found: dict[tuple[str, str], Version] = {}
    for need in needs:
        place = (canonicalize_name(need.name), str(need.marker or ""))
        found[place] = max(found.get(place, Version("0")), lower_bound(need))
    return [
        f"{name}=={version}" + (f"; {marker}" if marker else "") for (name, marker), version in sorted(found.items())
    ]


def lower_bound(need: Requirement) -> Version:
    """Return the lowest release that a need allows. Raises `ValueError` where it says none."""
    bounds = [Version(part.version) for part in need.specifier if part.operator in {">=", "~="}]
    if len(bounds) != 1:
        raise ValueError(
            f"{need} has no lower bound: write {need.name}>=X, the lowest release that the tests pass with"
        )
    return bounds[0]
