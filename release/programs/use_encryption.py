"""The extra `encryption`: a run of which the file shows nothing."""

from pathlib import Path

from paused_run import pause_and_resume

from rehydrate import EncryptedCheckpointStorage, KeyRing, SqliteCheckpointStorage

ring = KeyRing({"k1": bytes(range(32))}, current="k1")
pause_and_resume(lambda: EncryptedCheckpointStorage(SqliteCheckpointStorage("runs.db"), ring))
assert not any(b"xxxxxxxx" in file.read_bytes() for file in Path().glob("runs.db*") if file.is_file())
print("works")
