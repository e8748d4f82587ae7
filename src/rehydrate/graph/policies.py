"""Policies of an executor or a step: how often an attempt is tried again, and how long one may last.

They are today's configuration: part of neither the signature nor any record. Nothing here waits or knows a clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, cast

from rehydrate.errors import PolicyError

#: The longest time that a policy can name, in seconds: a hundred years, so that no sum of times overflows.
LONGEST: Final = 100 * 365.25 * 86400
AT_MOST: Final = "at most 100 years"


@dataclass(frozen=True)
class Retry:
    """How often a failed handler is tried, in all (`attempts`), and after which errors (`on`).

    The second attempt comes `delay` seconds after the first has failed, each further one `factor` times as long after
    the one before, `max_delay` seconds at most. Raises `PolicyError` for values that make no sense.
    """

    attempts: int = 3
    delay: float = 1.0
    factor: float = 2.0
    max_delay: float = 60.0
    on: tuple[type[BaseException], ...] = (Exception,)

    def __post_init__(self) -> None:
        if type(self.attempts) is not int or self.attempts < 1:
            raise PolicyError(f"Retry(attempts={self.attempts!r:.100})", "Use a whole number from 1 on; 1 is no retry.")
        for name in ("delay", "max_delay"):
            if not _is_between(getattr(self, name), 0, LONGEST):
                raise PolicyError(
                    f"Retry({name}={getattr(self, name)!r:.100})", f"Use a number of seconds from 0 on, {AT_MOST}."
                )
        if self.delay > self.max_delay:
            problem = f"Retry(delay={self.delay!r:.100}) with max_delay={self.max_delay!r:.100}"
            raise PolicyError(problem, "No delay is longer than max_delay: give that a number as high as delay.")
        if not _is_between(self.factor, 1, LONGEST):
            raise PolicyError(
                f"Retry(factor={self.factor!r:.100})", f"Use a number from 1 to {LONGEST:.0f}; 1 keeps the delay."
            )
        given = cast("object", self.on)
        if isinstance(given, type):
            given = (given,)
            object.__setattr__(self, "on", given)
        if (
            not isinstance(given, tuple)
            or not given
            or not all(_is_error(kind) for kind in cast("tuple[object, ...]", given))
        ):
            raise PolicyError(f"Retry(on={given!r:.100})", "Use a tuple of exception classes, such as (OSError,).")

    def covers(self, error: BaseException) -> bool:
        """Tell whether an attempt that failed with this error is tried again."""
        return isinstance(error, self.on)

    def delay_after(self, failed: int) -> float:
        """Return how many seconds after the failed attempt of this number (from 1) the next one may start."""
        try:
            return min(self.delay * self.factor ** (failed - 1), self.max_delay)
        except OverflowError:
            return self.max_delay if self.delay else 0.0


@dataclass(frozen=True)
class AttemptPolicy:
    """What an executor or a step was told about its attempts; `timeout` is in seconds. One told nothing has none."""

    retry: Retry | None = None
    timeout: float | None = None


def attempt_policy(where: str, retry: object, timeout: object) -> AttemptPolicy | None:
    """Return the policy of an executor or a step, `None` where neither is given. Raises `PolicyError`."""
    if retry is None and timeout is None:
        return None
    if not isinstance(retry, Retry | None):
        raise PolicyError(f"retry={retry!r:.100} of {where}", "Pass a Retry, as in Retry(attempts=5).")
    if timeout is None:
        return AttemptPolicy(retry)
    if not is_time_limit(timeout):
        raise PolicyError(f"timeout={timeout!r:.100} of {where}", f"Use a number of seconds above 0, {AT_MOST}.")
    return AttemptPolicy(retry, float(cast("float", timeout)))


def is_time_limit(value: object) -> bool:
    """Tell whether something is a number of seconds that work may last."""
    return _is_between(value, 0, LONGEST) and value != 0


def _is_between(value: object, least: float, most: float) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return least <= value <= most  # false for what is no number


def _is_error(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseException)
