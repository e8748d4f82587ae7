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
_HASH: Final = re.compile(r"[0-9a-f]{40}")
_OFFER: Final = re.compile(r"([0-9]{10,})-([0-9a-f]{16})\.json")
_COMMITS: Final = re.compile(r"commits-[1-9][0-9]*")
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
    return _by_hash(_hash(texts[0] if len(texts) == 1 else "".join(f"{len(text)}:{text}" for text in texts)))


def hashed_name(name: str) -> tuple[str, str] | None:
    """Return what `hashed` gives for the one text that became a name which has only its beginning."""
    _, found, digest = name.rpartition(_CUT)
    return _by_hash(digest) if found and _HASH.fullmatch(digest) else None


def commits_name(number: int) -> str:
    """Return the folder, inside a run's, of all its commits: a new one each time that some are forgotten."""
    return f"commits-{number}"


def is_commits(name: str) -> bool:
    """Say whether a folder inside a run's can be the one of its commits."""
    return _COMMITS.fullmatch(name) is not None


def commit_folder(seq: int) -> str:
    """Return the folder, inside that, of the commit with this number."""
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


def offer_name(number: int, key: str) -> str:
    """Return the name of the file of an offer."""
    return f"{number:010d}-{_hash(key)[:16]}.json"


def offer_number(name: str) -> int:
    """Return the number of the offer in a file; 0 for another file."""
    match = _OFFER.fullmatch(name)
    return int(match[1]) if match else 0


def offered_key(name: str, key: str) -> bool:
    """Say whether the offer in a file may have this key."""
    match = _OFFER.fullmatch(name)
    return match is not None and match[2] == _hash(key)[:16]


def _by_hash(digest: str) -> tuple[str, str]:
    return digest[:2], f"{digest[2:]}.json"


def _in_bytes(char: str) -> str:
    return "".join(f"%{byte:02x}" for byte in char.encode())


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:40]
