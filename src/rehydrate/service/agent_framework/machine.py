"""A stack machine for the bytes in which Python keeps objects, which makes inert values and calls nothing.

It knows the instructions that protocols 4 and 5 write, and no others. Whatever the bytes name is checked against the
closed list; what they say to call becomes a description of the call, or is refused.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final, TypeAlias

from .inert import MAX_NUMBER, MAX_STEPS, Group, GroupKind, Made, Named, Refused, Scalar
from .listed import Listed
from .made import called, filled

_MARK: Final = Group("list")


class Machine:
    """Reads one value. Everything it holds is bounded by the number of its steps."""

    def __init__(self, data: bytes, listed: Listed, steps: list[int]) -> None:
        self._data = data
        self._at = 0
        self._listed = listed
        #: What is left of the steps, shared by all values of a file.
        self._steps = steps
        self._stack: list[object] = []
        self._memo: list[object] = []

    def run(self) -> object:
        """Return the value. Raises `Refused`."""
        if self._data[:1] != b"\x80" or self._data[1:2] not in {b"\x04", b"\x05"}:
            raise Refused("a stored object is not of protocol 4 or 5")
        self._at = 2
        while True:
            self._steps[0] -= 1
            if self._steps[0] < 0:
                raise Refused(f"it takes more than {MAX_STEPS} steps to read")
            code = self._take(1)[0]
            if code == _STOP:
                break
            step = _STEPS.get(code)
            if step is None:
                raise Refused(f"a stored object has the instruction {code:#04x}, which is not read")
            step(self)
        value = self._pop()
        if self._stack or self._at != len(self._data):
            raise Refused("there is more behind a stored object")
        return value

    def _take(self, count: int) -> bytes:
        end = self._at + count
        if end > len(self._data):
            raise Refused("a stored object ends too early")
        taken = self._data[self._at : end]
        self._at = end
        return taken

    def _number(self, size: int) -> int:
        return int.from_bytes(self._take(size), "little")

    def push(self, value: object) -> None:
        """Put a value on the stack."""
        self._stack.append(value)

    def _pop(self) -> object:
        if not self._stack or self._stack[-1] is _MARK:
            raise Refused("a stored object takes what is not there")
        return self._stack.pop()

    def _marked(self) -> list[object]:
        """Take what lies above the newest mark, and the mark."""
        at = len(self._stack) - 1
        while at >= 0 and self._stack[at] is not _MARK:
            at -= 1
        if at < 0:
            raise Refused("a stored object takes what is not there")
        taken = self._stack[at + 1 :]
        del self._stack[at:]
        return taken

    def number(self, size: int) -> None:
        """Read a small number."""
        self.push(self._number(size))

    def _group(self, *kinds: GroupKind) -> Group:
        top = self._stack[-1] if self._stack else None
        if not isinstance(top, Group) or top is _MARK or top.kind not in kinds:
            raise Refused(f"a stored object adds to what is no {kinds[0]}")
        return top

    def proto(self) -> None:
        """Refuse a second header."""
        raise Refused("a stored object begins twice")

    def frame(self) -> None:
        """Step over the length of a frame; lengths are checked where something is taken."""
        self._take(8)

    def text(self, size: int) -> None:
        """Read a text."""
        self.push(self._take(self._number(size)).decode("utf-8", "surrogatepass"))

    def raw(self, size: int) -> None:
        """Read bytes."""
        self.push(self._take(self._number(size)))

    def mutable_bytes(self) -> None:
        """Read a bytearray."""
        self.push(Scalar("bytearray", [self._take(self._number(8))]))

    def long(self, size: int) -> None:
        """Read a whole number of any length."""
        length = self._number(size)
        if length > MAX_NUMBER:
            raise Refused(f"a number has {length} bytes, and {MAX_NUMBER} are read")
        self.push(int.from_bytes(self._take(length), "little", signed=True))

    def int4(self) -> None:
        """Read a number of four bytes with a sign."""
        self.push(int.from_bytes(self._take(4), "little", signed=True))

    def float8(self) -> None:
        """Read a float."""
        self.push(struct.unpack(">d", self._take(8))[0])

    def tuple_of(self, count: int) -> None:
        """Make a tuple of the topmost values."""
        self.push(Group("tuple", [self._pop() for _ in range(count)][::-1]))

    def marked_group(self, kind: GroupKind) -> None:
        """Make a container of what lies above the mark."""
        self.push(Group(kind, self._marked()))

    def add(self, kind: GroupKind, *, many: bool) -> None:
        """Put values into the container below them."""
        values = self._marked() if many else [self._pop() for _ in range(2 if kind == "dict" else 1)][::-1]
        if kind == "dict" and len(values) % 2:
            raise Refused("a stored dict has a key without a value")
        self._group(kind, "deque" if kind == "list" else kind).items.extend(values)

    def memoize(self) -> None:
        """Remember the topmost value by the next number."""
        value = self._pop()
        self._memo.append(value)
        self.push(value)

    def get(self, size: int) -> None:
        """Put a remembered value on the stack again."""
        number = self._number(size)
        if number >= len(self._memo):
            raise Refused("a stored object names what is not there")
        self.push(self._memo[number])

    def name(self) -> None:
        """Take the name of a class or function, which must be on the list."""
        name, module = self._pop(), self._pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise Refused("a stored object names a type by what is no text")
        self.push(Named(self._listed.check(module, name)))

    def call(self) -> None:
        """Describe a call, where that is on the list."""
        args, function = self._pop(), self._pop()
        self.push(called(function, args, self._listed))

    def new(self, *, keywords: bool) -> None:
        """Describe a new object of a class that is on the list."""
        named = self._pop() if keywords else None
        args, cls = self._pop(), self._pop()
        if not isinstance(cls, Named) or not isinstance(args, Group) or args.kind != "tuple":
            raise Refused("a stored object is of no class")
        if isinstance(named, Group) and named.items:
            raise Refused(f"an object of {cls.name!r} was stored with keywords")
        self.push(Made(cls.name, list(args.items), is_tuple=bool(args.items)))

    def build(self) -> None:
        """Fill the object below the topmost value with it."""
        state, made = self._pop(), self._pop()
        self.push(filled(made, state))

    def pop(self) -> None:
        """Drop the topmost value."""
        self._pop()

    def pop_marked(self) -> None:
        """Drop what lies above the mark."""
        self._marked()


_STOP: Final = ord(".")
_Step: TypeAlias = Callable[[Machine], None]


def _const(value: object) -> _Step:
    return lambda machine: machine.push(value)


def _empty(kind: GroupKind) -> _Step:
    return lambda machine: machine.push(Group(kind))


#: By the byte of each instruction; one that is not here is refused.
_STEPS: Final[dict[int, _Step]] = {
    0x80: Machine.proto,
    0x95: Machine.frame,
    ord("("): _const(_MARK),
    ord("0"): Machine.pop,
    ord("1"): Machine.pop_marked,
    ord("N"): _const(None),
    0x88: lambda machine: machine.push(True),
    0x89: lambda machine: machine.push(False),
    ord("K"): lambda machine: machine.number(1),
    ord("M"): lambda machine: machine.number(2),
    ord("J"): Machine.int4,
    0x8A: lambda machine: machine.long(1),
    0x8B: lambda machine: machine.long(4),
    ord("G"): Machine.float8,
    0x8C: lambda machine: machine.text(1),
    ord("X"): lambda machine: machine.text(4),
    0x8D: lambda machine: machine.text(8),
    ord("C"): lambda machine: machine.raw(1),
    ord("B"): lambda machine: machine.raw(4),
    0x8E: lambda machine: machine.raw(8),
    0x96: Machine.mutable_bytes,
    ord(")"): _empty("tuple"),
    ord("]"): _empty("list"),
    ord("}"): _empty("dict"),
    0x8F: _empty("set"),
    0x85: lambda machine: machine.tuple_of(1),
    0x86: lambda machine: machine.tuple_of(2),
    0x87: lambda machine: machine.tuple_of(3),
    ord("t"): lambda machine: machine.marked_group("tuple"),
    0x91: lambda machine: machine.marked_group("frozenset"),
    ord("a"): lambda machine: machine.add("list", many=False),
    ord("e"): lambda machine: machine.add("list", many=True),
    ord("s"): lambda machine: machine.add("dict", many=False),
    ord("u"): lambda machine: machine.add("dict", many=True),
    0x90: lambda machine: machine.add("set", many=True),
    0x94: Machine.memoize,
    ord("h"): lambda machine: machine.get(1),
    ord("j"): lambda machine: machine.get(4),
    0x93: Machine.name,
    ord("R"): Machine.call,
    0x81: lambda machine: machine.new(keywords=False),
    0x92: lambda machine: machine.new(keywords=True),
    ord("b"): Machine.build,
}
