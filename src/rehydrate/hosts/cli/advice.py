"""What to do next after an error, in words of the command line where the error's own are those of Python."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from rehydrate.errors import (
    AgentFrameworkImportError,
    AlreadyAnsweredError,
    AnswerTypeError,
    CheckpointNotFoundError,
    MissingResourceError,
    NoStoreError,
    NothingRunsError,
    PendingRequestsError,
    RehydrateError,
    RequestCancelledError,
    RunBusyError,
    RunDrainedError,
    RunExistsError,
    RunFailedError,
    RunNotFoundError,
    StaleCheckpointError,
    UnfinishedWorkError,
    UnknownRequestError,
    UnknownWorkflowError,
)


def command_text(words: Sequence[str], command: str, *more: str) -> str:
    """Return a command on the app and the store that `words` name, to be typed as it stands; it is printable.

    `words` are as a shell reads them, `more` as the command is to get them.
    """
    return " ".join(("rehydrate", command, *words, *map(quoted, more)))


def argument(word: str) -> tuple[str, ...]:
    """Return an argument as the last words of a command, where one with a dash before it is no option."""
    return ("--", word) if word.startswith("-") else (word,)


def quoted(word: str) -> str:
    """Return a word as a shell reads it; with what is not printable as bash, zsh and ksh have it, in `$'...'`."""
    if word.isprintable():
        return shlex.quote(word)
    return f"$'{''.join(letter if _is_plain(letter) else _octal(letter) for letter in word)}'"


def _is_plain(letter: str) -> bool:
    return letter.isprintable() and letter not in "\\'"


def _octal(letter: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in letter.encode("utf-8", "surrogateescape"))


def next_action(error: RehydrateError, words: Sequence[str]) -> str:
    """Return what to do next."""
    match error:
        case NoStoreError():
            return "Name the store: --store PATH or URL, or set REHYDRATE_STORE in the environment."
        case RunExistsError():
            return _of_existing(error, words)
        case RunNotFoundError():
            return f"Look which runs there are: {command_text(words, 'runs')}"
        case CheckpointNotFoundError():
            return _of_missing(error, words)
        case StaleCheckpointError(run_id=run_id, checkpoint_id=checkpoint):
            onward = command_text(words, "resume", "--run", run_id)
            copy = command_text(words, "fork", *argument(checkpoint))
            return f"Go on from the newest checkpoint ({onward}), or with a copy of the run ({copy})."
        case UnknownWorkflowError():
            return "Name the file that has it with --app."
        case MissingResourceError():
            return "Keep a Service in the file of the app, and give it resources={workflow name: {key: object}}."
        case UnknownRequestError() | AlreadyAnsweredError() | RequestCancelledError():
            return f"No answer was taken. Look what is open: {command_text(words, 'inbox')}"
        case AnswerTypeError(shape=shape) if shape:
            return f"No answer was taken. Expected is JSON of this shape: {shape}"
        case _:
            return _of_running(error, words)


def _of_existing(error: RunExistsError, words: Sequence[str]) -> str:
    """Return it for a run id that is taken."""
    if error.importing:
        return "Nothing was taken in: a run keeps its id. Import it into another store (--store)."
    return f"Go on with it ({command_text(words, 'resume', '--run', error.run_id)}), or give another --run."


def _of_missing(error: CheckpointNotFoundError, words: Sequence[str]) -> str:
    """Return it for a checkpoint: what is there instead, and where all are listed."""
    there = f"There is {', '.join(error.near)}. " if error.near else ""
    run_id = error.ref if error.is_run else error.run_id
    listed = command_text(words, "history", *(argument(run_id) if run_id else ("RUN",)))
    return f"{there}Look up its id, in the second column of: {listed}"


def _of_running(error: RehydrateError, words: Sequence[str]) -> str:
    """Return it for what stands in the way of a run, or stopped it."""
    match error:
        case PendingRequestsError():
            return "Answer them with --answer ID=JSON, or give --on-pending keep or cancel."
        case UnfinishedWorkError(run_id=run_id):
            onward = command_text(words, "resume", "--run", run_id)
            return f"Finish it first ({onward}), or give --on-unfinished finish or discard."
        case RunBusyError(run_id=run_id):
            offer = command_text(words, "offer", "--message", "JSON", *argument(run_id))
            taken = command_text(words, "resume", "--run", run_id, "--takeover")
            return f"Wait until that turn ends, leave input for it ({offer}), or take a stuck run ({taken})."
        case AgentFrameworkImportError():
            return "See --type, --leave-out and --skip-refused in: rehydrate import-maf --help"
        case NothingRunsError():
            return "Nothing has to be done."
        case RunFailedError(run_id=run_id) | RunDrainedError(run_id=run_id):
            return f"Go on with it: {command_text(words, 'resume', '--run', run_id)}"
        case _:
            return error.action()
