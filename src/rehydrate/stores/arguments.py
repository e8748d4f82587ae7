"""Checks of what a caller hands to a store, the same for every store.

Ids are data and never become part of a statement or a path; what cannot be stored exactly is refused here.
"""

from __future__ import annotations

from collections.abc import Iterable

from rehydrate.errors import WrongCallError
from rehydrate.model.checkpoint import Commit


def check_texts(*texts: str) -> None:
    """Raise `WrongCallError` where a text holds half of a surrogate pair, which no encoding stores."""
    _check_joined("".join(texts))


def check_commit_texts(commit: Commit) -> None:
    """Check every id and key of a commit with `check_texts`."""
    header = commit.header
    texts = [header.run_id, header.workflow, header.checkpoint_id, header.previous_checkpoint_id or ""]
    texts.append(commit.lease.owner)
    texts += [put.key for put in commit.puts]
    texts += commit.removes
    for row in commit.requests:
        texts += (row.request_id, row.path)
    if commit.turn is not None:
        texts += _turn_texts(commit)
    _check_joined("".join(texts))


def check_limit(limit: int) -> None:
    """Raise `WrongCallError` unless a page may have this many entries."""
    if limit < 1:
        raise WrongCallError(f"limit is {limit}.", "Pass a limit of 1 or more.")


def _turn_texts(commit: Commit) -> Iterable[str]:
    turn = commit.turn
    assert turn is not None  # noqa: S101  (the caller has looked)
    return turn.workflow, turn.key, turn.digest, turn.base or "", turn.checkpoint_id


def _check_joined(text: str) -> None:
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise WrongCallError(
            f"an id or key holds half of a surrogate pair ({error.object[error.start]!r}).",
            "Ids and keys are whole characters; leave it out.",
        ) from None
