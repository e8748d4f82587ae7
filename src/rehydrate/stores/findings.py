"""What stores find of themselves, put into words: sizes, room on a disk, migrations, lock files, errors.

It must not open a store.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from rehydrate.errors import RehydrateError
from rehydrate.ports import CheckpointStorage, Examination, Finding, examine_store, vacuum

from .file_lock import try_lock
from .migrations import Migration, not_applied

#: A disk with less room than this, in bytes and in parts of it all, is soon full.
_LITTLE: Final = 200 * 1024 * 1024
_SMALL_PART: Final = 0.02
_UNITS: Final = ("bytes", "KB", "MB", "GB", "TB")


class ExaminedAround:
    """A store around a store: how that is, and its upkeep, are those of the store inside."""

    _store: CheckpointStorage

    async def examine(self, *, full: bool = False) -> Examination:
        """As the store inside; see `rehydrate.ports.Examined`."""
        return await examine_store(self._store, full=full)

    async def vacuum(self) -> None:
        """As the store inside; raises `WrongCallError` where that has no `vacuum`."""
        await vacuum(self._store)


def size_text(size: float) -> str:
    """Return a number of bytes as people read it."""
    for unit in _UNITS[:-1]:
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" or size >= 10 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} {_UNITS[-1]}"


def counted(number: int, noun: str) -> str:
    """Return a number of things in words."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def of_error(about: str, error: RehydrateError) -> Finding:
    """Return an error as a problem."""
    return Finding(about, "problem", error.text(), error.action())


def of_disk(path: Path) -> Finding:
    """Say how much room the disk of a path has."""
    disk = os.statvfs(path)
    free, whole = disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize
    text = f"{size_text(free)} of {size_text(whole)} are free on its disk."
    if free < _LITTLE or free < whole * _SMALL_PART:
        return Finding("disk", "problem", text, "Free space, or let go of what is old: rehydrate prune.")
    return Finding("disk", "ok", text)


def of_migrations(
    applied: Mapping[object, object] | None, store: str, known: tuple[Migration, ...]
) -> tuple[Finding, bool]:
    """Say how the migrations of a database stand, and whether opening it would change nothing."""
    try:
        missing = known if applied is None else not_applied(applied, store, known)
    except RehydrateError as error:
        return of_error("migrations", error), False
    if not missing:
        return Finding("migrations", "ok", f"all {len(known)} are applied."), True
    names = ", ".join(migration.name for migration in missing)
    text = f"{len(missing)} of {len(known)} are not applied yet ({names}); its runs were not looked at for that."
    action = "Make a backup. Then use the store: the first use applies them, and older versions refuse it afterwards."
    return Finding("migrations", "note", text, action), False


def of_owners(directory: Path) -> Finding:
    """Say how many processes are there that drive runs, by their lock files."""
    living, gone = _owner_files(directory.glob("*.owner"))
    if not gone:
        return Finding("lock files", "ok", f"{living} of processes that live, none of others.")
    text = f"{living} of processes that live, {gone} of others that are gone."
    return Finding("lock files", "note", text, "Nothing: the next process that opens the store removes them.")


def _owner_files(paths: Iterable[Path]) -> tuple[int, int]:
    living = gone = 0
    for path in paths:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:  # removed meanwhile
            continue
        try:
            free = try_lock(descriptor, fcntl.LOCK_SH)
        finally:
            os.close(descriptor)
        living, gone = living + (not free), gone + free
    return living, gone
