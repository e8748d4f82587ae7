"""What a user writes, for a type checker only: each line that must be an error ends with `# error: <rule>`.

Never imported; `test_public_typing.py` has pyright read it.
"""

from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Never, assert_type

from rehydrate import (
    Case,
    Default,
    Executor,
    InMemoryCheckpointStorage,
    JsonAnswer,
    PendingRequest,
    RunStream,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowDescription,
    WorkflowExecutor,
    WorkflowRunResult,
    append,
    executor,
    handler,
    response_handler,
)


@dataclass(frozen=True)
class Event:
    id: int


@dataclass(frozen=True)
class Paid(Event):
    amount: int


@dataclass(frozen=True)
class Mail:
    subject: str


class Desk(Executor):
    def __init__(self, id: str, limit: int) -> None:
        super().__init__(id)
        self.limit = limit

    @handler
    async def both(self, message: Event, ctx: WorkflowContext[Event | Mail, list[int]]) -> None:
        await ctx.send_message(message)
        ctx.send_message(Paid(1, 2))
        ctx.send_message(Mail("a"), target_id="post")
        await ctx.yield_output([1])
        ctx.send_message("text")  # error: reportArgumentType
        await ctx.send_message([message])  # error: reportArgumentType
        ctx.yield_output(["a"])  # error: reportArgumentType
        ctx.yield_output(message)  # error: reportArgumentType
        ctx.send_mesage(message)  # error: reportAttributeAccessIssue

    @handler
    async def sends_only(self, message: int, ctx: WorkflowContext[int]) -> None:
        ctx.send_message(message)
        ctx.yield_output(message)  # error: reportArgumentType

    @handler
    def yields_only(self, message: str, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output(message)
        ctx.send_message(message)  # error: reportArgumentType

    @handler
    async def neither(self, message: bytes, ctx: WorkflowContext) -> None:
        ctx.emit(message)
        ctx.set_state("last", message)
        ctx.request_info(Event(1), response_type=bool | None)
        ctx.send_message(message)  # error: reportArgumentType
        ctx.yield_output(message)  # error: reportArgumentType
        ctx.request_info(Event(1))  # error: reportCallIssue

    @handler(message=float, sends=(int, str), yields=Mail)
    async def stated(self, message: float, ctx: WorkflowContext[int | str, Mail]) -> None:
        tell(ctx)
        tell_mail(ctx)  # error: reportArgumentType

    @handler
    async def without_context(self, message: Mail) -> None: ...

    @handler  # error: reportArgumentType
    async def returns(self, message: complex) -> int:
        return self.limit

    @response_handler
    async def answered(self, question: Event, answer: bool | None, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output("yes" if answer else "no")
        ctx.yield_output(answer)  # error: reportArgumentType

    @response_handler  # error: reportArgumentType
    def answered_with_a_value(self, question: Mail, answer: bool) -> bool:
        return answer


def tell(ctx: WorkflowContext[int]) -> None:
    """A helper that needs less than the handler may do."""
    ctx.send_message(1)


def tell_mail(ctx: WorkflowContext[Mail]) -> None:
    """A helper that needs what the handler may not do."""
    ctx.send_message(Mail("a"))


@executor
async def double(number: int) -> int:
    return number * 2


@executor(id="named", returns=int | None)
def plain(number: int, ctx: WorkflowContext[int, Never]) -> None:
    ctx.send_message(number)
    ctx.send_message(str(number))  # error: reportArgumentType


def is_big(number: int) -> bool:
    return number > 10


def build() -> Workflow:
    desk = Desk("desk", limit=5)
    Desk("desk")  # error: reportCallIssue
    builder = WorkflowBuilder("typed", double, checkpoint_storage=InMemoryCheckpointStorage(), reducers={"a": append})
    builder.add_edge(double, plain, is_big).add_chain([double, "named", desk])
    builder.add_edge(double, plain, lambda number: number > 10)
    builder.add_switch_case_edge_group(double, [Case(is_big, desk), Default("named")])
    builder.add_edge(double, is_big)  # error: reportArgumentType
    builder.add_edge(double, plain, condition=5)  # error: reportArgumentType
    builder.add_switch_case_edge_group(double, [desk])  # error: reportArgumentType
    builder.add_fan_in_edges(double, desk)  # error: reportArgumentType
    WorkflowBuilder("typed", is_big)  # error: reportArgumentType
    WorkflowBuilder("typed", double, resources={"client": 5})  # error: reportArgumentType
    workflow = builder.build()
    WorkflowExecutor(workflow, id="node")
    WorkflowExecutor(double, id="node")  # error: reportArgumentType
    return workflow


async def call(workflow: Workflow) -> None:
    assert_type(await double(1), int)
    await double("a")  # error: reportArgumentType
    started = assert_type(workflow.run(1), Coroutine[None, None, WorkflowRunResult])
    assert_type((await started).pending_requests[0], PendingRequest)
    assert_type(workflow.run(1, stream=True), RunStream)
    await workflow.run(1, on_pending="drop")  # error: reportArgumentType
    await workflow.run(1, runid="a")  # error: reportCallIssue
    assert_type(workflow.parse("1"), object)
    await workflow.run(responses={"id": JsonAnswer("true")})
    JsonAnswer(True)  # error: reportArgumentType
    assert_type(workflow.draw("dot"), str)
    assert_type(workflow.describe(), WorkflowDescription)
    assert_type(workflow.describe().executors[0].id, str)
    workflow.draw("png")  # error: reportArgumentType
