"""Time zones by stored names: only names that this machine has zones for ever reach the machinery that loads them.

`ZoneInfo` looks for files and for modules of the name it is given, so a stored name is not handed to it unchecked.
"""

from __future__ import annotations

import re
import zoneinfo
from functools import cache
from pathlib import Path
from typing import Final

from rehydrate.errors.codec import UnknownZoneError

_NAME: Final = re.compile(r"[A-Za-z0-9_+\-]+(/[A-Za-z0-9_+\-]+)*")
#: No zone has a longer name, and no file system has files of names that are much longer.
_LONGEST: Final = 100


def zone_of(name: str) -> zoneinfo.ZoneInfo:
    """Return a zone; raises `ValueError` for an impossible name and `UnknownZoneError` for a zone that is not here."""
    if len(name) > _LONGEST or not _NAME.fullmatch(name):
        raise ValueError("a time zone has an impossible name")
    if not _is_a_file(name) and name not in _all_names():
        raise UnknownZoneError(name)
    return zoneinfo.ZoneInfo(name)


def _is_a_file(name: str) -> bool:
    return any(Path(folder, name).is_file() for folder in zoneinfo.TZPATH)


@cache
def _all_names() -> frozenset[str]:
    """Return all names, those of the tzdata package included; takes some 20 ms, so it is asked last."""
    return frozenset(zoneinfo.available_timezones())
