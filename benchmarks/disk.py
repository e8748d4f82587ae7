"""Where the files are measured, and how many bytes a growing list leaves there.

Knows file systems and file sizes only.
"""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Final

from benchmarks.measure import Stopwatch
from benchmarks.work import growth

_SIZES: Final = (250, 500, 1000)
#: Bytes that grow like n ** exponent are called linear up to this.
LINEAR: Final = 1.1
_NOT_A_DISK: Final = {"tmpfs", "ramfs"}
_CHECKOUT: Final = Path(__file__).resolve().parent.parent


def file_system(path: Path) -> str:
    """The type and device of the file system that holds a path; "unknown" where the system does not tell."""
    mounts = Path("/proc/mounts")
    if not mounts.exists():
        return "unknown"
    best = ("", "unknown")
    for line in mounts.read_text(encoding="utf-8").splitlines():
        device, point, kind = line.split()[:3]
        # A later mount hides an earlier one at the same place.
        if path.resolve().is_relative_to(point) and len(point) >= len(best[0]):
            best = (point, f"{kind} ({device})")
    return best[1]


def default_folder() -> Path:
    """The folder for temporary files if it is on a disk, else the checkout."""
    temporary = Path(tempfile.gettempdir())
    return _CHECKOUT if file_system(temporary).split()[0] in _NOT_A_DISK else temporary


async def growth_on_disk(folder: Path) -> str:
    """Bytes on disk after 250, 500 and 1,000 supersteps, and how they grow."""
    sizes = [await _bytes_after(count, folder) for count in _SIZES]
    exponent = growth_exponent(*sizes)
    verdict = "ok" if exponent <= LINEAR else "missed"
    shown = ", ".join(f"{count:,}: {size:,}" for count, size in zip(_SIZES, sizes, strict=True))
    return f"bytes on disk after {shown}; exponent {exponent:.2f} (<= {LINEAR} {verdict})"


def growth_exponent(first: int, second: int, third: int) -> float:
    """The exponent of growth from sizes at n, 2 n and 4 n; what an empty file has anyway is not counted."""
    return math.log2((third - second) / (second - first))


async def _bytes_after(count: int, folder: Path) -> int:
    with tempfile.TemporaryDirectory(dir=folder) as place:
        await growth(count)(Path(place), Stopwatch())
        return _bytes_in(Path(place))


def _bytes_in(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
