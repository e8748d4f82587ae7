"""`assert_bears_failed_saves`: each save fails once, before or after it was written, and the same call goes on."""

from collections import Counter

import pytest

from rehydrate import FunctionalContext, SqliteCheckpointStorage, WorkflowBuilder, executor, step, workflow
from rehydrate.testing import FailedSaveError, assert_bears_failed_saves, run_virtually
from tests.testing_tools.flows import ByClass, Faithful, desk, sign, split

ANSWERS = {"asker": "yes"}


@pytest.mark.promise("P2", "saves that fail, before or after they are written")
def test_a_faithful_workflow_bears_each_failed_save(tried):
    """A pause two levels deep: every one of six saves fails twice."""
    count = run_virtually(assert_bears_failed_saves(lambda: desk(Faithful), ["a b"], answers=ANSWERS))
    assert count == 12
    tried(count)


def test_several_inputs_are_turns_of_one_run():
    """The saves of each of them fail."""
    assert run_virtually(assert_bears_failed_saves(WorkflowBuilder("signing", sign).build(), ["a", "b", "c"])) == 12


def test_each_run_may_have_a_file_of_its_own(tmp_path):
    """Over SQLite the same holds."""
    numbers = iter(range(1000))
    flow = WorkflowBuilder("signing", sign).build()
    check = assert_bears_failed_saves(
        flow, ["a"], make_store=lambda: SqliteCheckpointStorage(tmp_path / f"{next(numbers)}.db")
    )
    assert run_virtually(check) == 4
    assert next(numbers) == 5


def test_what_is_counted_beside_the_run_is_counted_twice():
    """The process goes on after a failed save, with what it had noted before."""
    with pytest.raises(FailedSaveError) as raised:
        run_virtually(assert_bears_failed_saves(desk(ByClass), ["a"], answers=ANSWERS))
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
        run_virtually(assert_bears_failed_saves(paying(bank, always), ["a"]))
    assert list(raised.value.differences) == ["commit 3 fails"]
    assert run_virtually(assert_bears_failed_saves(paying(bank, once), ["a"])) == 8


def test_a_handler_that_fails_the_second_time_is_named():
    """What the call that is made again raises is the difference."""
    done: set[str] = set()

    def only_once(bank, text):
        if text in done:
            raise ValueError(f"{text} was paid")
        done.add(text)
        return "paid"

    with pytest.raises(FailedSaveError) as raised:
        run_virtually(assert_bears_failed_saves(paying({}, only_once), ["a"]))
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

    assert run_virtually(assert_bears_failed_saves(build, [1], answers=lambda _: 3)) == 10
