"""What a PostgreSQL store says of itself, and that saying it changes nothing."""

import asyncio

from rehydrate.ports import Examination
from tests.postgres.server import Place
from tests.postgres.test_schema import fill


def examined(place: Place, **options: object) -> Examination:
    async def main() -> Examination:
        async with place.store(**options) as store:
            return await store.examine()

    return asyncio.run(main())


def levels(found: Examination) -> dict[str, str]:
    return {finding.about: finding.level for finding in found.findings}


def test_a_schema_that_is_well_says_so_of_each_part(postgres: Place) -> None:
    """The server, durability, connections, migrations, rights and space."""
    fill(postgres)
    found = examined(postgres)
    told = levels(found)
    assert found.usable
    assert list(told) == ["server", "durability", "connections", "migrations", "rights", "space"]
    assert {told[each] for each in ("server", "connections", "migrations", "rights", "space")} == {"ok"}


def test_looking_makes_no_schema(postgres: Place) -> None:
    """An empty place is a problem and stays empty."""
    found = examined(postgres)
    assert (found.usable, levels(found)["schema"]) == (False, "problem")
    assert postgres.ask("SELECT 1 FROM pg_namespace WHERE nspname = %s", (postgres.schema,)) == []


def test_migrations_that_are_missing_or_changed_are_told_and_left(postgres: Place) -> None:
    """Missing is a note, changed a problem; opening the store is for somebody else."""
    fill(postgres)
    rows = postgres.ask("SELECT number FROM rehydrate.migration ORDER BY number")
    postgres.change("UPDATE rehydrate.migration SET checksum = 'x' WHERE number = 1")
    assert (examined(postgres).usable, levels(examined(postgres))["migrations"]) == (False, "problem")
    postgres.change("DELETE FROM rehydrate.migration")
    found = examined(postgres)
    assert (found.usable, levels(found)["migrations"]) == (False, "note")
    assert postgres.ask("SELECT number FROM rehydrate.migration") == []
    assert rows


def test_a_server_that_cannot_be_reached_is_a_problem_without_its_password() -> None:
    """At once, with the next action."""
    found = examined(Place("postgresql://me:secret@127.0.0.1:1/runs", "rehydrate"))
    (told,) = found.findings
    assert (told.level, found.usable) == ("problem", False)
    assert "secret" not in told.text + told.action
    assert told.action
