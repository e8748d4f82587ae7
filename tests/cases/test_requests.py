"""Requests: their ids, their answers, and who takes them (the section on requests)."""

import asyncio
from dataclasses import dataclass
from typing import Never

import pytest

from rehydrate import (
    Executor,
    Status,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    executor,
    handler,
    response_handler,
)
from rehydrate.errors import AlreadyAnsweredError, EffectError, RequestCancelledError, WorkflowBuildError
from rehydrate.model.events import RequestOpened
from tests.cases.flows import adder, asking_child
from tests.cases.kit import answers, bounded, failed, run


class Insists(Executor):
    """Asks until it is told "stop"; each answer is kept."""

    def __init__(self, log, id="insists"):
        super().__init__(id)
        self.log = log

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        self.log.append(f"before {text}")
        await ctx.request_info(text, response_type=str)

    @response_handler
    async def on_answer(self, text: str, answer: str, ctx: WorkflowContext[Never, str]) -> None:
        self.log.append(f"{text}: {answer}")
        if answer == "stop":
            await ctx.yield_output("stopped")
        else:
            await ctx.request_info(text, response_type=str)


def insisting(log, depth):
    """Such an executor, so many sub-workflows deep."""
    workflow = WorkflowBuilder("level0", Insists(log)).build()
    for level in range(1, depth + 1):
        workflow = WorkflowBuilder(f"level{level}", WorkflowExecutor(workflow, id="inner")).build()
    return workflow


@pytest.mark.parametrize("depth", [0, 2])
def test_a_request_keeps_its_id_over_restores_and_a_loop_that_asks_again_gets_a_new_one(place, depth):
    """Requests: the same question after a restore has the same id; the same words asked again have another."""
    log = []
    result = run(insisting(log, depth), "q", run_id="r", checkpoint_storage=place.store)
    ids = []
    for _ in range(3):
        (request,) = result.pending_requests
        surfaced = run(insisting(log, depth), checkpoint=result, checkpoint_storage=place.reopen())
        assert [again.request_id for again in surfaced.pending_requests] == [request.request_id]
        assert surfaced.checkpoint_id == result.checkpoint_id
        told = [event.request_id for event in surfaced.events if isinstance(event, RequestOpened)]
        assert told == [request.request_id]
        ids.append(request.request_id)
        result = run(
            insisting(log, depth),
            checkpoint=surfaced,
            responses=[request.answer("more")],
            checkpoint_storage=place.store,
        )
    assert len(set(ids)) == 3
    assert log == ["before q", "q: more", "q: more", "q: more"]


def test_a_fresh_process_knows_a_request_by_the_same_id(place, fresh):
    """Requests: the id is made from the run's birth and the inner name, so every process finds the same."""
    first = run(asking_child([]), "x", run_id="r", checkpoint_storage=place.store)
    reply = fresh.ask("asking_child", place.told(first.checkpoint_id))
    assert reply["open"] == [[first.pending_requests[0].request_id, "ask#1"]]
    assert reply["log"] == []


def test_a_run_id_that_is_used_again_repeats_no_request_id(place):
    """Requests: ids are made from the birth, so a run of the same id after a delete has others."""
    ids = []
    for _ in range(2):
        result = run(asking_child([]), "x", run_id="r", checkpoint_storage=place.store)
        ids.append((result.pending_requests[0].request_id, result.checkpoint_id))
        assert asyncio.run(place.store.delete("r")) is True
    assert len({request_id for request_id, _ in ids}) == 2
    assert len({checkpoint_id for _, checkpoint_id in ids}) == 2


# Answers -------------------------------------------------------------------------------------------------------------


class Falsy(Executor):
    """Asks for values that are false in Python, by the text of its message."""

    def __init__(self, told):
        super().__init__("falsy")
        self.told = told

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext) -> None:
        types = {"none": str | None, "false": bool, "zero": int, "empty": str, "nothing": list}
        await ctx.request_info(text, response_type=types[text])

    @response_handler
    async def on_maybe(self, text: str, answer: str | None, ctx: WorkflowContext) -> None:
        self.told.append(("maybe", answer))

    @response_handler
    async def on_bool(self, text: str, answer: bool, ctx: WorkflowContext) -> None:
        self.told.append(("bool", answer))

    @response_handler
    async def on_int(self, text: str, answer: int, ctx: WorkflowContext) -> None:
        self.told.append(("int", answer))

    @response_handler
    async def on_str(self, text: str, answer: str, ctx: WorkflowContext) -> None:
        self.told.append(("str", answer))

    @response_handler
    async def on_list(self, text: str, answer: list, ctx: WorkflowContext) -> None:
        self.told.append(("list", answer))


FALSY = [
    ("none", "maybe", None),
    ("none", "maybe", ""),
    ("false", "bool", False),
    ("zero", "int", 0),
    ("empty", "str", ""),
    ("nothing", "list", []),
]


@pytest.mark.parametrize(("asked", "taken_by", "answer"), FALSY)
@pytest.mark.parametrize("as_mapping", [True, False])
def test_a_false_value_is_an_answer(place, asked, taken_by, answer, as_mapping):
    """Requests: `None`, `False`, `0` and `""` are answers, and go to the handler chosen by the response type."""
    told = []
    workflow = WorkflowBuilder("falsy", Falsy(told)).build()
    first = run(workflow, asked, checkpoint_storage=place.store)
    given = {first.pending_requests[0].request_id: answer} if as_mapping else answers(first, answer)
    second = run(workflow, checkpoint=first, responses=given, checkpoint_storage=place.reopen())
    assert told == [(taken_by, answer)]
    assert type(told[0][1]) is type(answer)
    assert second.status is Status.IDLE


@dataclass(frozen=True)
class Question:
    text: str


@dataclass(frozen=True)
class Urgent(Question):
    pass


class Chooses(Executor):
    """Has a response handler for each of several pairs."""

    def __init__(self, took):
        super().__init__("chooses")
        self.took = took

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext) -> None:
        question = {"q": Question, "u": Urgent}[text[0]](text)
        await ctx.request_info(question, response_type={"b": bool, "i": int}[text[1]])

    @response_handler
    async def question_bool(self, question: Question, answer: bool, ctx: WorkflowContext) -> None:
        self.took.append("question_bool")

    @response_handler
    async def question_int(self, question: Question, answer: int, ctx: WorkflowContext) -> None:
        self.took.append("question_int")

    @response_handler
    async def urgent_bool(self, question: Urgent, answer: bool, ctx: WorkflowContext) -> None:
        self.took.append("urgent_bool")


@pytest.mark.parametrize(("text", "answer", "handler_name"), [
    ("qb", True, "question_bool"), ("qi", 1, "question_int"), ("ub", True, "urgent_bool"), ("ui", 1, "question_int"),
])  # fmt: skip
def test_the_response_handler_is_chosen_by_request_type_and_response_type(place, text, answer, handler_name):
    """Requests: the most exact handler for (request type, response type), as for messages."""
    took = []
    workflow = WorkflowBuilder("chooses", Chooses(took)).build()
    first = run(workflow, text, checkpoint_storage=place.store)
    assert type(first.pending_requests[0].data) is {"q": Question, "u": Urgent}[text[0]]
    run(workflow, checkpoint=first, responses=answers(first, answer), checkpoint_storage=place.reopen())
    assert took == [handler_name]


def test_a_request_that_two_handlers_take_equally_well_is_an_error_at_the_line(place):
    """Requests: two equally exact response handlers are refused where the question is asked, naming both."""
    caught = []

    class Torn(Executor):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext) -> None:
            try:
                await ctx.request_info(Urgent(text), response_type=bool)
            except EffectError as error:
                caught.append(str(error))

        @response_handler
        async def by_request(self, question: Urgent, answer: int | bool, ctx: WorkflowContext) -> None: ...

        @response_handler
        async def by_response(self, question: Question, answer: bool, ctx: WorkflowContext) -> None: ...

    result = run(WorkflowBuilder("torn", Torn("torn")).build(), "x", checkpoint_storage=place.store)
    assert result.pending_requests == ()
    assert len(caught) == 1
    assert "by_request" in caught[0]
    assert "by_response" in caught[0]


def test_two_response_handlers_of_one_pair_are_an_error_at_build():
    """Requests: two handlers with the same pair of types are found by `build()`."""

    class Twice(Executor):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext) -> None: ...

        @response_handler
        async def one(self, question: str, answer: bool, ctx: WorkflowContext) -> None: ...

        @response_handler
        async def other(self, question: str, answer: bool, ctx: WorkflowContext) -> None: ...

    with pytest.raises(WorkflowBuildError) as caught:
        WorkflowBuilder("twice", Twice("twice")).build()
    assert any("'one'" in problem and "'other'" in problem for problem in caught.value.problems)


class Several(Executor):
    """Asks three questions at once and gives each answer out."""

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        for number in (1, 2, 3):
            await ctx.request_info(f"{text}{number}", response_type=str)

    @response_handler
    async def on_answer(self, question: str, answer: str, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(f"{question}={answer}")


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_any_number_of_requests_is_answered_in_any_order(place, order):
    """Requests: any number may be open, and each is answered on its own, after a restore from bytes."""
    workflow = WorkflowBuilder("several", Several("several")).build()
    result = run(workflow, "q", checkpoint_storage=place.store)
    pending = result.pending_requests
    assert [request.data for request in pending] == ["q1", "q2", "q3"]
    for count, index in enumerate(order, start=1):
        request = pending[index]
        result = run(workflow, checkpoint=result, responses=[request.answer("a")], checkpoint_storage=place.reopen())
        assert result.outputs == [f"q{index + 1}=a"]
        assert len(result.pending_requests) == 3 - count
    with pytest.raises(AlreadyAnsweredError):
        run(workflow, checkpoint=result, responses=[pending[0].answer("again")], checkpoint_storage=place.store)


def test_other_branches_run_on_while_a_request_is_open(place):
    """Requests: an open question holds nothing up; the others run until they are idle."""
    s, relay, last = adder("s", 0, []), adder("relay", 1, []), adder("last", 10, [])

    class Asks(Executor):
        @handler
        async def on_number(self, number: int, ctx: WorkflowContext[Never, str]) -> None:
            await ctx.request_info("wait?", response_type=str)

        @response_handler
        async def on_answer(self, question: str, answer: str, ctx: WorkflowContext[Never, str]) -> None:
            await ctx.yield_output(answer)

    builder = WorkflowBuilder("branches", s).add_fan_out_edges(s, [Asks("asks"), relay])
    result = run(builder.add_edge(relay, last).build(), 1, checkpoint_storage=place.store)
    assert result.outputs == [12]
    assert result.status is Status.IDLE_WITH_PENDING_REQUESTS


def test_an_answer_is_not_lost_when_what_it_started_fails(place):
    """Requests: the answer leaves the record only in the commit of its effects, so a failed handler gets it again."""
    broken = {"insists"}

    class Fragile(Insists):
        @response_handler
        async def on_answer(self, text: str, answer: str, ctx: WorkflowContext[Never, str]) -> None:
            if broken:
                raise ValueError("not now")
            await ctx.yield_output(f"{text}: {answer}")

    workflow = WorkflowBuilder("fragile", Fragile([])).build()
    first = run(workflow, "q", run_id="r", checkpoint_storage=place.store)
    error = failed(workflow, checkpoint=first, responses=answers(first, "yes"), checkpoint_storage=place.store)
    assert error.result.pending_requests == ()
    broken.clear()
    assert run(workflow, checkpoint=error.result, checkpoint_storage=place.reopen()).outputs == ["q: yes"]


def test_a_request_of_a_failed_invocation_was_never_asked(place):
    """Section 3.2: an invocation that fails leaves no trace, so its question is not open; its retry asks it once."""
    broken = {True}

    class AsksThenFails(Insists):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
            await ctx.request_info(text, response_type=str)
            if broken:
                raise ValueError(text)

    workflow = WorkflowBuilder("asks", AsksThenFails([])).build()
    error = failed(workflow, "q", run_id="r", checkpoint_storage=place.store)
    assert error.result.pending_requests == ()
    broken.clear()
    result = run(workflow, checkpoint=error.result, checkpoint_storage=place.store)
    assert [request.data for request in result.pending_requests] == ["q"]


def test_a_withdrawn_request_cannot_be_answered(place):
    """Requests: an answer to a cancelled request is its own clear error and changes nothing."""
    workflow = insisting([], 1)
    first = run(workflow, "q", run_id="r", checkpoint_storage=place.store)
    second = run(workflow, "p", checkpoint=first, on_pending="cancel", checkpoint_storage=place.store)
    with pytest.raises(RequestCancelledError):
        run(workflow, checkpoint=second, responses=answers(first, "late"), checkpoint_storage=place.store)
    assert place.head("r").checkpoint_id == second.checkpoint_id


# Effect keys ---------------------------------------------------------------------------------------------------------


def keyed(keys, broken=frozenset()):
    """s sends two messages to pay, which notes its effect key before it may fail; all in a sub-workflow."""

    @executor(id="s")
    async def s(number: int, ctx: WorkflowContext[int]) -> None:
        await ctx.send_message(1)
        await ctx.send_message(2)

    @executor(id="pay")
    async def pay(number: int, ctx: WorkflowContext[Never, int]) -> None:
        keys.append((number, ctx.effect_key))
        if number in broken:
            raise ValueError(number)
        await ctx.yield_output(number)

    child = WorkflowBuilder("child", s).add_edge(s, pay).build()
    return WorkflowBuilder("parent", WorkflowExecutor(child, id="child")).build()


def test_an_effect_key_is_the_same_for_every_attempt(place):
    """Section 3.8: it is stable across failures and restores, and another one for each message, turn and run."""
    keys = []
    error = failed(keyed(keys, {2}), 0, run_id="r", checkpoint_storage=place.store)
    again = failed(keyed(keys, {2}), checkpoint=error.result, checkpoint_storage=place.reopen())
    result = run(keyed(keys), checkpoint=again.result, checkpoint_storage=place.reopen())
    assert [number for number, _ in keys] == [1, 2, 2, 2]
    assert len({key for number, key in keys if number == 2}) == 1
    assert len(set(keys)) == 2
    run(keyed(keys), 0, checkpoint=result, checkpoint_storage=place.store)
    run(keyed(keys), 0, run_id="other", checkpoint_storage=place.store)
    assert len({key for _, key in keys}) == 6


def test_an_answer_through_the_stream_is_taken_at_the_next_barrier(place):
    """Requests: it becomes visible at its own scope's barrier, so the running superstep ends before it is handled."""

    async def answered():
        log, gate = [], asyncio.Event()

        class AsksAndWorks(Executor):
            @handler
            async def on_number(self, number: int, ctx: WorkflowContext[int]) -> None:
                if number:
                    await ctx.request_info(number, response_type=str)
                    await ctx.send_message(0, target_id="slow")

            @response_handler
            async def on_answer(self, number: int, answer: str, ctx: WorkflowContext[int]) -> None:
                log.append(f"told in superstep {ctx.superstep}")

        @executor(id="slow")
        async def slow(number: int, ctx: WorkflowContext) -> None:
            await gate.wait()
            log.append(f"slow in superstep {ctx.superstep}")

        asks = AsksAndWorks("asks")
        workflow = WorkflowBuilder("answered", asks).add_edge(asks, slow).build()
        stream = workflow.run(1, run_id="r", stream=True, checkpoint_storage=place.store)
        async for event in stream:
            if isinstance(event, RequestOpened):
                await stream.answer({event.request_id: "now"})
                log.append("answer saved")
                gate.set()
        return log, await stream.result()

    log, result = bounded(answered())
    assert log == ["answer saved", "slow in superstep 2", "told in superstep 3"]
    assert (result.status, result.turn) == (Status.IDLE, 1)


def test_a_request_is_seen_only_after_its_barrier(place):
    """Section 3.2: while another executor of the superstep runs, the question is not open yet."""

    async def looked():
        seen, asked = [], asyncio.Event()
        s = adder("s", 0, [])

        class Asks(Executor):
            @handler
            async def on_number(self, number: int, ctx: WorkflowContext) -> None:
                await ctx.request_info(number, response_type=str)
                asked.set()

            @response_handler
            async def on_answer(self, number: int, answer: str, ctx: WorkflowContext) -> None: ...

        @executor(id="slow")
        async def slow(number: int) -> int:
            await asked.wait()
            for _ in range(5):
                await asyncio.sleep(0)
            seen.append("slow ends")
            return number

        workflow = WorkflowBuilder("looked", s).add_fan_out_edges(s, [Asks("asks"), slow]).build()
        async for event in workflow.run(1, stream=True, checkpoint_storage=place.store):
            seen.append(type(event))  # noqa: PERF401  (another coroutine adds to the list meanwhile)
        return [each for each in seen if each in ("slow ends", RequestOpened)]

    assert bounded(looked()) == ["slow ends", RequestOpened]
