"""Retention: what a rule lets go of a run's checkpoints, and when a run may go as a whole.

Decides on headers and what is told beside them; it reads and deletes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal, TypeAlias, cast

from rehydrate.errors import WrongCallError
from rehydrate.model.checkpoint import Cause, Header, Status
from rehydrate.runtime.call import with_article

#: Why a checkpoint stays: it is the head, it has a name, it is one of the last or young enough, the newest turn began
#: at it, or it holds the recorded result of an idempotency key.
Why: TypeAlias = Literal["head", "named", "last", "young", "start of the newest turn", "recorded result"]


@dataclass(frozen=True)
class Retention:
    """What `prune` leaves. At least one of the three must be given.

    A checkpoint stays if it is one of the `keep_last` newest of its run or younger than `keep_for`; without both, all
    stay. Whatever these say, the head stays, what has a name, the checkpoint that the newest turn began at, and the
    recorded results of idempotency keys.

    A run goes as a whole once its head is older than `delete_ended_after` and its status is one of `ended`. Runs with
    an open request, a living owner, a named checkpoint, or something in their inbox stay. A run that has failed, was
    cancelled or has reached its limit can still be continued: it goes only where `ended` says so.
    """

    keep_last: int | None = None
    keep_for: timedelta | None = None
    delete_ended_after: timedelta | None = None
    ended: Collection[Status] = field(default=(Status.IDLE,))

    def __post_init__(self) -> None:
        last = cast("object", self.keep_last)
        if last is not None and (not isinstance(last, int) or isinstance(last, bool) or last < 1):
            raise WrongCallError(f"keep_last is {last!r}.", "Pass a number of 1 or more.")
        for name in ("keep_for", "delete_ended_after"):
            age = cast("object", getattr(self, name))
            if age is not None and not isinstance(age, timedelta):
                raise WrongCallError(f"{name} is {with_article(age)}.", "Pass a timedelta.")
            if isinstance(age, timedelta) and age < timedelta(0):
                raise WrongCallError(f"{name} is {age}.", "Pass a timedelta that is not negative.")
        if last is None and self.keep_for is None and self.delete_ended_after is None:
            raise WrongCallError(
                "a retention without a rule keeps all.", "Give keep_last, keep_for or delete_ended_after."
            )
        object.__setattr__(self, "ended", _checked_statuses(self.ended))

    @property
    def forgets(self) -> bool:
        """Whether it lets single checkpoints go."""
        return self.keep_last is not None or self.keep_for is not None

    def may_delete(self, header: Header, now: float) -> bool:
        """Tell whether a run with this head has ended long enough ago."""
        after = self.delete_ended_after
        return after is not None and header.status in self.ended and now - header.created >= after.total_seconds()

    def keeps(self, header: Header, position: int, now: float) -> tuple[Why, ...]:
        """Return which of the two rules keep a checkpoint that is the `position`-th newest of its run, from 0."""
        found: list[Why] = []
        if self.keep_last is not None and position < self.keep_last:
            found.append("last")
        if self.keep_for is not None and now - header.created < self.keep_for.total_seconds():
            found.append("young")
        return tuple(found)


def _checked_statuses(given: object) -> frozenset[Status]:
    fix = 'Pass some of IDLE, LIMIT_REACHED, FAILED, CANCELLED and RUNNING, such as ("IDLE", "CANCELLED").'
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise WrongCallError(f"ended is {with_article(given)}.", fix)
    try:
        found = frozenset(Status(status) for status in cast("Iterable[str]", given))
    except ValueError as error:
        raise WrongCallError(f"ended: {error}.", fix) from None
    if Status.IDLE_WITH_PENDING_REQUESTS in found:
        raise WrongCallError("ended names IDLE_WITH_PENDING_REQUESTS; runs with open requests are kept.", fix)
    return found


def recorded_results(headers: Sequence[Header]) -> list[int]:
    """Return the numbers of the checkpoints that a call gets which is repeated with its idempotency key.

    Of each turn with a key that is the one in which it ended; an edit after it is none of its turn's. Newest first.
    """
    found: dict[int, int] = {}
    for header in headers:
        if header.keyed and header.status is not Status.RUNNING and header.cause is not Cause.EDIT:
            found.setdefault(header.turn, header.seq)
    return list(found.values())
