"""The engine alone, without an event loop: pure, repeatable, and the same for every finishing order and batch."""

from functools import cache
from random import Random

import msgspec
import pytest

from rehydrate import Executor, Workflow, WorkflowBuilder, WorkflowExecutor, executor
from rehydrate.engine.commands import StartInvocation
from rehydrate.engine.inputs import AnswersArrived, CancelAsked, Input, InvocationFinished, TurnArrived
from rehydrate.engine.run import Draft, Run
from rehydrate.graph.definition import Definition
from rehydrate.model.checkpoint import Status
from rehydrate.model.effects import Ask, Effect, Send
from rehydrate.model.events import Event, InvocationFailed
from rehydrate.model.records import CounterRecord, Key
from tests.differential.building import build
from tests.differential.drawing import draw
from tests.engine.driver import (
    Driver,
    Hands,
    answering,
    continuing,
    encoded,
    first_turn,
    reloaded,
    run_to_the_end,
    sealed,
)

FUEL = 200


@cache
def graph_of(seed: int) -> Definition:
    """The graph of a random family."""
    return build(draw(seed)).definition


def driver_of(seed: int, *, stormy: bool = False) -> Driver:
    """A driver of an empty run."""
    return Driver(Hands(graph_of(seed), stormy=stormy))


def facts(driver: Driver) -> dict[Key, bytes]:
    """All records as bytes, but for what says how often a process was lost, and what time it is."""
    return {key: data for key, data in encoded(driver.run) if key[1] not in ("attempt", "timer")}


def events_by_scope(events: list[Event]) -> dict[str, list[Event]]:
    """The events of each scope in their order."""
    found: dict[str, list[Event]] = {}
    for event in events:
        found.setdefault(event.path, []).append(event)
    return found


@pytest.mark.parametrize("seed", range(100, 125))
def test_a_run_is_the_same_whatever_finishes_first(seed: int) -> None:
    """Records and per-scope events do not depend on the order in which invocations finish."""
    one, other = driver_of(seed), driver_of(seed)
    assert run_to_the_end(one, Random(1), fuel=FUEL) == run_to_the_end(other, Random(2), fuel=FUEL)
    assert facts(one) == facts(other)
    assert events_by_scope(one.events) == events_by_scope(other.events)


@pytest.mark.parametrize("seed", range(100, 125))
@pytest.mark.parametrize("stormy", [False, True])
def test_a_batch_equals_its_inputs_one_by_one_but_for_the_number_of_commits(seed: int, stormy: bool) -> None:
    """Records and per-scope events are the same when several invocations finish in one transition."""
    single, batched = driver_of(seed, stormy=stormy), driver_of(seed, stormy=stormy)
    assert run_to_the_end(single, Random(3), fuel=FUEL) == run_to_the_end(batched, Random(3), fuel=FUEL, batch=5)
    assert facts(single) == facts(batched)
    told = [[e for e in driver.events if not isinstance(e, InvocationFailed)] for driver in (single, batched)]
    assert events_by_scope(told[0]) == events_by_scope(told[1])


RELOADED = [pytest.param(seed, marks=[] if seed < 107 else [pytest.mark.proof]) for seed in range(100, 115)]


@pytest.mark.parametrize("seed", RELOADED)
def test_a_run_goes_on_from_its_records_after_any_transition(seed: int) -> None:
    """Reloaded from bytes, in any order, between any two inputs of its first turn, a run ends in the same records."""
    driver = driver_of(seed)
    driver.begin(first_turn(FUEL))
    snapshots = [encoded(driver.run)]
    random = Random(4)
    while driver.ended is None:
        driver.take(*driver.some(random, 1))
        snapshots.append(encoded(driver.run))
    expected = {key: data for key, data in facts(driver).items() if key[1] != "turn"}
    for number, records in enumerate(snapshots[:-1]):
        again = Driver(driver.hands, reloaded(records, Random(number)))
        again.begin(continuing(interrupted=True))
        again.rest(Random(number))
        assert {key: data for key, data in facts(again).items() if key[1] != "turn"} == expected


@pytest.mark.parametrize("seed", range(100, 140))
def test_a_run_stays_valid_and_never_gets_stuck_whatever_comes(seed: int) -> None:
    """Storms, lost processes, answers at any time, cancellation and new input under every policy break no invariant."""
    random = Random(seed)
    driver = driver_of(seed)
    driver.begin(first_turn(FUEL))
    for _ in range(60):
        driver.hands.stormy = random.random() < 0.3
        running = driver.ended is None
        chance = random.random()
        if running and chance < 0.7:
            assert driver.running(), "nothing runs, and the run has not ended"
            driver.take(*driver.some(random, random.choice((1, 1, 2, 4))))
        elif running and chance < 0.8 and driver.answers():
            driver.take(AnswersArrived(driver.answers()[:1]))
        elif running and chance < 0.83 and driver.timers():
            driver.take(random.choice(driver.timers()))
        elif running and chance < 0.85:
            driver.take(CancelAsked())
            assert driver.ended is not None
        else:
            driver.run = reloaded(encoded(driver.run), random)
            driver.begin(any_turn(driver, random))
    driver.hands.stormy = False
    driver.begin(continuing(interrupted=True, limit_anew=True))
    assert driver.rest(random) in {Status.IDLE, Status.IDLE_WITH_PENDING_REQUESTS, Status.FAILED, Status.LIMIT_REACHED}


def any_turn(driver: Driver, random: Random) -> TurnArrived:
    """A call that finds the run as it is: with or without a message and answers, under any policy."""
    interrupted = driver.ended is None
    limit = driver.ended is not None and driver.ended.status is Status.LIMIT_REACHED
    answers = driver.answers()[: random.choice((0, 1, 9))]
    message = sealed(random.randrange(1000), 20) if random.random() < 0.5 else None
    if message is None and not answers:
        return continuing(interrupted=interrupted, limit_anew=limit)
    return TurnArrived(
        message=message,
        answers=answers,
        base="before",
        digest="any",
        on_pending=random.choice(("keep", "cancel")),
        on_unfinished=random.choice(("finish", "discard")),
        interrupted=interrupted,
        limit_anew=limit,
    )


def test_an_answer_in_one_batch_with_a_finished_invocation_comes_after_its_barrier() -> None:
    """Answers are taken at the barrier at which they would be taken if the inputs came one by one."""
    one, other = asked_while_another_runs(), asked_while_another_runs()
    finished = one.some(Random(0), 1)
    answer = AnswersArrived(one.answers())
    one.take(*finished)
    one.take(answer)
    other.take(*finished, answer)
    assert facts(one) == facts(other)


def test_a_time_that_is_up_in_one_batch_with_a_finished_invocation_comes_after_its_barrier() -> None:
    """A scope that has come to rest by what stands before it in the batch is not stopped."""
    inner = WorkflowExecutor(chain_of("inner"), "child", timeout=5)
    graph = WorkflowBuilder("w", inner).build().definition
    one, other = Driver(Script(graph)), Driver(Script(graph))
    for driver in (one, other):
        driver.begin(first_turn(1))
    (up,) = one.timers()
    (finished,) = one.some(Random(0), 1)
    one.take(finished)
    one.take(up)
    other.take(finished, up)
    assert (one.over, other.over) == ([], [])
    assert facts(one) == facts(other)


def asked_while_another_runs() -> Driver:
    """start -> middle -> last: `start` has asked and sent on, `middle` runs and will send on."""
    driver = Driver(Script(chain("start", "middle", "last")))
    driver.begin(first_turn(1))
    driver.take(*driver.some(Random(0), 1))
    return driver


def chain(*names: str) -> Definition:
    """A graph of functions in a row."""
    return chain_of(*names).definition


def chain_of(*names: str) -> Workflow:
    """A workflow of functions in a row."""

    def node(name: str) -> Executor:
        @executor(id=name)
        async def run(text: str) -> str:
            return text

        return run

    nodes = [node(name) for name in names]
    builder = WorkflowBuilder("chain", nodes[0])
    return (builder.add_chain(nodes) if nodes[1:] else builder).build()


class Script(Hands):
    """Everybody sends on but the last; `start` asks as well, where it handles a message."""

    def __init__(self, graph: Definition, asks: int = 1) -> None:
        super().__init__(graph)
        self.asks = asks

    def finish(self, run: Run, start: StartInvocation) -> Input:
        executor_id = start.delivery.executor
        routes = tuple(self._edges(start.path, executor_id))
        effects: list[Effect] = [Send(sealed(1, 1), routes)] if routes else []
        if executor_id == "start" and start.delivery.kind == "message":
            effects += [Ask(number, sealed(number, 1), "int", "on_answer") for number in range(self.asks)]
        return InvocationFinished(start.path, executor_id, start.delivery.activation, tuple(effects))


def test_receipts_do_not_depend_on_the_order_of_answers_or_records() -> None:
    """Seventy answers in one call leave the same records whatever their order in the call, and after a reload."""
    driver = Driver(Script(chain("start", "last"), asks=70))
    driver.begin(first_turn(1))
    driver.rest(Random(0))
    turn = answering(driver)
    ends: list[dict[Key, bytes]] = []
    for order in (Random(1), Random(2)):
        again = Driver(driver.hands, reloaded(encoded(driver.run), order))
        again.begin(msgspec.structs.replace(turn, answers=tuple(order.sample(turn.answers, 70))))
        again.rest(order)
        ends.append(facts(again))
    assert ends[0] == ends[1]


def test_discarding_a_draft_leaves_the_run_untouched() -> None:
    """Puts, removals and clearings in a draft show in the draft and, applied, in a copy, but never in the run."""
    driver = driver_of(103)
    run_to_the_end(driver, Random(5), fuel=FUEL)
    run = driver.run
    before, totals = encoded(run), dict(run.totals)
    draft = Draft(run)
    draft.put("", "counter", "new", CounterRecord(7))
    for number, (key, _) in enumerate(list(run.records())):
        if number % 3 == 0:
            draft.remove(*key)
    draft.clear("", "state")
    assert draft.get("", "counter", "new") == CounterRecord(7)
    assert draft.items("", "state") == []
    assert (encoded(run), run.totals) == (before, totals)
    copy = run.copy()
    copy.apply(draft.delta())
    assert copy.table("", "state") == {}
    assert (encoded(run), run.totals) == (before, totals)


def test_a_late_input_for_a_superstep_that_is_over_changes_nothing() -> None:
    """An invocation that is told finished again, after its barrier, leaves the records as they are."""
    driver = driver_of(103)
    driver.begin(first_turn(FUEL))
    told = driver.some(Random(6), 1)
    driver.take(*told)
    assert isinstance(told[0], InvocationFinished)
    driver.rest(Random(6))
    before = encoded(driver.run)
    driver.run.apply(driver.take(*told).delta)
    assert encoded(driver.run) == before


def test_a_copy_of_a_run_shares_no_table_with_it() -> None:
    """What is applied to a copy does not show in the run."""
    run = Run([(("", "counter", "a"), CounterRecord(1))])
    copy = run.copy()
    copy.apply({("", "counter"): {"a": CounterRecord(2), "b": CounterRecord(1)}})
    assert dict(run.table("", "counter")) == {"a": CounterRecord(1)}
    assert msgspec.structs.asdict(copy.table("", "counter")["a"]) == {"value": 2}
