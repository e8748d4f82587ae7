"""Errors of a running workflow: raised at the line of a handler, or by the run that it failed.

They must not be used for anything that happens before the claim.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .base import RunError


@dataclass(eq=False, repr=False)
class RunFailedError(RunError):
    """A run ended `FAILED`; raised from the executor's exception where it is at hand."""

    code: ClassVar[str] = "run-failed"
    run_id: str
    where: str
    reason: str
    #: The `WorkflowRunResult` of the failed run: checkpoint id, outputs so far, requests.
    result: Any = None  # `Any`: its class stands in a layer above

    def text(self) -> str:
        """Name the run, the place and the reason."""
        return f"run {self.run_id!r} failed in {self.where}: {self.reason.rstrip('.')}."

    def action(self) -> str:
        """Say what to do next."""
        return (
            "Finished work is kept: repair the cause and continue with run(checkpoint=error.result),"
            ' or bring a new message with on_unfinished="discard".'
        )


@dataclass(eq=False, repr=False)
class EffectError(RunError):
    """A handler used its context wrongly; raised at that line."""

    code: ClassVar[str] = "effect"
    where: str
    problem: str
    fix: str

    def text(self) -> str:
        """Name the place and the problem."""
        return f"{self.where}: {self.problem}."

    def action(self) -> str:
        """Say what to do next."""
        return self.fix


@dataclass(eq=False, repr=False)
class SendTypeError(EffectError, TypeError):
    """A message, output or request has a type that is not declared or that nothing takes."""

    code: ClassVar[str] = "send-type"


@dataclass(eq=False, repr=False)
class ClosedContextError(EffectError):
    """A context was used after its invocation had ended."""

    code: ClassVar[str] = "closed-context"


@dataclass(eq=False, repr=False)
class LateResponseError(EffectError):
    """A request of a sub-workflow was answered that is open no more."""

    code: ClassVar[str] = "late-response"


@dataclass(eq=False, repr=False)
class InvocationTimeoutError(RunError, TimeoutError):
    """A handler took longer than the `timeout=` of its executor, or a step than its own; `seconds` is what it had."""

    code: ClassVar[str] = "invocation-timeout"
    where: str
    seconds: float
    step: str = ""

    def text(self) -> str:
        """Name the handler or the step, and its time."""
        what = f"step {self.step!r}" if self.step else "a handler"
        return f"{what} of {self.where} did not end within {self.seconds:g} seconds."

    def action(self) -> str:
        """Say what to do next."""
        where = "step" if self.step else "executor"
        return f"The attempt left no trace: continue the run, or give the {where} a longer timeout= or a retry=."


@dataclass(eq=False, repr=False)
class NoHandlerError(RunError):
    """No handler of the executor fits the message that reached it."""

    code: ClassVar[str] = "no-handler"
    where: str
    given: str

    def text(self) -> str:
        """Name executor and type."""
        return f"{self.where} has no handler for {self.given}."

    def action(self) -> str:
        """Say what to do next."""
        return "Add a handler for this type, or put a condition on the edge that leads here."


@dataclass(eq=False, repr=False)
class StateConflictError(RunError):
    """Two executors wrote different values to one state key in one superstep."""

    code: ClassVar[str] = "state-conflict"
    path: str
    key: str
    first: str
    second: str

    def text(self) -> str:
        """Name key and executors."""
        place = f" of {self.path}" if self.path else ""
        return (
            f"executors {self.first!r} and {self.second!r} wrote different values to state key {self.key!r} in one"
            f" superstep{place}."
        )

    def action(self) -> str:
        """Say what to do next."""
        return (
            "Give the key a reducer (WorkflowBuilder(reducers=...)) and use update_state, or let one executor write it."
        )


@dataclass(eq=False, repr=False)
class PredicateError(RunError):
    """The condition or selection of an edge raised."""

    code: ClassVar[str] = "predicate"
    edge: str
    message: str
    reason: str

    def text(self) -> str:
        """Name edge and message."""
        return f"the condition of edge {self.edge} raised for {self.message}: {self.reason.rstrip('.')}."

    def action(self) -> str:
        """Say what to do next."""
        return "Correct the condition and continue the run: the invocation that sent the message does not run again."


@dataclass(eq=False, repr=False)
class ReducerError(RunError):
    """A reducer raised or returned something that cannot be stored."""

    code: ClassVar[str] = "reducer"
    path: str
    key: str
    reason: str

    def text(self) -> str:
        """Name key and reason."""
        return f"the reducer of state key {self.key!r} failed: {self.reason.rstrip('.')}."

    def action(self) -> str:
        """Say what to do next."""
        return "Correct the reducer and continue the run: no invocation runs again."


@dataclass(eq=False, repr=False)
class JoinDeadlockError(RunError):
    """Half-filled joins wait for each other."""

    code: ClassVar[str] = "join-deadlock"
    path: str
    joins: tuple[str, ...]

    def text(self) -> str:
        """Name the joins."""
        return f"joins {', '.join(map(repr, self.joins))} wait for each other{f' in {self.path}' if self.path else ''}."

    def action(self) -> str:
        """Say what to do next."""
        return "Change the graph so that no join needs the other's result to be filled."


@dataclass(eq=False, repr=False)
class SubWorkflowTimeoutError(RunError):
    """A sub-workflow was busy for longer than it may be."""

    code: ClassVar[str] = "sub-workflow-timeout"
    path: str
    seconds: float

    def text(self) -> str:
        """Name the scope and its limit."""
        return f"sub-workflow {self.path} was busy for more than {self.seconds:g} seconds."

    def action(self) -> str:
        """Say what to do next."""
        return "Continue the run: it goes on inside with a new time; or give the WorkflowExecutor a longer timeout."


@dataclass(eq=False, repr=False)
class SaveHookError(RunError):
    """`on_checkpoint_save` or `on_checkpoint_restore` of an executor failed."""

    code: ClassVar[str] = "save-hook"
    where: str
    hook: str
    problem: str

    def text(self) -> str:
        """Name executor and hook."""
        return f"{self.hook} of {self.where} failed: {self.problem.rstrip('.')}."

    def action(self) -> str:
        """Say what to do next."""
        return (
            "Return a dict with string keys and storable values from on_checkpoint_save, and accept it in"
            " on_checkpoint_restore."
        )
