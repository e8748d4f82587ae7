"""A process of its own: takes up what stands in a job file, checkpoints or stopped runs, and prints the differences as
JSON."""

import asyncio
import logging
import sys
from pathlib import Path

import msgspec

from tests.differential.spawning import Task, differences


def main() -> None:
    logging.disable(logging.WARNING)
    tasks = msgspec.msgpack.decode(Path(sys.argv[1]).read_bytes(), type=list[Task])
    wrong = [text for task in tasks for text in asyncio.run(differences(task))]
    sys.stdout.write(msgspec.json.encode(wrong).decode())


if __name__ == "__main__":
    main()
