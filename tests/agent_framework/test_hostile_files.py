"""Files that were made to do harm, or are damaged: nothing of them runs, and each ends as a sentence."""

import json
import pickle
import subprocess
import sys
import tracemalloc
from collections import Counter, OrderedDict, defaultdict, deque
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path, PurePosixPath
from zoneinfo import ZoneInfo

import pytest

from rehydrate.service.agent_framework import child
from rehydrate.service.agent_framework.inert import Refused
from rehydrate.service.agent_framework.listed import DICTS
from rehydrate.service.agent_framework.reading import FileReader, bytes_of
from rehydrate.service.agent_framework.values import Values
from tests.agent_framework.here import FILES, flat
from tests.agent_framework.hostile import PROTO, bombs, calls, file_with, name, refusal, stored, text

CALLS = sorted(calls(Path("marker")))
BOMBS = sorted(bombs())
#: What refusals of calls say: the name is not on the list, or the bytes are not of the few forms that are read.
GROUNDS = ("the list of types lacks", "not read", "protocol", "calls what is no name", "fills what is no object")


@pytest.mark.parametrize("way", CALLS)
def test_a_file_that_would_run_something_runs_nothing(way, tmp_path) -> None:
    """It is refused for what it names or says, not for what came of it."""
    marker = tmp_path / "marker"
    why = refusal(file_with(calls(marker)[way]), "claims:Claim")
    assert why is not None
    assert any(ground in why for ground in GROUNDS), why
    assert not marker.exists()


@pytest.mark.parametrize("way", ["os.system", "eval", "protocol 2"])
def test_the_same_bytes_do_run_where_python_reads_them(way, tmp_path) -> None:
    """So the test above tries something."""
    marker = tmp_path / "marker"
    pickle.loads(calls(marker)[way])
    assert marker.exists()


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_file_that_would_take_all_memory_or_time_is_refused(bomb) -> None:
    """Before it has taken either: everything is counted while it is read."""
    data = file_with(bombs()[bomb])
    tracemalloc.start()
    try:
        assert refusal(data, "claims:Claim", ":Claim") is not None
        assert tracemalloc.get_traced_memory()[1] < 160 * 1024 * 1024
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (PROTO + b"]", "ends too early"),
        (PROTO + b".", "takes what is not there"),
        (PROTO + b"a.", "takes what is not there"),
        (PROTO + b"(.", "takes what is not there"),
        (PROTO + b"N]a.", "adds to what is no list"),
        (PROTO + b"]]s.", "adds to what is no dict"),
        (PROTO + b"NNN.", "more behind"),
        (PROTO + b"N.N", "more behind"),
        (PROTO + b"\x80\x05N.", "begins twice"),
        (PROTO + b"cos\nsystem\n.", "instruction 0x63"),
        (PROTO + b"i", "instruction 0x69"),
        (PROTO + b"\x82\x01.", "instruction 0x82"),
        (PROTO + b"Pabc\n.", "instruction 0x50"),
        (PROTO + b"Q.", "instruction 0x51"),
        (PROTO + b"NN\x93.", "no text"),
        (PROTO + b"N)\x81.", "of no class"),
        (PROTO + b"N}b.", "fills what is no object"),
        (PROTO + b"N)R.", "calls what is no name"),
        (PROTO + name("builtins", "type") + text("a") + b"\x85R.", "not read"),
        (PROTO + name("uuid", "UUID") + b")R.", "not read"),
        (PROTO + name("datetime", "date") + text("abcd") + b"\x85R.", "date is none"),
        (PROTO + name("functools", "reduce") + name("builtins", "int") + b")\x86R.", "not read"),
        (PROTO + name("claims", "Claim") + b")\x81}b}b.", "fills what is no object"),
        (b"", "protocol"),
    ],
)
def test_damaged_bytes_are_refused(data, why) -> None:
    """Each with what is wrong about them."""
    assert why in (refusal(file_with(data), "claims:Claim") or "")


def test_a_type_outside_of_the_list_is_named() -> None:
    """A type is on the list by its full name or, from the workflow, by its name in any module."""
    data = PROTO + name("theirs.app", "Scratch") + b")\x81}" + text("a") + b"K\x01sb."
    outside = "the list of types lacks 'theirs.app:Scratch': add what is yours to types"
    assert refusal(file_with(data, "theirs.app:Scratch")) == outside
    assert refusal(file_with(data, "theirs.app:Scratch"), "theirs:Scratch", ":Other") == outside
    assert refusal(file_with(data, "theirs.app:Scratch"), "theirs.app:Scratch") is None
    assert refusal(file_with(data, "theirs.app:Scratch"), ":Scratch") is None
    assert refusal(file_with(data, "theirs.app:Other"), ":Scratch") == (
        "an object of 'theirs.app:Scratch' is said to be one of 'theirs.app:Other'"
    )
    beta = json.dumps({"version": "1.0", "a": {"__af_dataclass__": "os:system", "value": {}}}).encode()
    assert refusal(beta) == "the list of types lacks 'os:system': add what is yours to types"


@pytest.mark.parametrize(
    "value",
    [
        [None, True, False, 1, 255, 256, 65536, -1, 2**31, 2**70, -(2**70), 1.5, "ä", "\ud83d", b"a", b"a" * 300],
        ["a" * 300, "b" * 70_000, b"c" * 70_000, list(range(2000)), {n: str(n) for n in range(1500)}],
        [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), {1, 2}, frozenset({"a"}), {}, [], set(), {(1, "a"): {2: None}}],
        [float("inf"), complex(1, 2), range(1, 9, 2), bytearray(b"ab")],
        [deque([1, 2]), deque([1], 3), OrderedDict(a=1), Counter("aab"), defaultdict(list, a=[1])],
        [
            datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
            datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Paris")),
        ],
        [
            timezone(timedelta(hours=1)),
            timezone(timedelta(hours=-2), "west"),
            timedelta(-1, 5, 7),
            PurePosixPath("/a/b"),
        ],
    ],
    ids=["scalars", "long", "containers", "numbers", "collections", "moments", "zones and paths"],
)
def test_values_of_the_standard_library_come_through_as_they_were(value) -> None:
    """In value and in type, but for dicts of another kind, which are what the import says."""
    with FileReader([]) as reader:
        tree = reader.tree(file_with(stored(value), "builtins:list"))
    _, *_, state = tree
    made = Values(flat().program.codec, dict.fromkeys(DICTS)).value(state[2])
    assert made == value
    assert [type(item) for item in made] == [dict if isinstance(item, dict) else type(item) for item in value]


def test_one_process_reads_good_files_after_bad_ones(tmp_path) -> None:
    """Whatever a file was, the next one is read, also where the process ended over one."""
    good = next((FILES / "1.23.0" / "flat").glob("*.json"))
    empty = tmp_path / "empty.json"
    empty.touch()
    names = ("Claim", "Everything", "Level", "Place", "Question", "Review")
    with FileReader([f":{type_name}" for type_name in names]) as reader:
        first = reader.tree(bytes_of(good))
        for data in (b"[", b"{", b"[" * 100_000, b'{"a": 1, "a": 2}', b"\xff", file_with(bombs()["deep"])):
            with pytest.raises(Refused):
                reader.tree(data)
        for path in (empty, tmp_path / "none.json", tmp_path):
            with pytest.raises(Refused):
                reader.tree(bytes_of(path))
        assert reader._process is not None
        reader._process.kill()
        with pytest.raises(Refused, match="ended the process"):
            reader.tree(b"{}")
        assert reader.tree(bytes_of(good)) == first


def test_a_file_that_takes_too_long_is_given_up() -> None:
    """The process is ended from outside, whatever it does."""
    slow = file_with(PROTO + b"]" * 400_000 + b"0" * 399_999 + b".")
    with FileReader([], seconds=0.01) as reader, pytest.raises(Refused, match=r"takes more than 0\.01 seconds"):
        reader.tree(slow)


@pytest.mark.skipif(sys.platform == "win32", reason="no limits there")
@pytest.mark.parametrize(
    "deed",
    [
        "open('/etc/hostname')",
        "__import__('fractions')",
        "eval('1')",
        "exec('a = 1')",
        "os.system('true')",
        "os.listdir('/')",
        "sys.addaudithook(print)",
    ],
)
def test_the_reading_process_may_do_nothing_once_it_has_started(deed) -> None:
    """What a fault in the reading could lead to ends the process, with a code of its own."""
    script = (
        f"import os, sys; sys.path.insert(0, sys.argv[1]); from {child.__name__} import close_in; close_in()\n{deed}"
    )
    root = str(Path(child.__file__).parents[3])
    done = run_python(script, root)
    assert done == child.FORBIDDEN


@pytest.mark.skipif(sys.platform == "win32", reason="no limits there")
@pytest.mark.parametrize(
    "before",
    [
        "low = child.MEMORY - 2**20; resource.setrlimit(resource.RLIMIT_AS, (low, low))",
        "real = resource.setrlimit\n"
        "def refusing(kind, limits):\n"
        "    if kind == resource.RLIMIT_AS: raise ValueError('current limit exceeds maximum limit')\n"
        "    real(kind, limits)\n"
        "resource.setrlimit = refusing",
    ],
    ids=["a lower limit is there", "none can be set, as on macOS"],
)
def test_a_limit_of_memory_that_cannot_be_set_ends_no_reading(before) -> None:
    """The other limits and the watch are there all the same."""
    script = (
        f"import os, resource, sys; sys.path.insert(0, sys.argv[1]); from {child.__package__} import child\n{before}\n"
        "child.close_in()\n"
        "assert resource.getrlimit(resource.RLIMIT_NOFILE) == (0, 0)\n"
        "assert sys.argv[2] == 'nothing' or os.listdir('/')"
    )
    root = str(Path(child.__file__).parents[3])
    assert [run_python(script, root, deed) for deed in ("nothing", "deed")] == [0, child.FORBIDDEN]


def run_python(script: str, *arguments: str) -> int:
    """Run a script in a process like the reading one, and return its exit code."""
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", script, *arguments], capture_output=True, check=False
    ).returncode
