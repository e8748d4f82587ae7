"""`OpenTelemetryObserver`: traces and metrics of calls, through the API of OpenTelemetry.

What is exported, sampled and where to is the SDK's, which the program sets up or not. It can be imported without the
extra, which is needed to make one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehydrate.errors import MissingExtraError
from rehydrate.ports.observer import CallObserver, Observed

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider


class OpenTelemetryObserver:
    """Makes spans and measurements of what calls do, for `observers=[...]` of a workflow; needs the extra `otel`.

    Providers are the global ones where none are given. Nothing of what a run works with is recorded: neither messages,
    state, requests and answers nor the texts of exceptions. `include_types` adds the type names of messages,
    `include_contents` values and exceptions with their texts. Raises `MissingExtraError`.
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        include_types: bool = False,
        include_contents: bool = False,
    ) -> None:
        try:
            from .call_spans import CallSpans  # noqa: PLC0415  (an extra)
            from .telemetry import Telemetry  # noqa: PLC0415  (the same)
        except ImportError:
            raise MissingExtraError("OpenTelemetryObserver", "otel") from None
        self._spans = CallSpans
        self._telemetry = Telemetry(tracer_provider, meter_provider, types=include_types, contents=include_contents)

    def begin(self, observed: Observed) -> CallObserver:
        """Begin the span of a call."""
        return self._spans(self._telemetry, observed)
