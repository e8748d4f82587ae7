"""Seals and opens a dataclass and says which libraries for models that has loaded."""

import sys
from dataclasses import dataclass

from rehydrate.codecs import TypeRegistry, ValueCodec


@dataclass
class Note:
    text: str


def main() -> None:
    codec = ValueCodec(TypeRegistry([Note]))
    assert codec.open(codec.seal(Note("a"))) == Note("a")
    sys.stdout.write(" ".join(sorted({"attr", "attrs", "pydantic"} & set(sys.modules))))


if __name__ == "__main__":
    main()
