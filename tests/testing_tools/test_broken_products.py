"""`assert_resumable` notices a library that loses something: deliberately broken here, in the test only."""

import pytest

from rehydrate import WorkflowBuilder, WorkflowContext, executor
from rehydrate.engine.run import delta_of
from rehydrate.runtime.finding import Finder
from rehydrate.testing import ResumabilityError, assert_resumable, run_virtually
from tests.testing_tools.flows import Asker, split

ANSWERS = {"asker": "yes"}


def joined():
    """Make a workflow with state, a join, a sub-workflow and a question."""

    @executor(id="count")
    async def count(text: str, ctx: WorkflowContext) -> str:
        ctx.set_state("count", ctx.get_state("count", 0) + 1)
        return text

    @executor(id="slow")
    async def slow(text: str) -> str:
        return text

    @executor(id="meet")
    async def meet(texts: list[str]) -> str:
        return " and ".join(texts)

    ask = Asker("asker")
    builder = WorkflowBuilder("meeting", split).add_fan_out_edges(split, [count, slow])
    return builder.add_edge(slow, middle := _same()).add_fan_in_edges([count, middle], meet).add_edge(meet, ask).build()


def _same():
    @executor(id="middle")
    async def middle(text: str) -> str:
        return text

    return middle


@pytest.mark.notices("P1")
@pytest.mark.parametrize("kind", ["state", "join", "output"])
def test_a_restore_that_loses_a_kind_of_record_is_noticed(kind, monkeypatch, tried):
    """Whatever is lost between the store and the run shows after some checkpoint."""
    find = Finder.find

    async def losing(self):
        found = await find(self)
        if found is not None:
            run = found.checkpoint.records
            run.apply(delta_of({key: None for key, _ in list(run.records()) if key[1] == kind}))
        return found

    monkeypatch.setattr(Finder, "find", losing)
    with pytest.raises(ResumabilityError) as raised:
        run_virtually(assert_resumable(joined, ["a b"], answers=ANSWERS))
    assert "it raised" not in str(raised.value)
    tried(len(raised.value.differences))


def test_as_it_is_nothing_is_noticed():
    """The same workflow with nothing broken."""
    assert run_virtually(assert_resumable(joined, ["a b"], answers=ANSWERS)).crashes > 5
