"""The passage into the store inside: in what order, what errors call things, and whether the keys are its keys.

What is carried through it is none of its business.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from dataclasses import fields
from typing import Final

from rehydrate.errors import (
    CheckpointCorruptError,
    CheckpointFormatError,
    NotEncryptedError,
    RehydrateError,
    WrongKeyError,
)
from rehydrate.ports import CheckpointStorage

from .call_order import CallOrder
from .covers import Covers

#: So many runs are looked at to see whether the keys are those of the store.
_LOOKED_AT: Final = 8
#: What says nothing of the keys: whoever asks for such a run is told.
_OF_ONE_RUN: Final = (CheckpointCorruptError, CheckpointFormatError)


class Passage:
    """The way of every call from an encrypted store to the store inside."""

    def __init__(self, store: CheckpointStorage, covers: Covers) -> None:
        self._store = store
        self._covers = covers
        self._order = CallOrder()
        self._checked = False

    @contextlib.asynccontextmanager
    async def call(
        self, run: str | None = None, names: Callable[[], Mapping[str, str]] = dict, *, writes: bool = False
    ) -> AsyncGenerator[None, None]:
        """Do the block after what is being written to a run; errors in it speak of `names`, not of their pseudonyms.

        Raises `WrongKeyError` or `NotEncryptedError` where the store inside is another's: a run that is only not found
        would be started anew.
        """
        async with self._order.call(run, writes=writes):
            if not self._checked:
                await self._check_keys()
            with _naming(names):
                yield

    async def finished(self) -> None:
        """Wait for the calls that are on their way."""
        await self._order.all_done()

    async def _check_keys(self) -> None:
        try:
            covers = await self._store.runs(limit=_LOOKED_AT)
        except _OF_ONE_RUN:
            return
        wrong: RehydrateError | None = None
        for cover in covers:
            try:
                self._covers.open_header(cover)
            except (WrongKeyError, NotEncryptedError) as error:
                wrong = wrong or error
            except _OF_ONE_RUN:
                continue
            else:
                self._checked = True
                return
        if wrong is not None:
            raise wrong


@contextlib.contextmanager
def _naming(names: Callable[[], Mapping[str, str]]) -> Generator[None, None, None]:
    """Put names in the place of their pseudonyms into the error that the block raises."""
    try:
        yield
    except RehydrateError as error:
        known = names()
        for field in fields(error):
            text: object = getattr(error, field.name)
            if isinstance(text, str):
                setattr(error, field.name, _named(text, known))
        raise


def _named(text: str, names: Mapping[str, str]) -> str:
    for pseudonym, name in names.items():
        # Most texts hold it as its `repr`, which is not that of the name in quotes.
        text = text.replace(repr(pseudonym), repr(name)).replace(pseudonym, name)
    return text
