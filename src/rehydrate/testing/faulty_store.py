"""`FaultyStorage`: a store whose calls fail, lose their reply, come late or come twice, as a test chooses.

What it raises is what stores raise. The store inside is never told, and stays whole.
"""

from __future__ import annotations

import asyncio
import copy
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Final, Literal, TypeAlias, TypeVar, cast

from rehydrate.errors import StoreUnavailableError
from rehydrate.ports import CheckpointStorage
from rehydrate.stores.around import StoreAround

#: `fails`: nothing is done, and the error is raised. `loses reply`: all is done, and the error is raised.
#: `delays`: it is done `seconds` later. `repeats`: it is done twice, and the second answer given, as by a driver that
#: sends again.
FaultKind: TypeAlias = Literal["fails", "loses reply", "delays", "repeats"]
#: Given the arguments of a call, of which the first may be a `Commit`.
CallTest: TypeAlias = Callable[..., bool]
_Value = TypeVar("_Value")

_NAME: Final = "of a test"
_ERRORS: Final[Mapping[FaultKind, Exception]] = {
    "fails": StoreUnavailableError(_NAME, "a fault was injected before this call", "Call again."),
    "loses reply": StoreUnavailableError(
        _NAME,
        "the connection was lost on the way back, so it is not known whether this call was carried out",
        "Make the same call again.",
    ),
}
#: The calls of a store; `close` is left alone, or nothing could be cleaned up.
CALLS: Final = (
    "commit", "head", "load", "read", "find_request", "find_turn", "requests", "renew", "runs", "history", "events",
    "offer", "offers", "tag", "tags", "forget", "archive", "adopt", "inspect", "delete",
)  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """What goes wrong with chosen calls of one name, `commit` if not given.

    Chosen are those for which all that is given holds: it is the `number`-th of its name, from 1; `when` says so of its
    arguments; and so does a draw with this `chance`. `error` is raised in place of a `StoreUnavailableError`; each time
    a copy of it.
    """

    does: FaultKind = "fails"
    call: str = "commit"
    number: int | None = None
    when: CallTest | None = None
    chance: float = 1.0
    error: Exception | None = None
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.call not in CALLS:
            raise ValueError(f"a store has no call {self.call!r}; there are {', '.join(CALLS)}")
        if self.number is not None and self.number < 1:
            raise ValueError(f"calls are numbered from 1, and number={self.number}")
        if not 0.0 <= self.chance <= 1.0:
            raise ValueError(f"chance={self.chance} is not between 0 and 1")

    def hits(self, number: int, random: Random, args: tuple[object, ...], kwargs: Mapping[str, object]) -> bool:
        """Tell whether a call is chosen."""
        if self.number not in {None, number}:
            return False
        if self.when is not None and not self.when(*args, **kwargs):
            return False
        return self.chance == 1.0 or random.random() < self.chance

    async def carry_out(self, work: Callable[[], Awaitable[_Value]]) -> _Value:
        """Make the call go wrong."""
        if self.does == "delays":
            await asyncio.sleep(self.seconds)
            return await work()
        if self.does == "fails":
            raise self._raised()
        done = await work()
        if self.does == "loses reply":
            raise self._raised()
        return await work() if self.does == "repeats" else done

    def _raised(self) -> Exception:
        return copy.copy(self.error or _ERRORS[self.does])


class FaultyStorage(StoreAround):
    """A store in which things go wrong; all else is the work of `store`, which it closes.

    Of several faults for one call the first counts. `seed` makes what is drawn by chance the same each time.
    """

    def __init__(self, store: CheckpointStorage, *faults: Fault, seed: int = 0) -> None:
        super().__init__(store)
        self.faults = faults
        #: How often each call was made.
        self.counts: Counter[str] = Counter()
        #: What went wrong so far: `commit 3 fails`.
        self.happened: list[str] = []
        self._random = Random(seed)  # noqa: S311  (to be repeated, not to be secret)

    async def meet(
        self,
        name: str,
        work: Callable[[], Awaitable[_Value]],
        args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> _Value:
        """Make one call, and let it go wrong where it is chosen."""
        self.counts[name] += 1
        number = self.counts[name]
        for fault in self.faults:
            if fault.call == name and fault.hits(number, self._random, args, kwargs or {}):
                self.happened.append(f"{name} {number} {fault.does}")
                return await fault.carry_out(work)
        return await work()


def _faulty(name: str) -> Callable[..., Awaitable[object]]:
    inside = cast("Callable[..., Awaitable[object]]", getattr(StoreAround, name))

    async def call(self: FaultyStorage, *args: object, **kwargs: object) -> object:
        return await self.meet(name, lambda: inside(self, *args, **kwargs), args, kwargs)

    call.__doc__ = inside.__doc__
    call.__name__ = name
    return call


for _name in CALLS:
    setattr(FaultyStorage, _name, _faulty(_name))
