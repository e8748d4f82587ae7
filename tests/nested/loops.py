"""A parent with a child that loops beside one that does not, and executors that note their calls."""

from rehydrate import Executor, WorkflowBuilder, WorkflowContext, WorkflowExecutor, executor, handler
from tests.nested.stories import intake


def recorder(id: str, journal: list[str]):
    """Make an executor that notes when it is called."""

    @executor(id=id)
    async def note(text: str) -> str:
        journal.append(id)
        return text

    return note


class Round(Executor):
    """Sends itself a number that grows, up to a last one, if there is any."""

    def __init__(self, id: str, journal: list[int], last: int | None) -> None:
        super().__init__(id)
        self.journal = journal
        self.last = last

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[int]) -> None:
        ctx.send_message(1)

    @handler
    async def on_number(self, number: int, ctx: WorkflowContext[int, str]) -> None:
        self.journal.append(number)
        if number == self.last:
            ctx.yield_output(f"{number} rounds")
            return
        ctx.send_message(number + 1)


def looping(journal: list[int], quick: list[str], *, last: int | None):
    """A parent with a child that loops, at most 5 supersteps a turn, beside one of two steps."""
    loop = Round("loop", journal, last)
    looper = WorkflowBuilder("looper", loop, max_supersteps=5).add_edge(loop, loop).build()
    steps = [recorder("first", quick), recorder("second", quick)]
    sibling = WorkflowBuilder("quick", steps[0]).add_chain(steps).build()
    builder = WorkflowBuilder("parent", intake)
    builder.add_fan_out_edges(intake, [WorkflowExecutor(looper, "looper"), WorkflowExecutor(sibling, "sibling")])
    return builder.build()
