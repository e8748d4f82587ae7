"""What commits write, as it lies in their rows: records one after the other, and a sealed list of their keys and sizes.

Nothing here reads or writes. Stored bytes are hostile: a list is checked before it is decoded.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Sequence
from typing import Annotated, Final, NamedTuple, TypeAlias, cast

import msgspec

from rehydrate.errors import CheckpointCorruptError, StoreUnavailableError
from rehydrate.model.checkpoint import Commit
from rehydrate.stores.packing import LARGE, Source, recipe_of

from .names import data_of, text_of

_HALF: Final = 1 << 31
#: Where the data of a row must end: a byte later and the server could not count it.
_LAST: Final = _HALF - 1
#: The record sum covers what a list says, too; this finds what was changed before anything is built upon it.
_CHECK_BYTES: Final = 4
#: Bytes of an unpacked list of what a commit did, and how many keys it may write and remove; more is never written, and
#: damage where it is read: a few packed bytes could else become gigabytes of objects.
_CEILING: Final = 32 * 1024 * 1024
_MOST: Final = 1 << 20
#: What lists and small records often have in common: each is compressed with it, small as it is. It only decides how
#: well that goes, and must stay as it is.
_KNOWN: Final = (
    b"\x1falias\x1f\x1fattempt\x1f\x1ffailure\x1f\x1flimit\x1f\x1frest\x1f\x1fmap\x1f\x1fgather\x1f\x1ftimer\x1f\x1funrouted\x1f"
    b"\x1fsignature\x1f\x1finbox\x1f\x1foutbox\x1f\x1finstance\x1f\x1frequest\x1f\x1fjoin\x1f\x1fdone\x1f\x1freceipts\x1f\x1finput\x1f"
    b"\x1foutput\x1f\x1fturn\x1f\x1frun\x1f\x1fpart\x1f\x1fstate\x1f\xa3str\xc4\xa4bool\xc4\x01\xc3\xa5float\xa4dict\x94\xc4"
    b"\xa4list\x94\xc4\x03\xdc\x00\x92\xff\xff\x92@\x93\x00\xcd\x04\x0f\xcd\x08\x07\x00\x00\x01\x00\x00\xcd\x01\xcd\x02\x95\x90\x95\xad"
    b"\x1fpart\x1f\xaa\x1fstate\x1f\xae\x1fcounter\x1f\xa7/\x1fstep\x1f\xa8/\x1fscope\x1f\x95\x0d\x14\x2d\xcd\x04\x15"
    b'RH\x01\x00\x00\x04RH\x01\x00\x00\x00\x02\x91RH\x01\x00\x00\x00"\x94\x96\x01RH\x01\x00\x00\x00"\x93\x91\x93\x00\xa3int'
    b"\xc4\x01\x91\x97\xa5\x00\x91\x01\xa7message\xa0\xa0RH\x01\x00\x00\x00\x09\x98\x90\x01\x01\x00\x00\x00"
)


class _Entries(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """What a commit did: the keys that it removed, and those that it wrote, in the order of their data.

    The first of these, as many as `inline` says, are small and lie in `small`; the others lie in the row's data. A size
    below 0 is that of a record which is made of earlier ones. Bytes without a key belong to nothing any more.
    """

    removes: Annotated[tuple[str, ...], msgspec.Meta(max_length=_MOST)]
    keys: Annotated[tuple[str | None, ...], msgspec.Meta(max_length=_MOST)]
    sizes: Annotated[tuple[int, ...], msgspec.Meta(max_length=_MOST)]
    inline: int
    small: bytes


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Entries).decode
#: Instead of a place in data: the key was removed; the record lies in the list itself.
_REMOVED: Final = -1
INLINE: Final = -2
_SHORT: Final = 512
#: Records with fewer bytes lie in the list of their commit, and are compressed with it, as far as half of it.
_SMALL: Final = 256
_ROOM: Final = _CEILING // 2


class Entry(NamedTuple):
    """What a commit did to a key: it removed it, or wrote bytes, at a place in its data or in the list itself."""

    key: str
    start: int
    size: int
    data: bytes = b""

    @property
    def removed(self) -> bool:
        """Whether it removed the key."""
        return self.start == _REMOVED

    @property
    def used(self) -> int:
        """How many bytes of the row's data are its own."""
        return abs(self.size) if self.start >= 0 else 0


class Layout(NamedTuple):
    """What a commit writes: the list of what it did, sealed and open, and its data."""

    sealed: bytes
    data: bytes
    entries: list[Entry]


class Place(NamedTuple):
    """Where a live record is: in the data of a commit, or in its list, as far as it was read; see `Entry`."""

    key: str
    seq: int
    start: int
    size: int
    data: bytes | None = None


#: What a commit did, by its number.
Did: TypeAlias = tuple[int, Sequence[Entry]]


def laid_out(commit: Commit, store: str, old: Sequence[Source] = ()) -> Layout:
    """Return what a commit writes; `old` are small records that it removes, in the order of writing.

    Raises as `seal_entries`.
    """
    # A key that is both removed and written, or written twice, ends as what was written last.
    puts = {put.key: put.data for put in commit.puts}
    entries = [Entry(key, _REMOVED, 0) for key in dict.fromkeys(commit.removes) if key not in puts]
    stored: list[bytes] = []
    start, room = 0, _ROOM
    for key, data in puts.items():
        if len(data) < _SMALL and len(data) <= room:
            entries.append(Entry(key, INLINE, len(data), data))
            room -= len(data)
            continue
        recipe = recipe_of(old, data) if old and len(data) >= LARGE else None
        stored.append(recipe or data)
        entries.append(Entry(key, start, -len(recipe) if recipe else len(data)))
        start += len(stored[-1])
    return Layout(seal_entries(entries, store), b"".join(stored), entries)


def folded(commits: Iterable[Did]) -> dict[str, Place | None]:
    """Return what commits, oldest first, made of the keys that they touched; `None` where one is removed."""
    found: dict[str, Place | None] = {}
    for seq, entries in commits:
        for key, start, size, data in entries:
            if start >= 0:
                found[key] = Place(key, seq, start, size)
            else:
                found[key] = Place(key, seq, start, size, data) if start == INLINE else None
    return found


def live_row(place: Place) -> tuple[int, int, int, int, bytes, bytes | None]:
    """Return the row of a live record: number of its commit, start, size, checksum, key, and what is small itself."""
    key = place.key.encode()
    return place.seq, place.start, place.size, _crc(place, key), key, place.data


def open_live(row: Sequence[object], what: str) -> Place:
    """Return what a row says of a live record. Raises `CheckpointCorruptError` that names `what`."""
    seq, start, size, crc, key, data = cast("tuple[int, int, int, int, bytes, bytes | None]", tuple(row))
    place = Place(text_of(key, what), seq, start, size, data)
    if _crc(place, key) != crc:
        raise CheckpointCorruptError(what, "where a record is does not fit its checksum")
    if start != INLINE and not (start >= 0 and start + abs(size) < _LAST):
        raise CheckpointCorruptError(what, "a record of it is where none can be")
    return place


def seal_entries(entries: Iterable[Entry], store: str) -> bytes:
    """Return the list of what a commit did, as it is stored; what lies in data is in the order of its places there.

    Raises `StoreUnavailableError` where it would be too large to be read again.
    """
    removes: list[str] = []
    small: list[Entry] = []
    keys: list[str | None] = []
    sizes: list[int] = []
    at = 0
    for entry in entries:
        if entry.start < 0:
            (removes.append(entry.key) if entry.removed else small.append(entry))
            continue
        if entry.start > at:
            keys.append(None)
            sizes.append(entry.start - at)
        keys.append(entry.key)
        sizes.append(entry.size)
        at = entry.start + abs(entry.size)
    listed = _encode(
        _Entries(
            tuple(removes),
            (*(entry.key for entry in small), *keys),
            (*(entry.size for entry in small), *sizes),
            len(small),
            b"".join(entry.data for entry in small),
        )
    )
    if len(listed) > _CEILING or max(len(removes), len(small) + len(keys)) > _MOST:
        raise StoreUnavailableError(
            store,
            f"one commit can list {_MOST} records with {_CEILING >> 20} MB of keys and small data, and this has more",
            "Let a superstep write fewer records, or shorter keys.",
        )
    # To set up a larger window takes longer than a short list itself.
    window, memory = (-10, 3) if len(listed) < _SHORT else (-zlib.MAX_WBITS, 8)
    packing = zlib.compressobj(6, zlib.DEFLATED, window, memory, zlib.Z_DEFAULT_STRATEGY, _KNOWN)
    packed = packing.compress(listed) + packing.flush()
    return hashlib.sha256(packed).digest()[:_CHECK_BYTES] + packed


def open_entries(data: object, what: str) -> list[Entry]:
    """Return what a commit did. Raises `CheckpointCorruptError` that names `what`."""
    sealed = data_of(data, what)
    packed = sealed[_CHECK_BYTES:]
    if hashlib.sha256(packed).digest()[:_CHECK_BYTES] != sealed[:_CHECK_BYTES]:
        raise CheckpointCorruptError(what, "the checksum of its list of records does not fit")
    try:
        listed = _decode(zlib.decompressobj(-zlib.MAX_WBITS, zdict=_KNOWN).decompress(packed, _CEILING))
    except (zlib.error, msgspec.MsgspecError) as error:
        raise CheckpointCorruptError(what, str(error)) from None
    sizes, count, small = listed.sizes, listed.inline, listed.small
    if len(listed.keys) != len(sizes) or not 0 <= count <= len(sizes):
        raise CheckpointCorruptError(what, "its list of records has no size for each")
    found = [Entry(key, _REMOVED, 0) for key in listed.removes]
    start = end = 0
    for index, (key, size) in enumerate(zip(listed.keys, sizes, strict=True)):
        if index < count:
            if key is None or size < 0:
                raise CheckpointCorruptError(what, "its list of records has other bytes than it says")
            found.append(Entry(key, INLINE, size, small[end : end + size]))
            end += size
        else:
            if key is not None:
                found.append(Entry(key, start, size))
            start += abs(size)
    if end != len(small) or start >= _LAST:
        raise CheckpointCorruptError(what, "its list of records has other bytes than it says")
    if len({entry.key for entry in found}) < len(found):
        raise CheckpointCorruptError(what, "its list of records has a key twice")
    return found


def _crc(place: Place, key: bytes) -> int:
    found = zlib.crc32(place.data or b"", zlib.crc32(b"%d %d %d " % place[1:4] + key))
    # A number that PostgreSQL's `integer` can hold.
    return found - (1 << 32) if found >= _HALF else found
