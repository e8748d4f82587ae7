"""Resources: live objects that reach every depth on every call and are never stored (case 65)."""

import asyncio

import pytest

from rehydrate import Status
from rehydrate.errors import MissingResourceError, RunFailedError
from tests.call.envoys import Client, Errand, User, nested
from tests.call.stores import BreakableSqlite, everything

run = asyncio.run
SECRET = "s3cr3t-t0ken-of-the-client"


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_case_65_a_resource_reaches_every_depth_on_every_call(anywhere, depth):
    """The innermost executor uses the object of its own call: the first run's, the answer's, the message's."""
    workflow = nested(User("user"), anywhere, depth)
    clients = [Client(SECRET) for _ in range(4)]
    given = [{"client": client} for client in clients]
    first = run(workflow.run(Errand("a"), resources=given[0]))
    second = run(workflow.run(Errand("b?"), checkpoint=first, resources=given[1]))
    answers = [second.pending_requests[0].answer(True)]
    third = run(workflow.run(Errand("c"), checkpoint=second, responses=answers, resources=given[2]))
    assert (first.outputs[0][:4], [output[:5] for output in third.outputs]) == ("a at", ["b? at", "c at "])
    assert [client.used for client in clients] == [1, 0, 2, 0]


def test_case_65_a_resource_is_nowhere_in_the_store(store):
    """Not in a record, not in a header, not in the files: the secret is not there."""
    workflow = nested(User("user"), store, 3, outer={"client": Client})
    client = {"client": Client(SECRET)}
    paused = run(workflow.run(Errand("a?"), resources=client, run_id="r"))
    done = run(
        workflow.run(checkpoint=paused, responses={paused.pending_requests[0].request_id: True}, resources=client)
    )
    assert done.status is Status.IDLE
    assert not any(SECRET.encode() in data for data in run(everything(store)))
    assert SECRET.encode() not in done.checkpoint.to_bytes()
    if isinstance(store, BreakableSqlite):
        run(store.close())
        files = [path for path in store.folder.rglob("*") if path.is_file()]
        assert files
        assert not any(SECRET.encode() in path.read_bytes() for path in files)


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("given", [None, {}, {"other": 1}])
def test_an_undeclared_resource_that_is_missing_fails_at_the_line_that_reads_it(anywhere, depth, given):
    """The run fails there, naming the key; continued with the resource it goes on."""
    workflow = nested(User("user"), anywhere, depth)
    with pytest.raises(RunFailedError) as failed:
        run(workflow.run(Errand("a"), resources=given))
    cause = failed.value.__cause__
    assert isinstance(cause, MissingResourceError)
    assert cause.keys == ("client",)
    assert "'client'" in str(failed.value)
    client = Client(SECRET)
    result = run(workflow.run(checkpoint=failed.value.result, resources={"client": client}))
    assert (len(result.outputs), client.used) == (1, 1)


def test_an_undeclared_resource_that_nobody_reads_is_not_missed(anywhere):
    """A turn that does not come to that line ends well without it."""
    workflow = nested(User("user"), anywhere, 2)
    assert run(workflow.run(Errand("a?"))).status is Status.IDLE_WITH_PENDING_REQUESTS


@pytest.mark.parametrize("where", ["inner", "outer"])
@pytest.mark.parametrize("depth", [2, 3])
def test_case_65_a_declared_resource_that_is_missing_is_an_error_before_the_claim(store, where, depth):
    """Declared at any depth, it is missed by the new run, the answer and the message; nothing changes."""
    workflow = nested(User("user"), store, depth, **{where: {"client": Client}})
    with pytest.raises(MissingResourceError):
        run(workflow.run(Errand("a?"), run_id="r"))
    assert run(everything(store)) == []
    paused = run(workflow.run(Errand("a?"), run_id="r", resources={"client": Client(SECRET)}))
    before = run(everything(store))
    answers = [paused.pending_requests[0].answer(True)]
    for message, arguments in (
        (None, {"checkpoint": paused, "responses": answers}),
        (Errand("b"), {"checkpoint": paused}),
        (Errand("b"), {"checkpoint": paused, "responses": answers, "resources": {"other": 1}}),
        (None, {"responses": answers}),
    ):
        with pytest.raises(MissingResourceError) as missing:
            run(workflow.run(message, **arguments))
        assert missing.value.keys == ("client",)
        assert "resources=" in str(missing.value)
    assert run(everything(store)) == before


def test_declared_resources_that_are_missing_are_all_named(store):
    """One error lists every key that the tree declares and the call did not bring."""
    workflow = nested(User("user"), store, 2, inner={"client": Client, "b": int}, outer={"a": int})
    with pytest.raises(MissingResourceError) as missing:
        run(workflow.run(Errand("a"), resources={"b": 1}))
    assert missing.value.keys == ("a", "client")


def test_declaring_a_resource_later_changes_no_run(store):
    """What is declared is not part of the graph: a run made before goes on when the resource is brought."""
    paused = run(nested(User("user"), store, 2).run(Errand("a?"), run_id="r"))
    declared = nested(User("user"), store, 2, outer={"client": Client})
    answers = [paused.pending_requests[0].answer(True)]
    result = run(declared.run(checkpoint=paused, responses=answers, resources={"client": Client(SECRET)}))
    assert result.outputs == ["a? at inner#1"]
