"""`assert_resumable`: state that a restart would lose is found, and named."""

import itertools
from typing import Never

import pytest

from rehydrate import (
    FunctionalContext,
    InMemoryCheckpointStorage,
    SqliteCheckpointStorage,
    WorkflowBuilder,
    WorkflowContext,
    executor,
    handler,
    step,
    workflow,
)
from rehydrate.testing import ResumabilityError, assert_bears_failed_saves, assert_resumable, drive, run_virtually
from tests.testing_tools import flows
from tests.testing_tools.broken_flows import ordered, stamped, unordered
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
        run_virtually(assert_resumable(workflow, [message], answers=ANSWERS, **options))
    return raised.value


@pytest.mark.promise("P1", "checkpoints that assert_resumable goes on from")
@pytest.mark.parametrize(("kind", "store"), [(Asker, "memory"), (Faithful, "memory"), (Faithful, "sqlite")])
def test_a_workflow_whose_state_is_in_its_run_is_resumed(kind, store, tmp_path, tried):
    """It is restored once at each of its checkpoints, and ends as the uninterrupted run did."""
    numbers = itertools.count()
    make_store = None if store == "memory" else lambda: SqliteCheckpointStorage(tmp_path / f"{next(numbers)}.db")
    driven = run_virtually(assert_resumable(lambda: desk(kind), ["a b"], answers=ANSWERS, make_store=make_store))
    kept = {Asker: "", Faithful: " ['{}']"}[kind]
    assert driven.outputs == [f"a: yes{kept.format('a')}!", f"b: yes{kept.format('b')}!"]
    assert driven.crashes >= 5
    tried(driven.crashes)


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
    assert run_virtually(assert_resumable(workflow, ["a b a"])).outputs == ["A!", "B!", "A!"]


def test_what_stands_for_the_outside_world_is_kept():
    """A fake bank outlives the processes that use it."""
    bank: dict[str, int] = {}

    @executor(id="pay")
    async def pay(text: str) -> str:
        bank.setdefault(text, len(bank) + 1)
        return f"{text} {bank[text]}"

    workflow = WorkflowBuilder("paying", split).add_chain([split, pay, sign]).build()
    assert run_virtually(assert_resumable(workflow, ["a b"], keep=[bank])).outputs == ["a 1!", "b 2!"]


def test_a_workflow_that_draws_on_chance_is_told_apart():
    """Where two uninterrupted runs differ as well, nothing is said to be lost."""
    drawn = iter(range(1000))

    @executor(id="draw")
    async def draw(text: str) -> str:
        return f"{text} {next(drawn)}"

    error = lost(WorkflowBuilder("drawing", split).add_chain([split, draw, sign]).build())
    assert "Two uninterrupted runs differ as well" in str(error)


def test_in_a_new_interpreter_the_order_of_a_set_is_found_to_be_chance():
    """Texts have other hash values there, which a restart in the same process would not show."""
    answers = {"gather": "zelkova"}
    run_virtually(assert_resumable(unordered, ["alder"], answers=answers))
    with pytest.raises(ResumabilityError) as raised:
        run_virtually(assert_resumable(unordered, ["alder"], answers=answers, new_interpreter=True))
    assert list(raised.value.differences) == [0, 1, 2]  # at 3 the output is there
    assert raised.value.suspects == ()


@pytest.mark.proof
def test_in_a_new_interpreter_a_faithful_workflow_is_resumed():
    """Sets that are sorted are the same everywhere."""
    told = run_virtually(assert_resumable(ordered, ["alder"], answers={"gather": "zelkova"}, new_interpreter=True))
    assert (told.outputs[0][:9], told.crashes) == ("alder ash", 4)


def test_what_a_new_interpreter_cannot_be_given_is_said():
    """A function inside another one has no name there."""
    with pytest.raises(TypeError, match="a function of a module that builds the workflow"):
        run_virtually(assert_resumable(lambda: desk(Asker), ["a"], new_interpreter=True))


def test_several_inputs_are_turns_of_one_run():
    """Each checkpoint of each turn is gone on from, with the inputs and answers that were still to come."""
    driven = run_virtually(assert_resumable(desk, ["a b", "c"], answers=ANSWERS))
    assert driven.outputs == ["a: yes!", "b: yes!", "c: yes!"]
    assert [result.turn for result in driven.results] == [1, 2, 3, 4]
    assert driven.crashes == driven.result.checkpoint.header.seq + 1 == 12


def test_what_a_later_input_finds_lost_is_told_with_its_call():
    """A turn that uses what another one has left beside the run differs where both are not in one process."""

    class Counting(Asker):
        count = 0

        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
            type(self).count += 1
            ctx.yield_output(f"{text} {self.count}")

    with pytest.raises(ResumabilityError) as raised:
        run_virtually(assert_resumable(WorkflowBuilder("counting", Counting("asker")).build(), ["a", "b"]))
    assert raised.value.differences == {
        1: ("call 2: outputs: ['b 2'] uninterrupted, ['b 1'] here",),
        2: ("call 2: outputs: ['b 2'] uninterrupted, ['b 1'] here",),
    }
    assert raised.value.suspects == ("executor 'asker': class attribute Counting.count: 0 became 2",)


def test_a_time_that_is_read_is_told_apart():
    """A handler that asks the clock makes something else each time, and the error says so."""
    error = lost(stamped)
    assert "Two uninterrupted runs differ as well" in str(error)


def test_an_effect_that_cannot_be_done_twice_is_found():
    """Each restart that pays again finds more in the bank; the error speaks of the world."""
    bank = {"paid": 0}

    @executor(id="pay")
    async def pay(text: str) -> str:
        bank["paid"] += 1
        return f"{text} {bank['paid']}"

    error = lost(WorkflowBuilder("paying", split).add_chain([split, pay, sign]).build(), keep=[bank])
    assert "ctx.effect_key" in str(error)
    assert "outputs: ['a 1!', 'b 2!'] uninterrupted, ['a 3!', 'b 4!'] here" in str(error)


def test_what_only_events_tell_is_found():
    """A condition that depends on what is beside the run sends a message nowhere, and no output or state shows it."""
    heard: list[str] = []

    @executor(id="hear")
    async def hear(text: str) -> str:
        heard.append(text)
        return text

    @executor(id="keep")
    async def keep(text: str) -> str:
        return text

    @executor(id="sink")
    async def sink(text: str) -> None:
        pass

    builder = WorkflowBuilder("sinking", hear).add_chain([hear, keep])
    workflow = builder.add_edge(keep, sink, condition=lambda _: bool(heard)).build()
    with pytest.raises(ResumabilityError) as raised:
        run_virtually(assert_resumable(workflow, ["a"]))
    (text,) = raised.value.differences[1]
    assert text.startswith("call 1: events of the root: ")
    assert "MessageDropped(executor_id='keep'" in text.partition(" uninterrupted, ")[2]


def test_what_a_restart_raises_is_a_difference():
    """A handler that fails where something is lost is named with its error."""
    heard: dict[str, str] = {}

    class Failing(Asker):
        def remember(self, text: str) -> None:
            heard[text] = "yes"

        def recall(self) -> str:
            return heard["a"]

    error = lost(WorkflowBuilder("failing", Failing("asker")).build(), "a")
    assert "call 2: it raised RunFailedError" in str(error)
    assert "KeyError: 'a'" in str(error)


def test_a_function_is_resumed_at_each_of_its_steps():
    """Questions, branches and timers of a functional workflow; what it keeps beside itself is found as well."""
    seen: list[int] = []

    @step
    async def double(number: int) -> int:
        return number * 2

    def build(*, faithful: bool):
        @workflow(name="adding")
        async def adding(number: int, ctx: FunctionalContext) -> int:
            one, other = await ctx.gather(double(number), double(number + 1))
            begun = ctx.now()
            await ctx.sleep(60)
            more = await ctx.request_info("more?", response_type=int)
            if not faithful:
                seen.append(more)
            again = await ctx.request_info("and?", response_type=int)
            return one + other + more + again + len(seen) + int((ctx.now() - begun).total_seconds())

        return adding

    told = run_virtually(assert_resumable(lambda: build(faithful=True), [1, 2], answers=lambda _: 3))
    assert told.outputs == [72, 76]
    with pytest.raises(ResumabilityError) as raised:
        run_virtually(assert_resumable(lambda: build(faithful=False), [1], answers=lambda _: 3))
    assert raised.value.suspects == ("executor 'adding': variable 'seen' around adding: [] became [3, 3]",)


def test_what_a_step_keeps_beside_the_run_is_found():
    """A step that counts in a variable around it gives the next one another number after a restart."""
    count = 0

    @step
    async def number(text: str) -> str:
        nonlocal count
        count += 1
        return f"{text} {count}"

    @workflow(name="numbering")
    async def numbering(text: str, ctx: FunctionalContext) -> str:
        return f"{await number(text)}, {await number(text)}"

    with pytest.raises(ResumabilityError) as raised:
        run_virtually(assert_resumable(numbering, ["a"]))
    assert raised.value.suspects == ("executor 'numbering': variable 'count' around number: 0 became 2",)
    assert raised.value.differences == {1: ("call 1: outputs: ['a 1, a 2'] uninterrupted, ['a 1, a 1'] here",)}


def test_a_store_that_is_not_fresh_is_refused():
    """Each restart needs a store of its own."""

    class Kept(InMemoryCheckpointStorage):
        async def close(self) -> None:
            pass

    kept = Kept()
    with pytest.raises(ValueError, match="open a new place each time"):
        run_virtually(assert_resumable(desk, ["a"], make_store=lambda: kept))


def test_without_an_input_nothing_is_shown():
    """That would be a test which cannot fail; and an input that stands alone is told from a list of them."""
    for check in (assert_resumable, assert_bears_failed_saves):
        for wrong in ([], "a"):
            with pytest.raises(TypeError, match="a list with at least one"):
                run_virtually(check(desk, wrong))
    with pytest.raises(TypeError, match="a list with at least one"):
        run_virtually(drive(desk))
