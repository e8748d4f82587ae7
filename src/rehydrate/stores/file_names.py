"""Names of files: how ids become names in a folder, and back where that can be.

An id is data. It never becomes a path as it is: a name holds small letters, digits, `.`, `_`, `-` and `%`, does not
begin with a dot, and is the same on file systems that do not tell upper from lower case.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

#: Commits of a run that share a folder.
_SHARD: Final = 256
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789._-")
#: Characters of the longest name; most file systems allow 255.
_LONGEST: Final = 200
#: What separates the beginning of a long id from its hash; no other name has two of them in a row.
_CUT: Final = "%%"
_NAME: Final = re.compile(r"(?:[a-z0-9._-]|%[0-9a-f]{2})*%?")
_COMMIT: Final = re.compile(r"([0-9]{10,})\.commit")
_FOLDER: Final = re.compile(r"[0-9]{8,}")


def escaped(text: str) -> str:
    """Return a text as the name of a file; a long one keeps its beginning and gets its hash."""
    if not text:
        return "%"
    name = "".join(char if char in _PLAIN else _in_bytes(char) for char in text)
    if name.startswith("."):
        name = f"%2e{name[1:]}"
    if len(name) <= _LONGEST:
        return name
    return f"{name[: _LONGEST - 42].rstrip('%')}{_CUT}{_hash(text)}"


def unescaped(name: str) -> str | None:
    """Return the text that became a name; `None` where only its beginning is in it, or where this is no name."""
    if name == "%":
        return ""
    if _CUT in name or _NAME.fullmatch(name) is None or name.endswith("%"):
        return None
    parts = name.split("%")
    data = parts[0].encode() + b"".join(bytes([int(part[:2], 16)]) + part[2:].encode() for part in parts[1:])
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def hashed(*texts: str) -> tuple[str, str]:
    """Return the folder and the name of a file by the hash of texts, for what is only looked up."""
    whole = "".join(f"{len(text)}:{text}" for text in texts)
    name = _hash(whole)
    return name[:2], f"{name[2:]}.json"


def commit_folder(seq: int) -> str:
    """Return the folder, inside a run's, of the commit with this number."""
    return f"{seq // _SHARD:08d}"


def commit_name(seq: int) -> str:
    """Return the name of the file of the commit with this number."""
    return f"{seq:010d}.commit"


def commit_number(name: str) -> int | None:
    """Return the number of the commit in a file; `None` for another file."""
    match = _COMMIT.fullmatch(name)
    return int(match[1]) if match else None


def is_commit_folder(name: str) -> bool:
    """Say whether a folder inside a run's has commits in it."""
    return _FOLDER.fullmatch(name) is not None


def _in_bytes(char: str) -> str:
    return "".join(f"%{byte:02x}" for byte in char.encode())


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:40]
