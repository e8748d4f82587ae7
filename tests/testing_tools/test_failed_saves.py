"""`assert_bears_failed_saves`: each save fails once, before or after it was written, and the same call goes on."""

import asyncio
from collections import Counter

import pytest

from rehydrate import FunctionalContext, SqliteCheckpointStorage, WorkflowBuilder, executor, step, workflow
from rehydrate.testing import FailedSaveError, assert_bears_failed_saves
from tests.testing_tools.flows import ByClass, Faithful, desk, sign, split

ANSWERS = {"asker": "yes"}


def test_a_faithful_workflow_bears_each_failed_save():
    """Two turns, a pause in each, two levels deep: every one of twelve saves fails twice."""
    tried = asyncio.run(assert_bears_failed_saves(lambda: desk(Faithful), "a b", "c", answers=ANSWERS))
    assert tried == 24


def test_each_run_may_have_a_file_of_its_own(tmp_path):
    """Over SQLite the same holds."""
    numbers = iter(range(1000))
    check = assert_bears_failed_saves(
        desk(), "a", answers=ANSWERS, make_store=lambda: SqliteCheckpointStorage(tmp_path / f"{next(numbers)}.db")
    )
    assert asyncio.run(check) == 12
    assert next(numbers) == 13


def test_what_is_counted_beside_the_run_is_counted_twice():
    """The process goes on after a failed save, with what it had noted before."""
    with pytest.raises(FailedSaveError) as raised:
        asyncio.run(assert_bears_failed_saves(desk(ByClass), "a", answers=ANSWERS))
    assert raised.value.differences == {
        "commit 3 fails": ("call 2: outputs: ['a: yes 1!'] uninterrupted, ['a: yes 2!'] here",)
    }
    assert "done twice" in str(raised.value)


def paying(bank, pays):
    @executor(id="pay")
    async def pay(text: str) -> str:
        return f"{text} {pays(bank, text)}"

    return WorkflowBuilder("paying", split).add_chain([split, pay, sign]).build()


def test_an_effect_that_cannot_be_done_twice_is_found():
    """A payment is made again where its save failed, unless the bank knows it by a key."""
    bank: Counter[str] = Counter()

    def always(bank, text):
        bank[text] += 1
        return bank[text]

    def once(bank, text):
        bank[text] = 1
        return bank[text]

    with pytest.raises(FailedSaveError) as raised:
        asyncio.run(assert_bears_failed_saves(paying(bank, always), "a"))
    assert list(raised.value.differences) == ["commit 3 fails"]
    assert asyncio.run(assert_bears_failed_saves(paying(bank, once), "a")) == 8


def test_a_handler_that_fails_the_second_time_is_named():
    """What the call that is made again raises is the difference."""
    done: set[str] = set()

    def only_once(bank, text):
        if text in done:
            raise ValueError(f"{text} was paid")
        done.add(text)
        return "paid"

    with pytest.raises(FailedSaveError) as raised:
        asyncio.run(assert_bears_failed_saves(paying({}, only_once), "a"))
    (text,) = raised.value.differences["commit 3 fails"]
    assert text.startswith("it raised RunFailedError")
    assert "a was paid" in text


def test_a_function_bears_failed_saves_of_its_steps():
    """A step whose save failed runs again, the others do not."""

    @step
    async def double(number: int) -> int:
        return number * 2

    def build():
        @workflow(name="adding")
        async def adding(number: int, ctx: FunctionalContext) -> int:
            one, other = await ctx.gather(double(number), double(number + 1))
            return one + other + await ctx.request_info("more?", response_type=int)

        return adding

    assert asyncio.run(assert_bears_failed_saves(build, 1, 2, answers=lambda _: 3)) > 10
