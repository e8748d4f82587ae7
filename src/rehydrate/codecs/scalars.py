"""Built-in values that MessagePack has no exact form for, each as an extension without further values in it.

Exact in value and type: zones, offsets and their names, `fold`, flavours of paths. Knows no user types.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from pathlib import PosixPath, PurePath, PurePosixPath, PureWindowsPath, WindowsPath
from typing import Final, TypeAlias
from uuid import UUID, SafeUUID
from zoneinfo import ZoneInfo

import msgspec

from rehydrate.errors.codec import TypeChangedError

from . import format as codes
from .layouts import Refusal
from .zones import zone_of

Ext: TypeAlias = msgspec.msgpack.Ext
#: How a zone is written: microseconds east of UTC, or a key of the zone database; `None` for no zone.
Zone: TypeAlias = int | str | None


@dataclass(frozen=True, slots=True)
class Scalar:
    """A built-in type, its name and code, and how a value becomes a payload and is read from one."""

    type: type
    name: str
    code: int
    payload: Callable[..., bytes]
    read: Callable[[bytes], object]


_MICROSECOND: Final = timedelta(microseconds=1)
_SAFE: Final = (SafeUUID.unknown, SafeUUID.safe, SafeUUID.unsafe)
_PATHS: Final = (PurePosixPath, PosixPath, PureWindowsPath, WindowsPath)
_PAIR: Final = struct.Struct(">dd")

_encode: Final = msgspec.msgpack.Encoder().encode
_read_moment: Final = msgspec.msgpack.Decoder(tuple[str, int, Zone, str | None]).decode
_read_zone: Final = msgspec.msgpack.Decoder(tuple[int, str | None]).decode
_read_ints: Final = msgspec.msgpack.Decoder(tuple[int, int, int]).decode
_read_limits: Final = msgspec.msgpack.Decoder(tuple[bytes, bytes, bytes]).decode


def int_payload(value: int) -> bytes:
    """Return an int of any size in two's complement, big end first."""
    return value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)


def read_int(payload: bytes) -> int:
    """Return the int of two's complement bytes."""
    return int.from_bytes(payload, "big", signed=True)


def text_payload(value: str) -> bytes:
    """Return a text as UTF-8 in which lone surrogates stand, too."""
    return value.encode("utf-8", "surrogatepass")


def read_text(payload: bytes) -> str:
    """Return the text of UTF-8 in which lone surrogates may stand."""
    return payload.decode("utf-8", "surrogatepass")


def _zone(zone: tzinfo | None) -> tuple[Zone, str | None]:
    if zone is None:
        return None, None
    if type(zone) is timezone:
        offset = zone.utcoffset(None)
        name = zone.tzname(None)
        return offset // _MICROSECOND, None if name == timezone(offset).tzname(None) else name
    if type(zone) is ZoneInfo and zone.key:
        return zone.key, None
    raise Refusal(f"its zone is a {type(zone).__name__}; use datetime.timezone or zoneinfo.ZoneInfo")


def _fixed(offset: int, name: str | None) -> timezone:
    if name is None:
        return timezone(offset * _MICROSECOND) if offset else UTC
    return timezone(offset * _MICROSECOND, name)


def _read_tzinfo(zone: Zone, name: str | None) -> tzinfo | None:
    if zone is None:
        return None
    return _fixed(zone, name) if isinstance(zone, int) else zone_of(zone)


def _moment_payload(value: datetime | time) -> bytes:
    return _encode((value.replace(tzinfo=None).isoformat(), value.fold, *_zone(value.tzinfo)))


def _read_datetime(payload: bytes) -> datetime:
    text, fold, zone, name = _read_moment(payload)
    return datetime.fromisoformat(text).replace(tzinfo=_read_tzinfo(zone, name), fold=fold)


def _read_time(payload: bytes) -> time:
    text, fold, zone, name = _read_moment(payload)
    return time.fromisoformat(text).replace(tzinfo=_read_tzinfo(zone, name), fold=fold)


def _zone_key(value: ZoneInfo) -> bytes:
    return str(_zone(value)[0]).encode()


def _timezone_payload(value: timezone) -> bytes:
    return _encode(_zone(value))


def _date_payload(value: date) -> bytes:
    return value.isoformat().encode()


def _read_date(payload: bytes) -> date:
    return date.fromisoformat(payload.decode())


def _timedelta_payload(value: timedelta) -> bytes:
    return _encode((value.days, value.seconds, value.microseconds))


def _uuid_payload(value: UUID) -> bytes:
    safe = _SAFE.index(value.is_safe)
    return value.bytes + safe.to_bytes(1, "big") if safe else value.bytes


def _read_uuid(payload: bytes) -> UUID:
    return UUID(bytes=payload[:16], is_safe=_SAFE[payload[16]] if len(payload) == 17 else SafeUUID.unknown)


def _path_payload(index: int) -> Callable[[PurePath], bytes]:
    flavour = index.to_bytes(1, "big")

    def payload(value: PurePath) -> bytes:
        text = str(value)
        if type(value)(text) != value:  # some odd network paths of Windows
            raise Refusal("its text is that of another path")
        return flavour + text_payload(text)

    return payload


def _read_path(payload: bytes) -> object:
    cls = _PATHS[payload[0]]
    try:
        return cls(read_text(payload[1:]))
    except NotImplementedError as error:
        raise TypeChangedError(
            cls.__name__, "it is a path of another operating system; store PurePath there"
        ) from error


def _range_payload(value: range) -> bytes:
    return _encode((int_payload(value.start), int_payload(value.stop), int_payload(value.step)))


def _decimal_payload(value: Decimal) -> bytes:
    return str(value).encode()


def _complex_payload(value: complex) -> bytes:
    return _PAIR.pack(value.real, value.imag)


SCALARS: Final[tuple[Scalar, ...]] = (
    Scalar(bytearray, "bytearray", codes.BYTEARRAY, bytes, bytearray),
    Scalar(datetime, "datetime", codes.DATETIME, _moment_payload, _read_datetime),
    Scalar(date, "date", codes.DATE, _date_payload, _read_date),
    Scalar(time, "time", codes.TIME, _moment_payload, _read_time),
    Scalar(timedelta, "timedelta", codes.TIMEDELTA, _timedelta_payload, lambda data: timedelta(*_read_ints(data))),
    Scalar(timezone, "timezone", codes.TIMEZONE, _timezone_payload, lambda data: _fixed(*_read_zone(data))),
    Scalar(ZoneInfo, "ZoneInfo", codes.ZONE, _zone_key, lambda data: zone_of(data.decode())),
    Scalar(UUID, "UUID", codes.UUID, _uuid_payload, _read_uuid),
    Scalar(Decimal, "Decimal", codes.DECIMAL, _decimal_payload, lambda data: Decimal(data.decode())),
    *(Scalar(cls, cls.__name__, codes.PATH, _path_payload(index), _read_path) for index, cls in enumerate(_PATHS)),
    Scalar(complex, "complex", codes.COMPLEX, _complex_payload, lambda data: complex(*_PAIR.unpack(data))),
    Scalar(range, "range", codes.RANGE, _range_payload, lambda data: range(*map(read_int, _read_limits(data)))),
)  # fmt: skip

#: Readers of payloads that hold no further values.
READERS: Final[dict[int, Callable[[bytes], object]]] = {
    codes.INT: read_int,
    codes.TEXT: read_text,
    **{scalar.code: scalar.read for scalar in SCALARS},
}


def to_extension(scalar: Scalar) -> Callable[[object, int], Ext]:
    """Return the function that writes the values of a built-in type."""
    code, payload = scalar.code, scalar.payload
    return lambda value, _depth: Ext(code, payload(value))


def write_int(value: int, _depth: int) -> object:
    """Return an int as it is, or as an extension where it has more than 64 bits."""
    return value if -(1 << 63) <= value < 1 << 64 else Ext(codes.INT, int_payload(value))


def write_text(value: str, _depth: int) -> object:
    """Return a text as it is, or as an extension where it has lone surrogates."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return Ext(codes.TEXT, text_payload(value))
    return value
