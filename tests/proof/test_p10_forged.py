"""P10: forged bytes for every reader, and forged runs that go on, end in a result or in an error of ours, and soon.

Each is made from a seed, which a failure names: `foreign(reader, seed)` and `judged(seed)` do it again.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator

import pytest

from rehydrate.engine import invariants
from rehydrate.errors import CheckpointCorruptError
from rehydrate.runtime import checkpoint as checkpoint_module
from rehydrate.runtime import migrating
from tests.proof.forged_bytes import foreign
from tests.proof.forging import RunForger
from tests.proof.judging import Endless, judge
from tests.proof.ledger import Tried
from tests.proof.readers import named, readers
from tests.proof.small_runs import checkpoints, workflows

FORGERS: dict[str, RunForger] = {}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Forged runs are often legacy ones by their own word, which is logged each time."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def judged(seed: str) -> str:
    """Forge a checkpoint and let it go on; `seed` is the name of a workflow, `:` and a number."""
    name = seed.partition(":")[0]
    if name not in FORGERS:
        FORGERS[name] = RunForger(checkpoints(name), checkpoints("nested" if name != "nested" else "mapped"))
    return judge(workflows()[name], FORGERS[name].forge(seed), seed)


def found(start: int, count: int) -> tuple[list[str], Counter[str]]:
    """Judge so many forged checkpoints; return what is wrong with some, and what came of the others."""
    names, wrong, outcomes = [*workflows()], list[str](), Counter[str]()
    for number in range(start, start + count):
        seed = f"{names[number % len(names)]}:{number}"
        try:
            outcomes[judged(seed)] += 1
        except (Exception, Endless) as error:
            wrong.append(f"judged({seed!r}): {type(error).__name__}: {error!s:.200}")
    return wrong, outcomes


@pytest.mark.promise("P10", "forged bytes for every reader, checksums right")
@pytest.mark.parametrize("count", [2_000, pytest.param(1_000_000, marks=pytest.mark.proof)])
def test_forged_bytes_give_a_value_or_an_error_of_ours(count: int, tried: Tried) -> None:
    """Whatever stands inside of an envelope, a row or a line, in any place: nothing foreign is raised."""
    every = readers()
    wrong = [foreign(every[number % len(every)], str(number)) for number in range(count)]
    tried(count)
    assert [text for text in wrong if text is not None] == []


@pytest.mark.promise("P10", "forged runs that are restored and go on")
@pytest.mark.parametrize(("start", "count"), [(0, 400), pytest.param(1_000, 100_000, marks=pytest.mark.proof)])
def test_forged_runs_go_on_or_are_refused(start: int, count: int, tried: Tried) -> None:
    """A run whose records are well-formed nonsense is refused, fails, or ends; nothing foreign is raised.

    A function that waits for what its record says it gave up waits, as its code says: that is no hang of ours.
    """
    wrong, outcomes = found(start, count)
    tried(count)
    assert wrong == []
    # The forger is worth something only as long as many of its runs get past the checks.
    assert sum(outcomes[status] for status in ("IDLE", "IDLE_WITH_PENDING_REQUESTS", "LIMIT_REACHED")) > count / 10
    assert outcomes["refused InconsistentRunError"] > count / 10


@pytest.mark.notices("P10")
@pytest.mark.parametrize(
    ("where", "what", "instead"),
    [
        pytest.param(invariants, "misshapen", lambda run: [], id="names and trails are believed"),
        pytest.param(checkpoint_module, "check_run", lambda run: [], id="nothing is checked at the restore"),
        pytest.param(migrating, "check_homes", lambda graph, checkpoint: None, id="no look at the graph"),
    ],
)
def test_a_restore_that_believes_is_noticed(
    where: object, what: str, instead: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without one of the checks forged runs raise what is foreign, or hang."""
    monkeypatch.setattr(where, what, instead)
    monkeypatch.setattr("tests.proof.judging.PATIENCE", 0.3)
    assert any(found(start, 50)[0] for start in range(0, 4000, 50))


def _leaks(error: Exception) -> None:
    raise error


@pytest.mark.notices("P10")
@pytest.mark.parametrize(
    "reader",
    ["a value: Claim", "a record: requests", "an event: nested 1", "a header", "a row: TagRow", "a line: HeadLine"],
)
def test_a_reader_that_lets_its_decoder_raise_is_noticed(reader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a reader does not turn what the decoder raises into an error of ours, some forged bytes show it."""

    class LeakingError(CheckpointCorruptError):
        def __new__(cls, *arguments: object) -> LeakingError:
            raise LookupError(arguments)

    modules = ("codecs.values", "codecs.records", "codecs.events", "stores.rows", "stores.file_format")
    for module in modules:
        monkeypatch.setattr(f"rehydrate.{module}.CheckpointCorruptError", LeakingError)
    (broken,) = named([reader])[:1]
    assert any(foreign(broken, str(number)) for number in range(300))
