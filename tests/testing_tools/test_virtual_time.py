"""Virtual time: waiting takes none, and time stands still while a thread or a store is at work."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from rehydrate import InMemoryCheckpointStorage, SqliteCheckpointStorage, WorkflowBuilder, executor
from rehydrate.ports.clock import wall_time
from rehydrate.testing import StuckError, VirtualClock, run_virtually

YEAR = 365 * 86400.0


def now():
    return asyncio.get_running_loop().time()


def test_a_year_passes_at_once():
    """A sleep of a year takes no real time, and the loop's clock says that it has passed."""

    async def scenario():
        began = time.monotonic()
        await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=YEAR)
        return now(), time.monotonic() - began

    passed, real = run_virtually(scenario())
    assert passed == YEAR
    assert real < 5.0


def test_timers_fire_in_the_order_of_their_times_at_their_times():
    """Whoever waits for less is woken first, in every run of the same."""

    async def scenario():
        told = []

        async def wake(seconds, times):
            for _ in range(times):
                await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=seconds)
                told.append((now(), seconds))

        await asyncio.gather(wake(2.0, 2), wake(1.5, 2), wake(0.5, 1))
        return told

    assert run_virtually(scenario()) == [(0.5, 0.5), (1.5, 1.5), (2.0, 2.0), (3.0, 1.5), (4.0, 2.0)]


def test_a_timeout_of_an_hour_ends_after_an_hour_of_virtual_time():
    """`asyncio.timeout` is on the same clock."""

    async def scenario():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3600):
                await asyncio.Event().wait()
        return now()

    assert run_virtually(scenario()) == 3600.0


@pytest.mark.parametrize("kind", ["to_thread", "handler"])
def test_time_stands_still_while_a_thread_is_at_work(kind):
    """A timer does not fire before a thread that is waited for is back, however soon it is set."""
    told = []

    def work(number: int) -> int:
        threading.Event().wait(0.2)  # real time, in which a loop that did not wait would come to its timer
        told.append("thread")
        return number

    async def scenario():
        asyncio.get_running_loop().call_later(0.001, told.append, "timer")
        if kind == "handler":
            await WorkflowBuilder("plain", executor(id="work")(work)).build().run(1)
        else:
            await asyncio.to_thread(work, 1)
        began = now()
        await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=1)
        return began

    assert run_virtually(scenario()) == 0.0
    assert told == ["thread", "timer"]


def test_time_stands_still_while_an_attempt_waits_for_the_thread_of_the_one_before():
    """A run that goes on after a cancellation waits for the thread that was left behind; no time passes meanwhile."""
    entered, freed = threading.Event(), threading.Event()
    store = InMemoryCheckpointStorage()

    @executor(id="plain")
    def plain(text: str) -> str:
        if not entered.is_set():
            entered.set()
            freed.wait(30)
        return text

    async def scenario():
        workflow = WorkflowBuilder("plain", plain, checkpoint_storage=store).build()
        call = asyncio.create_task(workflow.run("a", run_id="run"))
        await asyncio.to_thread(entered.wait, 10)
        call.cancel()
        await asyncio.wait([call])
        timer = asyncio.get_running_loop().call_later(YEAR, freed.set)
        threading.Timer(0.2, freed.set).start()  # real time, in which a loop that did not wait would come to its timer
        result = await workflow.run(checkpoint="latest", run_id="run")
        timer.cancel()
        return result.outputs, now()

    assert run_virtually(scenario()) == (["a"], 0.0)


@executor(id="slow")
async def slow(seconds: float) -> float:
    await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=seconds)
    return seconds


@executor(id="plain")
def plain(seconds: float) -> str:
    return f"after {seconds:g}"


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_run_of_a_day_has_the_same_times_in_every_store(kind, tmp_path):
    """Its checkpoints are made at the times of the clock, and the store's thread is waited for."""

    async def scenario():
        store = InMemoryCheckpointStorage() if kind == "memory" else SqliteCheckpointStorage(tmp_path / "runs.db")
        workflow = WorkflowBuilder("slow", slow, checkpoint_storage=store).add_chain([slow, plain]).build()
        result = await workflow.run(86400.0, run_id="day")
        created = [header.created for header in await store.history("day")]
        await store.close()
        return result.outputs, created

    clock = VirtualClock(start=5000.0)
    outputs, created = run_virtually(scenario(), clock=clock)
    assert outputs == ["after 86400"]
    assert created == [91400.0, 91400.0, 5000.0]
    assert clock.time() == 91400.0


def test_the_time_of_the_process_is_real_again_afterwards():
    """While it lasts whoever was given no clock tells the virtual time."""

    async def scenario():
        return wall_time()

    assert run_virtually(scenario(), clock=VirtualClock(start=7.0)) == 7.0
    assert abs(wall_time() - time.time()) < 60


def test_two_threads_do_not_share_virtual_time():
    """The time is the process's, so a second one at once is refused."""

    async def scenario():
        inner = asyncio.Event().wait()
        await asyncio.to_thread(run_virtually, inner)

    with pytest.raises(RuntimeError, match="another thread"):
        run_virtually(scenario())


async def hang(store, work):
    await WorkflowBuilder("hanging", work, checkpoint_storage=store).build().run(1)


@executor(id="waits")
async def waits(number: int) -> int:
    await asyncio.Event().wait()
    return number


FREED = threading.Event()


@executor(id="blocks")
def blocks(number: int) -> int:
    FREED.wait(30)
    return number


@pytest.mark.parametrize(
    ("work", "said"), [(waits, "no thread is at work"), (blocks, r"1 call\(s\) on threads are not back")]
)
@pytest.mark.parametrize("stored", [False, True])
def test_a_run_that_can_never_go_on_is_told_instead_of_hanging(work, said, stored):
    """The heartbeat of its lease, for which nobody waits, does not let time run on for ever."""
    FREED.clear()
    store = InMemoryCheckpointStorage() if stored else None
    with pytest.raises(StuckError, match=said):
        run_virtually(hang(store, work), patience=0.1)
    FREED.set()


def test_a_thread_that_does_not_come_back_does_not_stop_a_timeout():
    """After the patience time goes on to the next timer without it."""
    FREED.clear()

    async def scenario():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60):
                await hang(None, blocks)
        return now()

    assert run_virtually(scenario(), patience=0.1) == 60.0
    FREED.set()


def test_time_does_not_go_back():
    """A clock that is advanced by less than nothing refuses."""
    clock = VirtualClock(start=0.0)
    clock.advance(2.5)
    with pytest.raises(ValueError, match="cannot go back"):
        clock.advance(-1)
    assert clock.time() == 2.5


def test_the_end_waits_for_threads_that_nobody_waited_for():
    """The limit that a loop has for that, five minutes, is over at once in virtual time; it is not counted."""
    ended = []

    async def scenario():
        pool = ThreadPoolExecutor(1)
        asyncio.get_running_loop().set_default_executor(pool)
        pool.submit(lambda: ended.append(sum(range(500_000))))

    run_virtually(scenario())
    assert ended == [124999750000]
