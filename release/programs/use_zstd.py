"""The extra `zstd`: a run whose big records are compressed."""

from pathlib import Path

from paused_run import pause_and_resume

from rehydrate import CompressedCheckpointStorage, SqliteCheckpointStorage

pause_and_resume(lambda: CompressedCheckpointStorage(SqliteCheckpointStorage("runs.db")))
assert not any(b"x" * 10_000 in file.read_bytes() for file in Path().glob("runs.db*") if file.is_file())
print("works")
