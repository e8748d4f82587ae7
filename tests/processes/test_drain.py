"""SIGTERM drains a program: its runs are handed on, it exits as the field expects, and another process ends them."""

import asyncio
import signal
from collections import Counter
from pathlib import Path

import pytest

from rehydrate import SqliteCheckpointStorage, Status
from tests.processes.drained import Journal, flow


def told(folder: Path, kinds: list[str], grace: float = 20.0, *, sync: bool = False) -> dict[str, object]:
    return {"file": str(folder / "runs.db"), "journal": str(folder / "a"), "kinds": kinds, "grace": grace, "sync": sync}


def entries(path: Path) -> Counter[str]:
    return Counter(path.read_text().splitlines())


def terminated(nursery, folder, kinds, grace=20.0, *, sync=False):
    """Start a program, wait until all its runs work, send SIGTERM and return how it exited."""
    child = nursery.child("drained", told(folder, kinds, grace, sync=sync))
    assert sorted(child.receive() for _ in kinds) == sorted(kinds)
    child.signal(signal.SIGTERM)
    return child.wait()


def goes_on(folder, kinds):
    """End all runs here, in another process; return how they stood, and what came out."""
    workflow = flow(folder / "runs.db", Journal(folder / "b"), waits=False)
    reference = flow(folder / "reference.db", Journal(folder / "c"), waits=False)

    async def scenario():
        async with SqliteCheckpointStorage(folder / "runs.db") as store:
            heads = [await store.head(kind) for kind in kinds]
        found = [await workflow.run(checkpoint="latest", run_id=kind) for kind in kinds]
        expected = [await reference.run(kind, run_id=kind) for kind in kinds]
        return heads, [facts(result) for result in found], [facts(result) for result in expected]

    return asyncio.run(scenario())


def facts(result):
    return result.status, result.outputs, dict(result.checkpoint.state), result.turn


@pytest.mark.promise("drain", "programs of other kinds that are told to end")
@pytest.mark.parametrize("kind", ["polite", "stuck", "thread"])
def test_a_program_that_runs_a_workflow_in_sync_is_drained(nursery, tmp_path, kind):
    """It exits with 143 and the run goes on at once in another process; what had finished does not run again."""
    grace = 20.0 if kind == "polite" else 0.2
    assert terminated(nursery, tmp_path, [kind], grace, sync=True) == 128 + signal.SIGTERM
    heads, found, expected = goes_on(tmp_path, [kind])
    assert [(head.header.status, head.owner) for head in heads] == [(Status.RUNNING, None)]
    assert found == expected
    again = entries(tmp_path / "a") & entries(tmp_path / "b")
    assert again == (Counter() if kind == "polite" else Counter([f"{kind} work"]))


@pytest.mark.promise("drain", "programs of other kinds that are told to end")
def test_all_runs_of_an_asyncio_program_are_drained(nursery, tmp_path):
    """Three runs in different straits; each ends elsewhere as the uninterrupted one does."""
    kinds = ["polite", "stuck", "thread"]
    assert terminated(nursery, tmp_path, kinds, 0.5) == 128 + signal.SIGTERM
    heads, found, expected = goes_on(tmp_path, kinds)
    assert [(head.header.status, head.owner) for head in heads] == [(Status.RUNNING, None)] * 3
    assert found == expected
    assert found[0][1] == ["polite: worked on polite, looked at polite"]
    again = entries(tmp_path / "a") & entries(tmp_path / "b")
    assert again == Counter(["stuck work", "thread work"])


@pytest.mark.promise("drain", "programs of other kinds that are told to end")
def test_a_second_signal_does_not_wait(nursery, tmp_path):
    """The process exits at once; its runs are taken up as those of a killed one."""
    child = nursery.child("drained", told(tmp_path, ["stuck"], grace=600.0))
    assert child.receive() == "stuck"
    child.signal(signal.SIGTERM)
    assert child.receive() == "draining"
    child.signal(signal.SIGTERM)
    assert child.wait() == 128 + signal.SIGTERM
    _, found, expected = goes_on(tmp_path, ["stuck"])
    assert found == expected


@pytest.mark.promise("drain", "programs of other kinds that are told to end")
def test_a_former_handler_is_called_once_all_is_drained(nursery, tmp_path):
    """It decides how the program ends, and whoever waited for a run is told."""
    child = nursery.child("chained", told(tmp_path, ["polite"]))
    assert child.receive() == "polite"
    child.signal(signal.SIGTERM)
    assert sorted(str(child.receive()) for _ in range(2)) == ["former handler", "run-drained"]
    assert child.wait() == 0
    _, found, expected = goes_on(tmp_path, ["polite"])
    assert found == expected


def test_the_child_of_a_fork_has_no_hook(nursery, tmp_path):
    """A signal to it ends it as if there was none, and does not drain its parent."""
    child = nursery.child("forking", told(tmp_path, []))
    assert (child.receive(), child.receive()) == (-signal.SIGTERM, False)
    assert child.wait() == 0


def test_a_program_that_comes_to_its_own_end_is_not_disturbed(nursery, tmp_path):
    """Its only run ends while it is drained: nothing is broken off at its exit, and it has its own status."""
    for _ in range(4):
        child = nursery.child("ending", {**told(tmp_path, []), "errors": str(tmp_path / "errors")})
        assert child.receive() == "a"
        child.signal(signal.SIGTERM)
        assert child.wait() == 0
    assert (tmp_path / "errors").read_text() == ""
