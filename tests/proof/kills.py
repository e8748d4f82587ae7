"""Random kills: a client that talks to a process, kills it at any moment, and finishes what it began in the next one.

After each kill it looks at the store: what was acknowledged must be there, and what was not is there as a whole or not
at all.
"""

import asyncio
import random
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from rehydrate import FileCheckpointStorage, InMemoryCheckpointStorage, SqliteCheckpointStorage, Status, Workflow
from rehydrate.model.checkpoint import RESTING, Head, Latest
from tests.processes.conversation import Order
from tests.processes.jobs import WORKFLOWS, facts
from tests.processes.line import PATIENCE
from tests.processes.nursery import Child, Nursery

T = TypeVar("T")
#: A call is killed no more often than this: at five attempts lost in a row an invocation fails, as it should.
KILLS_PER_CALL = 4


@dataclass(frozen=True)
class Step:
    """One turn of the talk: an order, answers to questions, or both."""

    order: int | None
    answers: list[str]


@dataclass
class Talk:
    """Chooses what is said next, by chance, from the open questions."""

    chance: random.Random
    orders: int = 0
    steps: list[Step] = field(default_factory=list)

    def next(self, questions: list[str], *, last: bool = False) -> Step:
        """Return the next turn; the `last` ones bring no orders any more."""
        answers = [question for question in questions if self.chance.random() < 0.5]
        order = None
        if not questions or (not last and len(questions) < 5 and self.chance.random() < 0.4):
            self.orders += 1
            order = self.orders
        step = Step(order, answers if answers or order else questions[:1])
        self.steps.append(step)
        return step


def answer_to(question: str) -> str:
    return f"yes to {question}"


class Client:
    """Talks to one process after the other. `kills` counts those that it has killed."""

    def __init__(
        self, nursery: Nursery, place: Path, run_id: str, chance: random.Random, told: dict[str, object]
    ) -> None:
        """Talk in runs that are kept in a place; its name says in which store. More is `told` to each process."""
        self.run_id = run_id
        self.continuation = {"run_id": run_id, "checkpoint": "latest"}
        self.nursery = nursery
        self.chance = chance
        is_file = place.suffix == ".db"
        self.told = {
            "file" if is_file else "folder": str(place), "journal": "/dev/null", "name": "",
            "workflow": "conversation", "keep_events": True, **told,
        }  # fmt: skip
        self.store = (SqliteCheckpointStorage if is_file else FileCheckpointStorage)(place, keep_events=True)
        self.workflow = WORKFLOWS[str(self.told["workflow"])][0]
        #: One loop for all looks at the store: a new one costs more than the look.
        self.loop = asyncio.Runner()
        #: The head as it was last read; nobody but a living process of this client moves it.
        self.head: Head | None = None
        #: The number of the newest event that was found in the store.
        self.kept = 0
        self.child: Child | None = None
        self.kills = 0
        #: What was acknowledged: the number of the newest event, and all results.
        self.event = 0
        self.results: list[dict[str, object]] = []
        #: The numbers of the events of an attempt.
        self.heard: list[int] = []
        #: How many events a turn has, more or less.
        self.length = 20

    def say(self, step: Step, *, kills: int) -> dict[str, object]:
        """Take a turn, whatever happens in between; kill at most so many processes."""
        call = self.call(step)
        number = len(self.results) + 1
        given = call
        for left in range(min(kills, KILLS_PER_CALL), -1, -1):
            before = self.head
            self.heard.clear()
            result = self.attempt(given, killed=left > 0)
            self.head = self.do(self.store.head(self.run_id))
            first = 1 if before is None else before.header.events + 1
            assert self.heard == list(range(first, first + len(self.heard)))
            if result is None:
                head = self.check(number, before, call)
                result, given = self.repeat(call, number, head)
            if result is not None:
                self.check_result(result, number)
                return result
        raise AssertionError("a call that was not killed had no result")

    def call(self, step: Step) -> dict[str, object]:
        """Return the arguments of a turn; there are several ways to say the same."""
        call: dict[str, object] = {} if step.order is None else {"message": step.order, "run_id": self.run_id}
        if self.results:
            before = self.results[-1]
            ids = {text: request_id for request_id, _, text in before["requests"]}
            if step.answers:
                call["responses"] = {ids[text]: answer_to(text) for text in step.answers}
            if step.order is not None:
                call["on_pending"] = "keep"
            if step.order is not None or self.chance.random() < 0.5:
                call |= {"run_id": self.run_id, "checkpoint": self.chance.choice(["latest", before["checkpoint"]])}
        if self.chance.random() < 0.4:
            call["idempotency_key"] = f"turn {len(self.results) + 1} of {self.run_id}"
        return call

    def attempt(self, call: dict[str, object], *, killed: bool) -> dict[str, object] | None:
        """Make a call, and kill its process at some moment unless the result comes before; return the result."""
        if self.child is None:
            self.child = self.nursery.child("caller", self.told)
        self.child.send({"call": dict(call), "tells": True})
        anywhere = self.chance.randrange(self.length)
        events = self.chance.choice([0, anywhere, anywhere, anywhere, self.length - 1])
        seconds = self.chance.random() * self.chance.choice([0.001, 0.03])
        while True:
            try:
                said = self.child.receive(seconds if killed and len(self.heard) >= events else PATIENCE)
            except TimeoutError:
                break
            if not isinstance(said, int):
                self.length = max(len(self.heard), 1)
                return said
            self.hear(said)
        assert killed, "nothing was said for a minute"
        return self.kill()

    def kill(self) -> dict[str, object] | None:
        """Kill the process; return the result that it had said by then."""
        assert self.child is not None
        said = self.child.kill()
        self.child = None
        self.kills += 1
        for number in said:
            if isinstance(number, int):
                self.hear(number)
        return next((result for result in said if isinstance(result, dict)), None)

    def hear(self, event: int) -> None:
        """Take note of an acknowledged event."""
        self.heard.append(event)
        self.event = max(self.event, event)

    def repeat(
        self, call: dict[str, object], number: int, head: Head | None
    ) -> tuple[dict[str, object] | None, dict[str, object]]:
        """Return the call with which the turn is finished: the same again, or a continuation of what it began."""
        if head is None or head.header.turn < number:
            return None, call
        if head.header.status not in RESTING:
            return None, self.chance.choice([call, self.continuation])
        # The turn ended well before its result was said. With its key the same call gives it; without, it is refused
        # where it names its checkpoint or run, and `"latest"` shows how the run stands.
        if "idempotency_key" in call:
            result = self.attempt(call, killed=False)
            assert result is not None
            assert result.get("replayed") is True, result
        else:
            if call.get("checkpoint") != "latest":
                assert self.attempt(call, killed=False)["error"] == refusal(call)
            result = self.attempt(self.continuation, killed=False)
        assert result["checkpoint"] == head.header.checkpoint_id
        return result, call

    def check(self, number: int, before: Head | None, call: dict[str, object]) -> Head | None:
        """Look at what is there after a kill in turn `number`; `before` is the head before the killed attempt."""
        head = self.head
        if head is None:
            assert (self.event, self.results, before) == (0, [], None)
            return None
        assert not head.alive
        assert head.header.events >= self.event
        self.check_kept(head)
        # The records are counted, and their sum is compared, as they are loaded.
        opened = {request.request_id for request in self.do(self.store.inspect(Latest(self.run_id))).requests}
        assert len(opened) == head.header.pending
        if head.header.turn == number:
            assert opened.isdisjoint(call.get("responses", {}))
        else:
            assert head.header.turn == number - 1
            assert head.header.checkpoint_id == before.header.checkpoint_id
            assert opened >= set(call.get("responses", {}))
        return head

    def check_result(self, result: dict[str, object], number: int) -> None:
        """Check an acknowledged result against the store."""
        assert result.get("turn") == number, result
        self.results.append(result)
        assert self.head.header.checkpoint_id == result["checkpoint"]
        assert self.head.header.events >= self.event
        self.check_kept(self.head)

    def check_kept(self, head: Head) -> None:
        """Check that the store has kept each event of the commits that are there, and none of another."""
        found = self.do(self.store.events(self.run_id, after=self.kept, limit=100_000))
        assert [event.number for event in found] == list(range(self.kept + 1, head.header.events + 1))
        self.kept = head.header.events

    def check_stored(self, result: dict[str, object]) -> None:
        """Check that a result that was acknowledged is there as it was."""
        found = self.do(self.store.inspect(result["checkpoint"]))
        assert (found.header.turn, found.header.status.value) == (result["turn"], result["status"])
        assert list(found.outputs) == result["outputs"]
        assert sorted(r.request_id for r in found.requests) == sorted(r[0] for r in result["requests"])

    def do(self, call: Coroutine[None, None, T]) -> T:
        return self.loop.run(call)

    def at_rest(self) -> list[str]:
        """Return what the run has filed once it is at rest."""
        result = self.do(self.workflow.run(checkpoint="latest", run_id=self.run_id, checkpoint_storage=self.store))
        assert result.status is Status.IDLE
        return sorted(result.checkpoint.state["filed"])

    def uninterrupted(self, steps: list[Step]) -> list[dict[str, object]]:
        """Return the results of the same talk in one process, in memory."""
        return self.do(uninterrupted(self.workflow, steps))

    def check_all(self) -> None:
        """Look at everything that was ever acknowledged, and at the chain of checkpoints."""
        for result in self.results:
            self.check_stored(result)
        chain = self.do(self.store.history(self.run_id, limit=self.head.header.seq + 2))
        assert [header.seq for header in chain] == list(range(len(chain)))[::-1]
        assert [h.previous_checkpoint_id for h in chain] == [*(h.checkpoint_id for h in chain[1:]), None]

    def close(self) -> None:
        """Let the last process end, and close the store."""
        if self.child is not None:
            self.child.end()
        self.do(self.store.close())
        self.loop.close()


def refusal(call: dict[str, object]) -> str:
    """Return the error of a call that is made again after its turn has ended well."""
    if "responses" in call:
        return "AlreadyAnsweredError"
    return "StaleCheckpointError" if "checkpoint" in call else "RunExistsError"


async def uninterrupted(workflow: Workflow, steps: list[Step]) -> list[dict[str, object]]:
    """Return the results of a talk in one process, in memory."""
    store, results = InMemoryCheckpointStorage(), []
    result = None
    for step in steps:
        message = None if step.order is None else Order(step.order)
        if result is None:
            result = await workflow.run(message, run_id="reference", checkpoint_storage=store)
        else:
            ids = {request.data.text: request.request_id for request in result.pending_requests}
            answers = {ids[text]: answer_to(text) for text in step.answers}
            given = {"responses": answers, "on_pending": "keep", "checkpoint_storage": store}
            result = await workflow.run(message, checkpoint=result, **given)
        results.append(facts(result))
    return results


def comparable(results: list[dict[str, object]]) -> list[tuple[object, ...]]:
    """Return what an interrupted talk has in common with an uninterrupted one."""
    return [
        (result["turn"], result["status"], result["outputs"], [request[1:] for request in result["requests"]])
        for result in results
    ]


def filed(orders: int) -> list[str]:
    """Return what each order leaves in the root's list, which is filed once for each, in whatever order they end."""
    found = []
    for number in range(1, orders + 1):
        sides = ["left", "right"] if number % 3 else ["left"]
        found += [f"{side} {number} {answer_to(f'{side} {number}')} 1/2 halved 2" for side in sides]
        found.append(f"quick {number}")
    return sorted(found)
