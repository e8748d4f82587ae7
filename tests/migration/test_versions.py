"""Versions: which functions are called, in what order, and what is refused; a refused call changes nothing."""

import asyncio
import copy

import pytest

from rehydrate import Runner, WorkflowBuilder, WorkflowCheckpoint, WorkflowExecutor
from rehydrate.errors import (
    GraphChangedError,
    HomelessWorkError,
    MigrationError,
    MissingMigrationError,
    NewerVersionError,
    TypeChangedError,
    WorkflowBuildError,
)
from tests.migration.flows import asking, chain, go, step, stored
from tests.migration.types import with_amount, with_cents


def nothing(run) -> None:
    """What a new node needs."""


def test_functions_are_called_one_by_one_from_the_stored_version(store) -> None:
    """A run of version 2 passes through those of 2 and 3, in this order, and is one of version 4 afterwards."""
    called = []
    migrate = {n: lambda run: called.append((run.workflow, run.version)) for n in (1, 2, 3)}
    first = go(chain("a", "b", broken="b", version=2), "x", run_id="r", checkpoint_storage=store)
    newest = chain("a", "b", version=4, migrate=migrate)
    second = go(newest, checkpoint=first, checkpoint_storage=store)
    assert called == [("chain", 2), ("chain", 3)]
    assert second.outputs == ["x a b"]
    go(newest, "y", checkpoint=second, checkpoint_storage=store)
    assert called == [("chain", 2), ("chain", 3)]


def test_the_claim_saves_what_a_migration_changed(store) -> None:
    """After the call the stored run is one of the new version; a reader sees no step in between."""
    first = go(chain("a", "b", broken="b"), "x", run_id="r", checkpoint_storage=store)
    later = chain("a", "c", "b", broken="b", version=2, migrate={1: nothing})
    second = go(later, checkpoint=first, checkpoint_storage=store)
    assert second.checkpoint.header.seq == first.checkpoint.header.seq + 2  # the claim, and the end
    (_, loaded) = stored(store)
    assert WorkflowCheckpoint.from_bytes(second.checkpoint.to_bytes()).records.get("", "run", "").version == 2
    assert len(loaded.records) == loaded.header.records


def test_with_nothing_to_do_nothing_is_saved(store) -> None:
    """A continuation of a waiting run shows its question under the new ids, and the checkpoint is the old one."""
    first = go(asking(), "x", run_id="r", checkpoint_storage=store)
    before = stored(store)
    renamed = asking("query", version=2, migrate={1: lambda run: run.rename_executor("ask", "query")})
    second = go(renamed, checkpoint=first, checkpoint_storage=store)
    assert second.checkpoint_id == first.checkpoint_id
    assert [request.path for request in second.pending_requests] == ["query#1"]
    assert [r.request_id for r in second.pending_requests] == [r.request_id for r in first.pending_requests]
    assert stored(store) == before


def refused(error, workflow, store, **options):
    """Let a call fail, and see that nothing of the stored run has changed."""
    before = copy.deepcopy(stored(store))
    with pytest.raises(error) as caught:
        go(workflow, run_id="r", checkpoint="latest", checkpoint_storage=store, **options)
    assert stored(store) == before
    return caught.value


def test_a_missing_function_is_named(store) -> None:
    """The error names the version and what to pass; it is a changed graph, with the differences."""
    go(chain("a", "b", broken="b"), "x", run_id="r", checkpoint_storage=store)
    error = refused(MissingMigrationError, chain("a", "b", version=3, migrate={1: nothing}), store)
    assert (error.workflow, error.version) == ("chain", 2)
    assert "(workflow): version was 1, is 3" in error.differences
    assert str(error).endswith(
        "Pass migrate={2: function} to the builder of 'chain'; the function may do nothing."
        " Or go on with this run under the old definition."
    )
    assert isinstance(error, GraphChangedError)


def test_no_function_is_called_where_a_later_one_is_missing(store) -> None:
    """What cannot be finished is not begun."""
    called = []
    go(chain("a", "b", broken="b"), "x", run_id="r", checkpoint_storage=store)
    refused(MissingMigrationError, chain("a", "b", version=3, migrate={1: called.append}), store)
    assert called == []


def test_a_newer_run_is_refused_as_newer(store) -> None:
    """Its own error says that the process is to be upgraded."""
    go(chain("a", "b", broken="b", version=2), "x", run_id="r", checkpoint_storage=store)
    error = refused(NewerVersionError, chain("a", "b"), store)
    assert (error.workflow, error.found, error.known) == ("chain", 2, 1)


def test_a_change_without_a_version_names_the_way(store) -> None:
    """The differences are listed, and version= and migrate= are the next action."""
    go(chain("a", "b", broken="b"), "x", run_id="r", checkpoint_storage=store)
    error = refused(GraphChangedError, chain("a", "c", "b"), store)
    assert not isinstance(error, MissingMigrationError)
    assert "c: new" in error.differences
    assert "raise version= and pass migrate={old version: function}" in str(error)


def fails(run) -> None:
    raise KeyError("no")


async def waits(run) -> None:
    """Never run."""


@pytest.mark.parametrize(
    ("migration", "problem"),
    [
        (fails, "KeyError: 'no'"),
        (lambda run: waits(run), "it is async"),  # noqa: PLW0108  (the build sees an async function itself)
        (lambda run: run.rename_executor("z", "y"), "there is no executor 'z'; there are a, b"),
        (lambda run: run.rename_executor("a", "b"), "'b' is there already"),
        (lambda run: run.rename_executor("a", "x/y"), "executor id 'x/y' is not allowed"),
        (lambda run: run.move_messages("z", "a"), "there is no executor 'z'"),
        (lambda run: run.scopes("sub"), "write 'executor#*' or 'executor#2'"),
        (lambda run: run.scopes("sub#*"), "there is no sub-workflow 'sub'"),
        (lambda run: run.change_state("seen by a", lambda value: object()), "cannot be stored"),
        (lambda run: run.rename_state_key("seen by a", "a\n"), "state key 'a\\n' is not allowed"),
    ],
)
def test_a_migration_that_goes_wrong_changes_nothing(store, migration, problem: str) -> None:
    """The error names the version and the cause; the stored run stays, and the old program goes on with it."""
    go(chain("a", "b", broken="b"), "x", run_id="r", checkpoint_storage=store)
    error = refused(MigrationError, chain("a", "b", version=2, migrate={1: migration}), store)
    assert (error.workflow, error.version) == ("chain", 1)
    assert problem in error.problem
    assert go(chain("a", "b"), run_id="r", checkpoint="latest", checkpoint_storage=store).outputs == ["x a b"]


def test_a_function_of_a_child_serves_its_scopes_at_any_depth(store) -> None:
    """A parent that has not changed takes its child's new version up: the child's own function renames in it."""
    renamed = {1: lambda run: run.rename_executor("inner", "clerk")}

    def deep(**child):
        middle = WorkflowBuilder("middle", WorkflowExecutor(asking(**child), "asking")).build()
        return WorkflowBuilder("top", WorkflowExecutor(middle, "middle")).build()

    first = go(deep(), "x", run_id="r", checkpoint_storage=store)
    later = deep(inner="clerk", child_version=2, child_migrate=renamed)
    (request,) = first.pending_requests
    second = go(later, checkpoint=first, responses=[request.answer("yes")], checkpoint_storage=store)
    assert second.outputs == ["x: yes last"]


def test_a_child_that_is_used_twice_is_brought_up_once(store) -> None:
    """One call of its function sees the scopes under both ids."""
    seen = []

    def note(run) -> None:
        seen.append([scope.path for scope in run.scopes()])

    def twice(**given):
        child = asking(**given)
        source, one, other = step("source"), WorkflowExecutor(child, "one"), WorkflowExecutor(child, "other")
        return WorkflowBuilder("twice", source).add_fan_out_edges(source, [one, other]).build()

    first = go(twice(), "x", run_id="r", checkpoint_storage=store)
    go(twice(version=2, migrate={1: note}), checkpoint=first, checkpoint_storage=store)
    assert seen == [["one#1", "other#1"]]


def test_a_childs_newer_version_is_named_by_path(store) -> None:
    """The version is the child's, and the error says where."""
    go(asking(child_version=3), "x", run_id="r", checkpoint_storage=store)
    error = refused(NewerVersionError, asking(child_version=2, child_migrate={1: nothing}), store)
    assert (error.workflow, error.path, error.found, error.known) == ("child", "ask", 3, 2)


def test_a_childs_change_needs_its_own_version_or_one_above(store) -> None:
    """The version of the parent speaks for all below it; without any the difference is named by path."""
    first = go(asking(), "x", run_id="r", checkpoint_storage=store)
    error = refused(GraphChangedError, asking(inner="clerk"), store)
    assert error.differences == (
        "ask/(workflow): start was inner, is clerk",
        "ask/clerk: new",
        "ask/inner: missing now",
        "ask#1/inner: an open request waits for it and it is not there",
    )
    above = {1: lambda run: run.rename_executor("inner", "clerk", at="ask#*")}
    (request,) = first.pending_requests
    second = go(
        asking(inner="clerk", version=2, migrate=above),
        checkpoint=first, responses=[request.answer("yes")], checkpoint_storage=store,
    )  # fmt: skip
    assert second.outputs == ["x: yes last"]


def test_parents_are_brought_up_before_their_children(store) -> None:
    """The child's function finds its scopes under the id that the parent's has given."""
    seen = []
    first = go(asking(), "x", run_id="r", checkpoint_storage=store)
    later = asking(
        "query", version=2, migrate={1: lambda run: run.rename_executor("ask", "query")},
        child_version=2, child_migrate={1: lambda run: seen.extend(scope.path for scope in run.scopes())},
    )  # fmt: skip
    go(later, checkpoint=first, checkpoint_storage=store)
    assert seen == ["query#1"]


def test_a_runner_takes_an_older_checkpoint(store) -> None:
    """It is brought up when it is restored, goes on from there, and is captured in its new form."""
    first = go(asking(), "x")
    later = asking("query", version=2, migrate={1: lambda run: run.rename_executor("ask", "query")})

    async def by_hand():
        runner = Runner(later)
        await runner.restore_from_checkpoint_object(first.checkpoint)
        captured = await runner.capture_checkpoint_object()
        return captured, await runner.run(responses={first.pending_requests[0].request_id: "yes"})

    captured, second = asyncio.run(by_hand())
    assert list(captured.executor_states) == ["query"]
    assert captured.pending_request_ids == (first.pending_requests[0].request_id,)
    assert second.outputs == ["x: yes last"]


def test_a_checkpoint_object_of_an_older_version_is_imported_in_its_new_form(store) -> None:
    """A store that does not know the run gets all records as the new version has them."""
    first = go(asking(), "x", run_id="r")
    later = asking("query", version=2, migrate={1: lambda run: run.rename_executor("ask", "query")})
    (request,) = first.pending_requests
    second = go(later, "y", checkpoint=first, checkpoint_storage=store)
    assert [r.path for r in second.pending_requests] == ["query#1", "query#2"]
    assert request.request_id in {r.request_id for r in second.pending_requests}


def test_a_fork_of_an_older_checkpoint_is_brought_up(store) -> None:
    """Any checkpoint of the history can be forked under the new version, and answered by the old id."""
    first = go(asking(), "x", run_id="r", checkpoint_storage=store)
    go(asking(), "y", checkpoint=first, checkpoint_storage=store)
    later = asking("query", version=2, migrate={1: lambda run: run.rename_executor("ask", "query")})
    (request,) = first.pending_requests
    second = go(later, checkpoint=first, fork=True, responses=[request.answer("yes")], checkpoint_storage=store)
    assert second.outputs == ["x: yes last"]


def test_a_recorded_result_is_given_back_under_a_later_version(store) -> None:
    """The same call with its key gets the outputs that an older version had, without running anything."""
    one = go(chain("a", "b"), "x", idempotency_key="k", checkpoint_storage=store)
    later = chain("a", "c", "b", version=2, migrate={1: nothing})
    again = go(later, "x", idempotency_key="k", checkpoint_storage=store)
    assert (again.replayed, again.outputs, again.run_id) == (True, ["x a b"], one.run_id)


def test_the_same_call_again_is_continued_under_a_later_version(store) -> None:
    """A turn that failed under version 1 is continued by its own call under version 2; nothing is applied twice."""
    go(chain("a", "b", broken="b"), "x", run_id="r", checkpoint_storage=store)
    later = chain("a", "c", "b", version=2, migrate={1: nothing})
    assert go(later, "x", run_id="r", checkpoint_storage=store).outputs == ["x a b"]


@pytest.mark.parametrize(
    ("version", "migrate", "problem"),
    [
        (2, {2: nothing}, "migrate[2] brings up no older version"),
        (2, {0: nothing}, "whole numbers from 1 to 1"),
        (3, {"1": nothing}, "migrate['1'] brings up no older version"),
        (2, {1: "nothing"}, "migrate[1] is 'nothing'; give a function"),
        (2, {1: waits}, "migrate[1] is async"),
        (1, {1: nothing}, "migrate[1] brings up no older version"),
    ],
)
def test_wrong_migrations_are_problems_of_the_build(version, migrate, problem: str) -> None:
    """Each is named with what to give instead."""
    with pytest.raises(WorkflowBuildError) as caught:
        chain("a", version=version, migrate=migrate)
    assert any(problem in text for text in caught.value.problems)


def test_work_without_a_home_is_listed_by_path(store) -> None:
    """Case 49: after the migration every message and question that has no executor is named, and nothing runs."""
    go(chain("a", "b", "c", broken="b"), "x", run_id="r", checkpoint_storage=store)
    error = refused(HomelessWorkError, chain("a", "d", "c", version=2, migrate={1: nothing}), store)
    assert error.waiting == ("b: a message waits for it and it is not there",)
    assert "migrate={1: ...} give it one: rename_executor, move_messages or drop_executor" in str(error)


def test_a_sub_workflow_without_a_home_is_listed_by_path(store) -> None:
    """The running scope and the question in it are named."""
    go(asking(), "x", run_id="r", checkpoint_storage=store)
    error = refused(HomelessWorkError, asking("query", version=2, migrate={1: nothing}), store)
    assert error.waiting == (
        "ask#1: it runs and waits, and there is no sub-workflow 'ask' now",
        "ask#1/inner: an open request waits for it and it is not there",
    )


def test_values_that_do_not_open_are_found_before_the_claim(store) -> None:
    """The place of the first one is named, and the error of the codec is the cause."""
    go(with_amount(), 5, run_id="r", checkpoint_storage=store)
    error = refused(MigrationError, with_cents(version=2, migrate={1: nothing}), store)
    assert error.problem == (
        "ask#1, part log 0: a stored value of type 'Price' does not fit today's definition:"
        " it has no cents and nothing takes its amount"
    )
    assert isinstance(error.__cause__, TypeChangedError)


def test_a_function_may_name_what_came_in_between(store) -> None:
    """A node of version 2 is renamed, moved from and dropped on the way to 3; a run of version 1 never had it."""

    def onwards(run) -> None:
        run.rename_executor("new", "newer")
        assert run.move_messages("newest", "b") == 0
        assert run.drop_executor("newer") == []
        assert run.scopes("sub#*") == []
        run.rename_handler("new", "on_one", "on_other")

    first = go(chain("a", "b", broken="b"), "x", run_id="r", checkpoint_storage=store)
    later = chain("a", "b", version=3, migrate={1: nothing, 2: onwards})
    assert go(later, checkpoint=first, checkpoint_storage=store).outputs == ["x a b"]


def test_an_id_that_became_free_in_between_can_be_taken(store) -> None:
    """Version 2 went without a node for which nothing waited; version 3 gives its id to another one."""
    first = go(chain("a", "b", "c", broken="b"), "x", run_id="r", checkpoint_storage=store)
    later = chain("a", "c", version=3, migrate={1: nothing, 2: lambda run: run.rename_executor("b", "c")})
    assert go(later, checkpoint=first, checkpoint_storage=store).outputs == ["x a c"]


def test_an_id_for_which_work_waits_cannot_be_taken(store) -> None:
    """The messages of two executors would be mixed up."""
    go(chain("a", "b", broken="a"), "x", run_id="r", checkpoint_storage=store)
    later = chain("a", version=3, migrate={1: nothing, 2: lambda run: run.rename_executor("b", "a")})
    assert "'a' is there already" in refused(MigrationError, later, store).problem
