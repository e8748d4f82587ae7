"""The name of a store as a person writes it on a command line: a path, or a URL.

What kind of store a path is, its file or its ending says; nothing is guessed. It opens nothing and knows no store.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import quote

from rehydrate.errors import WrongCallError

from .urls import shown_url

#: Endings of a path that stand for a SQLite file that is not there yet.
_SQLITE_ENDINGS: Final = (".db", ".sqlite", ".sqlite3")


def url_of_named(name: str, *, create: bool) -> str:
    """Return the URL of a store; `create`: it need not be there. Raises `WrongCallError`."""
    if "://" in name or name.startswith(("file:", "memory:")):
        return name
    if not name:
        raise WrongCallError(
            "the name of the store is empty.", "Name a path or a URL, or set REHYDRATE_STORE in the environment."
        )
    path = Path(name)
    if path.is_dir():
        return f"file:{quote(str(path))}"
    if path.exists():
        return f"sqlite:///{quote(str(path))}"
    if not create:
        raise WrongCallError(f"there is no store {shown_url(name)!r}.", "Look at the path, or begin with a run in it.")
    if name.endswith("/"):
        return f"file:{quote(str(path))}"
    if path.suffix in _SQLITE_ENDINGS:
        return f"sqlite:///{quote(str(path))}"
    name = shown_url(name)
    raise WrongCallError(
        f"{name!r} is not there yet, and its name does not say what kind of store it is to be.",
        f"Write {name + '.db'!r} for a SQLite file, {name + '/'!r} for a folder of plain files, or a URL.",
    )
