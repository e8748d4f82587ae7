"""From a plan to workflows: functions that do what a plan says, and the graphs around and below them.

A mark is a digest of all that has happened in a program, so that one wrong value shows to the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rehydrate import (
    FunctionalContext,
    Workflow,
    WorkflowBuilder,
    WorkflowExecutor,
    add,
    append,
    executor,
    workflow,
)
from rehydrate.errors import StepFailedError
from tests.differential.building import build
from tests.differential.drawing import draw
from tests.differential.messages import Item, Question, mix
from tests.differential.nodes import Weather
from tests.functional import random_steps as steps
from tests.functional.random_plans import HousePlan, OpPlan, ProgramPlan, ProgramsPlan

#: More than any step and its retries take together.
_LONG = 100_000.0


def build_programs(plan: ProgramsPlan) -> Workflow:
    """Build the root workflow with all below it."""
    built: dict[str, Workflow] = {}

    def made(name: str) -> Workflow:
        if name not in built:
            built[name] = make(name)
        return built[name]

    def make(name: str) -> Workflow:
        if name in plan.programs:
            return _function(plan.programs[name], made, plan)
        return _house(plan.houses[name], made) if name in plan.houses else _graph(name, plan.seeds[name])

    return made(plan.root)


def _graph(name: str, seed: int) -> Workflow:
    family = draw(seed)
    plan = family.graphs["root"]
    plan.name = family.root = name
    family.graphs = {name: plan}
    for node in plan.nodes:
        node.fails = 0
    return build(family)


def _house(plan: HousePlan, made: Callable[[str], Workflow]) -> Workflow:
    @executor(id="enter")
    async def first(item: Item) -> Item:
        return Item(mix(plan.name, item), item.fuel)

    @executor(id="leave")
    async def last(values: list[int | Item]) -> Item:
        return Item(mix(plan.name, values), 0)

    nodes = [WorkflowExecutor(made(name), id=name) for name in plan.children]
    builder = WorkflowBuilder(plan.name, first, resources={"weather": Weather})
    builder.add_fan_out_edges(first, nodes)
    builder.add_fan_in_edges(nodes, last)
    return builder.build()


def _function(plan: ProgramPlan, made: Callable[[str], Workflow], programs: ProgramsPlan) -> Workflow:
    targets = {op.target for op in all_ops(plan.ops) if op.target}
    called = {name: made(name) for name in sorted(targets)}

    async def program(item: Item, ctx: FunctionalContext) -> int:
        steps.WEATHER.set(ctx.resources["weather"])
        here = Program(plan, ctx, called, item.fuel)
        mark = await here.block(plan.ops, mix(plan.name, item, ctx.run_args), "")
        if plan.again and item.fuel > 8 and mark % plan.again == 0:
            await ctx.continue_as_new(Item(mix(mark, "again"), item.fuel // 2))
        return mark

    program.__name__ = plan.name
    return workflow(
        name=plan.name,
        message=Item,
        returns=int,
        types=[Question, int],
        calls=list(called.values()),
        reducers={"log": append, "sum": add},
        resources={"weather": Weather},
        max_concurrency=programs.max_concurrency if plan.name == programs.root else None,
    )(program)


def all_ops(ops: list[OpPlan]) -> list[OpPlan]:
    """Return what a program does, in its branches too."""
    found: list[OpPlan] = []
    for op in ops:
        found += [op, *all_ops([inner for block in op.blocks for inner in block])]
    return found


@dataclass
class Program:
    """One run of a program: what each thing in its plan does to the mark. `reach` is the fuel of what it calls."""

    plan: ProgramPlan
    ctx: FunctionalContext
    called: dict[str, Workflow]
    fuel: int
    reach: int = 10

    async def block(self, ops: list[OpPlan], mark: int, lane: str) -> int:
        """Do one thing after the other."""
        for op in ops:
            mark = mix(mark, op.label, await self.do(op, mark, lane))
        return mark

    async def do(self, op: OpPlan, mark: int, lane: str) -> object:
        """Do one thing and return all that was seen of it."""
        key = f"{op.label} {mark}"
        match op.kind:
            case "work" | "threaded" | "flaky" | "stormy":
                return await getattr(steps, op.kind)(key, mark)
            case "equal":
                return await asyncio.gather(steps.work(key, mark), steps.work(key, mark), steps.work(key, mark + 1))
            case "slow":
                return await self._caught(steps.slow(key, mark=mark))
            case "broken":
                return await self._caught(steps.broken(key, mark))
            case "raised":
                return await steps.broken(key, mark)
            case "now" | "random" | "uuid":
                return await self._stamped(op, key, mark)
            case "ask" | "guarded" | "timed":
                return await self._asked(op, mark)
            case "sleep":
                return await self.ctx.sleep(mark % 20 / 4)
            case "call":
                return await self._call(op, mark)
            case "parallel":
                return await self._parallel(op, mark, lane)
            case _:
                return self._state(op, mark, lane)

    async def _caught(self, call: Any) -> object:
        try:
            return await call
        except StepFailedError as error:
            return error.step, error.type

    async def _stamped(self, op: OpPlan, key: str, mark: int) -> object:
        """Feed a value of the moment to a step, which must have got the same whenever it ran."""
        ctx = self.ctx
        value = {"now": ctx.now, "uuid": ctx.uuid}.get(op.kind, lambda: ctx.random().random())()
        done = await steps.stamp(key, mark, str(value))
        return done.mark == mix(str(value))

    async def _asked(self, op: OpPlan, mark: int) -> object:
        question = Question(op.label, mark % 10, Item(mark, 0))
        if op.kind == "ask":
            return await self.ctx.request_info(question, response_type=int)
        if op.kind == "timed":
            async with asyncio.timeout(_LONG):
                return await self.ctx.request_info(question, response_type=int)
        try:
            return await self.ctx.request_info(question, response_type=int)
        except BaseException:  # a wait is never seen
            self.ctx.state.set("log", ["a wait was seen"])
            return "a wait was seen"

    async def _call(self, op: OpPlan, mark: int) -> object:
        item = Item(mix(mark, op.target), self.reach, (mark % 5,))
        return await self.ctx.call(self.called[op.target], item)

    async def _parallel(self, op: OpPlan, mark: int, lane: str) -> object:
        blocks = [
            self.block(ops, mix(mark, number), f"{lane},{op.label}.{number}") for number, ops in enumerate(op.blocks)
        ]
        if op.mode == "gather":
            return await self.ctx.gather(*blocks)
        if op.mode == "asyncio":
            return tuple(await asyncio.gather(*blocks))
        if op.mode == "exceptions":
            found = await asyncio.gather(*blocks, return_exceptions=True)
            return [each if isinstance(each, int) else type(each).__name__ for each in found]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(block) for block in blocks]
        return tuple(task.result() for task in tasks)

    def _state(self, op: OpPlan, mark: int, lane: str) -> object:
        state = self.ctx.state
        match op.kind:
            case "get":
                return state.get("kept"), state.get("log", [], start=-3), state.get("sum", 0), state.get("gone")
            case "set":
                state.set("kept", mark)
                state.set("gone", mark % 9)
            case "delete":
                state.delete("gone")
            case "log":
                state.update("log", f"{op.label}:{mark % 97}")
            case "sum":
                state.update("sum", mark % 1000)
            case "lane":
                before = state.get(f"own{lane}", 0)
                state.set(f"own{lane}", mix(before, mark))
                return before
        return None
