"""`drive` and `ScriptedExecutor`: a run from pause to pause, and stand-ins for executors."""

import asyncio

import pytest

from rehydrate import InMemoryCheckpointStorage, SqliteCheckpointStorage, Status, WorkflowBuilder, WorkflowExecutor
from rehydrate.errors import AnswerTypeError, RunFailedError, WorkflowBuildError
from rehydrate.testing import UNANSWERED, ScriptedExecutor, drive
from tests.testing_tools.flows import ByAttribute, Question, desk, sign, split


def told(driven):
    return [(request.path, request.data) for request in driven.requests]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_run_is_driven_to_its_end(kind, tmp_path):
    """All that is asked is answered, each pause in a call of its own, and the outputs of all calls are there."""

    async def scenario():
        async with (
            InMemoryCheckpointStorage() if kind == "memory" else SqliteCheckpointStorage(tmp_path / "runs.db") as store
        ):
            return await drive(desk(), "a b", answers=lambda r: r.data.text.upper(), checkpoint_storage=store)

    driven = asyncio.run(scenario())
    assert driven.outputs == ["a: A!", "b: B!"]
    assert told(driven) == [("asking#1", Question("a")), ("asking#2", Question("b"))]
    assert [result.status for result in driven.results] == [Status.IDLE_WITH_PENDING_REQUESTS, Status.IDLE]


def test_without_answers_it_is_driven_to_the_first_pause():
    """What is asked stays open."""
    driven = asyncio.run(drive(desk(), "a"))
    assert (driven.result.status, driven.outputs) == (Status.IDLE_WITH_PENDING_REQUESTS, [])


def test_answers_may_stand_by_the_id_of_the_executor_that_asks():
    """A mapping answers all that an executor asks; what has no answer stays open."""
    assert asyncio.run(drive(desk(), "a b", answers={"asker": "yes"})).outputs == ["a: yes!", "b: yes!"]
    assert asyncio.run(drive(desk(), "a", answers={"another": "yes"})).outputs == []


def test_a_request_may_be_left_open():
    """The others are answered, and the run ends in a pause."""
    driven = asyncio.run(drive(desk(), "a b", answers=lambda r: "yes" if r.data.text == "b" else UNANSWERED))
    assert driven.outputs == ["b: yes!"]
    assert [request.data.text for request in driven.result.pending_requests] == ["a"]


def test_each_call_has_executors_of_its_own_where_the_workflow_is_built_for_it():
    """What an executor keeps in an attribute is not there after the pause; with one workflow it is."""
    lost = asyncio.run(drive(lambda: desk(ByAttribute), "a", answers={"asker": "yes"}))
    kept = asyncio.run(drive(desk(ByAttribute), "a", answers={"asker": "yes"}))
    assert (lost.outputs, kept.outputs) == (["a: yes []!"], ["a: yes ['a']!"])


def test_an_answer_of_a_wrong_type_is_refused():
    """It is checked as in any call."""
    with pytest.raises(AnswerTypeError):
        asyncio.run(drive(desk(), "a", answers={"asker": 5}))


def scripted(**options):
    below = WorkflowBuilder("below", ScriptedExecutor("asker", takes=str, **options)).build()
    return WorkflowBuilder("desk", split).add_chain([split, WorkflowExecutor(below, id="asking"), sign]).build()


def stand_in(gives, **options):
    executor = ScriptedExecutor("stand-in", takes=str, gives=gives, **options)
    return executor, WorkflowBuilder("flow", split).add_chain([split, executor, sign]).build()


def test_a_scripted_executor_gives_what_stands_in_its_list_and_says_what_it_got():
    """One answer for each message in a scope; `None` is nothing."""
    executor, workflow = stand_in(["x", None, "z"])
    driven = asyncio.run(drive(workflow, "a b c"))
    assert (driven.outputs, executor.got) == (["x!", "z!"], ["a", "b", "c"])


def test_each_run_and_each_scope_of_a_scripted_executor_starts_with_the_first_answer():
    """What it gives depends on the run alone."""
    executor, workflow = stand_in(["x", "y"])
    assert [asyncio.run(drive(workflow, "a b")).outputs for _ in range(2)] == [["x!", "y!"]] * 2
    assert asyncio.run(drive(scripted(gives=["x"]), "a b")).outputs == ["x!", "x!"]
    assert executor.got == ["a", "b", "a", "b"]


def test_a_scripted_executor_raises_the_exceptions_of_its_list():
    """The run fails by them as by those of any handler."""
    _, workflow = stand_in([OSError("no route")], returns=str)
    with pytest.raises(RunFailedError, match="no route"):
        asyncio.run(drive(workflow, "a"))


def test_a_scripted_executor_without_an_answer_left_says_so():
    """A message more than there are answers fails the run and is counted."""
    _, workflow = stand_in(["x"])
    with pytest.raises(RunFailedError, match=r"got message 2 and has 1 answer"):
        asyncio.run(drive(workflow, "a b"))


def test_what_a_scripted_executor_gives_is_checked_when_the_workflow_is_built():
    """Its types stand in the graph: a successor that does not take them is an error there."""
    with pytest.raises(WorkflowBuildError, match="int"):
        stand_in([5])
    with pytest.raises(WorkflowBuildError, match="list"):
        stand_in([["x"]], returns=list[str])
