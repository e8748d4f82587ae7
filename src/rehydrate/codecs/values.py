"""Values to bytes and back: sealing and opening, for the types of one registry.

Exact in value and type, or refused. Reads no names outside of the registry and nothing but the bytes it is given.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, cast

import msgspec

from rehydrate.errors import CheckpointCorruptError, WorkflowCheckpointException
from rehydrate.errors.codec import NotStorableError, TypeNameConflictError, UnknownTypeError, UnresolvedTypeError
from rehydrate.model.sealed import Sealed

from .bounds import check_bounds
from .format import MAX_BYTES, MAX_DEPTH, array_header
from .layouts import Refusal
from .marks import mark_of, marked_as, marked_classes, stored_name
from .reader import DAMAGE, make_decode
from .refusal import refusal_of
from .registry import BUILT_IN, LEAVES, TypeRegistry
from .writer import make_table

_encode: Final = msgspec.msgpack.Encoder().encode
#: What the quick way raises on ints beyond 64 bits and lone surrogates.
_UNCOMMON: Final = (OverflowError, UnicodeEncodeError)


#: So many codecs with further types are kept.
_REMEMBERED: Final = 256


class ValueCodec:
    """Seals and opens values of the types of one registry; threads may share one.

    A class marked with `@checkpointable` that no hint led to joins when a value of it is sealed, or its name is read.
    """

    def __init__(self, registry: TypeRegistry, *, takes_all: bool = False) -> None:
        #: Classes that joined without a mark, by name; `None` where none may.
        self._joined: dict[str, type] | None = {} if takes_all else None
        self._extended: dict[int, tuple[tuple[object, ...], ValueCodec]] = {}
        self._learn(registry)

    @property
    def copies(self) -> ValueCodec:
        """The codec for copies that never leave this process: it also takes classes that were never registered."""
        found = self.__dict__.get("_copies")
        # Threads that come at once get the same one: each has to open what another has sealed.
        return found or self.__dict__.setdefault("_copies", ValueCodec(self.registry, takes_all=True))

    def _learn(self, registry: TypeRegistry) -> None:
        self.registry = registry
        self._names = {**BUILT_IN, **{entry.type: entry.name for entry in registry}}
        self._layouts = {entry.type: entry.layout for entry in registry}
        self._quick = make_table(registry, careful=False)
        self._careful = make_table(registry, careful=True)
        self._decode = make_decode(registry)

    def extended(self, types: tuple[object, ...]) -> ValueCodec:
        """Return a codec that knows further types and type hints, this one where it knows them.

        Raises `TypeNameConflictError` and `UnresolvedTypeError`.
        """
        found = self._extended.get(id(types))  # hints need not be hashable, and whoever asks often has them at hand
        if found is None:
            codec = self if self.registry.knows(types) else ValueCodec(self.registry.joined_by(*types))
            if len(self._extended) >= _REMEMBERED:
                self._extended = {}
            found = self._extended[id(types)] = types, codec
        return found[1]

    def seal(self, value: object) -> Sealed:
        """Return a value as its type's name and bytes; raises `NotStorableError`."""
        kind = type(value)
        try:
            name = self._names[kind]
            data = _encode(value if kind in LEAVES else self._quick[kind](value, 0))
        except (KeyError, Refusal, RecursionError, *_UNCOMMON) as error:
            if self._admits(error):
                return self.seal(value)
            data = self._careful_bytes(value)
            name = self._names[kind]
        if len(data) > MAX_BYTES:
            raise NotStorableError(name, name, f"it takes {len(data)} bytes, and {MAX_BYTES} are allowed")
        return Sealed(name, data)

    def open(self, sealed: Sealed) -> object:
        """Return a fresh value, equal to the sealed one and of the same type.

        Raises `CheckpointCorruptError`, `CheckpointFormatError`, `UnknownTypeError`, `TypeChangedError` or
        `UnknownZoneError`.
        """
        data = sealed.data
        try:
            if len(data) > MAX_DEPTH:
                check_bounds(data)
            value = self._decode(data)
        except UnknownTypeError as error:
            if not self._finds(error.name, sealed):
                raise
            return self.open(sealed)
        except CheckpointCorruptError as error:
            raise CheckpointCorruptError(_named(sealed.type), error.problem) from error
        except DAMAGE as error:
            raise CheckpointCorruptError(_named(sealed.type), str(error) or type(error).__name__) from error
        if self._names.get(type(value)) != sealed.type:
            raise self._mistaken(value, sealed.type)
        return value

    def seal_items(self, values: Sequence[object]) -> tuple[bytes, int]:
        """Return the bytes of the elements, one after the other, and their number; raises `NotStorableError`."""
        items = [*values]
        return self.seal(items).data[len(array_header(len(items))) :], len(items)

    def open_items(self, chunks: Iterable[bytes], count: int) -> list[object]:
        """Return the elements whose bytes stand in the chunks; `count` is their number. Raises as `open`."""
        if not 0 <= count < 1 << 32:
            raise CheckpointCorruptError(_named("list"), f"it says that it has {count} elements")
        return cast("list[object]", self.open(Sealed("list", array_header(count) + b"".join(chunks))))

    def _admits(self, error: Exception) -> bool:
        """Let a class join whose lack of registration is the error, if it is marked or all may."""
        cls: object = error.args[0] if isinstance(error, KeyError) and error.args else None
        if not isinstance(cls, type) or cls in self._names or (mark_of(cls) is None and self._joined is None):
            return False
        registry = self.registry.joined_by(cls)
        name = stored_name(cls)
        if name not in registry:
            return False
        if self._joined is not None:
            self._joined[name] = cls
        self._learn(registry)
        return True

    def _finds(self, name: str, sealed: Sealed) -> bool:
        """Let the class of a stored name join: one that joined before, a marked one, or one inside of a marked one."""
        known = self._joined.get(name) if self._joined else None
        found = {known} if known is not None else set(marked_as(name) or self._in_marked(name, sealed))
        if len(found) != 1 or found <= self._names.keys():
            return False
        self._learn(self.registry.joined_by(*found))
        return True

    def _in_marked(self, name: str, sealed: Sealed) -> Iterator[type]:
        """Give the classes of a stored name to which fields of marked classes lead that are in the value, too.

        What is inside is read first, so the marked class itself may not have been come upon.
        """
        for cls in marked_classes():
            outer = stored_name(cls)
            if cls in self._names or (outer != sealed.type and outer.encode() not in sealed.data):
                continue
            with contextlib.suppress(TypeNameConflictError, UnresolvedTypeError):
                registry = self.registry.joined_by(cls)
                if name in registry:
                    yield registry.type_of(name)

    def _careful_bytes(self, value: object) -> bytes:
        try:
            return _encode(self._careful[type(value)](value, 0))
        except (KeyError, Refusal, RecursionError) as error:
            raise refusal_of(value, self._layouts) from error

    def _mistaken(self, value: object, name: str) -> WorkflowCheckpointException:
        if name not in self.registry:
            return UnknownTypeError(name)
        found = self._names.get(type(value), type(value).__name__)
        return CheckpointCorruptError(_named(name), f"its bytes hold a {found}")


def _named(name: str) -> str:
    return f"a stored value of type {name!r:.200}"
