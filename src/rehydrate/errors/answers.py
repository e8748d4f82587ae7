"""Errors of answers: what a call brings for open requests does not fit them.

All of them are raised before the claim: no answer of the call was taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import CallError


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
