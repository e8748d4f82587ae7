"""What follows an attempt that failed: another one by the executor's policy, or the failure of the invocation.

The budget and the time are in the records; the policy is today's. Nothing here waits.
"""

from __future__ import annotations

from rehydrate.engine import reading
from rehydrate.engine.commands import StartInvocation
from rehydrate.engine.inputs import AttemptBroken, Input, InvocationBroken
from rehydrate.graph.policies import AttemptPolicy
from rehydrate.model.events import AttemptFailed
from rehydrate.ports import Clock

from .causes import failure_of
from .context import Surroundings


def policy_of(around: Surroundings, start: StartInvocation) -> AttemptPolicy | None:
    """Return the policy of the executor that is to handle a message."""
    return around.outlets.graph_at(start.path).executors[start.delivery.executor].attempt_policy


def seconds_to_wait(around: Surroundings, start: StartInvocation, clock: Clock) -> float:
    """Return how long an attempt still has to wait, 0 or less for not at all, whatever became of the clock since."""
    return 0.0 if start.due is None else seconds_left(policy_of(around, start), start.due, clock)


def seconds_left(policy: AttemptPolicy | None, due: float, clock: Clock) -> float:
    """Return how long an attempt still has to wait that is due then, but no longer than the policy makes anyone."""
    longest = policy.retry.max_delay if policy is not None and policy.retry is not None else 0.0
    return min(due - clock.time(), longest)


def after_failure(
    around: Surroundings, start: StartInvocation, error: BaseException, clock: Clock
) -> tuple[Input, BaseException | None]:
    """Return what the engine is told of a failed attempt, and the error where it ends the invocation.

    Whoever streams is told at once.
    """
    delivery = start.delivery
    before = reading.attempts(around.run, start.path, delivery.executor, delivery.activation)
    failure = failure_of(error, "handler")
    again = seconds_to_next(policy_of(around, start), before.failed + 1, error)
    if around.channel.observed is not None:
        around.channel.observed.raised(start, before.started + 1, error)
    if around.streaming:
        around.emit(
            AttemptFailed(
                path=start.path,
                executor_id=delivery.executor,
                superstep=start.superstep,
                activation=delivery.activation,
                live=True,
                attempt=before.started + 1,
                failure=failure,
                again=again,
            )
        )
    if again is None:
        return InvocationBroken(start.path, delivery.executor, delivery.activation, failure), error
    due = clock.time() + again
    return AttemptBroken(start.path, delivery.executor, delivery.activation, failure, due), None


def seconds_to_next(policy: AttemptPolicy | None, failed: int, error: BaseException) -> float | None:
    """Return after how many seconds an attempt follows the one that used so much of the budget; `None` for none."""
    if policy is None or policy.retry is None or failed >= policy.retry.attempts or not policy.retry.covers(error):
        return None
    return policy.retry.delay_after(failed)
