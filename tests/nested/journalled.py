"""An executor that keeps its state in itself and notes what is called, in a journal that all its instances share."""

from dataclasses import dataclass
from typing import Never

from rehydrate import Executor, Workflow, WorkflowBuilder, WorkflowContext, WorkflowExecutor, handler, response_handler


@dataclass(frozen=True)
class More:
    """What the executor asks; the answer is added to what it has."""

    total: int


class Adder(Executor):
    """Adds the numbers that it gets; 13 makes it fail once its `broken` list has an entry, 0 makes it ask."""

    def __init__(self, id: str, journal: list[str], broken: list[str], total: int = 0) -> None:
        super().__init__(id)
        self.journal = journal
        self.broken = broken
        self.total = total

    @handler
    async def on_numbers(self, numbers: list[int], ctx: WorkflowContext[int, str]) -> None:
        self.journal.append(f"{ctx.path} takes {numbers}")
        for number in numbers:
            ctx.send_message(number)

    @handler
    async def on_number(self, number: int, ctx: WorkflowContext[Never, str]) -> None:
        self.total += number
        self.journal.append(f"{ctx.path} takes {number}")
        if number == 13 and self.broken:
            raise ValueError(self.broken.pop())
        if number == 0:
            ctx.request_info(More(self.total), response_type=int)
            return
        ctx.yield_output(f"{self.id} has {self.total}")

    @response_handler
    async def on_more(self, more: More, number: int, ctx: WorkflowContext[Never, str]) -> None:
        self.total += number
        self.journal.append(f"{ctx.path} takes answer {number}")
        ctx.yield_output(f"{self.id} has {self.total}")

    async def on_checkpoint_save(self) -> dict[str, object]:
        self.journal.append(f"save {self.total}")
        return {"total": self.total}

    async def on_checkpoint_restore(self, state: dict[str, object]) -> None:
        self.total = state["total"]
        self.journal.append(f"restore {self.total}")


class PlainAdder(Adder):
    """The same with hooks that are not async."""

    def on_checkpoint_save(self) -> dict[str, object]:
        self.journal.append(f"save {self.total}")
        return {"total": self.total}

    def on_checkpoint_restore(self, state: dict[str, object]) -> None:
        self.total = state["total"]
        self.journal.append(f"restore {self.total}")


def adding(adder: Executor, depth: int = 0) -> Workflow:
    """A workflow of one executor that may send to itself, `depth` levels down under the id `inner`."""
    workflow = WorkflowBuilder("adding", adder).add_edge(adder, adder).build()
    for _ in range(depth):
        workflow = WorkflowBuilder("outer", WorkflowExecutor(workflow, "inner")).build()
    return workflow
