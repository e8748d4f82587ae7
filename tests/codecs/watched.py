"""Opens good and damaged values under an audit hook and says what it saw: any import, code, file or process."""

import sys

from rehydrate.codecs import plain
from rehydrate.errors import WorkflowCheckpointException
from rehydrate.model.sealed import Sealed
from tests.codecs.bytes_by_hand import Ext, encode
from tests.codecs.test_hostile import CODEC, SMALL

GOOD = [*SMALL.values()]


def damaged(sealed: Sealed, position: int) -> Sealed:
    data = bytearray(sealed.data)
    data[position // 8] ^= 1 << position % 8
    return Sealed(sealed.type, bytes(data))


def read_all(values: list[Sealed]) -> None:
    for sealed in values:
        for read in (CODEC.open, lambda sealed: plain(sealed.data)):
            try:
                read(sealed)
            except WorkflowCheckpointException:
                continue


def main() -> None:
    seen: set[str] = set()
    watching = False

    def watch(event: str, _arguments: object) -> None:
        if watching:
            seen.add(event)

    bad = [damaged(sealed, position) for sealed in GOOD for position in range(0, len(sealed.data) * 8, 5)]
    # From here on the zones in them are remembered, and the names of all others.
    read_all([*GOOD, Sealed("ZoneInfo", encode(Ext(24, b"No/Where")))])
    sys.addaudithook(watch)
    watching = True
    read_all(GOOD + bad)
    watching = False
    sys.stdout.write(", ".join(sorted(seen)) or "nothing was run\n")


if __name__ == "__main__":
    main()
