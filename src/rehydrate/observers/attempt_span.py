"""The span of one attempt, current while the code of the user runs, and those of the messages that came of it.

A message is sent once its sender has finished: what a failed attempt had sent was never on its way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import time_ns

from opentelemetry.context import Context, attach, detach
from opentelemetry.trace import set_span_in_context

from rehydrate.model.effects import Ask, Effect, Output, Respond, Routes, Send
from rehydrate.model.sealed import Payload
from rehydrate.ports.observer import Attempt, Opener, Outcome

from .telemetry import Attributes, Telemetry


class AttemptSpan:
    """The span of an executor that handles a message, or of a step."""

    def __init__(
        self, telemetry: Telemetry, attempt: Attempt, named: Attributes, opener: Opener, parent: Context | None
    ) -> None:
        self._telemetry = telemetry
        self._opener = opener
        self._common: dict[str, str | int] = {
            "rehydrate.run.id": attempt.run_id,
            "rehydrate.scope.path": attempt.path,
            "rehydrate.superstep.number": attempt.superstep,
            "rehydrate.executor.id": attempt.executor_id,
            "rehydrate.executor.activation": attempt.activation,
        }
        if attempt.step:
            own: Attributes = {"rehydrate.step.name": attempt.step, "rehydrate.step.attempt": attempt.number}
        else:
            own = {"rehydrate.executor.attempt": attempt.number}
        if attempt.message is not None:
            own = {**own, **telemetry.message(attempt.message, opener)}
        self._named = named
        self._span = telemetry.tracer.start_span(
            "step.process" if attempt.step else "executor.process",
            parent,
            attributes={**named, **self._common, **own},
        )
        self._token = attach(set_span_in_context(self._span))

    def end(self, outcome: Outcome) -> None:
        """End the span, after those of the messages."""
        detach(self._token)
        span = self._span
        span.set_attribute("rehydrate.outcome", outcome.kind)
        if outcome.kind == "failed":
            self._telemetry.fail(span, outcome.failure, outcome.error)
        else:
            for message, routes in _messages(outcome.effects):
                self._message(message, routes)
        span.end()

    def _message(self, message: Payload, targets: list[str]) -> None:
        now = time_ns()
        attributes: Attributes = {
            **self._named,
            **self._common,
            "rehydrate.message.targets": targets,
            **self._telemetry.message(message, self._opener),
        }
        self._telemetry.tracer.start_span(
            "message.send", set_span_in_context(self._span), attributes=attributes, start_time=now
        ).end(now)


def _messages(effects: Sequence[Effect]) -> Iterator[tuple[Payload, list[str]]]:
    """Return what goes to executors, with their ids, of which a message has none that every condition declined; an
    answer to a sub-workflow goes to its scope."""
    for effect in effects:
        match effect:
            case Send():
                yield effect.value, _targets(effect.routes)
            case Output() if effect.routes:
                yield effect.value, _targets(effect.routes)
            case Ask() if effect.routes:
                yield effect.data, _targets(effect.routes)
            case Respond():
                yield effect.value, [effect.path]
            case _:
                pass


def _targets(routes: Routes) -> list[str]:
    return [route.target for route in routes or ()]
