"""What every installation has: all public names, the stores of the core, and the command."""

import subprocess
import sys
from pathlib import Path

from paused_run import pause_and_resume

import rehydrate

for name in rehydrate.__all__:
    getattr(rehydrate, name)
pause_and_resume(lambda: rehydrate.SqliteCheckpointStorage("runs.db"))
pause_and_resume(lambda: rehydrate.FileCheckpointStorage("runs"))
command = str(Path(sys.executable).with_name("rehydrate"))
for words in ([command], [sys.executable, "-m", "rehydrate"]):
    told = subprocess.run([*words, "--version"], check=True, capture_output=True, text=True).stdout
    assert rehydrate.__version__ in told, told
print("works")
