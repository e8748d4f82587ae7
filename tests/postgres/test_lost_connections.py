"""Lost connections: what was on its way is found or done again, never twice; who cannot know says so."""

import asyncio
import time
from dataclasses import replace

import msgspec
import pytest
from psycopg.conninfo import make_conninfo

from rehydrate.errors import CommitConflictError, StoreUnavailableError
from rehydrate.model.checkpoint import Latest, Offer
from rehydrate.testing.store_contract import CommitMaker, ManualClock
from tests.postgres.relays import Proxy
from tests.postgres.server import Place

CLOCK = ManualClock()
AT_ONCE = (0.0, 0.0)
PLACES = ["request", "half", "reply", "late"]


@pytest.mark.parametrize("cut_at", PLACES)
@pytest.mark.parametrize("before", [0, 2])
def test_a_commit_whose_connection_is_lost_is_done_once(far: Place, proxy: Proxy, cut_at: str, before: int) -> None:
    """Wherever the line is cut, the commit is acknowledged and there once; what comes late changes nothing."""

    async def main() -> None:
        async with far.store(clock=CLOCK, retry_waits=AT_ONCE) as store:
            maker = CommitMaker()
            await store.runs()
            for number in range(before):
                commit = maker.step({"k": b"%d" % number}) if number else maker.claim()
                await store.commit(commit)
            proxy.cut_at = cut_at
            await store.commit(maker.step({"k": b"cut"}) if before else maker.claim({"k": b"cut"}))
            assert proxy.cut_at is None
            await asyncio.to_thread(proxy.release)
            stored = await store.load(Latest("run"))
            assert stored is not None
            assert (stored.header.seq, stored.records, stored.head.alive) == (before, {"k": b"cut"}, True)
            await store.commit(maker.step({"l": b"after"}))
            assert [header.seq for header in await store.history("run")] == [*range(before + 1, -1, -1)]
            stored = await store.load(Latest("run"))
            assert stored is not None
            assert stored.records == {"k": b"cut", "l": b"after"}

    asyncio.run(main())


@pytest.mark.parametrize("cut_at", PLACES)
def test_commits_that_are_cut_together_are_told_apart(far: Place, proxy: Proxy, cut_at: str) -> None:
    """Of many runs whose transaction was cut, those that had lost their race are refused, all others are done."""

    async def main() -> None:
        async with far.store(clock=CLOCK, retry_waits=AT_ONCE) as store:
            makers = [CommitMaker(f"r{number}") for number in range(20)]
            await asyncio.gather(*(store.commit(maker.claim()) for maker in makers))
            makers[3].head = "stale"
            proxy.cut_at = cut_at
            results = await asyncio.gather(
                *(store.commit(maker.step({"k": b"v"})) for maker in makers), return_exceptions=True
            )
            refused = [number for number, result in enumerate(results) if result is not None]
            assert (refused, type(results[3])) == ([3], CommitConflictError)
            await asyncio.to_thread(proxy.release)
            for maker in makers:
                stored = await store.load(Latest(maker.run_id))
                assert stored is not None
                assert (stored.header.seq, stored.records) == ((0, {}) if maker is makers[3] else (1, {"k": b"v"}))

    asyncio.run(main())


def test_a_commit_is_found_behind_a_head_that_went_on(far: Place, postgres: Place, proxy: Proxy) -> None:
    """Where another process went on before the first attempt could be looked for, it is found in the history."""

    async def main() -> None:
        async with far.store(clock=CLOCK, retry_waits=AT_ONCE) as store, postgres.store(clock=CLOCK) as other:
            maker = CommitMaker()
            await store.commit(maker.claim())
            commit = maker.step({"k": b"mine"})
            heir = maker.copy(owner="heir", tag="heir")
            await other.head("run")
            proxy.cut_at = "reply"
            proxy.meanwhile = lambda: asyncio.run(other.commit(heir.claim({"k": b"theirs"})))
            await store.commit(commit)
            assert [header.checkpoint_id for header in await store.history("run")] == ["run:2heir", "run:1", "run:0"]

    asyncio.run(main())


def test_a_commit_of_another_with_that_number_is_no_answer(far: Place, postgres: Place, proxy: Proxy) -> None:
    """Where another process won while the line was cut before anything was done, the commit is refused."""

    async def main() -> None:
        async with far.store(clock=CLOCK, retry_waits=AT_ONCE) as store, postgres.store(clock=CLOCK) as other:
            maker = CommitMaker()
            await store.commit(maker.claim())
            heir = maker.copy(owner="heir", tag="heir")
            commit = maker.step({"k": b"mine"})
            await other.head("run")
            proxy.cut_at = "request"
            proxy.meanwhile = lambda: asyncio.run(other.commit(heir.claim({"k": b"theirs"})))
            with pytest.raises(CommitConflictError, match="head run:1heir"):
                await store.commit(commit)

    asyncio.run(main())


def test_the_same_claim_of_another_is_no_answer(far: Place, postgres: Place, proxy: Proxy) -> None:
    """Where another process has claimed at the very same instant, with all the same, the run is not ours."""

    async def main() -> None:
        async with far.store(clock=CLOCK, retry_waits=AT_ONCE) as store, postgres.store(clock=CLOCK) as other:
            maker = CommitMaker()
            heir = maker.copy(owner="heir", tag="")
            await other.head("run")
            proxy.cut_at = "request"
            proxy.meanwhile = lambda: asyncio.run(other.commit(heir.claim({"k": b"v"})))
            with pytest.raises(CommitConflictError):
                await store.commit(maker.claim({"k": b"v"}))
            head = await other.head("run")
            assert head is not None
            assert head.owner == "heir"

    asyncio.run(main())


@pytest.mark.parametrize(("cut_at", "is_there"), [("request", False), ("reply", True)])
def test_a_commit_that_cannot_be_looked_for_is_said_to_be_in_doubt(
    far: Place, proxy: Proxy, cut_at: str, is_there: bool
) -> None:
    """A server that stays away after the cut gives an error that says what is not known; then it can be seen."""

    async def main() -> None:
        async with far.store(clock=CLOCK, retry_waits=AT_ONCE) as store:
            maker = CommitMaker()
            await store.commit(maker.claim())
            proxy.cut_at = cut_at
            proxy.meanwhile = proxy.refuse
            with pytest.raises(StoreUnavailableError, match="not known whether that was done, and then") as no:
                await store.commit(maker.step({"k": b"v"}))
            assert str(no.value).endswith("What was done is found then, and nothing is done twice.")
            proxy.accept()
            assert await store.read("run", ["k"]) == ({"k": b"v"} if is_there else {})

    asyncio.run(main())


@pytest.mark.parametrize("cut_at", PLACES)
def test_a_lease_is_renewed_and_a_run_deleted_although_the_line_is_cut(far: Place, proxy: Proxy, cut_at: str) -> None:
    """Both may be done twice: the second time finds nothing else to do."""
    clock = ManualClock()

    async def main() -> None:
        async with far.store(clock=clock, retry_waits=AT_ONCE) as store:
            maker = CommitMaker()
            await store.commit(maker.claim())
            clock.now += 20
            proxy.cut_at = cut_at
            await store.renew("run", "owner", 1, 30)
            clock.now += 20
            head = await store.head("run")
            assert head is not None
            assert head.alive
            await store.commit(maker.end())
            proxy.cut_at = cut_at
            assert await store.delete("run") is True
            assert await store.delete("run") is False
            await store.commit(CommitMaker(tag="again").claim())
            await asyncio.to_thread(proxy.release)
            assert [header.checkpoint_id for header in await store.runs()] == ["run:0again"]

    asyncio.run(main())


@pytest.mark.parametrize("cut_at", PLACES)
def test_what_is_written_beside_commits_is_written_once(far: Place, proxy: Proxy, cut_at: str) -> None:
    """Offers, names, forgotten checkpoints and whole runs come out the same although the line is cut."""

    async def main() -> None:
        async with far.store(clock=CLOCK, retry_waits=AT_ONCE) as store:
            maker = CommitMaker()
            for commit in (maker.claim({"k": b"0"}), maker.step({"k": b"1"}), maker.end({"k": b"2"})):
                await store.commit(commit)
            proxy.cut_at = cut_at
            assert await store.offer(Offer("run", "a", b"first")) == 1
            assert await store.offer(Offer("run", "b", b"second")) == 2
            proxy.cut_at = cut_at
            await store.commit(msgspec.structs.replace(maker.claim(), taken=(1,)))
            assert [offer.number for offer in await store.offers("run")] == [2]
            proxy.cut_at = cut_at
            await store.tag("run", "good", "run:1")
            proxy.cut_at = cut_at
            assert await store.forget("run", [0, 1, 2]) == [0, 2]
            await store.commit(maker.end())
            archive = await store.archive("run")
            assert archive is not None
            assert await store.delete("run") is True
            proxy.cut_at = cut_at
            await store.adopt(archive)
            assert proxy.cut_at is None
            await asyncio.to_thread(proxy.release)
            assert await store.archive("run") == archive

    asyncio.run(main())


def test_a_server_that_is_gone_is_an_error_and_one_that_is_back_is_used(far: Place, proxy: Proxy) -> None:
    """Calls fail with what to do next while nobody answers, as often as was asked for, and work again afterwards."""

    async def main() -> None:
        async with far.store(clock=CLOCK, retry_waits=AT_ONCE) as store:
            await store.commit(CommitMaker().claim({"k": b"v"}))
            proxy.refuse()
            proxy.cut()
            read, *writes = [
                store.head("run"),
                store.renew("run", "owner", 1, 30),
                store.offer(Offer("run", "key", b"body")),
                store.commit(CommitMaker("b").claim()),
            ]
            with pytest.raises(StoreUnavailableError, match="Check that the server runs and can be reached") as no:
                await read
            assert "not known" not in str(no.value)
            for call in writes:
                with pytest.raises(StoreUnavailableError, match="Check that the server runs and can be reached"):
                    await call
            proxy.accept()
            assert await store.read("run", ["k"]) == {"k": b"v"}
            await store.commit(CommitMaker("c").claim())

    asyncio.run(main())


def test_waits_before_further_attempts_are_those_of_the_store(
    far: Place, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that is away is tried again after each of the waits, and then no more."""
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)

    async def main() -> None:
        async with far.store(clock=CLOCK, retry_waits=(0.25, 4.0)) as store:
            proxy.refuse()
            with pytest.raises(StoreUnavailableError):
                await store.head("run")

    asyncio.run(main())
    assert slept == [0.25, 4.0]


def test_connections_that_the_server_has_ended_are_made_anew(postgres: Place) -> None:
    """A restart of the server, or an administrator, costs a call no more than another attempt."""
    end_all = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s"
    named = replace(postgres, url=make_conninfo(postgres.url, application_name=postgres.schema))

    async def main() -> None:
        async with named.store(clock=CLOCK, retry_waits=AT_ONCE) as store:
            maker = CommitMaker()
            await store.commit(maker.claim())
            for number in range(5):
                await asyncio.to_thread(postgres.ask, end_all, (postgres.schema,))
                await store.commit(maker.step({"k": b"%d" % number}))
                await asyncio.to_thread(postgres.ask, end_all, (postgres.schema,))
                assert await store.read("run", ["k"]) == {"k": b"%d" % number}

    asyncio.run(main())
