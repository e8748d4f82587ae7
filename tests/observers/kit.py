"""What the tests of observers share: an SDK that keeps what it is given, and its spans as a tree of text."""

from collections import defaultdict
from collections.abc import Sequence

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from rehydrate import OpenTelemetryObserver

#: Which attributes say what a span is about.
ABOUT = (
    "rehydrate.scope.path", "rehydrate.executor.id", "rehydrate.step.name", "rehydrate.message.targets",
    "rehydrate.checkpoint.cause", "rehydrate.outcome", "rehydrate.run.status", "error.type",
)  # fmt: skip


class Sdk:
    """The real SDK, which exports to memory."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.meters = MeterProvider([self.reader])

    def observer(self, **options: bool) -> OpenTelemetryObserver:
        """An observer that reports to it."""
        return OpenTelemetryObserver(tracer_provider=self.tracers, meter_provider=self.meters, **options)

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        """All spans that have ended, in that order."""
        return self.exporter.get_finished_spans()

    def named(self, name: str) -> list[ReadableSpan]:
        """The spans of one name."""
        return [span for span in self.spans if span.name == name]

    def tree(self) -> list[str]:
        """The spans as indented lines, siblings in the order in which they ended."""
        below = defaultdict(list)
        known = {span.context.span_id for span in self.spans}
        for span in self.spans:
            parent = span.parent.span_id if span.parent is not None and span.parent.span_id in known else None
            below[parent].append(span)

        def lines(parent: int | None, indent: str) -> list[str]:
            return [
                line
                for span in below[parent]
                for line in (f"{indent}{told(span)}", *lines(span.context.span_id, f"{indent}  "))
            ]

        return lines(None, "")

    def measured(self) -> dict[tuple[str, ...], float]:
        """Values of counters and counts of histograms, by name and values of attributes."""
        data = self.reader.get_metrics_data()
        found = {}
        for resource in data.resource_metrics if data is not None else ():
            for metric in (metric for scope in resource.scope_metrics for metric in scope.metrics):
                for point in metric.data.data_points:
                    name = metric.name.removeprefix("rehydrate.")
                    words = [v for k, v in sorted(point.attributes.items()) if k != "rehydrate.workflow.name"]
                    found[name, *words] = point.count if hasattr(point, "count") else point.value
        return found


def told(span: ReadableSpan) -> str:
    """A span in one line."""
    words = [span.name]
    for name in ABOUT:
        value = span.attributes.get(name)
        if value and value != "finished":
            words.append(",".join(value) if isinstance(value, tuple) else str(value))
    return " ".join(words)
