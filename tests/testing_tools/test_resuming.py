"""`assert_resumable`: state that a restart would lose is found, and named."""

import asyncio
import itertools

import pytest

from rehydrate import SqliteCheckpointStorage, WorkflowBuilder, executor
from rehydrate.testing import ResumabilityError, assert_resumable
from tests.testing_tools import flows
from tests.testing_tools.flows import (
    Asker,
    ByAttribute,
    ByClass,
    ByCounter,
    ByGlobal,
    ByObject,
    Faithful,
    desk,
    sign,
    split,
)

ANSWERS = {"asker": "yes"}


def lost(workflow, message="a b", **options):
    with pytest.raises(ResumabilityError) as raised:
        asyncio.run(assert_resumable(workflow, message, answers=ANSWERS, **options))
    return raised.value


@pytest.mark.parametrize("kind", [Asker, Faithful])
@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_a_workflow_whose_state_is_in_its_run_survives(kind, store, tmp_path):
    """It is restored once at each of its checkpoints, and ends as the uninterrupted run did."""
    numbers = itertools.count()
    make_store = None if store == "memory" else lambda: SqliteCheckpointStorage(tmp_path / f"{next(numbers)}.db")
    driven = asyncio.run(assert_resumable(lambda: desk(kind), "a b", answers=ANSWERS, make_store=make_store))
    kept = {Asker: "", Faithful: " ['{}']"}[kind]
    assert driven.outputs == [f"a: yes{kept.format('a')}!", f"b: yes{kept.format('b')}!"]
    assert driven.crashes >= 5


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        (ByClass, "executor 'asking/asker': class attribute ByClass.total: 0 became 2"),
        (ByAttribute, "executor 'asking/asker': attribute 'heard': [] became ['a', 'b']"),
        (ByObject, "executor 'asking/asker': attribute 'desk'.notes: {} became {'a': 1, 'b': 1}"),
        (ByGlobal, "executor 'asking/asker': global 'HEARD' of module tests.testing_tools.flows: [] became ['a', 'b']"),
        (
            ByCounter,
            "executor 'asking/asker': global 'NUMBERS' of module tests.testing_tools.flows: count(1) became count(5)",
        ),
    ],
)
@pytest.mark.parametrize("built", ["once", "anew"])
def test_state_beside_the_run_is_found_and_named(kind, named, built, monkeypatch):
    """Class attributes, attributes, objects in attributes, globals and counters, with and without new executors."""
    monkeypatch.setattr(ByClass, "total", 0)
    monkeypatch.setattr(flows, "HEARD", [])
    monkeypatch.setattr(flows, "NUMBERS", itertools.count(1))
    error = lost(desk(kind) if built == "once" else lambda: desk(kind))
    assert error.suspects == (named,)
    assert {text[:16] for texts in error.differences.values() for text in texts} == {"call 2: outputs:"}
    assert "on_checkpoint_save" in str(error)


def test_a_variable_around_a_function_is_found():
    """A closure that counts is state beside the run."""

    count = 0

    @executor(id="number")
    async def number(text: str) -> str:
        nonlocal count
        count += 1
        return text

    @executor(id="tell")
    async def tell(text: str) -> str:
        return f"{text} of {count}"

    error = lost(WorkflowBuilder("counting", split).add_chain([split, number, tell]).build())
    assert error.suspects == ("executor 'number': variable 'count' around number: 0 became 2",)
    told = ("call 1: outputs: ['a of 2', 'b of 2'] uninterrupted, ['a of 0', 'b of 0'] here",)
    assert error.differences == {2: told}
    assert "- checkpoint 2: call 1: outputs" in str(error)


def test_a_default_of_a_handler_is_found():
    """A mutable default is shared by all calls of its process."""

    def helper(text, seen=[]):  # noqa: B006
        seen.append(text)
        return f"{text} {len(seen)}"

    @executor(id="number")
    async def number(text: str) -> str:
        return helper(text)

    @executor(id="again")
    async def again(text: str) -> str:
        return helper(text)

    error = lost(WorkflowBuilder("counting", split).add_chain([split, number, again]).build())
    assert error.suspects == ("executor 'number': a default of helper: [] became ['a', 'b', 'a 1', 'b 2']",)


def test_what_changed_but_does_not_matter_is_no_error():
    """A cache may be lost: the run ends the same."""
    known: dict[str, str] = {}

    @executor(id="spell")
    async def spell(text: str) -> str:
        return known.setdefault(text, text.upper())

    workflow = WorkflowBuilder("spelling", split).add_chain([split, spell, sign]).build()
    assert asyncio.run(assert_resumable(workflow, "a b a")).outputs == ["A!", "B!", "A!"]


def test_what_stands_for_the_outside_world_is_kept():
    """A fake bank outlives the processes that use it."""
    bank: dict[str, int] = {}

    @executor(id="pay")
    async def pay(text: str) -> str:
        bank.setdefault(text, len(bank) + 1)
        return f"{text} {bank[text]}"

    workflow = WorkflowBuilder("paying", split).add_chain([split, pay, sign]).build()
    assert asyncio.run(assert_resumable(workflow, "a b", keep=[bank])).outputs == ["a 1!", "b 2!"]


def test_a_workflow_that_draws_on_chance_is_told_apart():
    """Where two uninterrupted runs differ as well, nothing is said to be lost."""
    drawn = iter(range(1000))

    @executor(id="draw")
    async def draw(text: str) -> str:
        return f"{text} {next(drawn)}"

    error = lost(WorkflowBuilder("drawing", split).add_chain([split, draw, sign]).build())
    assert "Two uninterrupted runs differ as well" in str(error)
