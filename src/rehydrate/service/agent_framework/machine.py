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
            self.spend(1)
            code = self.take(1)[0]
            if code == _STOP:
                break
            step = _STEPS.get(code)
            if step is None:
                raise Refused(f"a stored object has the instruction {code:#04x}, which is not read")
            step(self)
        value = self.pop()
        if self._stack or self._at != len(self._data):
            raise Refused("there is more behind a stored object")
        return value

    def spend(self, steps: int) -> None:
        """Count steps; what is copied counts like what is read."""
        self._steps[0] -= steps
        if self._steps[0] < 0:
            raise Refused(f"it takes more than {MAX_STEPS} steps to read")

    def take(self, count: int) -> bytes:
        """Return the next bytes."""
        end = self._at + count
        if end > len(self._data):
            raise Refused("a stored object ends too early")
        taken = self._data[self._at : end]
        self._at = end
        return taken

    def number(self, size: int) -> int:
        """Return the next bytes as a number."""
        return int.from_bytes(self.take(size), "little")

    def push(self, value: object) -> None:
        """Put a value on the stack."""
        self._stack.append(value)

    def pop(self) -> object:
        """Take the topmost value."""
        if not self._stack or self._stack[-1] is _MARK:
            raise Refused("a stored object takes what is not there")
        return self._stack.pop()

    def pop_to_mark(self) -> list[object]:
        """Take what lies above the newest mark, and the mark."""
        at = len(self._stack) - 1
        while at >= 0 and self._stack[at] is not _MARK:
            at -= 1
        if at < 0:
            raise Refused("a stored object takes what is not there")
        taken = self._stack[at + 1 :]
        del self._stack[at:]
        return taken

    def top(self, *kinds: GroupKind) -> Group:
        """Return the topmost value, which has to be a container of some kind."""
        top = self._stack[-1] if self._stack else None
        if not isinstance(top, Group) or top is _MARK or top.kind not in kinds:
            raise Refused(f"a stored object adds to what is no {kinds[0]}")
        return top

    def remember(self) -> None:
        """Remember the topmost value by the next number."""
        value = self.pop()
        self._memo.append(value)
        self.push(value)

    def remembered(self, number: int) -> object:
        """Return a remembered value."""
        if number >= len(self._memo):
            raise Refused("a stored object names what is not there")
        return self._memo[number]

    def listed(self, module: str, name: str) -> Named:
        """Return the name of a class or function."""
        return Named(self._listed.check(module, name))

    def call(self, function: object, args: object) -> object:
        """Return what a call stands for."""
        if isinstance(args, Group):
            self.spend(len(args.items) + sum(len(part.items) for part in args.items if isinstance(part, Group)))
        return called(function, args, self._listed)


def _second_header(_machine: Machine) -> None:
    raise Refused("a stored object begins twice")


def _frame(machine: Machine) -> None:
    """Step over the length of a frame; lengths are checked where something is taken."""
    machine.take(8)


def _text(machine: Machine, size: int) -> None:
    machine.push(machine.take(machine.number(size)).decode("utf-8", "surrogatepass"))


def _bytes(machine: Machine, size: int) -> None:
    machine.push(machine.take(machine.number(size)))


def _bytearray(machine: Machine) -> None:
    machine.push(Scalar("bytearray", [machine.take(machine.number(8))]))


def _long(machine: Machine, size: int) -> None:
    """Read a whole number of any length."""
    length = machine.number(size)
    if length > MAX_NUMBER:
        raise Refused(f"a number has {length} bytes, and {MAX_NUMBER} are read")
    machine.push(int.from_bytes(machine.take(length), "little", signed=True))


def _int4(machine: Machine) -> None:
    machine.push(int.from_bytes(machine.take(4), "little", signed=True))


def _float8(machine: Machine) -> None:
    machine.push(struct.unpack(">d", machine.take(8))[0])


def _tuple(machine: Machine, count: int) -> None:
    machine.push(Group("tuple", [machine.pop() for _ in range(count)][::-1]))


def _add(machine: Machine, kind: GroupKind, *, many: bool) -> None:
    """Put values into the container below them."""
    values = machine.pop_to_mark() if many else [machine.pop() for _ in range(2 if kind == "dict" else 1)][::-1]
    if kind == "dict" and len(values) % 2:
        raise Refused("a stored dict has a key without a value")
    machine.top(kind, "deque" if kind == "list" else kind).items.extend(values)


def _name(machine: Machine) -> None:
    """Take the name of a class or function."""
    name, module = machine.pop(), machine.pop()
    if not isinstance(name, str) or not isinstance(module, str):
        raise Refused("a stored object names a type by what is no text")
    machine.push(machine.listed(module, name))


def _call(machine: Machine) -> None:
    args, function = machine.pop(), machine.pop()
    machine.push(machine.call(function, args))


def _new(machine: Machine, *, keywords: bool) -> None:
    """Describe a new object of a class."""
    named = machine.pop() if keywords else None
    args, cls = machine.pop(), machine.pop()
    if not isinstance(cls, Named) or not isinstance(args, Group) or args.kind != "tuple":
        raise Refused("a stored object is of no class")
    if isinstance(named, Group) and named.items:
        raise Refused(f"an object of {cls.name!r} was stored with keywords")
    machine.spend(len(args.items))
    machine.push(Made(cls.name, list(args.items), is_tuple=bool(args.items)))


def _fill(machine: Machine) -> None:
    """Fill the object below the topmost value with it."""
    state, made = machine.pop(), machine.pop()
    machine.push(filled(made, state))


def _drop(machine: Machine) -> None:
    machine.pop()


def _drop_to_mark(machine: Machine) -> None:
    machine.pop_to_mark()


_STOP: Final = ord(".")
_Step: TypeAlias = Callable[[Machine], None]


def _const(value: object) -> _Step:
    return lambda machine: machine.push(value)


def _empty(kind: GroupKind) -> _Step:
    return lambda machine: machine.push(Group(kind))


#: By the byte of each instruction; one that is not here is refused.
_STEPS: Final[dict[int, _Step]] = {
    0x80: _second_header,
    0x95: _frame,
    ord("("): _const(_MARK),
    ord("0"): _drop,
    ord("1"): _drop_to_mark,
    ord("N"): _const(None),
    0x88: lambda machine: machine.push(True),
    0x89: lambda machine: machine.push(False),
    ord("K"): lambda machine: machine.push(machine.number(1)),
    ord("M"): lambda machine: machine.push(machine.number(2)),
    ord("J"): _int4,
    0x8A: lambda machine: _long(machine, 1),
    0x8B: lambda machine: _long(machine, 4),
    ord("G"): _float8,
    0x8C: lambda machine: _text(machine, 1),
    ord("X"): lambda machine: _text(machine, 4),
    0x8D: lambda machine: _text(machine, 8),
    ord("C"): lambda machine: _bytes(machine, 1),
    ord("B"): lambda machine: _bytes(machine, 4),
    0x8E: lambda machine: _bytes(machine, 8),
    0x96: _bytearray,
    ord(")"): _empty("tuple"),
    ord("]"): _empty("list"),
    ord("}"): _empty("dict"),
    0x8F: _empty("set"),
    0x85: lambda machine: _tuple(machine, 1),
    0x86: lambda machine: _tuple(machine, 2),
    0x87: lambda machine: _tuple(machine, 3),
    ord("t"): lambda machine: machine.push(Group("tuple", machine.pop_to_mark())),
    0x91: lambda machine: machine.push(Group("frozenset", machine.pop_to_mark())),
    ord("a"): lambda machine: _add(machine, "list", many=False),
    ord("e"): lambda machine: _add(machine, "list", many=True),
    ord("s"): lambda machine: _add(machine, "dict", many=False),
    ord("u"): lambda machine: _add(machine, "dict", many=True),
    0x90: lambda machine: _add(machine, "set", many=True),
    0x94: Machine.remember,
    ord("h"): lambda machine: machine.push(machine.remembered(machine.number(1))),
    ord("j"): lambda machine: machine.push(machine.remembered(machine.number(4))),
    0x93: _name,
    ord("R"): _call,
    0x81: lambda machine: _new(machine, keywords=False),
    0x92: lambda machine: _new(machine, keywords=True),
    ord("b"): _fill,
}
