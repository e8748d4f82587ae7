"""The executors of random graphs: classes, classes with instance state, and functions, all with one behaviour.

What a handler does is a function of its message, the state it reads and its run arguments; only how long it takes is
left to chance.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Never

from rehydrate import Executor, FunctionExecutor, Retry, WorkflowContext, executor, handler, response_handler
from tests.differential.messages import Item, Question, mix
from tests.differential.moments import pause
from tests.differential.plans import RENAMED, NodePlan


class StormError(RuntimeError):
    """A handler failed because the weather of the call is stormy."""


class FlakyError(RuntimeError):
    """An attempt failed; one of the next will not."""


class Journal:
    """What invocations have come to over a run: effect keys of those that finished, and of those stopped before."""

    def __init__(self) -> None:
        self.finished: list[str] = []
        self.stopped: list[str] = []


class Weather:
    """A live object of one call: how long handlers take, and whether some of them fail.

    `slow`: in virtual time some take seconds. `stubborn`: they do not heed a cancellation, and do something else then.
    `turns`: for how many turns of the event loop they let others run.
    """

    def __init__(
        self,
        chance: int,
        *,
        stormy: bool = False,
        slow: bool = False,
        stubborn: bool = False,
        journal: Journal | None = None,
        turns: Sequence[int] = (0, 0, 1, 2, 5, 9),
    ) -> None:
        self._random = Random(chance)
        self.stormy = stormy
        self.slow = slow
        self.stubborn = stubborn
        self.journal = journal or Journal()
        self._turns = turns

    async def pass_by(self, name: str) -> bool:
        """Let others run for a while; tell whether a cancellation was not heeded."""
        try:
            for _ in range(self._random.choice(self._turns)):
                await asyncio.sleep(0)
            if self.slow:
                await pause(self._random.choice((0.0, 0.0, 0.0, 0.01, 1.0, 3.0)))
        except asyncio.CancelledError:
            self.journal.stopped.append(name)
            if not self.stubborn:
                raise
            return True
        return False


def fold(current: int | None, contribution: int) -> int:
    """A reducer in which order matters."""
    return mix(current, contribution) % 1_000_000


def touch_state(ctx: WorkflowContext[Never, Never], what: str, key: str, mark: int) -> object:
    """Do one thing to the state; what was read goes into the mark of everything that follows."""
    match what:
        case "count":
            ctx.set_state(key, ctx.get_state(key, 0) + 1)
            return ctx.get_state(key)
        case "peek":
            return ctx.get_state(key)
        case "tail":
            return ctx.get_state("log", [], start=-3)
        case "log":
            ctx.update_state("log", f"{ctx.executor_id.removeprefix(RENAMED)}:{mark % 97}")
        case "bag":
            ctx.update_state("bag", [mark % 7, mark % 5])
        case "sum" | "fold":
            ctx.update_state(key, mark % 1000)
        case "facts":
            ctx.update_state("facts", {ctx.executor_id.removeprefix(RENAMED): mark % 100, "all": mark % 10})
        case "own" if mark % 4 == 0:
            ctx.set_state(key, [f"again:{mark % 9}"])
        case "own":
            ctx.update_state(key, f"more:{mark % 9}")
            return len(ctx.get_state(key))
        case "flag":
            ctx.set_state("flag", ("up", 1))
        case "drop" if mark % 3 == 0:
            ctx.delete_state(f"dropped_{key}")
        case "drop":
            ctx.set_state(f"dropped_{key}", mark % 50)
    return None


class Behaviour:
    """What one node does with what it was given. `width` is the number of targets behind its edges."""

    def __init__(self, plan: NodePlan, width: int, delay: float) -> None:
        self.plan = plan
        self.width = width
        self.retry = Retry(plan.flaky + 1, delay, on=FlakyError) if plan.flaky else None

    async def work(self, ctx: WorkflowContext[Item, Item], given: Sequence[Item], seen: object = None) -> Item | None:
        """Read, write, ask, send and yield; a function node gets back what it is to return."""
        plan = self.plan
        weather: Weather = ctx.resources["weather"]
        stopped = await weather.pass_by(ctx.effect_key)
        mark = mix(plan.id, [item.mark for item in given], seen, ctx.run_args)
        if plan.fails and weather.stormy and mark % plan.fails == 0:
            raise StormError(f"{plan.id} at {mark}")
        flaky = plan.flaky if mark % 3 == 0 else 0
        if ctx.attempt <= flaky and mark % 2:
            raise FlakyError(f"{plan.id} at {mark}")
        for what, key in plan.state:
            mark = mix(mark, touch_state(ctx, what, key, mark))
        if await weather.pass_by(ctx.effect_key) or stopped:
            return self._give(ctx, mix(mark, "stopped"), sum(item.fuel for item in given))  # must leave no trace
        if ctx.attempt <= flaky:  # what it has done until here leaves no trace
            raise FlakyError(f"{plan.id} at {mark}")
        fuel = sum(item.fuel for item in given) - 1
        if plan.asks and fuel > 0 and mark % plan.asks == 0:
            asked = 1 + mark % 2
            for number in range(asked):
                item = Item(mix(mark, "asked", number), fuel // (asked + 1), (number,))
                ctx.request_info(Question(plan.id, number, item), response_type=int)
            fuel //= asked + 1
        returned = self._give(ctx, mark, fuel)
        if not plan.threaded:  # a thread may be done before anybody has heard of it
            weather.journal.finished.append(ctx.effect_key)
        return returned

    def _plan(self, ctx: WorkflowContext[list[Item], Item], mark: int, fuel: int, length: int) -> None:
        """Send one list; one without fuel has no items, so that its end hears of it."""
        share = fuel // max(1, length)
        ctx.send_message([Item(mix(mark, "item", number), share, (number,)) for number in range(length)])

    def _give(self, ctx: WorkflowContext[Item, Item], mark: int, fuel: int) -> Item | None:
        plan = self.plan
        sends = plan.sends[mark % len(plan.sends)] if self.width and fuel > 0 else 0
        if plan.kind == "planner":
            return self._plan(ctx, mark, fuel, sends)
        yields = plan.yields[(mark >> 8) % len(plan.yields)] if self.width else 1
        share = fuel // max(1, sends * self.width + yields)
        if plan.kind == "function":
            return Item(mix(mark, "returned"), share, tuple(plan.sends)) if sends or not self.width else None
        for number in range(sends):
            ctx.send_message(Item(mix(mark, "sent", number), share, (number, mark % 10)))
        for number in range(yields):
            ctx.yield_output(Item(mix(mark, "yielded", number), share))
        return None


class Planner(Executor):
    """A node that sends lists, which a map edge takes apart."""

    def __init__(self, behaviour: Behaviour) -> None:
        super().__init__(behaviour.plan.id, retry=behaviour.retry)
        self.behaviour = behaviour

    @handler
    async def on_item(self, item: Item, ctx: WorkflowContext[list[Item], Item]) -> None:
        await self.behaviour.work(ctx, [item])

    @handler
    async def on_list(self, items: list[Item], ctx: WorkflowContext[list[Item], Item]) -> None:
        await self.behaviour.work(ctx, items, len(items))


class Worker(Executor):
    """A node with outgoing edges."""

    def __init__(self, behaviour: Behaviour) -> None:
        super().__init__(behaviour.plan.id, retry=behaviour.retry)
        self.behaviour = behaviour

    @handler
    async def on_item(self, item: Item, ctx: WorkflowContext[Item, Item]) -> None:
        await self.behaviour.work(ctx, [item])

    @handler
    async def on_list(self, items: list[Item], ctx: WorkflowContext[Item, Item]) -> None:
        await self.behaviour.work(ctx, items, len(items))

    @response_handler
    async def on_answer(self, question: Question, answer: int, ctx: WorkflowContext[Item, Item]) -> None:
        await self.behaviour.work(ctx, [question.item], answer)


class LastWorker(Executor):
    """A node without outgoing edges."""

    def __init__(self, behaviour: Behaviour) -> None:
        super().__init__(behaviour.plan.id, retry=behaviour.retry)
        self.behaviour = behaviour

    @handler
    async def on_item(self, item: Item, ctx: WorkflowContext[Never, Item]) -> None:
        await self.behaviour.work(ctx, [item])

    @handler
    async def on_list(self, items: list[Item], ctx: WorkflowContext[Never, Item]) -> None:
        await self.behaviour.work(ctx, items, len(items))

    @response_handler
    async def on_answer(self, question: Question, answer: int, ctx: WorkflowContext[Never, Item]) -> None:
        await self.behaviour.work(ctx, [question.item], answer)


class _Kept:
    """Instance state: how many messages came, and a digest of all of them."""

    count = 0
    digest = 0

    def seen(self, given: Sequence[Item]) -> tuple[int, int]:
        self.count += 1
        self.digest = mix(self.digest, given)
        return self.count, self.digest

    def on_checkpoint_save(self) -> dict[str, object]:
        return {"count": self.count, "digest": self.digest}

    async def on_checkpoint_restore(self, state: dict[str, object]) -> None:
        self.count = int(str(state["count"]))
        self.digest = int(str(state["digest"]))


class Keeper(_Kept, Executor):
    """A node with instance state and outgoing edges."""

    def __init__(self, behaviour: Behaviour) -> None:
        super().__init__(behaviour.plan.id, retry=behaviour.retry)
        self.behaviour = behaviour

    @handler
    async def on_item(self, item: Item, ctx: WorkflowContext[Item, Item]) -> None:
        await self.behaviour.work(ctx, [item], self.seen([item]))

    @handler
    async def on_list(self, items: list[Item], ctx: WorkflowContext[Item, Item]) -> None:
        await self.behaviour.work(ctx, items, self.seen(items))

    @response_handler
    async def on_answer(self, question: Question, answer: int, ctx: WorkflowContext[Item, Item]) -> None:
        await self.behaviour.work(ctx, [question.item], (answer, self.seen([question.item])))


class LastKeeper(_Kept, Executor):
    """A node with instance state and without outgoing edges."""

    def __init__(self, behaviour: Behaviour) -> None:
        super().__init__(behaviour.plan.id, retry=behaviour.retry)
        self.behaviour = behaviour

    @handler
    async def on_item(self, item: Item, ctx: WorkflowContext[Never, Item]) -> None:
        await self.behaviour.work(ctx, [item], self.seen([item]))

    @handler
    async def on_list(self, items: list[Item], ctx: WorkflowContext[Never, Item]) -> None:
        await self.behaviour.work(ctx, items, self.seen(items))

    @response_handler
    async def on_answer(self, question: Question, answer: int, ctx: WorkflowContext[Never, Item]) -> None:
        await self.behaviour.work(ctx, [question.item], (answer, self.seen([question.item])))


class ThreadKeeper(_Kept, Executor):
    """A node with instance state and outgoing edges whose handlers run in threads."""

    def __init__(self, behaviour: Behaviour) -> None:
        super().__init__(behaviour.plan.id, retry=behaviour.retry)
        self.behaviour = behaviour

    @handler
    def on_item(self, item: Item, ctx: WorkflowContext[Item, Item]) -> None:
        asyncio.run(self.behaviour.work(ctx, [item], self.seen([item])))

    @handler
    def on_list(self, items: list[Item], ctx: WorkflowContext[Item, Item]) -> None:
        asyncio.run(self.behaviour.work(ctx, items, self.seen(items)))

    @response_handler
    def on_answer(self, question: Question, answer: int, ctx: WorkflowContext[Item, Item]) -> None:
        asyncio.run(self.behaviour.work(ctx, [question.item], (answer, self.seen([question.item]))))


def thread_node(behaviour: Behaviour) -> FunctionExecutor[..., object]:
    """A plain function as a node, which runs in a thread."""

    @executor(id=behaviour.plan.id, retry=behaviour.retry)
    def run(item: Item, ctx: WorkflowContext[Never, Never]) -> Item | None:
        return asyncio.run(behaviour.work(ctx, [item]))

    return run


def function_node(behaviour: Behaviour) -> FunctionExecutor[..., object]:
    """A function as a node: what it returns is sent on, or yielded where no edge leads on."""

    @executor(id=behaviour.plan.id, retry=behaviour.retry)
    async def run(item: Item, ctx: WorkflowContext[Never, Never]) -> Item | None:
        return await behaviour.work(ctx, [item])

    return run


def node(plan: NodePlan, width: int, delay: float) -> Executor:
    """Make the executor of a plan that is no sub-workflow."""
    behaviour = Behaviour(plan, width, delay)
    if plan.kind == "function":
        return thread_node(behaviour) if plan.threaded else function_node(behaviour)
    if plan.kind == "planner":
        return Planner(behaviour)
    if plan.kind == "keeper":
        if width and plan.threaded:
            return ThreadKeeper(behaviour)
        return Keeper(behaviour) if width else LastKeeper(behaviour)
    return Worker(behaviour) if width else LastWorker(behaviour)
