"""Runs with so many open requests that these share records: every promise of a request holds as for one alone."""

import asyncio
from typing import Never

import pytest

from rehydrate import (
    Executor,
    FileCheckpointStorage,
    InMemoryCheckpointStorage,
    LegacyRequest,
    RunHistory,
    Status,
    WorkflowBuilder,
    WorkflowCheckpoint,
    WorkflowContext,
    WorkflowExecutor,
    export_run,
    handler,
    import_run,
    response_handler,
)
from rehydrate.errors import AlreadyAnsweredError, AnswerTypeError, RequestCancelledError, UnknownRequestError
from rehydrate.model.events import RequestOpened, RequestsCancelled, RequestsKept
from rehydrate.stores.file_show import shown_file

run = asyncio.run
MANY = 300


class Ask(Executor):
    """Asks as many questions as it is told, at a gate if that is negative, and yields each answer with its question."""

    @handler
    async def on_number(self, number: int, ctx: WorkflowContext[Never, str]) -> None:
        if number < 0:
            await ctx.resources["gate"].wait()
        for question in range(abs(number)):
            ctx.request_info(f"q{question}", response_type=int)

    @response_handler
    async def on_answer(self, question: str, answer: int, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output(f"{question} is {answer}")


def asking(store=None, *, depth: int = 0, version: int = 1, migrate=None, name: str = "ask"):
    """A workflow that asks, at the root or below it."""
    workflow = WorkflowBuilder("asking", Ask(name), checkpoint_storage=store, version=version, migrate=migrate)
    for level in range(depth):
        child = workflow.build()
        workflow = WorkflowBuilder(f"level {level}", WorkflowExecutor(child, "below"), checkpoint_storage=store)
    return workflow.build()


def kinds(result) -> set[str]:
    """The kinds of records of requests."""
    return {kind for _, kind in result.checkpoint.records.tables} & {"request", "requests", "closed"}


@pytest.mark.parametrize("depth", [0, 2])
def test_one_of_many_is_answered_and_the_others_stay_as_they_were(anywhere, depth) -> None:
    """The same ids stay open, in their order; the claim writes little, and of the records one pack is opened."""
    workflow = asking(anywhere, depth=depth)
    first = run(workflow.run(MANY, run_id="r"))
    ids = [request.request_id for request in first.pending_requests]
    assert [request.data for request in first.pending_requests] == [f"q{number}" for number in range(MANY)]
    assert kinds(first) == {"requests"}
    second = run(workflow.run(checkpoint=first, responses={ids[123]: 7}))
    if anywhere is not None:  # without one it goes on from what was looked at above
        assert len(second.checkpoint.records.packs) == 1
    assert (second.outputs, second.status) == (["q123 is 7"], Status.IDLE_WITH_PENDING_REQUESTS)
    assert len(second.pending_requests) == second.checkpoint.header.pending == MANY - 1
    assert kinds(second) == {"requests", "closed"}
    left = [request.request_id for request in second.pending_requests]
    assert left == ids[:123] + ids[124:] == list(second.checkpoint.pending_request_ids)
    for request_id, error in {ids[123]: AlreadyAnsweredError, "f" * 32: UnknownRequestError}.items():
        with pytest.raises(error):
            run(workflow.run(checkpoint=second, responses={request_id: 7}))
    with pytest.raises(AnswerTypeError):
        run(workflow.run(checkpoint=second, responses={ids[0]: "seven"}))
    if anywhere is not None:
        sizes = [header.size for header in run(anywhere.history("r")) if header.seq > first.checkpoint.header.seq]
        assert max(sizes) < 2500
        assert {row.request_id for row in run(anywhere.requests(run_id="r", limit=MANY))} == set(left)


def test_many_are_answered_in_any_order_until_none_is_open(store) -> None:
    """Some at a time, one at a time, all the rest at once: each is taken once and the run ends."""
    workflow = asking(store)
    result = run(workflow.run(80, run_id="r"))
    ids = {request.data: request.request_id for request in result.pending_requests}
    order = sorted(ids, key=lambda question: int(question[1:]) * 37 % 80)
    groups = [order[:1], order[1:2], order[2:20], order[20:45], order[45:46], order[46:]]
    for group in groups:
        result = run(workflow.run(responses={ids[question]: 1 for question in group}))
        expected = sorted(group, key=lambda question: int(question[1:]))
        assert result.outputs == [f"{question} is 1" for question in expected]
    assert (result.status, result.pending_requests, kinds(result)) == (Status.IDLE, (), set())
    assert run(store.requests(run_id="r")) == []
    with pytest.raises(AlreadyAnsweredError):
        run(workflow.run(responses={ids["q17"]: 1}))


def test_many_are_answered_through_a_stream(store) -> None:
    """A running turn closes packed requests, too, while others are asked."""

    async def turns():
        workflow, gate = asking(store), asyncio.Event()
        first = await workflow.run(40, run_id="r")
        opened = [request.request_id for request in first.pending_requests]
        resources = {"gate": gate}
        async with workflow.run(-50, checkpoint=first, on_pending="keep", stream=True, resources=resources) as stream:
            await stream.answer(dict.fromkeys(opened[:24], 2))
            await stream.answer({opened[30]: 2})
            with pytest.raises(AlreadyAnsweredError):
                await stream.answer({opened[3]: 2})
            gate.set()
            return await stream.result()

    result = run(turns())
    assert (len(result.outputs), len(result.pending_requests)) == (25, 65)


def test_many_are_surfaced_once_by_a_continuation(store) -> None:
    """Each that is still open is told, in order, and none that was answered."""
    workflow = asking(store, depth=1)
    first = run(workflow.run(40, run_id="r"))
    second = run(workflow.run(checkpoint=first, responses=[first.pending_requests[5].answer(1)]))
    again = run(workflow.run(checkpoint=second))
    told = [event.data for event in again.events if isinstance(event, RequestOpened)]
    assert told == [f"q{number}" for number in range(40) if number != 5]
    assert again.checkpoint_id == second.checkpoint_id


def test_many_are_withdrawn_or_kept_by_a_new_message(store) -> None:
    """Both name all that are open; after a withdrawal each has its receipt and no record is left."""
    workflow = asking(store, depth=1)
    first = run(workflow.run(40, run_id="r"))
    answered = run(workflow.run(checkpoint=first, responses=[first.pending_requests[5].answer(1)]))
    ids = answered.checkpoint.pending_request_ids
    kept = run(workflow.run(1, checkpoint=answered, fork=True))
    assert [len(event.request_ids) for event in kept.events if isinstance(event, RequestsKept)] == [39]
    assert len(kept.pending_requests) == 40
    gone = run(workflow.run(0, checkpoint=answered, on_pending="cancel"))
    assert [event.request_ids for event in gone.events if isinstance(event, RequestsCancelled)] == [ids]
    assert (gone.status, kinds(gone), run(store.requests(run_id="r"))) == (Status.IDLE, set(), [])
    with pytest.raises(RequestCancelledError):
        run(workflow.run(responses={ids[3]: 1}, run_id="r"))


def test_discarding_keeps_what_is_open(store) -> None:
    """Unfinished work goes, packed requests stay and can be answered."""
    workflow = asking(store, depth=1)
    first = run(workflow.run(40, run_id="r"))
    second = run(workflow.run(0, checkpoint=first, on_pending="keep", on_unfinished="discard"))
    assert second.pending_requests == first.pending_requests
    third = run(workflow.run(checkpoint=second, responses=[second.pending_requests[-1].answer(1)]))
    assert third.outputs == ["q39 is 1"]


def test_a_fork_answers_by_old_ids_and_has_its_own(store) -> None:
    """The call that forks may use the source's ids; afterwards the copy's are found at once."""
    workflow = asking(store)
    first = run(workflow.run(MANY, run_id="r"))
    copy = run(workflow.run(checkpoint=first, responses=[first.pending_requests[9].answer(1)], fork=True, run_id="c"))
    assert copy.outputs == ["q9 is 1"]
    request = copy.pending_requests[200]
    assert request.data == "q201"
    assert request.request_id not in first.checkpoint.pending_request_ids
    last = run(workflow.run(responses={request.request_id: 2}))
    assert (last.run_id, last.outputs, len(last.checkpoint.records.packs)) == ("c", ["q201 is 2"], 1)


def test_a_migration_finds_each_request_for_itself_and_packs_them_again(store) -> None:
    """Requests of a renamed executor are answered by the ids that the outside knows; a dropped one withdraws all."""
    first = run(asking(store).run(40, run_id="r"))
    closed = run(asking(store).run(checkpoint=first, responses=[first.pending_requests[5].answer(1)]))
    ids = closed.checkpoint.pending_request_ids

    def rename(view) -> None:
        assert [len(scope.requests) for scope in view.scopes()] == [39]
        view.rename_executor("ask", "clerk")

    renamed = asking(store, version=2, migrate={1: rename}, name="clerk")
    second = run(renamed.run(checkpoint=closed, responses={ids[7]: 3}))
    assert (second.outputs, second.checkpoint.pending_request_ids) == (["q8 is 3"], ids[:7] + ids[8:])
    assert kinds(second) == {"requests", "closed"}
    with pytest.raises(AlreadyAnsweredError):
        run(renamed.run(checkpoint=second, responses={ids[7]: 3}))
    dropped = asking(store, version=3, migrate={1: rename, 2: lambda view: view.drop_executor("clerk")}, name="other")
    third = run(dropped.run(0, checkpoint=second))
    assert (third.status, kinds(third)) == (Status.IDLE, set())
    with pytest.raises(RequestCancelledError):
        run(dropped.run(run_id="r", responses={ids[1]: 3}))


def test_what_looks_at_a_run_sees_each_request(tmp_path) -> None:
    """`inspect`, differences, a file shown to a person, and the view of a sub-workflow name them one by one."""

    async def look():
        async with FileCheckpointStorage(tmp_path) as store:
            workflow = asking(store, depth=1)
            first = await workflow.run(40, run_id="r")
            second = await workflow.run(checkpoint=first, responses=[first.pending_requests[5].answer(1)])
            rows = await RunHistory(store, "r").diff(first.checkpoint_id, second.checkpoint_id)
            found = await store.inspect(second.checkpoint_id)
        return second, found, rows

    second, found, rows = run(look())
    questions = [f"q{number}" for number in range(40) if number != 5]
    assert [request.data for request in found.requests] == questions
    assert [(row.path, row.key, row.change) for row in rows if row.kind == "request"] == [
        ("below#1", "ask#1?5", "removed")
    ]
    below = second.checkpoint.executor_states["below"]["sub_workflow_checkpoint"][1]
    assert below.pending_request_ids == second.checkpoint.pending_request_ids
    shown = [record for path in sorted(tmp_path.rglob("*.commit")) for record in shown_file(path)["puts"]]
    packs = [record["record"]["requests"] for record in shown if record["kind"] == "requests"]
    assert [[request["data"]["value"] for request in pack] for pack in packs] == [[f"q{n}" for n in range(40)]]
    assert [record["record"] for record in shown if record["kind"] == "closed"] == [{"closed": [5]}]


def test_a_run_with_many_requests_is_carried_elsewhere(store, tmp_path) -> None:
    """As a file into another store, and as bytes into a call without one: each request is answered there."""
    first = run(asking(store).run(40, run_id="r"))
    second = run(asking(store).run(checkpoint=first, responses=[first.pending_requests[5].answer(1)]))
    other = InMemoryCheckpointStorage()
    run(export_run(store, "r", tmp_path / "run.bin"))
    run(import_run(other, tmp_path / "run.bin"))
    request = second.pending_requests[20]
    there = run(asking(other).run(responses=[request.answer(1)]))
    assert (there.outputs, len(there.pending_requests)) == (["q21 is 1"], 38)
    carried = WorkflowCheckpoint.from_bytes(second.checkpoint.to_bytes())
    assert carried.pending_request_ids == second.checkpoint.pending_request_ids
    assert run(asking().run(checkpoint=carried, responses=[request.answer(2)])).outputs == ["q21 is 2"]


def test_a_scope_that_was_put_into_another_run_has_ids_of_that_run() -> None:
    """Its packs say where the ids of the other run are; the requests are found all the same."""
    workflow = asking(depth=1)
    source, target = run(workflow.run(40)), run(workflow.run(40))
    moved = target.checkpoint.with_executor_state("below", source.checkpoint.executor_states["below"])
    assert moved.pending_request_ids == target.checkpoint.pending_request_ids
    answered = run(workflow.run(checkpoint=moved, responses={moved.pending_request_ids[4]: 1}))
    assert answered.outputs == ["q4 is 1"]


def test_many_legacy_requests_are_answered_one_by_one() -> None:
    """An importer's open questions share records as well."""
    asked = [LegacyRequest("ask", f"old {number}", int) for number in range(40)]
    old = WorkflowCheckpoint.legacy(asking(), "imported", pending_requests=asked)
    result = run(asking().run(checkpoint=old, responses={old.pending_request_ids[8]: 1}))
    assert (result.outputs, len(result.pending_requests), kinds(result)) == (
        ["old 8 is 1"], 39, {"requests", "closed"},
    )  # fmt: skip


def test_pending_requests_read_like_a_tuple(store) -> None:
    """Length, places, slices, equality, sums and membership are those of a tuple of the same requests."""
    workflow = asking(store)
    pending = run(workflow.run(MANY, run_id="r")).pending_requests
    assert len(pending) == MANY
    last = pending[-1]
    assert last.data == "q299"
    assert last is pending[MANY - 1]
    again = run(workflow.run(checkpoint="latest", run_id="r")).pending_requests
    assert again == pending == tuple(pending)
    assert tuple(again) == again
    assert hash(again) == hash(tuple(pending))
    assert pending != ()
    assert pending != list(pending)
    assert pending[1:3] == (pending[1], pending[2])
    assert [*pending[:2], *pending[298:]] == [pending[0], pending[1], pending[298], last]
    assert pending + pending[:1] == (*pending, pending[0])
    assert pending[:1] + pending == (pending[0], *pending)
    assert (last in pending, pending.index(last), pending.count(last)) == (True, 299, 1)
    assert repr(pending).startswith("(PendingRequest(request_id=")
    for wrong in (MANY, -MANY - 1):
        with pytest.raises(IndexError):
            pending[wrong]
