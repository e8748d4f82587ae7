"""Resources: live objects of one call, read by key; they are never stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rehydrate.errors import MissingResourceError


class Resources(Mapping[str, Any]):
    """The resources that a call brought. `Any`: what they are is between the caller and the handler."""

    def __init__(self, given: Mapping[str, object]) -> None:
        self._given = dict(given)

    def __getitem__(self, key: str) -> Any:
        """Return a resource; raises `MissingResourceError` where this call did not bring it."""
        if key not in self._given:
            raise MissingResourceError((key,))
        return self._given[key]

    def __contains__(self, key: object) -> bool:
        return key in self._given

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)
