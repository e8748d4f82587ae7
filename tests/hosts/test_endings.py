"""The exit code of every error, as the table of `docs/cli.md` says."""

import pytest

from rehydrate import errors
from rehydrate.hosts.cli.endings import Ending, ending_of_error
from tests.hosts.commands import SMALL

ENDINGS = {
    Ending.FAILED: """
        RehydrateError RunError RunFailedError EffectError SendTypeError ClosedContextError LateResponseError
        InvocationTimeoutError NoHandlerError StateConflictError PredicateError ReducerError JoinDeadlockError
        SubWorkflowTimeoutError SaveHookError StepFailedError NonDeterminismError ModelCallError ModelUnavailableError
        ModelReplyError RoundLimitError
    """,
    Ending.WRONG_CALL: """
        CallError WrongCallError MessageTypeError MessageShapeError RunExistsError ImportConflictError
        IdempotencyKeyError AnswerError UnknownRequestError ForeignRequestError AlreadyAnsweredError
        RequestCancelledError AnswerTypeError PendingRequestsError UnfinishedWorkError NoStoreError SingleOutputError
        StreamStateError MissingResourceError ResourceTypeError MissingExtraError NothingRunsError UnknownWorkflowError
        NotStorableError DefinitionError WorkflowBuildError ExecutorDefinitionError FrozenExecutorError PolicyError
        IdError AppError MarkError TypeNameConflictError UnresolvedTypeError CheckpointNotFoundError RunNotFoundError
        ForeignCheckpointError StaleCheckpointError OfferConflictError EventsNotKeptError ExportFileError
        WrongStoreError
    """,
    Ending.BUSY: "RunBusyError TurnInProgressError CommitConflictError StoreUnavailableError",
    Ending.UNUSABLE: """
        WorkflowCheckpointException CaptureError CheckpointCorruptError CheckpointFormatError GraphChangedError
        InconsistentRunError AgentFrameworkImportError MissingMigrationError NewerVersionError MigrationError
        HomelessWorkError UnknownTypeError TypeChangedError UnknownZoneError WrongKeyError NotEncryptedError
        EncryptedCheckpointError StoreError SaveFailedError StoreFullError StoreReadOnlyError StoreBrokenError
        StoreClosedError
    """,
    Ending.DRAINED: "DrainingError RunDrainedError",
}


def test_every_error_has_the_exit_code_of_the_page():
    """5 is only for what may go away by itself; what a command names wrongly is 2, and what is damaged 6."""
    named = {name: ending for ending, names in ENDINGS.items() for name in names.split()}
    made = {name: getattr(errors, name) for name in errors.__all__}
    assert {name: ending_of_error(cls.__new__(cls)) for name, cls in made.items()} == named


@pytest.mark.parametrize(
    ("store", "problem"),
    [
        ("sqlite:////dev/null", "it is no file but a device, pipe or socket"),
        ("text.db", "the file is no SQLite database"),
        ("folder", "the folder is no store and has other files in it (thesis.tex)"),
        ("nowhere/runs.db", "the folder '{}/nowhere' does not exist"),
    ],
)
def test_what_is_no_store_is_a_wrong_command(command, tmp_path, store, problem):
    """Giving it again would not help."""
    (tmp_path / "text.db").write_text("no database " * 100)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.tex").touch()
    done = command("run", "-m", SMALL, "--store", store)
    assert (done.code, problem.format(tmp_path) in done.err) == (2, True)
    assert done.err.startswith("error [wrong-store]: store ")


@pytest.mark.parametrize("words", [("import", "nothing.run"), ("export", "r", "nowhere/r.run")])
def test_a_file_that_is_not_there_is_a_wrong_command(command, words):
    """As what `--message @FILE` names."""
    command("run", "-m", SMALL, "--run", "r")
    done = command(*words)
    assert (done.code, done.err.startswith("error [export-file]: ")) == (2, True)
