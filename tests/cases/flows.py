"""Workflows that are restored in a fresh process, so both sides build them from here.

Each takes the list into which its executors note that they ran; `broken` holds the ids of those that fail.
"""

from dataclasses import dataclass
from typing import Never

from rehydrate import Executor, WorkflowBuilder, WorkflowContext, WorkflowExecutor, executor, handler, response_handler


class Asker(Executor):
    """Asks about each message and sends on what it was told."""

    def __init__(self, id, log):
        super().__init__(id)
        self.log = log

    @handler
    async def on_message(self, text: str, ctx: WorkflowContext[str]) -> None:
        self.log.append(f"{self.id} asks {text}")
        await ctx.request_info(text, response_type=str)

    @response_handler
    async def on_answer(self, text: str, answer: str, ctx: WorkflowContext[str]) -> None:
        self.log.append(f"{self.id} is told {answer}")
        await ctx.send_message(f"{text}={answer}")


def adder(id, amount, log, broken=()):
    """An executor that adds an amount to each number, or fails."""

    @executor(id=id)
    async def add_amount(number: int) -> int:
        log.append(id)
        if id in broken:
            raise ValueError(f"{id} is broken")
        return number + amount

    return add_amount


def text_passer(id, log):
    """An executor that sends each text on."""

    @executor(id=id)
    async def pass_on(text: str) -> str:
        log.append(id)
        return text

    return pass_on


def lister(id, log):
    """The target of a join of numbers: yields what it got, as text."""

    @executor(id=id)
    async def give(numbers: list[int]) -> str:
        log.append(f"{id} {numbers}")
        return f"{numbers}"

    return give


def uneven_join(log, broken=()):
    """s → [a, b1 → b2] → join."""
    s, a, b1, b2 = (adder(name, amount, log, broken) for name, amount in (("s", 0), ("a", 1), ("b1", 10), ("b2", 100)))
    join = lister("join", log)
    return (
        WorkflowBuilder("uneven", s)
        .add_fan_out_edges(s, [a, b1])
        .add_edge(b1, b2)
        .add_fan_in_edges([a, b2], join)
        .build()
    )


def skipped_branch(log):
    """a → (never) b → d and a → c → d; c asks."""
    a, b, c = text_passer("a", log), text_passer("b", log), Asker("c", log)

    @executor(id="d")
    async def d(texts: list[str]) -> str:
        log.append("d")
        return " ".join(texts)

    return (
        WorkflowBuilder("skipping", a)
        .add_edge(a, b, condition=lambda text: False)
        .add_edge(a, c)
        .add_fan_in_edges([b, c], d)
        .build()
    )


def loop(log):
    """count → back → count, until the number is five."""

    @executor(id="count")
    async def count(number: int, ctx: WorkflowContext[int, int]) -> None:
        log.append(f"count {number} in superstep {ctx.superstep}")
        if number < 5:
            await ctx.send_message(number)
        else:
            await ctx.yield_output(number)

    back = adder("back", 1, log)
    return WorkflowBuilder("loop", count).add_chain([count, back, count]).build()


def three(log, broken=()):
    """1 → 2 → 3."""
    chain = [adder(name, 1, log, broken) for name in ("one", "two", "three")]
    return WorkflowBuilder("three", chain[0]).add_chain(chain).build()


def four_parallel(log, broken=()):
    """s → [w1, w2, w3, w4], which all yield."""
    s = adder("s", 0, log)
    workers = [adder(f"w{number}", number, log, broken) for number in (1, 2, 3, 4)]
    return WorkflowBuilder("four", s).add_fan_out_edges(s, workers).build()


def asking_child(log, max_concurrency=None):
    """ask (a sub-workflow that asks) → told."""
    inner = Asker("asker", log)

    @executor(id="last")
    async def last(text: str) -> str:
        return text.upper()

    child = WorkflowBuilder("child", inner).add_edge(inner, last).build()
    ask, told = WorkflowExecutor(child, id="ask"), text_passer("told", log)
    return WorkflowBuilder("asking", ask, max_concurrency=max_concurrency).add_edge(ask, told).build()


def overlapping_turns(log):
    """start → [quick, slow] → join; slow asks."""
    start, quick, slow = text_passer("start", log), text_passer("quick", log), Asker("slow", log)

    @executor(id="join")
    async def join(texts: list[str]) -> str:
        return " + ".join(texts)

    return (
        WorkflowBuilder("overlapping", start)
        .add_fan_out_edges(start, [quick, slow])
        .add_fan_in_edges([quick, slow], join)
        .build()
    )


@dataclass(frozen=True)
class Job:
    """What a child of `three_children` is to do."""

    name: str


def three_children(log, broken=(), gate=None):
    """s → three sub-workflows: one asks at once, one takes long, one may fail; each yields its text."""

    @executor(id="s")
    async def s(name: str) -> Job:
        return Job(name)

    class Asks(Executor):
        @handler
        async def on_job(self, job: Job, ctx: WorkflowContext[Never, str]) -> None:
            log.append("asks")
            await ctx.request_info(job, response_type=str)

        @response_handler
        async def on_answer(self, job: Job, answer: str, ctx: WorkflowContext[Never, str]) -> None:
            log.append("told")
            await ctx.yield_output(f"{job.name} asked: {answer}")

    @executor(id="begin")
    async def begin(job: Job) -> Job:
        log.append("begin")
        return job

    @executor(id="work")
    async def work(job: Job) -> str:
        log.append("work")
        if gate is not None:
            await gate.wait()
        return f"{job.name} worked"

    @executor(id="risk")
    async def risk(job: Job) -> str:
        log.append("risk")
        if "risk" in broken:
            raise ValueError("risk is broken")
        return f"{job.name} risked"

    asks = WorkflowBuilder("asks", Asks("question")).build()
    long = WorkflowBuilder("long", begin).add_edge(begin, work).build()
    fails = WorkflowBuilder("fails", risk).build()
    children = [WorkflowExecutor(child, id=child.name) for child in (long, fails, asks)]
    return WorkflowBuilder("children", s).add_fan_out_edges(s, children).build()


@dataclass(frozen=True)
class Round:
    """How often an item has come round."""

    item: int
    number: int


class Odd(Executor):
    """Handles items in all ways: 1 sends two, 2 asks, 3 sends nothing, 4 loops, and the others send one."""

    def __init__(self, id, log, broken=()):
        super().__init__(id)
        self.log = log
        self.broken = broken

    @handler
    async def on_item(self, item: int, ctx: WorkflowContext[str | Round]) -> None:
        self.log.append(f"{self.id} {item}")
        if f"{self.id} {item}" in self.broken:
            raise ValueError(f"item {item} is broken")
        if item == 1:
            ctx.send_message("1 a")
            ctx.send_message("1 b")
        elif item == 2:
            ctx.request_info("two?", response_type=str)
        elif item == 4:
            ctx.send_message(Round(item, 1))
        elif item != 3:
            ctx.send_message(f"{item}")

    @handler
    async def on_round(self, turn: Round, ctx: WorkflowContext[str | Round]) -> None:
        if turn.number < 3:
            ctx.send_message(Round(turn.item, turn.number + 1))
        else:
            ctx.send_message(f"{turn.item} after {turn.number} rounds")

    @response_handler
    async def on_answer(self, question: str, answer: str, ctx: WorkflowContext[str]) -> None:
        self.log.append(f"{self.id} is told {answer}")
        ctx.send_message(answer)


def planner(id="plan"):
    """An executor that makes a list of so many items."""

    @executor(id=id)
    async def plan(count: int) -> list[int]:
        return list(range(count))

    return plan


def _end(log):
    @executor(id="end")
    async def end(parts: list[str]) -> list[str]:
        log.append("end")
        return parts

    return end


def mapped(log, broken=()):
    """plan → (map) odd → end; one item asks, one loops, one sends nothing, one sends two."""
    odd, end = Odd("odd", log, broken), _end(log)
    builder = WorkflowBuilder("mapped", planner()).add_map_edge("plan", odd, into=end)
    return builder.add_edge(odd, odd).add_edge(odd, end).build()


class Yielding(Odd):
    """The same, as the only node of a workflow."""

    @handler
    async def on_item(self, item: int, ctx: WorkflowContext[Never, str]) -> None:
        if item == 1:
            ctx.yield_output("1 a")
            ctx.yield_output("1 b")
        elif item == 2:
            ctx.request_info("two?", response_type=str)
        elif item != 3:
            ctx.yield_output(f"{item}")

    @handler
    async def on_round(self, turn: Round, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output(f"{turn}")

    @response_handler
    async def on_answer(self, question: str, answer: str, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output(answer)


def mapped_children(log):
    """plan → (map) a sub-workflow → end."""
    inner = WorkflowBuilder("inner", Yielding("odd", log)).build()
    child, end = WorkflowExecutor(inner, "child"), _end(log)
    return WorkflowBuilder("parent", planner()).add_map_edge("plan", child, into=end).build()


FLOWS = {
    "mapped": mapped,
    "mapped_children": mapped_children,
    "uneven_join": uneven_join,
    "skipped_branch": skipped_branch,
    "loop": loop,
    "three": three,
    "four_parallel": four_parallel,
    "asking_child": asking_child,
    "overlapping_turns": overlapping_turns,
    "three_children": three_children,
}
