"""A conversation of many turns over a graph and over a function, three levels deep, with a reference for each turn.

A turn tells in its output what it was given: its run arguments, what its steps and attempts were, and how many turns
there have been. Its supersteps are most of the limit, so that a counter that goes on stops the second turn.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Never

from rehydrate import (
    CheckpointStorage,
    Executor,
    FunctionalContext,
    FunctionalWorkflow,
    Retry,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    append,
    current_step,
    executor,
    handler,
    response_handler,
    step,
    workflow,
)

#: The limit of each level, and how often the inner loop goes round in a turn.
LIMIT, ROUNDS = 8, 6
#: Characters that each turn adds to a list in state.
LINE = 100


@dataclass(frozen=True)
class Said:
    """A message: its number, and how often the inner loop is to go round."""

    number: int
    rounds: int = ROUNDS
    asks: bool = False


@dataclass(frozen=True)
class Question:
    number: int


@dataclass
class World:
    """What is outside of the run: what it gives now, and what has been done to it."""

    now: str = ""
    done: list[str] = field(default_factory=list)

    def do(self, what: str) -> str:
        self.done.append(what)
        return f"{what}@{self.now}"


class Hear(Executor):
    """Counts the turns, in itself and in the state of the root, and sends what was said down."""

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.turns = 0

    def on_checkpoint_save(self) -> dict[str, object]:
        return {"turns": self.turns}

    def on_checkpoint_restore(self, state: dict[str, object]) -> None:
        self.turns = state["turns"]

    @handler
    async def on_said(self, said: Said, ctx: WorkflowContext[Said]) -> None:
        self.turns += 1
        ctx.update_state("heard", f"{self.turns}:{said.number}".ljust(LINE))
        ctx.set_state("newest", ctx.resources["world"].do("hear"))
        ctx.send_message(said)


class Round(Executor):
    """Goes round as often as it is told; asks behind that where it is told to."""

    @handler
    async def on_said(self, said: Said, ctx: WorkflowContext[Said, str]) -> None:
        ctx.set_state("rounds", ctx.get_state("rounds", 0) + 1)
        if said.rounds > 1:
            ctx.send_message(Said(said.number, said.rounds - 1, said.asks))
        elif said.asks:
            ctx.request_info(Question(said.number), response_type=str)
        else:
            self._tell(ctx, "")

    @response_handler
    async def on_answer(self, question: Question, answer: str, ctx: WorkflowContext[Said, str]) -> None:
        self._tell(ctx, answer)

    def _tell(self, ctx: WorkflowContext[Said, str], answer: str) -> None:
        world: World = ctx.resources["world"]
        ctx.yield_output(f"{world.do('look')} {ctx.run_args['turn']} {ctx.get_state('rounds')}{answer}")


def graph(store: CheckpointStorage | None) -> Workflow:
    """Make the conversation as a graph."""

    @executor(id="flaky", retry=Retry(attempts=2, delay=0.0))
    async def flaky(text: str, ctx: WorkflowContext[Never, str]) -> str:
        told = f"{text}; {ctx.resources['world'].do('try')} {ctx.run_args['turn']} {ctx.attempt}"
        if ctx.attempt == 1:
            raise ConnectionError("the first attempt of a turn fails")
        return told

    @executor(id="say")
    async def say(text: str, ctx: WorkflowContext[Never, str]) -> str:
        heard = ctx.get_state("heard")
        return f"{text}; {len(heard)} {heard[-1].strip()} {ctx.get_state('newest')} {ctx.run_args['turn']}"

    rounds, hear = Round("round"), Hear("hear")
    below = WorkflowBuilder("below", rounds, max_supersteps=LIMIT).add_edge(rounds, rounds).build()
    node = WorkflowExecutor(below, id="below")
    middle = WorkflowBuilder("middle", node, max_supersteps=LIMIT).add_edge(node, flaky).build()
    node = WorkflowExecutor(middle, id="middle")
    builder = WorkflowBuilder("talk", hear, checkpoint_storage=store, reducers={"heard": append}, max_supersteps=LIMIT)
    return builder.add_chain([hear, node, say]).build()


@step
async def do(what: str) -> str:
    """Do something outside."""
    return current_step().resources["world"].do(what)


@step(retry=Retry(attempts=2, delay=0.0))
async def attempt(what: str) -> str:
    """Do something outside that fails the first time."""
    run = current_step()
    told = run.resources["world"].do(what)
    if run.attempt == 1:
        raise ConnectionError("the first attempt of a turn fails")
    return f"{told} {run.attempt}"


def function(store: CheckpointStorage | None) -> FunctionalWorkflow:
    """Make the conversation as a function: the arguments of its steps are the same in every turn."""
    loop = Round("round")
    below = WorkflowBuilder("below", loop, max_supersteps=LIMIT).add_edge(loop, loop).build()

    @workflow(calls=[below], max_supersteps=LIMIT)
    async def middle(said: Said, ctx: FunctionalContext) -> str:
        (text,) = await ctx.call(below, said)
        tried = await attempt("try")
        at, _, number = tried.rpartition(" ")
        return f"{text}; {at} {ctx.run_args['turn']} {number}"

    @workflow(name="talk", calls=[middle], checkpoint_storage=store, reducers={"heard": append}, max_supersteps=LIMIT)
    async def talk(said: Said, ctx: FunctionalContext) -> str:
        turns = len(ctx.state.get("heard", [])) + 1
        ctx.state.update("heard", f"{turns}:{said.number}".ljust(LINE))
        newest = await do("hear")
        text = await ctx.call(middle, said)
        return f"{text}; {turns} {turns}:{said.number} {newest} {ctx.run_args['turn']}"

    return talk


MAKES = {"graph": graph, "function": function}


def expected(number: int, rounds: int, answer: str = "", now: str = "") -> str:
    """The output of a turn, as often as the inner loop goes round; `now`: where the world has gone on in it."""
    first, last = f"t{number}", now or f"t{number}"
    text = f"look@{last} {number} {rounds}{answer}; try@{last} {number} 2"
    return f"{text}; {number} {number}:{number} hear@{first} {number}"
