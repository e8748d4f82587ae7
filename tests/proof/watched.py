"""Reads good and forged bytes with every reader under an audit hook, and says what it saw: any import, code, file,
process or socket. The arguments are how often each reader is given forged bytes, and how a reader is broken."""

from __future__ import annotations

import logging
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from rehydrate.errors import RehydrateError
from rehydrate.model.checkpoint import Stored
from rehydrate.model.sealed import Sealed
from rehydrate.runtime.checkpoint import WorkflowCheckpoint, restored
from rehydrate.runtime.facts import facts_of
from rehydrate.stores.file_show import shown_file
from rehydrate.stores.inspection import inspection
from tests.proof.forged_bytes import forged
from tests.proof.forging import Ext, RunForger
from tests.proof.readers import CODEC, Reader, encode, quietly, readers
from tests.proof.small_runs import checkpoints, workflows
from tests.stores.raw_files import files, fill


def imports_by_name(data: bytes) -> object:
    """Read as a careless decoder would, that takes a type's name for a place in the code."""
    return __import__("mailbox"), data


#: Events of what does nothing but look.
HARMLESS = {"builtins.id", "object.__getattr__", "sys._getframe"}
#: What is done beside the reading, in readers that are broken.
BROKEN: dict[str, Callable[[bytes], object]] = {
    "imports": imports_by_name,
    "evaluates": lambda data: eval("len(data)", {"data": data}),
    "reads a file": lambda data: Path(__file__).read_bytes(),
    "starts a process": lambda data: subprocess.run(["true"], check=False),
}


def views(stored: Stored) -> None:
    """Take a checkpoint through everything that shows it."""
    checkpoint: list[WorkflowCheckpoint] = []
    looks: list[Callable[[], object]] = [lambda: inspection(stored), lambda: checkpoint.append(restored(stored))]
    looks += [
        lambda: [fact.show() for found in checkpoint for fact in facts_of(found).values()],
        lambda: [WorkflowCheckpoint.from_bytes(found.to_bytes()).executor_states for found in checkpoint],
        lambda: [found.state for found in checkpoint],
    ]
    for look in looks:
        try:
            look()
        except RehydrateError:
            continue


def shown(path: Path) -> None:
    """Show a file."""
    try:
        shown_file(path)
    except RehydrateError:
        return


def plan(times: int) -> list[tuple[Reader, bytes]]:
    """Return what is read, so that nothing but the reading happens under the hook."""
    found = [(reader, data) for reader in readers() for data in reader.good()]
    return found + [(reader, forged(reader, f"hook {n}")) for reader in readers() for n in range(times)]


def damaged(folder: Path) -> list[Path]:
    """Return the files of a store, and copies of them with a byte changed."""
    fill(folder / "runs")
    found = files(folder / "runs")
    for number, file in enumerate([*found]):
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 4
        copy = folder / f"{number}{file.suffix}"
        copy.write_bytes(data)
        found.append(copy)
    return found


def main(times: int, broken: str) -> None:
    """Watch."""
    logging.disable(logging.WARNING)
    seen: dict[str, str] = {}
    watching: list[str] = []
    allowed: set[str] = set()

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if (
            watching
            and event not in HARMLESS
            and not (event in {"open", "os.listdir", "os.scandir"} and str(arguments[0]) in allowed)
        ):
            seen.setdefault(event, f"{watching[0]}: {event} {arguments!r:.80}")

    reading = plan(times)
    forgers = [RunForger(checkpoints(name)) for name in workflows()]
    runs = [forger.forge(f"hook {n}") for forger in forgers for n in range(times)]
    runs += [stored for name in workflows() for stored in checkpoints(name)[-3:]]
    with tempfile.TemporaryDirectory() as place:
        folder = damaged(Path(place))
        # From here on the zones in good values are remembered, the names of all others, and the modules of extras
        # loaded. What is forged is read for the first time under the hook.
        quietly(CODEC.open, Sealed("ZoneInfo", encode(Ext(24, b"No/Where"))))
        for reader in readers():
            for data in reader.good():
                quietly(reader.read, data)
        for stored in runs[len(forgers) * times :]:
            views(stored)
        allowed.update(map(str, folder))
        for file in folder:
            shown(file)
        sys.addaudithook(watch)
        for reader, data in reading:
            watching[:] = [reader.name]
            quietly(reader.read, data)
            for name in broken.split(",") if broken and reader.name.startswith("a record") else ():
                BROKEN[name](data)
        for stored in runs:
            watching[:] = [f"a checkpoint of {stored.header.workflow}"]
            views(stored)
        for file in folder:
            watching[:] = [f"show-file {file.name}"]
            shown(file)
        watching.clear()
    count = len(reading) + len(runs) + len(folder)
    sys.stdout.write("\n".join(seen.values()) or f"nothing was run in {count} reads\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:3] or [""])
