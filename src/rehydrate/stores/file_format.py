"""The files of the file store: lines of JSON that end with a checksum, and in a commit the records behind them.

Stored bytes are hostile: a line is checked before it is decoded and decodes to exactly one flat class, and a file
has exactly the length that its first line says.
"""

from __future__ import annotations

import hashlib
import math
from typing import Final, Literal, TypeAlias, TypeVar, cast

import msgspec

from rehydrate.codecs.bounds import is_deep_json
from rehydrate.errors import CheckpointCorruptError, CheckpointFormatError
from rehydrate.model.checkpoint import FORMAT, Header, Offer, RequestRow, TurnRow

from .standing import Standing

#: Version of the layout of the folder and its files; a reader refuses a higher one.
FILE_FORMAT: Final = 1
_CHECK: Final = 16
_BEFORE: Final = b',"check":"'
_AFTER: Final = b'"}\n'
_TAIL: Final = len(_BEFORE) + _CHECK + len(_AFTER)

_Line = TypeVar("_Line", bound=msgspec.Struct)


class MarkerLine(msgspec.Struct, frozen=True, gc=False):
    """What says that a folder is a store."""

    rehydrate: Literal["store"]
    format: int


#: What is no number in JSON.
_NotFinite: TypeAlias = Literal["nan", "inf", "-inf"]


class Number(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A number that JSON may not hold as one."""

    text: _NotFinite


class HeadLine(msgspec.Struct, frozen=True, gc=False):
    """How a run stands, and which commit is its head; `lease_end` is in seconds since the epoch.

    `commits` names the folder that its commits are in. `since` counts the entries of commits since the newest one with
    a table of what is live.
    """

    rehydrate: Literal["head"]
    format: int
    commits: str
    run_id: str
    workflow: str
    checkpoint_id: str
    seq: int
    token: str
    epoch: int
    owner: str | None
    lease_end: float | Number
    since: int

    def standing(self) -> Standing:
        """Return it as all stores have it."""
        return Standing(
            run_id=self.run_id,
            workflow=self.workflow,
            checkpoint_id=self.checkpoint_id,
            seq=self.seq,
            epoch=self.epoch,
            owner=self.owner,
            lease_end=as_float(self.lease_end),
        )


class PointerLine(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Where the newest row under an id is: in commit `seq` of a run, if that commit has this token.

    It is written before its commit, so it may name one that never came; then `before` holds.
    """

    rehydrate: Literal["pointer"]
    format: int
    names: tuple[str, ...]
    run_id: str
    seq: int
    token: str
    request: RequestRow | None = None
    turn: TurnRow | None = None
    before: PointerLine | None = None


class CommitLine(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The first line of a commit: its checkpoint, and the lengths of what follows in the file.

    `previous` is the number of the commit before it, `base` that of the newest one, up to itself, with a table of what
    is live. `header` has the fields of a `Header`, and `created` that field where JSON cannot hold it.
    """

    rehydrate: Literal["commit"]
    format: int
    token: str
    previous: int | None
    base: int
    header: dict[str, object]
    contents: int
    data: int
    live: int = 0
    created: Number | None = None


class Piece(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A record in a commit: its key, its length, and the beginning of its digest."""

    key: str
    size: int
    check: str


class EventPiece(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """An event in a commit: its number, length and checksum."""

    number: int
    size: int
    check: str


class Contents(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The second line of a commit: what it wrote, in the order in which the bytes follow, events last."""

    puts: tuple[Piece, ...]
    removes: tuple[str, ...]
    requests: tuple[RequestRow, ...] = ()
    turns: tuple[TurnRow, ...] = ()
    events: tuple[EventPiece, ...] = ()
    taken: tuple[int, ...] = ()


class LivePiece(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Where a live record is: the number of its commit, and its place among that commit's data."""

    seq: int
    start: int
    size: int
    check: str


class LiveTable(msgspec.Struct, frozen=True, gc=False):
    """The last line of some commits: every record that is live."""

    live: dict[str, LivePiece]


class OfferLine(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Something in a run's inbox; taken where `offer` says so, or where the run has the commit `by` with `token`."""

    rehydrate: Literal["offer"]
    format: int
    offer: Offer
    by: int | None = None
    token: str = ""


class TagsLine(msgspec.Struct, frozen=True, gc=False):
    """The names of a run's checkpoints, with their ids."""

    rehydrate: Literal["tags"]
    format: int
    run_id: str
    tags: dict[str, str]


class _AnyLine(msgspec.Struct):
    """What the lines of every version have."""

    format: int


class _AnyHeader(msgspec.Struct):
    header: _AnyLine


def sealed_line(line: msgspec.Struct) -> bytes:
    """Return a structure as one line of JSON with a checksum at its end."""
    body = msgspec.json.encode(line)[:-1]
    return body + _BEFORE + checksum(body).encode() + _AFTER


def opened_line(data: bytes, kind: type[_Line], what: str) -> _Line:
    """Return what a line holds.

    Raises `CheckpointFormatError` for one of a newer version, else `CheckpointCorruptError` that names `what`.
    """
    body = _checked(data, what)
    try:
        if kind in _VERSIONED:
            _check_format(body, what)
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise CheckpointCorruptError(what, str(error)) from None


def header_fields(header: Header) -> tuple[dict[str, object], Number | None]:
    """Return a header as JSON can hold it, under the names of its fields, and its time where JSON cannot."""
    fields: dict[str, object] = msgspec.structs.asdict(header)
    if math.isfinite(header.created):
        return fields, None
    return {**fields, "created": 0.0}, Number(cast("_NotFinite", str(header.created)))


def header_of(line: CommitLine, what: str) -> Header:
    """Return the header that a first line holds."""
    try:
        header = Header(**msgspec.structs.asdict(msgspec.convert(line.header, _HeaderObject)))
    except msgspec.ValidationError as error:
        raise CheckpointCorruptError(what, str(error)) from None
    if line.created is None:
        return header
    return msgspec.structs.replace(header, created=float(line.created.text))


def checksum(data: bytes) -> str:
    """Return what shows that bytes are as they were."""
    return hashlib.sha256(data).hexdigest()[:_CHECK]


def record_check(digest: int) -> str:
    """Return the same for a record, from its digest, which has its key in it."""
    return digest.to_bytes(32, "big").hex()[:_CHECK]


def as_number(value: float) -> float | Number:
    """Return a number as JSON can hold it."""
    return value if math.isfinite(value) else Number(cast("_NotFinite", str(value)))


def as_float(value: float | Number) -> float:
    """Return the number that was stored."""
    return float(value.text) if isinstance(value, Number) else value


def _checked(data: bytes, what: str) -> bytes:
    body, tail = data[:-_TAIL], data[-_TAIL:]
    if len(data) <= _TAIL or tail != _BEFORE + checksum(body).encode() + _AFTER:
        raise CheckpointCorruptError(what, "its checksum does not fit, or it is cut off")
    whole = body + b"}"
    if is_deep_json(whole):
        raise CheckpointCorruptError(what, "it is nested deeper than any line that is written")
    return whole


def _check_format(body: bytes, what: str) -> None:
    found = msgspec.json.decode(body, type=_AnyLine).format
    if found > FILE_FORMAT:
        raise CheckpointFormatError(what, found, FILE_FORMAT)
    if body.startswith(b'{"rehydrate":"commit"'):
        found = msgspec.json.decode(body, type=_AnyHeader).header.format
        if found > FORMAT:
            raise CheckpointFormatError(what, found, FORMAT)


_VERSIONED: Final[frozenset[type[msgspec.Struct]]] = frozenset(
    {MarkerLine, HeadLine, PointerLine, CommitLine, OfferLine, TagsLine}
)
#: A header under the names of its fields; the store's own form is a list of them.
_HeaderObject: Final = msgspec.defstruct(
    "_HeaderObject",
    [
        (field.name, field.type) if field.default is msgspec.NODEFAULT else (field.name, field.type, field.default)
        for field in msgspec.structs.fields(Header)
    ],
    kw_only=True,
    forbid_unknown_fields=True,
)
