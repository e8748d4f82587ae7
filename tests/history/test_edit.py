"""Editing a run: a new checkpoint with other state in one scope, and nothing else is different."""

import asyncio
from typing import Never

import msgspec
import pytest

from rehydrate import (
    CheckpointStorage,
    Executor,
    InMemoryCheckpointStorage,
    Status,
    Workflow,
    WorkflowBuilder,
    WorkflowCheckpoint,
    WorkflowContext,
    handler,
)
from rehydrate.engine.reading import graph_at, scopes
from rehydrate.errors import (
    CheckpointNotFoundError,
    ForeignCheckpointError,
    GraphChangedError,
    NotStorableError,
    RunBusyError,
    RunExistsError,
    RunFailedError,
    RunNotFoundError,
    StaleCheckpointError,
    WrongCallError,
)
from rehydrate.model.checkpoint import At, Cause, Commit, Lease, Put, TurnRow
from rehydrate.runtime.state_view import read_state
from tests.differential.drawing import draw
from tests.differential.harness import Replay, calls_of, reference_run, stored_checkpoints
from tests.history.flows import BIG, HUGE, SMALL, Claim, desk

run = asyncio.run


def test_an_edit_is_a_new_checkpoint_with_its_reason(anywhere):
    """Values are replaced and deleted, the header says why, and the next turn reads them."""
    workflow = desk(anywhere)
    first = run(workflow.run(SMALL, run_id="r"))
    edited = run(workflow.edit(first, {"rate": 50, "total": 7}, delete=["log"], reason="a typo in the tariff"))
    header = edited.header
    assert (header.cause, header.reason, header.previous_checkpoint_id) == (
        Cause.EDIT,
        "a typo in the tariff",
        first.checkpoint_id,
    )
    assert (header.run_id, header.seq, header.turn, header.status) == (
        "r",
        first.checkpoint.header.seq + 1,
        1,
        Status.IDLE,
    )
    assert dict(edited.state) == {"rate": 50, "total": 7}
    second = run(workflow.run(Claim("c-3", 10), checkpoint=edited))
    assert second.outputs == ["c-3 within 1000: paid at 50%"]
    assert dict(second.checkpoint.state) == {"log": ["c-3"], "rate": 50, "total": 17}


def test_a_list_that_grows_is_replaced_as_a_whole(store):
    """A key with `append` takes a list, however many parts it had; what is appended later follows it."""
    workflow = desk(store)
    session = workflow.session("r")
    for number in range(70):
        run(session.run(Claim(f"c-{number}", 1)))
    run(workflow.edit("latest", {"log": ["a", "b"]}, run_id="r", reason="shorter"))
    last = run(workflow.run(Claim("c", 1), checkpoint="latest", run_id="r"))
    assert last.checkpoint.state["log"] == ["a", "b", "c"]


def test_a_nested_scope_is_edited_by_its_path_and_the_others_stay(anywhere):
    """An open question in a sub-workflow stays open, and its answer is handled with the edited state."""
    workflow = desk(anywhere)
    asked = run(workflow.run(BIG, run_id="r"))
    edited = run(workflow.edit(asked, {"limit": 9}, path="review#1", reason="a lower limit"))
    assert edited.status is Status.IDLE_WITH_PENDING_REQUESTS
    assert edited.pending_request_ids == (asked.pending_requests[0].request_id,)
    assert edited.state == asked.checkpoint.state
    below = edited.executor_states["review"]["sub_workflow_checkpoint"][1]
    assert dict(below.state) == {"limit": 9}
    done = run(workflow.run(checkpoint=edited, responses={asked.pending_requests[0].request_id: True}))
    assert done.outputs == ["c-2 within 9: paid at 100%"]


def test_only_what_changes_is_written(store):
    """The commit of an edit holds the records of the edited keys and no others."""
    workflow = desk(store)
    first = run(workflow.run(SMALL, run_id="r"))
    before = run(store.load(first.checkpoint_id)).records
    edited = run(workflow.edit(first, {"rate": 50}, reason="why"))
    after = run(store.load(edited.checkpoint_id)).records
    assert [key.split("\x1f") for key in after if before.get(key) != after[key]] == [["", "state", "rate"]]
    assert (edited.header.changed, edited.header.scopes) == (1, ("",))
    assert run(store.head("r")).owner is None


def test_an_edited_failure_goes_on_with_the_edited_state(anywhere):
    """A run that failed stays failed, and its continuation reads what was set."""
    workflow = desk(anywhere)
    with pytest.raises(RunFailedError) as failed:
        run(workflow.run(HUGE, run_id="r"))
    edited = run(workflow.edit(failed.value.result, {"most": 50_000, "total": 1000}, reason="a friend"))
    assert edited.status is Status.FAILED
    done = run(workflow.run(checkpoint=edited))
    assert [request.data for request in done.pending_requests] == [HUGE]
    assert done.checkpoint.state["total"] == 21_000


def test_a_fork_takes_the_edit_and_its_source_stays(anywhere):
    """With `fork=True` an older checkpoint is edited into a run of its own, with its own request ids."""
    workflow = desk(anywhere)
    asked = run(workflow.run(BIG, run_id="r"))
    old = asked.pending_requests[0].request_id
    done = run(workflow.run(checkpoint=asked, responses={old: False}))
    fork = run(workflow.edit(asked, {"rate": 5}, fork=True, run_id="what-if", reason="what if"))
    assert (fork.run_id, fork.previous_checkpoint_id, fork.header.cause) == ("what-if", None, Cause.EDIT)
    new = fork.pending_request_ids[0]
    assert new != old
    assert run(workflow.run(checkpoint=fork, responses={new: True})).outputs == ["c-2 within 1000: paid at 5%"]
    if anywhere is not None:
        assert run(anywhere.head("r")).header.checkpoint_id == done.checkpoint_id
        with pytest.raises(RunExistsError):
            run(workflow.edit(asked, {"rate": 5}, fork=True, run_id="what-if", reason="again"))


def test_an_object_of_a_run_that_the_store_does_not_know_is_taken_in(store):
    """As a call does, an edit imports a checkpoint from elsewhere under its run id."""
    asked = run(desk().run(BIG, run_id="r"))
    workflow = desk(store)
    edited = run(workflow.edit(asked, {"rate": 5}, reason="moved"))
    request_id = asked.pending_requests[0].request_id
    assert run(workflow.run(responses={request_id: True}, run_id="r")).outputs == ["c-2 within 1000: paid at 5%"]
    assert edited.run_id == "r"


def test_a_session_goes_on_from_its_edit(anywhere):
    """A session supplies its newest checkpoint, and stands at the edited one afterwards."""
    session = desk(anywhere).session()
    run(session.run(SMALL))
    edited = run(session.edit({"rate": 3}, reason="why"))
    assert session.checkpoint.checkpoint_id == edited.checkpoint_id
    assert run(session.run(SMALL)).outputs == ["c-1 within 1000: paid at 3%"]
    fork = run(session.edit({"rate": 4}, reason="why", fork=True, run_id="other"))
    assert session.run_id == fork.run_id == "other" != edited.run_id
    assert run(session.run(SMALL)).outputs == ["c-1 within 1000: paid at 4%"]


WRONG = {
    "a scope that is not there": ({"path": "review#7"}, WrongCallError, "no scope 'review#7'"),
    "a key that is not there": ({"delete": ["nope"]}, WrongCallError, "no key 'nope' in the state of the root"),
    "set and deleted": ({"state": {"log": []}, "delete": ["log"]}, WrongCallError, "to be set and deleted"),
    "nothing": ({"state": {}}, WrongCallError, "nothing is to be changed"),
    "no mapping": ({"state": ["rate"]}, WrongCallError, "state is a list"),
    "one key as a text": ({"delete": "log"}, WrongCallError, "delete is a str"),
    "a key that is none": ({"state": {"": 1}}, WrongCallError, "state key"),
    "a key that is no text": ({"state": {1: 1}}, WrongCallError, "state key"),
    "a path that is none": ({"path": None}, WrongCallError, "path is a NoneType"),
    "no reason": ({"reason": " "}, WrongCallError, "no reason"),
    "a reason that is too long": ({"reason": "x" * 1001}, WrongCallError, "1001 characters"),
    "a reason that no encoding stores": ({"reason": "\ud800"}, WrongCallError, "surrogate"),
    "no list where one grows": ({"state": {"log": "c"}}, WrongCallError, "grows by 'append' and cannot be a str"),
    "a value that cannot be stored": ({"state": {"rate": object()}}, NotStorableError, "state key 'rate'"),
    "an element that cannot be stored": ({"state": {"log": [object()]}}, NotStorableError, "state key 'log'"),
    "an unknown run": ({"run_id": "x"}, RunNotFoundError, "no run 'x'"),
    "an unknown checkpoint": ({"checkpoint": "x", "run_id": None}, CheckpointNotFoundError, "no checkpoint 'x'"),
    "no checkpoint": ({"checkpoint": None}, WrongCallError, "edit was given no checkpoint"),
    "latest of nothing": ({"run_id": None}, WrongCallError, "without run_id"),
    "an unknown argument": ({"branch": 1}, TypeError, "'branch'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_edit_changes_nothing(store, case):
    """What is wrong with an edit is an error of its own, and the run is as it was."""
    workflow = desk(store)
    first = run(workflow.run(SMALL, run_id="r"))
    given, error, text = WRONG[case]
    options = {"checkpoint": "latest", "run_id": "r", "state": {"rate": 1}, "reason": "why", **given}
    with pytest.raises(error, match=text):
        run(workflow.edit(**options))
    assert run(store.head("r")).header == first.checkpoint.header


def test_what_is_not_the_head_is_stale(store):
    """An older checkpoint is edited only as a fork, and an edit done once is not done again."""
    workflow = desk(store)
    first = run(workflow.run(SMALL, run_id="r"))
    edited = run(workflow.edit(first, {"rate": 1}, reason="why"))
    with pytest.raises(StaleCheckpointError):
        run(workflow.edit(first, {"rate": 1}, reason="why"))
    with pytest.raises(StaleCheckpointError):
        run(workflow.run(SMALL, checkpoint=first))
    assert run(store.head("r")).header == edited.header


def test_another_workflow_or_version_cannot_edit(store):
    """The signature is checked as for a call, and an older version is not brought up on the way."""
    first = run(desk(store).run(SMALL, run_id="r"))
    other = WorkflowBuilder("other", Silent("silent"), checkpoint_storage=store).build()
    with pytest.raises(ForeignCheckpointError):
        run(other.edit(first, {"rate": 1}, reason="why"))
    changed = WorkflowBuilder("desk", Silent("silent"), checkpoint_storage=store).build()
    with pytest.raises(GraphChangedError):
        run(changed.edit(first, {"rate": 1}, reason="why"))
    newer = desk(store, version=2, migrate={1: lambda view: None})
    with pytest.raises(WrongCallError, match="made by an older version"):
        run(newer.edit(first, {"rate": 1}, reason="why"))
    assert run(store.head("r")).header == first.checkpoint.header


class Silent(Executor):
    """Takes a claim and says nothing."""

    @handler
    def on_claim(self, claim: Claim) -> None:
        return None


class Held(Executor):
    """Waits at a gate."""

    def __init__(self, id: str, gate: asyncio.Event) -> None:
        super().__init__(id)
        self.gate = gate

    @handler
    async def on_claim(self, claim: Claim) -> None:
        await self.gate.wait()


def test_a_run_whose_owner_lives_is_busy(store):
    """While a call drives the run no edit gets in between, unless it takes the run over."""

    async def story():
        gate = asyncio.Event()
        workflow = WorkflowBuilder("held", Held("held", gate), checkpoint_storage=store).build()
        call = workflow.run(SMALL, run_id="r", stream=True)
        await anext(call)
        with pytest.raises(RunBusyError):
            await workflow.edit("latest", {"a": 1}, run_id="r", reason="why")
        taken = await workflow.edit("latest", {"a": 1}, run_id="r", reason="why", takeover=True)
        gate.set()
        with pytest.raises(Exception, match="head"):
            await call.result()
        return taken.header, (await store.head("r")).header

    taken, head = run(story())
    assert head == taken


def test_of_two_edits_at_once_one_is_stale(store):
    """Two edits of one checkpoint: one is committed, the other is told that it came too late."""
    workflow = desk(store)
    first = run(workflow.run(SMALL, run_id="r"))

    async def both():
        edits = [workflow.edit(first, {"rate": rate}, reason="why") for rate in (1, 2)]
        return await asyncio.gather(*edits, return_exceptions=True)

    done = run(both())
    assert sorted(type(one).__name__ for one in done) == ["StaleCheckpointError", "WorkflowCheckpoint"]
    assert len(run(store.history("r"))) == first.checkpoint.header.seq + 2


def test_a_recorded_result_stays_as_it_was(store):
    """A call repeated with its idempotency key gets what it had, not what was edited later."""
    workflow = desk(store)
    first = run(workflow.run(SMALL, run_id="r", idempotency_key="k"))
    run(workflow.edit("latest", {"rate": 1}, run_id="r", reason="why"))
    again = run(workflow.run(SMALL, run_id="r", idempotency_key="k"))
    assert (again.replayed, again.checkpoint_id) == (True, first.checkpoint_id)
    row = run(store.find_turn("desk", "k"))
    assert isinstance(row, TurnRow)
    assert row.checkpoint_id == first.checkpoint_id


class Tries(Executor):
    """Tells which attempt it is, and which value it sees."""

    @handler
    def on_claim(self, claim: Claim, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output(f"attempt {ctx.attempt} at {ctx.get_state('rate', 100)}")


async def left_by(owner: str | None, store: CheckpointStorage, run_id: str) -> Workflow:
    """Store a run as it stands after its claim; its process is gone, or has handed it on."""
    workflow = WorkflowBuilder("tries", Tries("tries"), checkpoint_storage=store).build()
    elsewhere = InMemoryCheckpointStorage()
    await workflow.run(SMALL, run_id=run_id, checkpoint_storage=elsewhere)
    claim = await elsewhere.load(At(run_id, 0))
    lease = Lease(owner or "done", 1, 5e-324 if owner else 0.0, claim=True)
    puts = tuple(Put(key, data) for key, data in claim.records.items())
    await store.commit(Commit(claim.header, None, lease, puts))
    return workflow


@pytest.mark.parametrize(("owner", "attempt"), [("gone", 2), (None, 2)])
def test_an_unfinished_run_goes_on_as_it_would_have(store, owner, attempt):
    """An edit between the loss of a process and the next call leaves what that call finds, also what was lost."""

    async def story():
        plain = await left_by(owner, store, "plain")
        await left_by(owner, store, "edited")
        for _ in range(2):
            edited = await plain.edit("latest", {"rate": 5}, run_id="edited", reason="why")
        assert edited.status is Status.RUNNING
        assert not (await store.head("edited")).alive
        claims = []
        for run_id in ("plain", "edited"):
            result = await plain.run(checkpoint="latest", run_id=run_id)
            claims += [header for header in await store.history(run_id) if header.cause is Cause.CONTINUATION]
            yield_ = result.outputs
            stored = await store.load(claims[-1].checkpoint_id)
            yield yield_, {key: data for key, data in stored.records.items() if "\x1fattempt\x1f" in key}

    async def both():
        return [one async for one in story()]

    plain, edited = run(both())
    assert (plain[0], edited[0]) == ([f"attempt {attempt} at 100"], [f"attempt {attempt} at 5"])
    assert len(plain[1]) == 1
    assert edited[1] == plain[1]


def same_values(workflow: Workflow, checkpoint: WorkflowCheckpoint) -> list[tuple[str, dict[str, object]]]:
    """Return the state of every scope that has some, opened, as an edit takes it."""
    program, found = workflow.program, []
    for path in scopes(checkpoint.records):
        reducers = graph_at(program.graph, path).reducers
        keys = list(checkpoint.records.table(path, "state"))
        values = {
            key: read_state(program.codec, checkpoint.records, path, key, [], reducers.get(key), None) for key in keys
        }
        found += [(path, values)] if values else []
    return found


@pytest.mark.parametrize("seed", [1, 4, 17, 19])
def test_an_edit_to_the_same_values_changes_nothing_of_what_follows(seed):
    """Random graphs, at every checkpoint: the state of all scopes is set to what it is; the run goes on the same."""

    async def story():
        store, family = InMemoryCheckpointStorage(), draw(seed)
        facts = await reference_run(calls_of(family, store, chance=1), "reference")
        again, wrong, edits = calls_of(family, None, chance=2), [], 0
        for checkpoint in await stored_checkpoints(store, "reference"):
            edited = checkpoint
            for path, values in same_values(again.workflow, checkpoint):
                edited = await again.workflow.edit(edited, values, path=path, reason="the same")
                edits += 1
            header = msgspec.structs.replace(edited.header, seq=checkpoint.header.seq)
            assert (header.status, header.events) == (checkpoint.status, checkpoint.header.events)
            wrong += await Replay(again, facts, WorkflowCheckpoint(header, edited.records)).compare()
        return wrong, edits

    wrong, edits = run(story())
    assert wrong == []
    assert edits > 3


def test_edits_of_a_random_run_in_a_store_are_forks_that_go_on_the_same(store):
    """The same over stores: each checkpoint is forked by an edit, and the fork goes on as the run did."""

    async def story():
        family = draw(4)
        calls = calls_of(family, store, chance=1)
        facts = await reference_run(calls, "reference")
        wrong, edits = [], 0
        for checkpoint in (await stored_checkpoints(store, "reference"))[::3]:
            values = same_values(calls.workflow, checkpoint)
            if not values:
                continue
            path, state = values[-1]
            fork = await calls.workflow.edit(
                checkpoint.checkpoint_id, state, path=path, reason="the same", fork=True, checkpoint_storage=store
            )
            header = msgspec.structs.replace(fork.header, seq=checkpoint.header.seq, events=checkpoint.header.events)
            replay = Replay(calls, facts, WorkflowCheckpoint(header, fork.records), numbered=False)
            wrong += await replay.compare()
            edits += 1
        return wrong, edits

    wrong, edits = run(story())
    assert edits > 3
    assert wrong == []
