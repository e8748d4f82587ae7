"""The extra `otel`: a run whose spans go to a provider of our own, as the SDK is the user's choice."""

from paused_run import pause_and_resume

from rehydrate import OpenTelemetryObserver, SqliteCheckpointStorage

observer = OpenTelemetryObserver()

from opentelemetry import trace  # noqa: E402  (without the extra the line above says what to install)

begun: list[str] = []


class Tracer(trace.NoOpTracer):
    """Notes the names of spans."""

    def start_span(self, name: str, *given: object, **more: object) -> trace.Span:
        begun.append(name)
        return super().start_span(name, *given, **more)


class Provider(trace.NoOpTracerProvider):
    """Gives that tracer."""

    def get_tracer(self, *given: object, **more: object) -> trace.Tracer:
        return Tracer()


pause_and_resume(
    lambda: SqliteCheckpointStorage("runs.db"), observers=[observer, OpenTelemetryObserver(tracer_provider=Provider())]
)
assert begun.count("workflow.run") == 2, begun
print("works")
