"""The extra `cli`: a run is started, listed, and answered by three calls of the command."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

APP = """
from paused_run import Asks
from rehydrate import SqliteCheckpointStorage, WorkflowBuilder

store = SqliteCheckpointStorage("runs.db")
asks = WorkflowBuilder(name="asks", start_executor=Asks("asks"), checkpoint_storage=store).build()
"""


def command(*words: str) -> list[dict[str, Any]]:
    """Call the command and return what it prints as JSON, a line each; it ends as it does where it cannot go on."""
    whole = [str(Path(sys.executable).with_name("rehydrate")), *words, "--app", "app.py", "--json"]
    environment = {"PYTHONPATH": str(Path(__file__).parent), "PYTHONWARNINGS": "error"}
    done = subprocess.run(whole, capture_output=True, text=True, check=False, env=environment)
    if done.stderr:
        sys.exit(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


Path("app.py").write_text(APP)
command("run", "--run", "r", "--message", json.dumps("a text"))
(printed,) = command("inbox")
(waiting,) = printed["requests"]
assert "42 6" in str(command("answer", f"{waiting['request_id']}=21")), waiting
print("works")
