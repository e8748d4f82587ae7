"""Errors of agents: a model that cannot be asked, answers what nobody can use, or goes round in circles.

None of them holds a key: what a provider says to one that it does not know is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import RunError


@dataclass(eq=False, repr=False)
class ModelCallError(RunError):
    """A chat model refused a request, or could not be asked; `status` is that of HTTP, where there is one."""

    code: ClassVar[str] = "model-call"
    model: str
    status: int | None
    reason: str

    def text(self) -> str:
        """Name the model and what it said or what happened."""
        status = f" (HTTP {self.status})" if self.status is not None else ""
        return f"model {self.model!r} {self._did()}{status}: {self.reason.rstrip('.')}."

    def action(self) -> str:
        """Say what to do next."""
        return "Correct the client, the model's name or its parameters; a resume of the run asks again."

    def _did(self) -> str:
        # Without a status nobody has answered, so nobody has refused either.
        return "could not be asked" if self.status is None else "refused the request"


@dataclass(eq=False, repr=False)
class ModelUnavailableError(ModelCallError):
    """A chat model could not be reached, was too busy, or gave no whole answer; the same request may succeed later."""

    code: ClassVar[str] = "model-unavailable"

    def action(self) -> str:
        """Say what to do next."""
        return "Resume the run later, which asks again, or give its model more attempts: retry=Retry(attempts=...)."

    def _did(self) -> str:
        return "could not answer"


@dataclass(eq=False, repr=False)
class ModelReplyError(RunError):
    """A chat model answered, and its answer cannot be used."""

    code: ClassVar[str] = "model-reply"
    model: str
    problem: str

    def text(self) -> str:
        """Name the model and what is wrong with its answer."""
        return f"the answer of model {self.model!r} cannot be used: {self.problem.rstrip('.')}."

    def action(self) -> str:
        """Say what to do next."""
        return "Change its parameters or instructions; a resume of the run asks again, all earlier rounds are kept."


@dataclass(eq=False, repr=False)
class RoundLimitError(RunError):
    """A model was asked as often as it may be for one message, and was not done."""

    code: ClassVar[str] = "round-limit"
    agent: str
    limit: int

    def text(self) -> str:
        """Name the agent and the limit."""
        return f"agent {self.agent!r} has asked its model {self.limit} times for one message, and it is not done."

    def action(self) -> str:
        """Say what to do next."""
        return (
            "What was asked and done is kept: resume the run with a larger max_rounds=, or bring a new message with"
            ' on_unfinished="discard".'
        )
