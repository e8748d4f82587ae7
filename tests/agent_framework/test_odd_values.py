"""Values that no release writes, though the reading process hands them on: each ends as a sentence, and is not lost."""

import pickle
import struct

import pytest

from rehydrate.service.agent_framework.inert import Refused
from rehydrate.service.agent_framework.reading import FileReader
from rehydrate.service.agent_framework.values import Values
from tests.agent_framework.here import flat
from tests.agent_framework.hostile import PROTO, file_with, long_text, name, text

NUMBER = b"\x8b" + struct.pack("<I", 4000) + b"\x01" * 4000
THEIRS = "agent_framework.x:Y"
NEW = PROTO + name("agent_framework.x", "Y")
CLAIM = b"}(" + text("id") + text("c") + text("amount") + b"K\x01ub."


def value_of(data: bytes, type_name: str) -> object:
    """Return what becomes of stored bytes."""
    with FileReader([":Claim", ":Level"]) as reader:
        _, *_, state = reader.tree(file_with(data, type_name))
    return Values(flat().program.codec, {}).value(state[2])


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (name("collections", "deque") + b")J\xff\xff\xff\xff\x86R.", "a limit that is none"),
        (name("collections", "deque") + b")" + NUMBER + b"\x86R.", "a limit that is none"),
        (name("zoneinfo", "ZoneInfo._unpickle") + text("Europe") + b"K\x01\x86R.", "a stored zone is none"),
        (name("zoneinfo", "ZoneInfo._unpickle") + long_text(9000) + b"K\x01\x86R.", "a stored zone is none"),
    ],
)
def test_numbers_and_names_that_python_refuses_are_refused(data, why) -> None:
    """An error of Python would end the whole import, files that are skipped included."""
    with pytest.raises(Refused, match=why):
        value_of(PROTO + data, "builtins:list")


def test_a_long_number_that_is_no_member_is_refused() -> None:
    """Python has no digits for so long a number."""
    with pytest.raises(Refused, match="Level has no member of value 0x1010101"):
        value_of(PROTO + name("claims", "Level") + NUMBER + b"\x85R.", "claims:Level")


@pytest.mark.parametrize("make", [set, frozenset, dict.fromkeys])
def test_keys_of_one_hash_are_refused_before_they_are_put_together(make) -> None:
    """That takes quadratic time, and neither the deadline nor another thread ends it."""
    keys = [number * (2**61 - 1) for number in range(300)]
    with pytest.raises(Refused, match="of its keys have the same hash value"):
        value_of(pickle.dumps(make(keys), protocol=5), "builtins:list")


@pytest.mark.parametrize(
    ("data", "type_name", "why"),
    [
        (PROTO + name("claims", "Claim") + text("lost") + b"\x85\x81" + CLAIM, "claims:Claim", "made with arguments"),
        (NEW + text("lost") + b"\x85\x81}" + text("a") + b"K\x01sb.", THEIRS, "made with arguments and filled"),
        (NEW + b")\x81}(" + text("_a") + b"K\x01" + text("a") + b"K\x02ub.", THEIRS, "underscores only"),
    ],
)
def test_parts_of_an_object_that_have_no_place_refuse_it(data, type_name, why) -> None:
    """They were lost without a word."""
    with pytest.raises(Refused, match=why):
        value_of(data, type_name)
