"""The options of a retention, as `prune` takes and `doctor` asks about: numbers, and ages such as `7d`."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Final, cast

import click

from rehydrate.model.checkpoint import Status
from rehydrate.service.retention import Retention

_AGE: Final = re.compile(r"(\d{1,9})([smhdw])", re.ASCII)
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def age(text: str) -> timedelta:
    """Return how long ago: a number and a unit. Raises `BadParameter` for what is none."""
    match = _AGE.fullmatch(text)
    if match is None:
        raise click.BadParameter(f"{text!r} is no age; write a number and s, m, h, d or w, such as 7d.")
    try:
        return timedelta(**{_UNITS[match[2]]: int(match[1])})
    except OverflowError:
        raise click.BadParameter(f"{text!r} is longer than anything lasts.") from None


_OPTIONS: Final = (
    click.option("--keep-last", type=click.IntRange(1), metavar="N", help="Keep the N newest checkpoints of each run."),
    click.option("--keep-for", type=age, metavar="AGE", help="Keep what is younger, such as 7d."),
    click.option("--delete-ended-after", type=age, metavar="AGE", help="Delete runs that ended longer ago."),
    click.option(
        "--ended",
        type=click.Choice([status.value for status in Status if status is not Status.IDLE_WITH_PENDING_REQUESTS]),
        multiple=True,
        help="What counts as ended; may be repeated. Without it: IDLE.",
    ),
)


def takes_retention(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the options of a retention, and it as its argument `retention`; `None` where no rule is given."""

    @functools.wraps(command)
    def wrapped(*args: object, **kwargs: object) -> int:
        last = cast("int | None", kwargs.pop("keep_last"))
        keep_for = cast("timedelta | None", kwargs.pop("keep_for"))
        delete_after = cast("timedelta | None", kwargs.pop("delete_ended_after"))
        ended = cast("tuple[str, ...]", kwargs.pop("ended"))
        retention: Retention | None = None
        if last is not None or keep_for is not None or delete_after is not None:
            statuses = tuple(map(Status, ended)) or (Status.IDLE,)
            retention = Retention(keep_last=last, keep_for=keep_for, delete_ended_after=delete_after, ended=statuses)
        return command(*args, retention=retention, **kwargs)

    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped
