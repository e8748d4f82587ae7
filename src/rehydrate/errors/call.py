"""Errors of a call: the arguments of `run`, `resume` or a session do not fit.

All of them are raised before the claim: nothing has run and nothing has changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import CallError


@dataclass(eq=False, repr=False)
class WrongCallError(CallError, ValueError):
    """The arguments of a call do not go together."""

    code: ClassVar[str] = "wrong-call"
    problem: str
    fix: str

    def text(self) -> str:
        """Return the problem."""
        return self.problem

    def action(self) -> str:
        """Say what to do next."""
        return self.fix


@dataclass(eq=False, repr=False)
class MessageTypeError(CallError, TypeError):
    """The start executor does not take a message of this type."""

    code: ClassVar[str] = "message-type"
    workflow: str
    executor: str
    given: str
    takes: tuple[str, ...]

    def text(self) -> str:
        """Name both types."""
        taken = " or ".join(self.takes)
        return (
            f"workflow {self.workflow!r} was given a message of type {self.given}; its start executor {self.executor!r}"
            f" takes {taken}."
        )

    def action(self) -> str:
        """Say what to do next."""
        return f"Pass a message of a type that {self.executor!r} has a handler for."


@dataclass(eq=False, repr=False)
class RunExistsError(CallError):
    """A run of this id exists and the call would start a new one."""

    code: ClassVar[str] = "run-exists"
    run_id: str
    head: str
    #: The workflow it belongs to, where that is another one.
    workflow: str = ""
    #: True where a file of this run was to be taken in.
    importing: bool = False

    def text(self) -> str:
        """Name the run."""
        owner = f" and belongs to workflow {self.workflow!r}" if self.workflow else f" (head {self.head})"
        return f"run {self.run_id!r} exists already{owner}."

    def action(self) -> str:
        """Say what to do next."""
        if self.importing:
            return "Delete the run first (storage.delete(run_id)), or import the file into another store."
        if self.workflow:
            return "Pass another run_id to start a new run: run ids are unique in a store."
        return 'Pass checkpoint="latest" to go on with it, or another run_id to start a new run.'


@dataclass(eq=False, repr=False)
class ImportConflictError(CallError):
    """A run cannot be taken in, since something of it belongs to another run of the store by now."""

    code: ClassVar[str] = "import-conflict"
    run_id: str
    problem: str

    def text(self) -> str:
        """Name the run and what is in its way."""
        return f"run {self.run_id!r} cannot be taken into this store, which has {self.problem}."

    def action(self) -> str:
        """Say what to do next."""
        return "Nothing was taken in. Import the file into another store, or delete the run that is in its way."


@dataclass(eq=False, repr=False)
class RunBusyError(CallError):
    """Another call drives this run and its owner is alive."""

    code: ClassVar[str] = "run-busy"
    run_id: str
    owner: str

    def text(self) -> str:
        """Name the run and its owner."""
        return f"run {self.run_id!r} is being executed by owner {self.owner}."

    def action(self) -> str:
        """Say what to do next."""
        return "Wait until that turn ends and try again; a call may take a stuck owner's run with takeover=True."


@dataclass(eq=False, repr=False)
class TurnInProgressError(RunBusyError):
    """The same call is being executed and its owner is alive."""

    code: ClassVar[str] = "turn-in-progress"

    def text(self) -> str:
        """Name the run and its owner."""
        return f"this very turn of run {self.run_id!r} is being executed by owner {self.owner}."


@dataclass(eq=False, repr=False)
class IdempotencyKeyError(CallError):
    """An idempotency key was used for another request."""

    code: ClassVar[str] = "idempotency-key"
    key: str
    run_id: str

    def text(self) -> str:
        """Name the key and its run."""
        return f"idempotency key {self.key!r} belongs to a different request, made on run {self.run_id!r}."

    def action(self) -> str:
        """Say what to do next."""
        return "Use a new key for a new request, or repeat the first request unchanged."


@dataclass(eq=False, repr=False)
class AnswerError(CallError):
    """Base of errors about an answer; no answer of the call was taken."""

    code: ClassVar[str] = "answer"
    request_id: str

    def action(self) -> str:
        """Say what to do next."""
        return "No answer of this call was taken; look at the pending_requests of the newest result and call again."


@dataclass(eq=False, repr=False)
class UnknownRequestError(AnswerError):
    """No run of the store has a request of this id."""

    code: ClassVar[str] = "unknown-request"

    def text(self) -> str:
        """Name the request."""
        return f"request {self.request_id!r} is not known."


@dataclass(eq=False, repr=False)
class ForeignRequestError(AnswerError):
    """The request belongs to another run."""

    code: ClassVar[str] = "foreign-request"
    run_id: str

    def text(self) -> str:
        """Name request and run."""
        return f"request {self.request_id!r} is not one of run {self.run_id!r}."


@dataclass(eq=False, repr=False)
class AlreadyAnsweredError(AnswerError):
    """The request has been answered before."""

    code: ClassVar[str] = "already-answered"
    run_id: str

    def text(self) -> str:
        """Name request and run."""
        return f"request {self.request_id!r} of run {self.run_id!r} has been answered already."


@dataclass(eq=False, repr=False)
class RequestCancelledError(AnswerError):
    """The request was withdrawn."""

    code: ClassVar[str] = "request-cancelled"
    run_id: str

    def text(self) -> str:
        """Name request and run."""
        return f"request {self.request_id!r} of run {self.run_id!r} was cancelled."


@dataclass(eq=False, repr=False)
class AnswerTypeError(AnswerError, TypeError):
    """The answer has another type than the request asks for."""

    code: ClassVar[str] = "answer-type"
    expected: str
    given: str
    #: What JSON of an answer looks like, where the answer was given as JSON.
    shape: str = ""

    def text(self) -> str:
        """Name both types."""
        return f"request {self.request_id!r} expects an answer of type {self.expected}, not {self.given}."

    def action(self) -> str:
        """Say what to do next, and show what fits."""
        shown = f" Expected is JSON of this shape: {self.shape}" if self.shape else ""
        return f"{super().action()}{shown}"


@dataclass(eq=False, repr=False)
class PendingRequestsError(CallError):
    """`on_pending="reject"` found open requests."""

    code: ClassVar[str] = "pending-requests"
    run_id: str
    requests: tuple[str, ...]

    def text(self) -> str:
        """Name run and requests."""
        return f"run {self.run_id!r} has {len(self.requests)} open request(s): {', '.join(self.requests[:5])}."

    def action(self) -> str:
        """Say what to do next."""
        return 'Answer them in this call (responses=...), or pass on_pending="keep" or "cancel".'


@dataclass(eq=False, repr=False)
class UnfinishedWorkError(CallError):
    """`on_unfinished="reject"` found unfinished work."""

    code: ClassVar[str] = "unfinished-work"
    run_id: str
    where: tuple[str, ...]

    def text(self) -> str:
        """Name run and places."""
        places = ", ".join(repr(path) if path else "the root" for path in self.where[:5])
        return f"run {self.run_id!r} has unfinished work in {places}."

    def action(self) -> str:
        """Say what to do next."""
        return 'Continue it first (run(checkpoint=...) without a message), or pass on_unfinished="finish" or "discard".'


@dataclass(eq=False, repr=False)
class NoStoreError(CallError, ValueError):
    """The call needs a store and none was given."""

    code: ClassVar[str] = "no-store"
    needs: str

    def text(self) -> str:
        """Say what needs the store."""
        return f"{self.needs} needs a checkpoint store and this workflow has none."

    def action(self) -> str:
        """Say what to do next."""
        return "Pass checkpoint_storage= to the call or to WorkflowBuilder."


@dataclass(eq=False, repr=False)
class SingleOutputError(CallError, ValueError):
    """`result.output` was read where there is not exactly one output."""

    code: ClassVar[str] = "single-output"
    count: int

    def text(self) -> str:
        """Give the number."""
        return f"the result has {self.count} outputs, not exactly one."

    def action(self) -> str:
        """Say what to do next."""
        return "Read result.outputs, and result.status and result.pending_requests where it is empty."


@dataclass(eq=False, repr=False)
class StreamStateError(CallError):
    """A stream was used after its end or in a way it does not support."""

    code: ClassVar[str] = "stream-state"
    problem: str
    fix: str

    def text(self) -> str:
        """Return the problem."""
        return self.problem

    def action(self) -> str:
        """Say what to do next."""
        return self.fix
