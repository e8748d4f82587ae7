"""A new interpreter that takes a run up at its checkpoints: it shares nothing with this one, not the order of sets.

It is given functions by their module and name, and what it works on by pickling. Must leave no process behind.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Final, Self

from .driving import built
from .outside import Outside
from .restarting import Restart, Setting
from .virtual_time import VirtualLoop, run_virtually

_SPAWN: Final = multiprocessing.get_context("spawn")
_HASH_SEED: Final = "PYTHONHASHSEED"
#: How long it is waited for that the process ends, in seconds.
_PATIENCE: Final = 10.0


class Interpreter:
    """One new process, in which texts have other hash values than here."""

    def __init__(self, setting: Setting, keep: Sequence[object]) -> None:
        virtual = isinstance(asyncio.get_running_loop(), VirtualLoop)
        self._mine, self._its = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=_serve, args=(self._its, setting, keep, virtual), daemon=True)

    async def __aenter__(self) -> Self:
        try:
            with _other_hashes():
                self._process.start()
        except Exception as error:  # what pickling an object of the user's raises
            self._its.close()
            self._mine.close()
            raise TypeError(
                f"a new interpreter cannot be given this: {error}. Pass a function of a module that builds the"
                " workflow, and inputs, answers, resources and keep that can be pickled."
            ) from error
        self._its.close()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._mine.close()
        if kind is not None:
            self._process.terminate()
        await asyncio.to_thread(self._process.join, _PATIENCE)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    async def differences(self, restart: Restart) -> list[str]:
        """Go on from a checkpoint there, and name what comes out otherwise."""
        return await asyncio.to_thread(self._ask, restart)

    def _ask(self, restart: Restart) -> list[str]:
        try:
            self._mine.send(restart)
            found: list[str] | BaseException = self._mine.recv()
        except (EOFError, OSError) as error:
            raise RuntimeError(
                "the new interpreter has ended; look at what it wrote to stderr. It imports the module of the function"
                " that builds the workflow."
            ) from error
        if isinstance(found, BaseException):
            raise found
        return found


@contextmanager
def _other_hashes() -> Generator[None]:
    """Let a process that is started now have hash values of texts that are not those of this one."""
    before = os.environ.get(_HASH_SEED)
    os.environ[_HASH_SEED] = "2" if before == "1" else "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_HASH_SEED]
        else:
            os.environ[_HASH_SEED] = before


def _serve(connection: Connection, setting: Setting, keep: Sequence[object], virtual: bool) -> None:
    """Take up checkpoints until nobody asks any more."""
    run = run_virtually if virtual else asyncio.run
    outside = Outside(built(setting.workflow).definition, keep)
    with suppress(EOFError), connection:
        while True:
            restart: Restart = connection.recv()
            outside.reset()
            try:
                connection.send(run(setting.differences(restart)))
            except ValueError as error:
                connection.send(error)
