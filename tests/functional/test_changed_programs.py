"""Runs of functions that wait while their program changes: what a migration can do about what they remember."""

from dataclasses import dataclass

import pytest

from rehydrate import FunctionalContext, MigrationView, Status, WorkflowBuilder, current_step, executor, step, workflow
from rehydrate.errors import HomelessWorkError, MigrationError, RequestCancelledError, RunFailedError
from rehydrate.model.events import WorkDiscarded
from tests.functional.book import Book, answers, failed, run


@dataclass(frozen=True)
class Claim:
    id: str
    amount: int


@dataclass(frozen=True)
class Demand:
    id: str
    cents: int


@dataclass(frozen=True)
class Yes:
    by: str


@dataclass(frozen=True)
class Consent:
    by: str


def claims(book, store, kind=Claim, answer=Yes, version=1, migrate=None, name="claims"):
    """Make a workflow whose message, arguments, results, state, questions and answers are of types that change."""

    async def check(claim, note):
        book(f"check {claim.id}")
        return claim

    check.__annotations__ = {"claim": kind, "note": str, "return": kind}
    check = step(check)

    async def claims(claim, ctx: FunctionalContext) -> str:
        checked = await check(claim, note="first")
        ctx.state.set("seen", checked)
        given = await ctx.request_info(checked, response_type=answer)
        again = await check(checked, note="again")
        return f"{again == claim} {type(again).__name__} {given}"

    claims.__annotations__ = {"claim": kind, "ctx": FunctionalContext, "return": str}
    options = {"version": version, "migrate": migrate, "types": [answer], "checkpoint_storage": store}
    return workflow(name=name, **options)(claims)


def test_a_type_in_message_arguments_results_questions_and_answers_can_be_changed(book, store):
    """Values get the new form; as arguments are not stored, what was called is known by place and name from then on."""

    def change(view: MigrationView) -> None:
        view.change_type("Claim", "Demand", lambda old: {"id": old["id"], "cents": old["amount"] * 100})
        view.change_type("Yes", "Consent")

    first = run(claims(book, store), Claim("a", 5), run_id="r")
    assert book.took() == ["check a"]
    newer = claims(book, store, Demand, Consent, version=2, migrate={1: change})
    found = run(newer, checkpoint="latest", run_id="r")
    (request,) = found.pending_requests
    assert (request.request_id, request.data, request.response_type) == (
        first.pending_requests[0].request_id,
        Demand("a", 500),
        Consent,
    )
    second = run(newer, responses=[request.answer(Consent("me"))])
    assert second.output == "True Demand Consent(by='me')"
    assert book.took() == ["check a"]
    assert second.checkpoint.records.get("", "state", "seen").value.type == "Demand"


def test_a_type_that_nobody_has_renamed_is_refused_before_anything_runs(book, store):
    """The error says what waits for what, and the stored run is as it was."""
    first = run(claims(book, store), Claim("a", 5), run_id="r")
    with pytest.raises(MigrationError, match="Claim"):
        run(claims(book, store, Demand, version=2, migrate={1: lambda view: None}), checkpoint="latest", run_id="r")

    def only_claims(view):
        view.change_type("Claim", "Demand", lambda old: {"id": old["id"], "cents": old["amount"]})

    with pytest.raises(HomelessWorkError, match="Yes, which is not declared"):
        run(claims(book, store, Demand, Consent, version=2, migrate={1: only_claims}), checkpoint="latest", run_id="r")
    assert run(claims(book, store), responses=answers(first, Yes("me"))).status is Status.IDLE


def renamed(book, store, own="old", below="inner", version=1, migrate=None):
    """Make a workflow that calls a function and a graph, each of which asks or works, under names that change."""
    keys = []

    async def inner(text: str, ctx: FunctionalContext) -> str:
        answer = await ctx.request_info(text, response_type=str)
        return f"{text} {answer}"

    inner = workflow(name=below, types=[str])(inner)

    @executor(id="double")
    async def double(text: str) -> str:
        book(f"double {text}")
        return text * 2

    graph = WorkflowBuilder("graph", double).build()

    @step
    async def keyed(text: str) -> str:
        keys.append(current_step().effect_key)
        return text

    async def body(text: str, ctx: FunctionalContext) -> str:
        (twice,) = await ctx.call(graph, text)
        return await keyed(await ctx.call(inner, twice))

    body.__name__ = own
    options = {"calls": [inner, graph], "version": version, "migrate": migrate, "checkpoint_storage": store}
    return workflow(name="flow", **options)(body)


def test_the_function_and_a_workflow_that_it_calls_can_be_renamed(book, store):
    """With `rename_executor` for both, the question keeps its id, and the run goes on where it was."""

    def change(view: MigrationView) -> None:
        view.rename_executor("old", "new")
        view.rename_executor("inner", "below")

    first = run(renamed(book, store), "ab", run_id="r")
    assert (first.pending_requests[0].path, book.took()) == ("inner#1", ["double ab"])
    newer = renamed(book, store, "new", "below", version=2, migrate={1: change})
    found = run(newer, checkpoint="latest", run_id="r")
    assert [(r.path, r.request_id) for r in found.pending_requests] == [
        ("below#1", first.pending_requests[0].request_id)
    ]
    second = run(newer, responses=answers(first, "yes"))
    assert (second.status, second.output, book.took()) == (Status.IDLE, "abab yes", [])


def test_a_renamed_function_without_a_migration_for_it_is_homeless(book, store):
    """What waits is listed, and nothing has changed."""
    run(renamed(book, store), "ab", run_id="r")
    with pytest.raises(HomelessWorkError):
        run(
            renamed(book, store, "new", "below", version=2, migrate={1: lambda view: None}),
            checkpoint="latest",
            run_id="r",
        )


def counting(book, store, key="count", version=1, migrate=None):
    """Make a workflow that reads state before and after a question."""

    @workflow(name="counting", types=[str], version=version, migrate=migrate, checkpoint_storage=store)
    async def counting(text: str, ctx: FunctionalContext) -> str:
        before = ctx.state.get(key, 0)
        ctx.state.set(key, before + 1)
        await ctx.request_info(text, response_type=str)
        return f"{before} {ctx.state.get(key)}"

    return counting


def test_a_state_key_that_a_waiting_pass_has_read_can_be_renamed(book, store):
    """What it has read goes with the key: it reads the same under the new name."""
    first = run(counting(book, store), "a", run_id="r")
    run(counting(book, store), responses=answers(first, "go"))
    second = run(counting(book, store), "b", run_id="r", checkpoint="latest")
    newer = counting(book, store, "number", version=2, migrate={1: lambda v: v.rename_state_key("count", "number")})
    third = run(newer, responses=answers(second, "go"))
    assert third.output == "1 2"
    fourth = run(newer, "c", run_id="r", checkpoint="latest")
    assert run(newer, responses=answers(fourth, "go")).output == "2 3"


def changed(book, store, *, new=False, version=1, migrate=None, name="flow"):
    """Make a workflow with a step, a called workflow that asks, a question and a step; or, `new`, with others."""
    note = book.step()

    @workflow(name="asks", types=[str])
    async def asks(text: str, ctx: FunctionalContext) -> str:
        return await ctx.request_info(f"{text} below", response_type=str)

    options = {"version": version, "migrate": migrate, "checkpoint_storage": store, "types": [str], "calls": [asks]}

    @workflow(name=name, **options)
    async def flow(text: str, ctx: FunctionalContext) -> str:
        if new:
            return await note(f"new {text}") + await ctx.request_info(f"new {text}", response_type=str)
        one = await note(f"old {text}")
        two, three = await ctx.gather(ctx.request_info(text, response_type=str), ctx.call(asks, text))
        return one + two + three

    return flow


def restarting(lost):
    def restart(view: MigrationView) -> None:
        lost.extend(view.restart_passes())

    return {1: restart}


def test_waiting_passes_can_begin_again_from_their_message(book, store):
    """The third way out: nothing is remembered, questions are withdrawn with receipts, called scopes are gone."""
    first = run(changed(book, store), "a", run_id="r")
    second = run(changed(book, store), "b", run_id="r", checkpoint="latest", on_pending="keep")
    assert (book.took(), len(second.pending_requests)) == (["note old a", "note old b"], 4)
    lost = []
    newer = changed(book, store, new=True, version=2, migrate=restarting(lost))
    third = run(newer, checkpoint="latest", run_id="r")
    assert lost[0] == "pass 1"
    assert lost[-1].startswith("running sub-workflow asks#")
    assert book.took() == ["note new a", "note new b"]
    assert [(request.path, request.data) for request in third.pending_requests] == [("", "new a"), ("", "new b")]
    (told,) = [event for event in third.events if isinstance(event, WorkDiscarded)]
    assert list(told.what) == lost
    with pytest.raises(RequestCancelledError):
        run(newer, responses=[first.pending_requests[0].answer("late")])
    fourth = run(newer, responses=answers(third, "1", "2"))
    assert (fourth.status, fourth.outputs, book.took()) == (Status.IDLE, ["NEW A1", "NEW B2"], [])


def test_a_pass_that_failed_over_its_change_can_begin_again(book, store):
    """Also one that is unfinished: code has changed, the run has failed over it, and the migration lets it restart."""
    first = run(changed(book, store), "a", run_id="r")
    error = failed(changed(book, store, new=True), responses=answers(first, "1", "2"))
    assert "NonDeterminismError" in str(error)
    newer = changed(book, store, new=True, version=2, migrate=restarting([]))
    book.took()
    second = run(newer, checkpoint="latest", run_id="r")
    assert (book.took(), second.status) == (["note new a"], Status.IDLE_WITH_PENDING_REQUESTS)
    assert run(newer, responses=answers(second, "!")).output == "NEW A!"


def test_an_answer_on_its_way_is_dropped_with_the_pass_that_begins_again(book, store):
    """An answer that was taken by a turn that failed is part of what the pass had, and it asks anew."""
    first = run(changed(book, store), "a", run_id="r")
    book.faults["note old b"] = OSError("no network")
    failed(
        changed(book, store), "b", run_id="r", checkpoint="latest", responses=[first.pending_requests[0].answer("1")]
    )
    book.took()
    newer = changed(book, store, new=True, version=2, migrate=restarting([]))
    second = run(newer, checkpoint="latest", run_id="r")
    assert sorted(book.took()) == ["note new a", "note new b"]
    assert sorted(request.data for request in second.pending_requests) == ["new a", "new b"]


def test_passes_of_called_workflows_can_begin_again_by_themselves(book, store):
    """With `at=` only what is below begins again; what called it still waits for it, and gets what it gives now."""

    def flow(word, version=1, migrate=None):
        note = book.step()

        @workflow(name="inner", types=[str])
        async def inner(text: str, ctx: FunctionalContext) -> str:
            return await note(f"{word} {text}") + await ctx.request_info(f"{word} {text}", response_type=str)

        @workflow(name="outer", calls=[inner], version=version, migrate=migrate, checkpoint_storage=store)
        async def outer(text: str, ctx: FunctionalContext) -> str:
            return await note(f"outer {text}") + " " + await ctx.call(inner, text)

        return outer

    first = run(flow("old"), "a", run_id="r")
    assert book.took() == ["note outer a", "note old a"]
    newer = flow("new", 2, {1: lambda view: view.restart_passes("inner#*")})
    second = run(newer, checkpoint="latest", run_id="r")
    assert (book.took(), [r.data for r in second.pending_requests]) == (["note new a"], ["new a"])
    assert first.pending_requests[0].request_id != second.pending_requests[0].request_id
    third = run(newer, responses=answers(second, "!"))
    assert (third.status, third.output, book.took()) == (Status.IDLE, "OUTER A NEW A!", [])


def test_a_pass_that_begins_again_repeats_no_key_of_an_effect(store):
    """Its steps are other ones for systems outside: keys that these have seen do not come again."""
    keys = []

    def flow(version=1, migrate=None):
        @step
        async def pay(text: str) -> str:
            keys.append(current_step().effect_key)
            return text

        @workflow(name="flow", types=[str], version=version, migrate=migrate, checkpoint_storage=store)
        async def flow(text: str, ctx: FunctionalContext) -> str:
            return await pay(text) + await ctx.request_info(text, response_type=str)

        return flow

    run(flow(), "a", run_id="r")
    run(flow(2, restarting([])), checkpoint="latest", run_id="r")
    assert len(set(keys)) == 2


def test_nothing_restarts_where_nothing_waits(store):
    """A run at rest loses nothing, and goes on with new input."""
    lost = []
    made = Book()
    first = run(changed(made, store), "a", run_id="r")
    run(changed(made, store), responses=answers(first, "1", "2"))
    newer = changed(made, store, new=True, version=2, migrate=restarting(lost))
    second = run(newer, "b", checkpoint="latest", run_id="r")
    assert (lost, [request.data for request in second.pending_requests]) == ([], ["new b"])


def test_a_migration_that_names_no_level_is_told_so(book, store):
    """An `at` that is not there is an error of the migration."""
    run(changed(book, store), "a", run_id="r")
    newer = changed(book, store, version=2, migrate={1: lambda view: view.restart_passes("nobody#*")})
    with pytest.raises(MigrationError, match="nobody"):
        run(newer, checkpoint="latest", run_id="r")
    assert not issubclass(MigrationError, RunFailedError)
