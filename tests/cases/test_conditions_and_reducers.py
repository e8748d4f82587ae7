"""Conditions and reducers that raise: the superstep fails, and a resume asks them again (section 3.6 and 3.9)."""

import pytest

from rehydrate import Case, Default, Status, WorkflowBuilder, WorkflowContext, WorkflowExecutor, executor
from rehydrate.errors import PredicateError, ReducerError, RunFailedError, WorkflowBuildError
from rehydrate.model.events import InvocationFailed, MessageDropped
from tests.cases.flows import adder
from tests.cases.kit import failed, run


class Moody:
    """A condition that notes what it is asked and raises for some messages while it is broken."""

    def __init__(self, raises_for=()):
        self.asked = []
        self.raises_for = set(raises_for)

    def __call__(self, number):
        self.asked.append(number)
        if number in self.raises_for:
            raise RuntimeError(f"no idea about {number}")
        return True


def sending(condition, log, *, sends=(1, 2, 3)):
    """s sends numbers, each along a conditional edge to t; peer stands beside."""

    @executor(id="s")
    async def s(number: int, ctx: WorkflowContext[int]) -> None:
        log.append("s")
        await ctx.set_state("sent", list(sends))
        for each in sends:
            await ctx.send_message(each)

    t = adder("t", 100, log)
    return WorkflowBuilder("sending", s).add_edge(s, t, condition=condition).build()


def test_a_condition_that_raises_fails_the_superstep(place):
    """Section 3.6: the error names edge and message, is never "no match", and nothing of the superstep is visible."""
    log = []
    error = failed(sending(Moody({2}), log), 0, run_id="r", checkpoint_storage=place.store)
    assert isinstance(error.__cause__, PredicateError)
    assert error.__cause__.edge == "s -> t"
    assert error.__cause__.message == "int"
    assert "no idea about 2" in str(error)
    assert log == ["s"]
    assert (error.result.outputs, error.result.checkpoint.state) == ([], {})


def test_a_resume_asks_the_condition_again_without_running_the_sender_again(place):
    """Section 3.9: the invocation is finished; the resume asks from the message on for which the condition raised."""
    error = failed(sending(Moody({2}), []), 0, run_id="r", checkpoint_storage=place.store)
    log, repaired = [], Moody()
    result = run(sending(repaired, log), checkpoint=error.result, checkpoint_storage=place.reopen())
    assert log == ["t", "t", "t"]
    assert repaired.asked == [2, 3]
    assert result.outputs == [101, 102, 103]
    assert result.checkpoint.state == {"sent": [1, 2, 3]}


def test_a_condition_that_raises_again_is_asked_again(place):
    """Section 3.9: each resume tries the routing anew, however often it fails, and never runs the sender."""
    result = failed(sending(Moody({2}), []), 0, run_id="r", checkpoint_storage=place.store).result
    for _ in range(2):
        log, still = [], Moody({2})
        error = failed(sending(still, log), checkpoint=result, checkpoint_storage=place.reopen())
        assert (log, still.asked) == ([], [2])
        result = error.result
    log = []
    assert run(sending(Moody(), log), checkpoint=result, checkpoint_storage=place.store).outputs == [101, 102, 103]


def test_a_condition_is_asked_once_for_each_message(place):
    """Section 3.6: conditions are called once per message and edge, and a restore does not call them again."""
    condition = Moody()
    run(sending(condition, []), 0, run_id="r", checkpoint_storage=place.store)
    assert condition.asked == [1, 2, 3]
    for header in place.history("r")[1:]:
        again = Moody()
        options = {"checkpoint": header.checkpoint_id, "fork": True, "checkpoint_storage": place.store}
        assert run(sending(again, []), **options).outputs == [101, 102, 103]
        assert again.asked in ([], [1, 2, 3])
        assert again.asked == [] or header.superstep == 1


def test_the_failure_of_a_condition_is_an_event_of_the_sender(place):
    """Section 3.11: the failure is told with executor, activation and superstep, before the run's end."""
    error = failed(sending(Moody({1}), []), 0, checkpoint_storage=place.store)
    told = [event for event in error.result.events if isinstance(event, InvocationFailed)]
    assert [(e.executor_id, e.activation, e.superstep, e.failure.kind) for e in told] == [("s", 1, 1, "routing")]
    assert not any(isinstance(event, MessageDropped) for event in error.result.events)


def test_a_chain_goes_on_behind_a_finished_invocation_whose_condition_raised(place):
    """Section 3.9: the rest of the superstep runs to its end; a condition leaves its invocation finished."""
    log = []
    conditions = {"broken": True}

    def condition(number):
        if conditions["broken"] and number == 1:
            raise RuntimeError("no idea")
        return True

    def built():
        @executor(id="s")
        async def s(number: int, ctx: WorkflowContext[int]) -> None:
            await ctx.send_message(1)
            await ctx.send_message(2)

        relay, t = adder("relay", 0, log), adder("t", 100, [])
        return WorkflowBuilder("chain", s).add_edge(s, relay).add_edge(relay, t, condition=condition).build()

    error = failed(built(), 0, run_id="r", checkpoint_storage=place.store)
    assert log == ["relay", "relay"]
    conditions["broken"] = False
    result = run(built(), checkpoint=error.result, checkpoint_storage=place.reopen())
    assert log == ["relay", "relay"]
    assert result.outputs == [101, 102]


def test_a_selection_that_raises_or_names_a_stranger_fails_the_superstep(place):
    """Section 3.6: the same holds for the function of a multi-selection."""
    for selection in (lambda number, targets: 1 / 0, lambda number, targets: ["stranger"]):
        s, a, b = adder("s", 0, []), adder("a", 0, []), adder("b", 0, [])
        builder = WorkflowBuilder("selecting", s).add_multi_selection_edge_group(s, [a, b], selection)
        error = failed(builder.build(), 1, checkpoint_storage=place.store)
        assert isinstance(error.__cause__, PredicateError)
        assert error.__cause__.edge.startswith("s -> ")


def test_a_switch_takes_the_first_case_that_holds(place):
    """Section 1: the cases of a switch are asked in their order, the default takes the rest."""
    s, low, mid, high = (
        adder(name, amount, []) for name, amount in (("s", 0), ("low", 10), ("mid", 100), ("high", 1000))
    )
    cases = [Case(lambda n: n < 3, low), Case(lambda n: n < 6, mid), Default(high)]
    workflow = WorkflowBuilder("switch", s).add_switch_case_edge_group(s, cases).build()
    outputs = [run(workflow, number, checkpoint_storage=place.store).output for number in (1, 4, 8)]
    assert outputs == [11, 104, 1008]


def nested(condition, log):
    """child (which yields a number) → t, along a conditional edge of the parent."""
    inner, t = adder("inner", 0, log), adder("t", 100, log)
    child = WorkflowExecutor(WorkflowBuilder("child", inner).build(), id="child")
    return WorkflowBuilder("parent", child).add_edge(child, t, condition=condition).build()


def test_a_condition_behind_a_sub_workflow_that_raises_is_asked_again(place):
    """Section 3.9: where a scope's output is routed by an edge of its parent, a resume runs nothing inside it again."""
    error = failed(nested(Moody({1}), []), 1, run_id="r", checkpoint_storage=place.store)
    assert isinstance(error.__cause__, PredicateError)
    assert error.__cause__.edge == "child -> t"
    log = []
    result = run(nested(Moody(), log), checkpoint=error.result, checkpoint_storage=place.reopen())
    assert (log, result.outputs) == (["t"], [101])


# Reducers ------------------------------------------------------------------------------------------------------------


def counting(reducer, log):
    """s → [a, b], which contribute 1 and 2 to one key."""

    def contributor(id, amount):
        @executor(id=id)
        async def contribute(number: int, ctx: WorkflowContext) -> int:
            log.append(id)
            await ctx.update_state("total", amount)
            return amount

        return contribute

    s = adder("s", 0, log)
    builder = WorkflowBuilder("counting", s, reducers={"total": reducer})
    return builder.add_fan_out_edges(s, [contributor("a", 1), contributor("b", 2)]).build()


class Stubborn:
    """Makes a reducer that raises for a contribution while it is broken."""

    def __init__(self, raises_for=None):
        def total(current: int | None, contribution: int) -> int:
            if contribution == raises_for:
                raise RuntimeError(f"cannot add {contribution}")
            return (current or 0) + contribution

        self.reducer = total


@pytest.mark.parametrize("raises_for", [1, 2])
def test_a_reducer_that_raises_fails_the_superstep_and_a_resume_merges_again(place, raises_for):
    """Section 3.9: its invocations stay finished; the resume merges again and no executor runs again."""
    log = []
    error = failed(counting(Stubborn(raises_for).reducer, log), 0, run_id="r", checkpoint_storage=place.store)
    assert isinstance(error.__cause__, ReducerError)
    assert error.__cause__.key == "total"
    assert f"cannot add {raises_for}" in str(error)
    assert sorted(log) == ["a", "b", "s"]
    assert (error.result.outputs, error.result.checkpoint.state) == ([], {})
    again = []
    result = run(counting(Stubborn().reducer, again), checkpoint=error.result, checkpoint_storage=place.reopen())
    assert again == []
    assert result.outputs == [1, 2]
    assert result.checkpoint.state == {"total": 3}


def test_a_reducer_that_raises_again_fails_again(place):
    """Section 3.9: each resume merges anew; when the reducer is right the run goes on."""
    result = failed(counting(Stubborn(1).reducer, []), 0, run_id="r", checkpoint_storage=place.store).result
    for _ in range(2):
        log = []
        result = failed(counting(Stubborn(1).reducer, log), checkpoint=result, checkpoint_storage=place.reopen()).result
        assert (log, result.status) == ([], Status.FAILED)
    done = run(counting(Stubborn().reducer, []), checkpoint=result, checkpoint_storage=place.store)
    assert done.checkpoint.state == {"total": 3}


def test_a_reducer_that_gives_something_that_cannot_be_stored_fails_like_one_that_raises(place):
    """Section 3.4 and 3.9: what a reducer returns is sealed, too."""

    def total(current: int | None, contribution: int) -> object:
        return object()

    error = failed(counting(total, []), 0, checkpoint_storage=place.store)
    assert isinstance(error.__cause__, ReducerError)
    assert error.__cause__.key == "total"


def test_a_reducer_that_raises_in_a_sub_workflow_is_told_with_its_path(place):
    """Section 4: the failure of an inner scope fails the run with the path, and a resume goes on inside."""
    inner = counting(Stubborn(1).reducer, [])
    error = failed(
        WorkflowBuilder("outer", WorkflowExecutor(inner, id="inner")).build(),
        0,
        run_id="r",
        checkpoint_storage=place.store,
    )
    assert isinstance(error.__cause__, ReducerError)
    assert "inner#1" in str(error)
    log = []
    repaired = WorkflowBuilder("outer", WorkflowExecutor(counting(Stubborn().reducer, log), id="inner")).build()
    result = run(repaired, checkpoint=error.result, checkpoint_storage=place.reopen())
    assert (log, result.outputs) == ([], [1, 2])


def test_a_reducer_that_raises_in_a_read_fails_the_handler_at_that_line(place):
    """Section 3.4: a read that needs the reducer calls it, so its exception is the handler's own."""
    seen = []

    def total(current: int | None, contribution: int) -> int:
        raise RuntimeError("never")

    @executor(id="s")
    async def s(number: int, ctx: WorkflowContext) -> None:
        await ctx.update_state("total", 1)
        try:
            ctx.get_state("total")
        except RuntimeError as error:
            seen.append(str(error))
        raise ValueError("enough")

    error = failed(WorkflowBuilder("reads", s, reducers={"total": total}).build(), 0, checkpoint_storage=place.store)
    assert str(error.__cause__) == "enough"
    assert seen == ["never"]


class Undecided:
    """A condition's result that is neither true nor false."""

    def __bool__(self):
        raise RuntimeError("neither true nor false")


def test_a_condition_whose_result_has_no_truth_fails_like_one_that_raises(place):
    """Section 3.6: the sender stays finished, and the resume asks again."""
    log = []
    error = failed(sending(lambda number: Undecided(), log, sends=(1,)), 0, run_id="r", checkpoint_storage=place.store)
    assert isinstance(error.__cause__, PredicateError)
    again = []
    result = run(sending(Moody(), again, sends=(1,)), checkpoint=error.result, checkpoint_storage=place.store)
    assert (log, again, result.outputs) == (["s"], ["t"], [101])


def test_an_async_condition_is_refused(place):
    """Section 3.6: conditions are sync; a coroutine is never taken for "true"."""

    async def never(number):
        return False

    log = []
    s, t = adder("s", 0, []), adder("t", 100, log)
    with pytest.raises((WorkflowBuildError, RunFailedError)) as caught:
        run(WorkflowBuilder("async", s).add_edge(s, t, condition=never).build(), 1, checkpoint_storage=place.store)
    assert "s" in str(caught.value)
    assert log == []


def test_a_condition_that_returns_a_coroutine_fails_like_one_that_raises(place):
    """Section 3.6: the same where only the result shows that it is async."""

    async def never(number):
        return False

    def hidden(number):
        return never(number)

    error = failed(sending(hidden, []), 0, checkpoint_storage=place.store)
    assert isinstance(error.__cause__, PredicateError)
