"""What an error of SQLite means to a caller: a damaged file, or a store that cannot be used now.

Every surprise becomes one of these two, with the file named; none is swallowed.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from rehydrate.errors import (
    CheckpointCorruptError,
    RehydrateError,
    StoreBrokenError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
    WrongStoreError,
)

#: Primary result codes of SQLite (its documentation, "Result and Error Codes") that say: not now, or not here.
_UNAVAILABLE: Final = {
    3: "Give this process the right to read and write the file and its folder.",
    5: "Close the other program that has the file locked, then call again.",
    6: "Close the other program that has the file locked, then call again.",
    7: "Free memory, then call again.",
    8: "Make the file and its folder writable.",
    10: "Check the disk, then make a new store object: it reads what is really there. Nothing is written until then.",
    13: "Free space on the disk, then call again.",
    14: "Check that the folder exists and can be written.",
    18: "Split the value; SQLite cannot hold one of this size.",
    23: "Give this process the right to use the file.",
    26: "Check the path. If a store was here, restore it from a backup.",
}

#: The errors of ours that are their own; the others of these are `StoreUnavailableError` itself.
_OWN: Final = {8: StoreReadOnlyError, 10: StoreBrokenError, 13: StoreFullError, 26: WrongStoreError}
#: What SQLite says of a file that may never have been one of its own, and of one that it cannot read for the disk too.
_TRUER: Final = {
    "file is not a database": "the file is no SQLite database",
    "database disk image is malformed": "database disk image is malformed, or the disk could not be read",
}
#: After these the connection is as good as before: busy, locked, full, constraint.
_HARMLESS: Final = {5, 6, 13, 19}


def spoils_connection(error: sqlite3.Error) -> bool:
    """Say whether a connection should not be used again after an error."""
    code = getattr(error, "sqlite_errorcode", None)
    return not isinstance(code, int) or code & 0xFF not in _HARMLESS


def translate(error: sqlite3.Error | UnicodeDecodeError, store: str) -> RehydrateError:
    """Return the error of ours that says what an error of SQLite means; one of damaged text is not even text."""
    code = getattr(error, "sqlite_errorcode", None)
    fix = _UNAVAILABLE.get(code & 0xFF) if isinstance(code, int) else None
    if fix is not None:
        kind = _OWN.get(code & 0xFF, StoreUnavailableError) if isinstance(code, int) else StoreUnavailableError
        return kind(store, _TRUER.get(str(error), str(error)), fix)
    return CheckpointCorruptError(f"store {store}", _TRUER.get(str(error), str(error)))
