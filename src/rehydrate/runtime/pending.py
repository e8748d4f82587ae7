"""Open requests as a caller reads them: a sequence whose requests are made when they are looked at.

It stands for a tuple of the same requests. What it reads of is the run of a result, which does not change any more.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import cast, overload

from rehydrate.codecs import ValueCodec
from rehydrate.engine.reading import OpenedRequest
from rehydrate.engine.request_list import Stretch, stretches
from rehydrate.engine.run import Run
from rehydrate.graph.definition import Definition

from .requests import PendingRequest, pending_request


class PendingRequests(Sequence[PendingRequest]):
    """The open requests of a run by path and name; it equals a tuple of the same requests."""

    def __init__(self, run: Run, graph: Definition, codec: ValueCodec) -> None:
        self._run = run
        self._graph = graph
        self._codec = codec
        self._opened: dict[int, list[OpenedRequest]] = {}
        self._made: dict[int, PendingRequest] = {}

    def __len__(self) -> int:
        return self._run.totals["request"]

    @overload
    def __getitem__(self, index: int) -> PendingRequest: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[PendingRequest, ...]: ...

    def __getitem__(self, index: int | slice) -> PendingRequest | tuple[PendingRequest, ...]:
        places = range(len(self))
        if isinstance(index, slice):
            return tuple(map(self._at, places[index]))
        try:
            return self._at(places[index])
        except IndexError:
            raise IndexError("there is no open request at this place") from None

    def __iter__(self) -> Iterator[PendingRequest]:
        return map(self._at, range(len(self)))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PendingRequests | tuple):
            theirs = cast("Sequence[object]", other)
            return len(self) == len(theirs) and all(one == its for one, its in zip(self, theirs, strict=True))
        return NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __add__(self, other: Sequence[PendingRequest]) -> tuple[PendingRequest, ...]:
        return (*self, *other)

    def __radd__(self, other: Sequence[PendingRequest]) -> tuple[PendingRequest, ...]:
        return (*other, *self)

    def __repr__(self) -> str:
        return repr(tuple(self))

    @cached_property
    def _stretches(self) -> list[Stretch]:
        return stretches(self._run)

    @cached_property
    def _ends(self) -> list[int]:
        return list(accumulate(stretch.size for stretch in self._stretches))

    def _at(self, index: int) -> PendingRequest:
        made = self._made.get(index)
        if made is None:
            number = bisect_right(self._ends, index)
            stretch = self._stretches[number]
            opened = self._opened.get(number)
            if opened is None:
                opened = self._opened[number] = stretch.requests(self._run)
            found = opened[index - self._ends[number] + stretch.size]
            made = self._made[index] = pending_request(found, self._graph, self._codec)
        return made
