"""A process of its own: takes up checkpoints from a job file and prints the differences as JSON."""

import asyncio
import logging
import sys
from pathlib import Path

import msgspec

from tests.differential.spawning import Job, differences


def main() -> None:
    logging.disable(logging.WARNING)
    jobs = msgspec.msgpack.decode(Path(sys.argv[1]).read_bytes(), type=list[Job])
    wrong = [text for job in jobs for text in asyncio.run(differences(job))]
    sys.stdout.write(msgspec.json.encode(wrong).decode())


if __name__ == "__main__":
    main()
