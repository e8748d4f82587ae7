"""P2 on PostgreSQL: servers that are ended under load, and lines that are cut around COMMIT."""

import asyncio
import secrets
from pathlib import Path

import pytest

from rehydrate.errors import RehydrateError
from tests.postgres.relays import Proxy
from tests.postgres.server import Place
from tests.proof.cuts import PLACES, Cuts, own_server
from tests.proof.p02_load import Load, Told, set_up
from tests.proof.talks import Journal, NotedPostgres, expected, findings, talks

AT_ONCE = (0.0, 0.0)


@pytest.fixture
def proxy(postgres: Place):
    """A proxy to the server that can cut its lines."""
    found = Proxy(postgres.url)
    yield found
    found.close()


def talk_through(proxy: Proxy, place: Place, journal: Path, told: Told, waits: tuple[float, ...]) -> list[str]:
    """Have talks by way of the proxy, one after the other; return what is wrong afterwards."""
    reference = expected(told)

    async def main() -> list[str]:
        tools, found = Journal(journal), []
        store = NotedPostgres(proxy.url, schema=place.schema, retry_waits=waits)
        store.journal = tools
        async with store, place.store() as direct:
            for talk in talks(store, tools, told):
                try:
                    for _ in range(talk.turns):
                        await talk.turn()
                except RehydrateError as error:
                    found.append(f"{talk.run_id}: {error}")
                if talk.results != reference[talk.run_id]:
                    found.append(f"{talk.run_id}: {talk.results}")
            await asyncio.to_thread(proxy.release)
            tools.close()
            return found + await findings(direct, journal, [told])

    return asyncio.run(main())


def make_schema(place: Place) -> None:
    """Let no talk begin with it: that takes several commits."""

    async def main() -> None:
        async with place.store() as store:
            await store.runs()

    asyncio.run(main())


def cut_every_other_one(proxy: Proxy, place: Place, folder: Path, where: str, told: Told) -> tuple[int, list[str]]:
    """Cut every other commit, so that what was cut is let through when it comes again; return how many were."""
    make_schema(place)
    cuts = Cuts(proxy, [where], lambda number: number % 2 == 0)
    found = talk_through(proxy, place, folder / "journal", told, AT_ONCE)
    return cuts.made, found


@pytest.mark.promise("P2", "PostgreSQL: lines cut around a commit, which the store repeats")
@pytest.mark.parametrize("where", PLACES)
def test_every_commit_is_cut_once_and_there_once(postgres, proxy, tmp_path, tried, where) -> None:
    """The store makes each commit again on another connection: it is done, or found, and no call notices."""
    told = {"name": "run", "runs": 2, "turns": 4, "seed": 7}
    made, found = cut_every_other_one(proxy, postgres, tmp_path, where, told)
    assert found == []
    assert made > 15
    tried(made)


@pytest.mark.proof
@pytest.mark.promise("P2", "PostgreSQL: lines cut around a commit, which the caller repeats")
@pytest.mark.parametrize("where", PLACES)
def test_a_call_that_is_cut_at_any_commit_is_made_again(postgres, proxy, tmp_path, tried, where) -> None:
    """The store tries nothing twice; whichever commit is cut, the same call again, or a continuation, finishes it."""
    make_schema(postgres)
    made = 0
    for number in range(24):
        told = {"name": f"cut at {number},", "runs": 2, "turns": 4, "seed": 100 + number}
        cuts = Cuts(proxy, [where], lambda seen, first=number: seen % 24 == first)
        assert talk_through(proxy, postgres, tmp_path / str(number), told, ()) == [], told
        made += cuts.made
    assert made >= 24
    tried(made)


@pytest.mark.proof
@pytest.mark.promise("P2", "PostgreSQL: servers ended under load, with lines cut by chance")
@pytest.mark.parametrize("part", range(2))
def test_servers_are_ended_under_load(nursery, tmp_path, tried, part) -> None:
    """Immediate and fast restarts, killed servers, killed backends: nothing acknowledged is lost, nothing is half."""
    seed = secrets.randbits(32)
    told: list[Told] = [{"name": f"p{n}", "runs": 8, "turns": 12, "seed": seed + 100 * n} for n in range(3)]
    with own_server(tmp_path) as server:
        set_up(server)
        load = Load(nursery, server, tmp_path, told, seed)
        try:
            load.run(12)
            assert load.findings() == [], f"seed {seed}"
        finally:
            load.close()
        assert load.repeated > server.ends
        tried(server.ends)
