"""Events in a SQLite file: damage is reported where they are read, and never touches the run itself."""

import asyncio
from pathlib import Path

import pytest

from rehydrate import Workflow, WorkflowBuilder, executor
from rehydrate.errors import CheckpointCorruptError, EventsNotKeptError, RehydrateError
from rehydrate.model.events import Event
from rehydrate.stores.sqlite import SqliteCheckpointStorage
from tests.stores.raw import change


def echo(path: Path) -> tuple[Workflow, SqliteCheckpointStorage]:
    """Make a workflow of one executor on a file that keeps events."""

    @executor(id="echo")
    async def echo(text: str) -> str:
        return text

    store = SqliteCheckpointStorage(path, keep_events=True)
    return WorkflowBuilder("echo", echo, checkpoint_storage=store).build(), store


def read(path: Path, run_id: str) -> list[Event]:
    """Read the events of a run with a store object of its own."""

    async def main() -> list[Event]:
        workflow, store = echo(path)
        async with store:
            return [event async for event in workflow.events(run_id)]

    return asyncio.run(main())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with two runs of five events each."""

    async def fill() -> None:
        workflow, store = echo(tmp_path / "runs.db")
        async with store:
            for run_id in ("one", "two"):
                await workflow.run("text", run_id=run_id)

    asyncio.run(fill())
    return tmp_path / "runs.db"


ONE = "run = (SELECT no FROM rehydrate_run WHERE run_id = 'one')"
BODY = "(SELECT body FROM rehydrate_event WHERE {} AND number = {})"


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        (f"DELETE FROM rehydrate_event WHERE {ONE} AND number = 3", EventsNotKeptError),
        (f"DELETE FROM rehydrate_event WHERE {ONE} AND number > 3", EventsNotKeptError),
        (f"DELETE FROM rehydrate_event WHERE {ONE}", EventsNotKeptError),
        (f"UPDATE rehydrate_event SET body = substr(body, 1, 20) WHERE {ONE} AND number = 3", CheckpointCorruptError),
        (f"UPDATE rehydrate_event SET body = 'text' WHERE {ONE} AND number = 3", CheckpointCorruptError),
        (f"UPDATE rehydrate_event SET body = {BODY.format(ONE, 4)} WHERE {ONE} AND number = 3", CheckpointCorruptError),
        (
            f"UPDATE rehydrate_event SET body = {BODY.format(f'NOT {ONE}', 3)} WHERE {ONE} AND number = 3",
            CheckpointCorruptError,
        ),
    ],
    ids=["one lost", "the end lost", "all lost", "cut", "text", "swapped", "of another run"],
)
def test_damaged_events_are_reported(path: Path, damage: str, error: type[RehydrateError]) -> None:
    """A lost, cut, swapped or foreign event is an error; the other run's are whole."""
    assert [event.sequence for event in read(path, "one")] == [1, 2, 3, 4, 5]
    assert change(path, damage) >= 1
    with pytest.raises(error, match=r"\bone\b"):
        read(path, "one")
    assert [event.run_id for event in read(path, "two")] == ["two"] * 5


def test_a_run_goes_on_whatever_became_of_its_events(path: Path) -> None:
    """Events stand outside of the record sum: without them the run goes on, with the next numbers."""
    change(path, "DELETE FROM rehydrate_event")

    async def go_on() -> list[int]:
        workflow, store = echo(path)
        async with store:
            result = await workflow.run("more", run_id="one", checkpoint="latest")
            assert result.outputs == ["more"]
            return [event.sequence async for event in workflow.events("one", after=5)]

    assert asyncio.run(go_on()) == [6, 7, 8, 9, 10]


def test_an_event_in_the_way_of_a_new_one_is_damage(path: Path) -> None:
    """A row under a number that the run has not come to is never overwritten or kept beside: the save fails."""
    change(
        path, f"INSERT INTO rehydrate_event SELECT NULL, run, 6, body FROM rehydrate_event WHERE {ONE} AND number = 5"
    )

    async def go_on() -> None:
        workflow, store = echo(path)
        async with store:
            await workflow.run("more", run_id="one", checkpoint="latest")

    with pytest.raises(CheckpointCorruptError, match="rehydrate_event"):
        asyncio.run(go_on())
