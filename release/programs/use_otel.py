"""The extra `otel`: an observer of a run. Without a program that collects, OpenTelemetry records nothing."""

from paused_run import pause_and_resume

from rehydrate import OpenTelemetryObserver, SqliteCheckpointStorage

pause_and_resume(lambda: SqliteCheckpointStorage("runs.db"), observers=[OpenTelemetryObserver()])
print("works")
