"""Executors with state of their own: instances, hooks and failed attempts."""

import asyncio
from typing import Never

import pytest

from rehydrate import Executor, Status, WorkflowBuilder, WorkflowContext, WorkflowExecutor, handler
from rehydrate.errors import FrozenExecutorError, RunFailedError
from tests.nested.journalled import Adder, PlainAdder, adding
from tests.nested.tree import Gate


def run(workflow, message=None, **options):
    """Do one call and wait for it."""
    return asyncio.run(workflow.run(message, **options))


@pytest.fixture(params=[Adder, PlainAdder])
def adder(request) -> Adder:
    """An executor with async hooks, and one with plain ones."""
    return request.param("adder", [], [])


def test_the_prototype_never_changes(adder) -> None:
    """Runs change instances; the object that the workflow was built with stays as it was, and is frozen."""
    workflow = adding(adder)
    assert run(workflow, 5).outputs == ["adder has 5"]
    assert run(workflow, 7).outputs == ["adder has 7"]
    assert adder.total == 0
    with pytest.raises(FrozenExecutorError, match="total"):
        adder.total = 1


def test_an_instance_is_made_with_the_arguments_of_the_prototype() -> None:
    """It starts from them in each run and in each scope."""
    workflow = adding(Adder("adder", [], [], total=100), depth=1)
    assert run(workflow, 5).outputs == ["adder has 105"]
    assert run(workflow, 5).outputs == ["adder has 105"]


def test_a_change_of_the_prototype_before_the_build_is_not_in_its_instances() -> None:
    """They are made by calling the class, not by copying the object."""
    adder = Adder("adder", [], [], total=100)
    adder.total = 900
    assert run(adding(adder), 5).outputs == ["adder has 105"]


def test_each_run_has_instances_of_its_own_also_side_by_side(adder) -> None:
    """Ten runs of one workflow at once do not meet."""
    workflow = adding(adder)

    async def all_at_once():
        return await asyncio.gather(*(workflow.run([number, number]) for number in range(1, 11)))

    results = asyncio.run(all_at_once())
    assert [result.outputs for result in results] == [[f"adder has {n}", f"adder has {2 * n}"] for n in range(1, 11)]


def test_each_scope_has_an_instance_of_its_own(adder) -> None:
    """Two inputs to one sub-workflow overlap, and each goes on with its own total."""
    workflow = adding(adder, depth=1)
    first = run(workflow, [1, 0])
    second = run(workflow, [10, 0], checkpoint=first, on_pending="keep")
    assert [(r.path, r.data.total) for r in second.pending_requests] == [("inner#1", 1), ("inner#2", 10)]
    given = [request.answer(100) for request in second.pending_requests]
    assert run(workflow, None, checkpoint=second, responses=given).outputs == ["adder has 101", "adder has 110"]


def test_one_workflow_used_twice_has_an_instance_under_each_id(adder) -> None:
    """The siblings run in the same superstep."""
    child = adding(adder)
    one, two = WorkflowExecutor(child, "one"), WorkflowExecutor(child, "two")
    start = Spread("start")
    workflow = WorkflowBuilder("siblings", start).add_fan_out_edges(start, [one, two]).build()
    assert run(workflow, 4).outputs == ["adder has 4", "adder has 40"]


class Spread(Executor):
    """Sends a number to the first and its tenfold to the second child."""

    @handler
    async def on_number(self, number: int, ctx: WorkflowContext[int]) -> None:
        ctx.send_message(number, target_id="one")
        ctx.send_message(10 * number, target_id="two")


class Made(Adder):
    """Notes when an object is made."""

    def __init__(self, id: str, journal: list[str], broken: list[str]) -> None:
        super().__init__(id, journal, broken)
        journal.append(f"{id} made")


class Idle(Executor):
    """The same, with a handler that is never called here."""

    def __init__(self, id: str, journal: list[str]) -> None:
        super().__init__(id)
        journal.append(f"{id} made")

    @handler
    async def on_number(self, number: int) -> None: ...

    def on_checkpoint_save(self) -> dict[str, object]:
        return {}

    def on_checkpoint_restore(self, state: dict[str, object]) -> None: ...


def test_an_instance_is_made_at_the_first_message_only() -> None:
    """An executor that gets no message has none, one that gets three has one."""
    journal: list[str] = []
    used, unused = Made("used", journal, []), Idle("unused", journal)
    builder = WorkflowBuilder("two", used).add_edge(used, used)
    workflow = builder.add_edge(used, unused, condition=lambda number: number == 99).build()
    assert journal == ["used made", "unused made"]
    journal.clear()
    run(workflow, [1, 2])
    assert journal == ["used made", " takes [1, 2]", "save 0", " takes 1", "save 1", " takes 2", "save 3"]


class Shared(Adder):
    """Makes its instances itself."""

    def new_instance(self):
        self.journal.append("new_instance")
        return Shared(self.id, self.journal, self.broken, total=1000)


def test_a_class_can_make_its_instances_itself() -> None:
    """`new_instance` is called once for each scope, and what it gives is restored like any other."""
    journal: list[str] = []
    workflow = adding(Shared("adder", journal, []), depth=1)
    first = run(workflow, [5, 0])
    assert first.pending_requests[0].data.total == 1005
    second = run(workflow, None, checkpoint=first, responses=[first.pending_requests[0].answer(1)])
    assert second.outputs == ["adder has 1006"]
    assert [line for line in journal if line in ("new_instance", "restore 1005")] == [
        "new_instance",
        "new_instance",
        "restore 1005",
    ]


def test_the_hooks_are_called_in_order_and_as_often_as_promised(place, adder) -> None:
    """Saved after each finished invocation; restored once, before the first invocation of a resumed scope."""
    store = place.open()
    first = run(adding(adder), [4, 0], checkpoint_storage=store)
    assert adder.journal == [
        " takes [4, 0]",
        "save 0",
        " takes 4",
        "save 4",
        " takes 0",
        "save 4",
    ]
    adder.journal.clear()
    again = adding(type(adder)("adder", adder.journal, []))
    answer = first.pending_requests[0].answer(6)
    second = run(again, [1, 2], checkpoint=first.checkpoint_id, responses=[answer], checkpoint_storage=place.open())
    assert second.outputs == ["adder has 10", "adder has 11", "adder has 13"]
    assert adder.journal == [
        "restore 4",
        " takes answer 6",
        "save 10",
        " takes [1, 2]",
        "save 10",
        " takes 1",
        "save 11",
        " takes 2",
        "save 13",
    ]


def test_the_hooks_of_a_child_are_called_in_order_and_as_often_as_promised(place, adder) -> None:
    """Two levels down it is the same as in the root."""
    first = run(adding(adder, depth=2), [4, 0], checkpoint_storage=place.open())
    adder.journal.clear()
    again = adding(type(adder)("adder", adder.journal, []), depth=2)
    answer = first.pending_requests[0].answer(6)
    second = run(again, None, checkpoint=first.checkpoint_id, responses=[answer], checkpoint_storage=place.open())
    assert second.outputs == ["adder has 10"]
    assert adder.journal == ["restore 4", "inner#1/inner#1 takes answer 6", "save 10"]


def test_restoring_what_has_nothing_to_do_calls_no_hook(place, adder) -> None:
    """Open questions are surfaced, and no executor is touched."""
    first = run(adding(adder, depth=1), [4, 0], checkpoint_storage=place.open())
    adder.journal.clear()
    second = run(adding(adder, depth=1), None, checkpoint=first.checkpoint_id, checkpoint_storage=place.open())
    assert len(second.pending_requests) == 1
    assert (second.checkpoint_id, adder.journal) == (first.checkpoint_id, [])


# Failed attempts


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_failed_attempt_throws_its_instance_away(place, adder, depth) -> None:
    """What it had added is gone; the next attempt starts from what the invocation before it had saved."""
    adder.broken.append("no luck")
    path = "/".join(["inner#1"] * depth)
    with pytest.raises(RunFailedError, match="no luck") as caught:
        run(adding(adder, depth), [4, 13, 2], checkpoint_storage=place.open())
    assert adder.journal == [
        f"{path} takes [4, 13, 2]",
        "save 0",
        f"{path} takes 4",
        "save 4",
        f"{path} takes 13",
    ]
    adder.journal.clear()
    again = adding(type(adder)("adder", adder.journal, []), depth)
    second = run(again, None, checkpoint=caught.value.result.checkpoint_id, checkpoint_storage=place.open())
    assert second.outputs == ["adder has 4", "adder has 17", "adder has 19"]
    assert adder.journal == ["restore 4", f"{path} takes 13", "save 17", f"{path} takes 2", "save 19"]


def test_a_first_attempt_that_failed_leaves_nothing_to_restore(adder) -> None:
    """The next one starts like the prototype, and its restore hook is not called."""
    adder.broken.append("no luck")
    workflow = adding(adder, depth=1)
    with pytest.raises(RunFailedError) as caught:
        run(workflow, 13)
    assert run(workflow, None, checkpoint=caught.value.result).outputs == ["adder has 13"]
    assert adder.journal == ["inner#1 takes 13", "inner#1 takes 13", "save 13"]


class Slow(Adder):
    """Adds, and then waits until it is let go on."""

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        self.total += len(text)
        self.journal.append(f"takes {text}")
        await ctx.resources["gate"].pass_through()
        ctx.yield_output(f"{self.id} has {self.total}")


@pytest.mark.parametrize("depth", [0, 1])
def test_a_cancelled_attempt_throws_its_instance_away(place, depth) -> None:
    """What it had added before it was cancelled is added once in the end."""
    journal: list[str] = []

    async def cancel():
        gate = Gate(1)
        slow = adding(Slow("adder", journal, []), depth)
        first = await slow.run([4, 0], checkpoint_storage=place.open())
        stream = slow.run(
            "abc",
            checkpoint=first.checkpoint_id,
            on_pending="keep",
            stream=True,
            resources={"gate": gate},
            checkpoint_storage=place.open(),
        )
        async with stream:
            await gate.full.wait()
            return await stream.cancel()

    cancelled = asyncio.run(cancel())
    assert (cancelled.status, cancelled.outputs) == (Status.CANCELLED, [])
    journal.clear()
    again = adding(Slow("adder", journal, []), depth)
    options = {"resources": {"gate": Gate(is_open=True)}, "checkpoint_storage": place.open()}
    second = run(again, checkpoint=cancelled.checkpoint_id, **options)
    if depth == 0:
        assert second.outputs == ["adder has 7"]
        assert journal == ["restore 4", "takes abc", "save 7"]
    else:  # a scope of its own, which started without anything
        assert second.outputs == ["adder has 3"]
        assert journal == ["takes abc", "save 3"]


def test_a_run_after_a_failed_one_sees_nothing_of_it(adder) -> None:
    """The failed instance is not used again by another run of the same workflow."""
    adder.broken.append("no luck")
    workflow = adding(adder)
    with pytest.raises(RunFailedError):
        run(workflow, 13)
    assert run(workflow, 1).outputs == ["adder has 1"]
