"""Random graphs, stopped at any checkpoint and brought up to a later version, go on as if nothing had changed."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import pytest

from rehydrate import (
    CheckpointStorage,
    InMemoryCheckpointStorage,
    MigrationView,
    SqliteCheckpointStorage,
    Workflow,
    WorkflowRunResult,
)
from rehydrate.engine.requests import unpack_requests
from rehydrate.engine.run import Run
from rehydrate.model.events import Event
from rehydrate.runtime.pending import PendingRequests
from tests.differential.building import Edition, build
from tests.differential.drawing import draw
from tests.differential.facts import CallFacts, RunFacts, Told, call_facts, record_facts, request_names, told
from tests.differential.harness import Calls, Replay, reference_run, stored_checkpoints
from tests.differential.plans import RENAMED, FamilyPlan


def there(run: MigrationView) -> None:
    """Give every executor another id."""
    for name in run.executors():
        run.rename_executor(name, RENAMED + name)


def back(run: MigrationView) -> None:
    """Give every executor its id back."""
    for name in run.executors():
        run.rename_executor(name, name.removeprefix(RENAMED))


EDITIONS = {
    "there and back": Edition(version=3, migrate={1: there, 2: back}, extra=True),
    "there": Edition(version=2, migrate={1: there}, prefix=RENAMED, extra=True),
}


def under_old_names(result: WorkflowRunResult, events: Sequence[Event]) -> CallFacts:
    """The facts of a call, told with the ids of the first version; without what only a migration leaves, and with a
    record for each request, since a migration packs them anew."""
    facts = call_facts(result, events)
    run = result.checkpoint.records.copy()
    unpack_requests(run)
    renamed = f"start {RENAMED}" in result.checkpoint.records.get("", "signature", "").text
    records = {key: record for key, record in record_facts(run).items() if not _is_left(key, renamed=renamed)}
    text = msgspec.json.encode(msgspec.structs.replace(facts, records=records))
    return msgspec.json.decode(text.replace(RENAMED.encode(), b""), type=CallFacts)


def _is_left(key: str, *, renamed: bool) -> bool:
    """Tell of an alias, of a counter that stays so that no name is given twice, and of a request's name in a value."""
    _, kind, name = key.split(" ", 2)
    if kind == "state" and name.startswith("kept_"):
        return True
    return kind == "alias" or (kind == "counter" and name.startswith(RENAMED) != renamed)


def old_names(run: Run) -> dict[str, str]:
    """The names of requests, told with the ids of the first version."""
    return {request_id: name.replace(RENAMED, "") for request_id, name in request_names(run).items()}


_RECEIPT = re.compile(r"'[^']+': ReceiptRecord\([^)]*\)")


def is_meant(difference: str) -> bool:
    """Tell what is another in the records of another version: the signature, numbers of edges, and the order of
    receipts in one record, which is that of their names."""
    if ": record " not in difference:
        return False
    key, _, rest = difference.partition(": record ")[2].partition(": expected ")
    one, _, other = re.sub(r"edge=\d+", "edge", rest).partition(", found ")
    if key.startswith(" receipts "):
        return sorted(_RECEIPT.findall(one)) == sorted(_RECEIPT.findall(other)) != []
    return key == " signature " or one == other


@dataclass(frozen=True)
class Upgrade(Replay):
    """A replay under a later version of a checkpoint of the first one."""

    first: Workflow | None = None

    def _pending(self) -> PendingRequests:
        assert self.first is not None
        return PendingRequests(self.checkpoint.records, self.first.program.graph, self.first.program.codec)


async def wrong_after_migrations(
    family: FamilyPlan, store: CheckpointStorage, edition: Edition, every: int
) -> list[str]:
    """Take every n-th checkpoint of a run up with a later edition; name what differs from the run of the first."""
    first = build(family)
    facts: RunFacts = await reference_run(Calls(family, first, store, chance=1), "reference")
    later = Calls(family, build(family, edition), store, chance=2)
    wrong: list[str] = []
    for checkpoint in await stored_checkpoints(store, "reference"):
        number = checkpoint.header.seq
        if number % every == 0:
            upgrade = Upgrade(later, facts, checkpoint, f"again {number}", further=1, first=first)
            wrong += await upgrade.compare()
    await store.close()
    return [text for text in wrong if not is_meant(text)]


def told_under_old_names(events: Sequence[Event], names: Mapping[str, str]) -> list[Told]:
    """Events, told with the ids of the first version."""
    text = msgspec.json.encode(told(events, names))
    return msgspec.json.decode(text.replace(RENAMED.encode(), b""), type=list[Told])


@pytest.fixture(autouse=True)
def _told_with_old_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.differential.harness.told", told_under_old_names)
    monkeypatch.setattr("tests.differential.harness.call_facts", under_old_names)
    monkeypatch.setattr("tests.differential.harness.request_names", old_names)


@pytest.mark.parametrize("name", EDITIONS)
@pytest.mark.parametrize("seed", [4, 14, 26, *(pytest.param(seed, marks=pytest.mark.proof) for seed in (8, 17, 38))])
def test_a_run_goes_on_under_a_later_version_as_under_the_first(seed: int, name: str, tmp_path) -> None:
    """Every executor has another id, at every depth, and edges have other numbers: nothing else shows."""
    store = InMemoryCheckpointStorage() if seed % 4 else SqliteCheckpointStorage(tmp_path / "runs.db")
    assert asyncio.run(wrong_after_migrations(draw(seed), store, EDITIONS[name], every=5)) == []


@pytest.mark.proof
@pytest.mark.parametrize("name", EDITIONS)
@pytest.mark.parametrize("seed", range(4000, 4012))
def test_many_runs_go_on_under_a_later_version(seed: int, name: str) -> None:
    """The long form of the same."""
    assert asyncio.run(wrong_after_migrations(draw(seed), InMemoryCheckpointStorage(), EDITIONS[name], every=4)) == []
