"""What goes wrong with a model: which errors of clients may pass, and which answers are no whole ones.

Errors are sorted by their status and by the names of their classes. It must not import a client.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from rehydrate.errors import ModelCallError, ModelReplyError, ModelUnavailableError, RehydrateError
from rehydrate.runtime.causes import leaves

#: Statuses after which the same request may succeed; so may those from 500 on.
_PASSING: Final = frozenset({408, 409, 425, 429})
#: Statuses from here on refuse a request; one that is lower came with an answer, and a client could not read that.
_REFUSING: Final = 400
#: What a provider says to a key that it does not know may show the key.
_ABOUT_KEYS: Final = frozenset({401, 403})
#: How an answer ends that did not come to its end: without a reason, or, as gateways tell it, with this one.
_BROKEN_OFF: Final = frozenset({"", "error"})
#: Classes (openai, pydantic-ai, httpx, json) for what went wrong on the way, or came over it and is no answer.
_ON_THE_WAY: Final = frozenset(
    {
        "APIError",
        "DecodingError",
        "JSONDecodeError",
        "ModelAPIError",
        "TransportError",
        "UnexpectedModelBehavior",
        "UnicodeDecodeError",
    }
)


@contextmanager
def errors_of(model: str) -> Generator[None]:
    """Raise what a client raises as an error of ours, which says whether another attempt makes sense."""
    try:
        yield
    except RehydrateError:
        raise
    except Exception as error:
        each = list(leaves(error))  # a model that falls back on others raises what all of them did
        shows_key = any(_status(one) in _ABOUT_KEYS for one in each)
        reason = type(error).__name__ if shows_key else f"{type(error).__name__}: {error!s:.500}"
        kind = ModelUnavailableError if any(_may_pass(one) for one in each) else ModelCallError
        # A failure is stored with the trace of all its causes, so this one must be none where it may show a key.
        raise kind(model, _status(error), reason) from None if shows_key else error


def check_end(model: str, finish_reason: str, refusal: str = "") -> None:
    """Raise for an answer that did not come to its end, as its finish reason in the form of the protocol tells.

    `ModelUnavailableError` where it broke off, `ModelReplyError` where the next one would end like it.
    """
    if finish_reason in _BROKEN_OFF:
        raise ModelUnavailableError(model, None, "its answer broke off")
    if finish_reason == "length":
        raise ModelReplyError(model, "it was cut off at the limit of its length (finish_reason 'length')")
    if refusal:
        raise ModelReplyError(model, f"the model refuses: {refusal:.500}")
    if finish_reason == "content_filter":
        raise ModelReplyError(model, "its provider has filtered it (finish_reason 'content_filter')")


def _status(error: BaseException) -> int | None:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def _may_pass(error: BaseException) -> bool:
    status = _status(error)
    if status is not None:
        return status in _PASSING or status >= 500 or status < _REFUSING
    return isinstance(error, OSError) or not _ON_THE_WAY.isdisjoint(kind.__name__ for kind in type(error).__mro__)
