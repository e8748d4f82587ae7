"""The extra `apsw`: a run in a file that a SQLite other than Python's writes."""

from paused_run import pause_and_resume

from rehydrate import SqliteCheckpointStorage

pause_and_resume(lambda: SqliteCheckpointStorage("runs.db", driver="apsw"))
print("works")
