"""Checks of what a caller hands to a store, the same for every store.

Ids are data and never become part of a statement or a path; what cannot be stored exactly is refused here.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, cast

from rehydrate.errors import IdError, WrongCallError
from rehydrate.ids import check_id
from rehydrate.model.checkpoint import At, CheckpointRef, Commit, Header, Latest, Offer, Status

_STATUSES: Final = frozenset(status.value for status in Status)


def check_texts(**texts: object) -> None:
    """Raise `WrongCallError` where a text is none, or holds half of a surrogate pair, which no encoding stores."""
    given: list[str] = []
    for name, text in texts.items():
        if not isinstance(text, str):
            raise WrongCallError(f"{name} is {_kind(text)}.", "Pass a str.")
        given.append(text)
    _check_whole("".join(given))


def check_flag(name: str, given: object) -> bool:
    """Return whether something is on. Raises `WrongCallError` for a word: "no" would count as yes."""
    if not isinstance(given, bool):
        raise WrongCallError(f"{name} is {_kind(given)}.", "Pass True or False.")
    return given


def check_ref(ref: CheckpointRef) -> None:
    """Raise `WrongCallError` unless this can name a checkpoint."""
    if isinstance(ref, Latest):
        check_texts(run_id=ref.run_id)
        return
    if isinstance(ref, At):
        check_texts(run_id=ref.run_id)
        if isinstance(ref.at, str):
            check_texts(at=ref.at)
        else:
            _check_number("at", ref.at)
        return
    check_texts(ref=ref)


def check_keys(keys: object) -> tuple[str, ...]:
    """Return the keys. Raises `WrongCallError` where these are no keys; one text is not a list of its characters."""
    if isinstance(keys, str) or not isinstance(keys, Iterable):
        raise WrongCallError(f"keys is {_kind(keys)}.", "Pass a list of keys.")
    found = tuple(cast("Iterable[str]", keys))
    _check_all(found, "keys holds")
    return found


def check_numbers(numbers: object) -> list[int]:
    """Return the numbers of checkpoints. Raises `WrongCallError` where these are none."""
    if isinstance(numbers, str) or not isinstance(numbers, Iterable):
        raise WrongCallError(f"numbers is {_kind(numbers)}.", "Pass a list of sequence numbers.")
    found = list(cast("Iterable[int]", numbers))
    for number in found:
        _check_number("a sequence number", number)
    return found


def check_tag(run_id: str, name: str, checkpoint_id: str | None) -> None:
    """Raise `WrongCallError` unless a checkpoint can have this name; names are ids."""
    check_texts(run_id=run_id, name=name)
    if checkpoint_id is not None:
        check_texts(checkpoint_id=checkpoint_id)
    try:
        check_id(name, "name")
    except IdError as error:
        raise WrongCallError(error.text(), error.action()) from None


def check_offer(offer: Offer) -> None:
    """Raise `WrongCallError` unless this can be put into an inbox."""
    check_texts(run_id=offer.run_id, key=offer.key)
    if not isinstance(cast("object", offer.body), bytes):
        raise WrongCallError(f"the body of an offer is {_kind(offer.body)}.", "Pass bytes.")


class RunsAsked(NamedTuple):
    """Which heads of runs a page is to have, as `CheckpointStorage.runs` says."""

    workflow: str | None
    status: str | None
    offered: bool
    due_by: float | None
    after: str | None
    limit: int

    def checked(self) -> RunsAsked:
        """Return it. Raises `WrongCallError` where nothing can be listed by it."""
        check_page(self.limit)
        check_filters(self.workflow, self.status, self.after)
        if self.due_by is not None:
            _check_time("due_by", self.due_by)
        return self

    def takes(self, header: Header) -> bool:
        """Tell whether a head is one of these, but for its inbox and its place in the order."""
        return (
            self.workflow in {None, header.workflow}
            and self.status in {None, header.status.value}
            and (self.due_by is None or (header.due is not None and header.due <= self.due_by))
        )


def check_filters(workflow: str | None, status: str | None, after: str | None, run_id: str | None = None) -> None:
    """Raise `WrongCallError` where nothing can be listed by these; a status must be one that there is."""
    given = {"workflow": workflow, "status": status, "after": after, "run_id": run_id}
    check_texts(**{name: text for name, text in given.items() if text is not None})
    if status is not None and status not in _STATUSES:
        raise WrongCallError(f"status is {str(status)!r}.", f"Pass one of {', '.join(map(repr, map(str, Status)))}.")


def check_commit_arguments(commit: Commit) -> None:
    """Check every id and key of a commit as `check_texts` does, and that its events have numbers."""
    header = commit.header
    if len(commit.events) > header.events:
        told = f"holds {len(commit.events)} events, and the last is number {header.events}"
        raise WrongCallError(f"a commit of run {header.run_id!r} {told}.", "Number events from 1.")
    texts = [header.run_id, header.workflow, header.checkpoint_id, header.previous_checkpoint_id or ""]
    texts.append(commit.lease.owner)
    texts += [put.key for put in commit.puts]
    texts += commit.removes
    for row in commit.requests:
        texts += (row.request_id, row.path)
    if commit.turn is not None:
        texts += _turn_texts(commit)
    _check_all(texts, "an id or key of the commit is")


def check_page(limit: int, before: int | None = None) -> None:
    """Raise `WrongCallError` unless a page may have this many entries and end before this number."""
    _check_number("limit", limit)
    if before is not None:
        _check_number("before", before)
    if limit < 1:
        raise WrongCallError(f"limit is {limit}.", "Pass a limit of 1 or more.")


def check_event_page(after: int, limit: int) -> None:
    """Raise `WrongCallError` unless events can be read from behind this number on."""
    check_page(limit)
    _check_number("after", after)
    if after < 0:
        raise WrongCallError(f"after is {after}.", "Pass the number of the last event that you have, or 0 for all.")


def path_text(path: object) -> str:
    """Return the path of a store's file as text. Raises `WrongCallError` where it names no file."""
    name = _path_text(path, "file", "runs.db")
    if name.endswith(os.sep):
        raise WrongCallError(f"{name!r} is the path of a folder.", f"Name a file in it, such as '{name}runs.db'.")
    return name


def folder_text(path: object) -> str:
    """Return the path of a store's folder as text. Raises `WrongCallError` where it names none."""
    return _path_text(path, "folder", "runs")


def _path_text(path: object, kind: str, example: str) -> str:
    name: object = os.fspath(cast("os.PathLike[str]", path)) if isinstance(path, os.PathLike) else path
    if not isinstance(name, str):
        raise WrongCallError(
            f"the path of a store is {_kind(name)}.",
            f"Pass the path of a {kind} as a str or a Path, such as {example!r}.",
        )
    if not name or name == ":memory:" or "\0" in name:
        raise WrongCallError(f"{name!r} is not the path of a {kind}.", "Use InMemoryCheckpointStorage to keep nothing.")
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        fix = f"Leave out what no {kind} name holds."
        raise WrongCallError(f"{name!r} is not the path of a {kind}.", fix) from None
    return name


def _turn_texts(commit: Commit) -> Iterable[str]:
    turn = commit.turn
    assert turn is not None  # noqa: S101  (the caller has looked)
    return turn.workflow, turn.key, turn.digest, turn.base or "", turn.checkpoint_id


def _check_all(texts: Sequence[object], says: str) -> None:
    try:
        joined = "".join(cast("Sequence[str]", texts))
    except TypeError:
        wrong = next(text for text in texts if not isinstance(text, str))
        raise WrongCallError(f"{says} {_kind(wrong)}.", "Ids and keys are text; pass a str.") from None
    _check_whole(joined)


def _check_whole(text: str) -> None:
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise WrongCallError(
            f"an id or key holds half of a surrogate pair ({error.object[error.start]!r}).",
            "Ids and keys are whole characters; leave it out.",
        ) from None


def _check_number(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise WrongCallError(f"{name} is {_kind(value)}.", "Pass an int.")


def _check_time(name: str, value: object) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise WrongCallError(f"{name} is {_kind(value)}.", "Pass a float.")
    if math.isnan(value):  # databases compare it in ways of their own
        raise WrongCallError(f"{name} is {value}.", "Pass a number.")


def _kind(value: object) -> str:
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
