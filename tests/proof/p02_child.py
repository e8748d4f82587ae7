"""The process whose calls are killed or fail: it shuts its gate, makes one call, and says all that it hears of it.

After an error it waits for a word, since a disk may have to be repaired first; then it makes the same call again with
the same store object, and where that is refused with a new one. One that lasts does so again, in other places.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from pathlib import Path
from typing import Any

from rehydrate.errors import RehydrateError
from tests.processes.line import Line
from tests.proof.p02_acts import ACTS, act_store
from tests.proof.p02_broken import BROKEN
from tests.proof.p02_calls import DOINGS, load, open_store
from tests.proof.p02_gate import close_gate


def gated(line: Line, told: dict[str, Any]) -> None:
    """Be that process, until nobody tells it anything any more."""
    if told.get("broken"):
        BROKEN[told["broken"]]()
    if told.get("limit"):
        _limit(told["limit"])
    try:
        listener = close_gate(reads=bool(told.get("reads")))
    except RuntimeError as error:
        line.end.send(str(error).encode())
        return
    socket.send_fds(line.end, [b"g"], [listener])
    os.close(listener)
    while True:
        asyncio.run(_act(line, told) if told["doing"] in ACTS else _call(line, told))
        line.send({"end": True})
        if not told.get("lasting"):
            os._exit(0)  # all stores are closed; the end of an interpreter takes longer than all of the rest
        told = line.receive(None)


def _limit(size: int) -> None:
    """Let no file grow beyond so many bytes, as on a disk that is full there."""
    import resource  # noqa: PLC0415  (not on every system)

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def _unlimit() -> None:
    import resource  # noqa: PLC0415

    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def _error(error: BaseException) -> dict[str, object]:
    """Return what is said of an error; `chain` names all that it came of."""
    chain: list[str] = []
    known = isinstance(error, RehydrateError)
    text = str(error)
    each: BaseException | None = error
    while each is not None:
        chain.append(type(each).__name__)
        each = each.__cause__
    return {"error": type(error).__name__, "known": known, "text": text, "chain": chain}


async def _call(line: Line, told: dict[str, Any]) -> None:
    doing, place = DOINGS[told["doing"]], Path(told["place"])

    async def attempt(store: Any, name: str) -> bool:
        try:
            line.send({"result": await doing.make(store, told["words"], {"say": ran}), "by": name})
        except Exception as error:
            line.send({**_error(error), "by": name})
            return False
        return True

    def ran(what: str) -> None:
        line.send({"ran": what})

    store = open_store(told["store"], place, line.send)
    if await attempt(store, "first"):
        await store.close()
        return
    await asyncio.to_thread(line.receive, None)
    _unlimit()
    if not await attempt(store, "same object"):
        new = open_store(told["store"], place, line.send)
        await attempt(new, "new object")
        await new.close()
    await store.close()


async def _act(line: Line, told: dict[str, Any]) -> None:
    act, place = ACTS[told["doing"]], Path(told["place"])

    async def attempt(store: Any, name: str) -> bool:
        try:
            await act.do(store)
        except Exception as error:
            line.send({**_error(error), "by": name})
            return False
        line.send({"result": {}, "by": name})
        return True

    store = act_store(told["store"], place)
    if await attempt(store, "first"):
        await store.close()
        return
    await asyncio.to_thread(line.receive, None)
    _unlimit()
    if not await attempt(store, "same object"):
        new = act_store(told["store"], place)
        await attempt(new, "new object")
        await new.close()
    await store.close()


load()
