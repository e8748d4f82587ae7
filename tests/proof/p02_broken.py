"""Stores that are broken on purpose, each in a way that a real mistake could look like. For the process of a trial only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

BROKEN: Final[dict[str, Callable[[], None]]] = {}
